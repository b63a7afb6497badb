//! Permanent identifiers: taints, labels, annotations, event reasons, names of objects in the cluster. They are
//! upstream's where upstream has one, so that a rolling update can replace an existing deployment. Nothing here may ever change its value.

/// The namespace of the lease and of this controller's own objects.
pub const NAMESPACE: &str = "kube-system";
/// Upstream's lease, shared so that upstream's cloud-controller-manager and ccm-core never lead at the same time.
pub const LEASE: &str = "cloud-controller-manager";
/// The `ConfigMap` that holds what must survive a restart is this and the provider's name.
pub const STATE_CONFIG_MAP_PREFIX: &str = "ccm-core-";

/// The source of the events of the service controller; upstream's, which is not the controller's name.
pub const SERVICE_EVENT_SOURCE: &str = "service-controller";
/// The source of the events of the route controller; upstream's, which is not the controller's name.
pub const ROUTE_EVENT_SOURCE: &str = "route_controller";
/// Keeps a Service until its load balancer is gone.
pub const LOAD_BALANCER_FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// The Service condition with the status of its load balancer.
pub const LOAD_BALANCER_READY: &str = "LoadBalancerReady";

/// Names of controllers, as in `--controllers` and in upstream's metrics.
pub mod controllers {
    /// Initialises nodes and keeps them up to date (upstream's alias: `cloud-node`).
    pub const NODE: &str = "cloud-node-controller";
    /// Taints and deletes nodes whose machine stopped or is gone (upstream's alias: `cloud-node-lifecycle`).
    pub const NODE_LIFECYCLE: &str = "cloud-node-lifecycle-controller";
    /// Creates and maintains the load balancers of Services (upstream's alias: `service`).
    pub const SERVICE: &str = "service-lb-controller";
    /// Creates and removes the routes to the Pods of each node (upstream's alias: `route`).
    pub const ROUTE: &str = "node-route-controller";
}

/// The condition of nodes that says whether there are routes to their Pods.
pub mod network_unavailable {
    /// Its type.
    pub const TYPE: &str = "NetworkUnavailable";
    /// The reason with the status False: every Pod CIDR of the node has its route.
    pub const ROUTE_CREATED: &str = "RouteCreated";
    /// The reason with the status True: a Pod CIDR of the node has no route.
    pub const NO_ROUTE_CREATED: &str = "NoRouteCreated";
}

/// Taints.
pub mod taints {
    /// kubelet sets it with `--cloud-provider=external`; initialisation ends with its removal.
    pub const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
    /// The machine is stopped.
    pub const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
    /// cluster-autoscaler is about to remove the machine.
    pub const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";
}

/// Labels of nodes.
pub mod labels {
    /// Zone.
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    /// Zone, deprecated.
    pub const ZONE_BETA: &str = "failure-domain.beta.kubernetes.io/zone";
    /// Region.
    pub const REGION: &str = "topology.kubernetes.io/region";
    /// Region, deprecated.
    pub const REGION_BETA: &str = "failure-domain.beta.kubernetes.io/region";
    /// Instance type.
    pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
    /// Instance type, deprecated.
    pub const INSTANCE_TYPE_BETA: &str = "beta.kubernetes.io/instance-type";
    /// Keeps a node out of load balancers.
    pub const EXCLUDE_FROM_LOAD_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
}

/// Annotations.
pub mod annotations {
    /// The addresses of kubelet's `--node-ip`, separated by commas.
    pub const PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";
    /// Which labels this controller wrote: a JSON object of label to value.
    pub const APPLIED_LABELS: &str = "ccm-core.dev/applied-labels";
    /// On a node: with the value `true`, every controller leaves the node unmanaged.
    pub const UNMANAGED: &str = "ccm-core.dev/unmanaged";
    /// On a Service: the class for which ccm-core added the finalizer; empty means the default.
    pub const LOAD_BALANCER_CLASS: &str = "ccm-core.dev/load-balancer-class";
    /// On the state `ConfigMap`: the id of a tripped breaker that the operator overrides.
    pub const RELEASE_BREAKER: &str = "ccm-core.dev/release-breaker";
    /// On the lease: provider, accepted cloud identity and epoch of the term, as a JSON object.
    pub const STATE: &str = "ccm-core.dev/state";
}

/// Reasons of events.
pub mod events {
    /// A node was initialised.
    pub const SYNCED: &str = "Synced";
    /// A node is about to be deleted.
    pub const DELETING_NODE: &str = "DeletingNode";
    /// Deleting a node failed.
    pub const DELETING_NODE_FAILED: &str = "DeletingNodeFailed";
    /// A deletion breaker tripped.
    pub const DELETION_BREAKER_TRIPPED: &str = "NodeDeletionBreakerTripped";
    /// An operator overrode a deletion breaker.
    pub const DELETION_BREAKER_RELEASED: &str = "NodeDeletionBreakerReleased";
    /// A deletion breaker reset by itself: its reason is gone.
    pub const DELETION_BREAKER_RESET: &str = "NodeDeletionBreakerReset";
    /// Nodes are not deleted for now, and why.
    pub const NODE_DELETION_PAUSED: &str = "NodeDeletionPaused";
    /// The provider's answer cannot be used.
    pub const INVALID_PROVIDER_ANSWER: &str = "InvalidProviderAnswer";
    /// The machine does not have the addresses of kubelet's `--node-ip`.
    pub const INVALID_NODE_IP: &str = "InvalidNodeIP";
    /// The machine's zone or region differs from the node's label.
    pub const TOPOLOGY_DRIFT: &str = "TopologyDrift";
    /// The look-up of a node that waits to be initialised failed, and a person must fix the cause.
    pub const CLOUD_LOOKUP_FAILED: &str = "CloudLookupFailed";
    /// Look-ups of nodes that are not ready began to fail.
    pub const NODE_LOOKUPS_FAILING: &str = "NodeLookupsFailing";
    /// The API server refused what was to be written to a node.
    pub const NODE_WRITE_REFUSED: &str = "NodeWriteRefused";
    /// An operator left a node unmanaged.
    pub const NODE_UNMANAGED: &str = "NodeUnmanaged";
    /// A node that was left unmanaged is managed again.
    pub const NODE_MANAGED: &str = "NodeManaged";
    /// Several machines fit a node.
    pub const AMBIGUOUS_INSTANCE: &str = "AmbiguousInstance";
    /// A load balancer is about to be made or changed.
    pub const ENSURING_LOAD_BALANCER: &str = "EnsuringLoadBalancer";
    /// A load balancer is in the desired state.
    pub const ENSURED_LOAD_BALANCER: &str = "EnsuredLoadBalancer";
    /// The targets of a load balancer changed to the present nodes.
    pub const UPDATED_LOAD_BALANCER: &str = "UpdatedLoadBalancer";
    /// The targets of a load balancer could not be changed.
    pub const UPDATE_LOAD_BALANCER_FAILED: &str = "UpdateLoadBalancerFailed";
    /// A load balancer could not be made, changed or removed.
    pub const SYNC_LOAD_BALANCER_FAILED: &str = "SyncLoadBalancerFailed";
    /// A load balancer is about to be removed.
    pub const DELETING_LOAD_BALANCER: &str = "DeletingLoadBalancer";
    /// A load balancer is gone.
    pub const DELETED_LOAD_BALANCER: &str = "DeletedLoadBalancer";
    /// There is no node that a load balancer could send traffic to.
    pub const UNAVAILABLE_LOAD_BALANCER: &str = "UnAvailableLoadBalancer";
    /// The load balancer in the cloud differs from its desired state.
    pub const LOAD_BALANCER_DRIFT: &str = "LoadBalancerDrift";
    /// The Service's class is no longer served: its load balancer stays unchanged.
    pub const LOAD_BALANCER_CLASS_NOT_SERVED: &str = "LoadBalancerClassNotServed";
    /// The provider does not serve load balancers: existing ones stay unchanged.
    pub const LOAD_BALANCERS_UNSUPPORTED: &str = "LoadBalancersUnsupported";
    /// A route to the Pods of a node could not be made.
    pub const FAILED_TO_CREATE_ROUTE: &str = "FailedToCreateRoute";
    /// There are more stale routes than the budget allows: none of them is deleted.
    pub const ROUTE_DELETION_BREAKER_TRIPPED: &str = "RouteDeletionBreakerTripped";
    /// The breaker for stale routes reset by itself: they fit the budget, or are gone.
    pub const ROUTE_DELETION_BREAKER_RESET: &str = "RouteDeletionBreakerReset";
    /// The provider's cloud identity is another than the accepted one.
    pub const CLOUD_IDENTITY_CHANGED: &str = "CloudIdentityChanged";
    /// The record of the accepted cloud is lost, and nodes show that there was one.
    pub const CLOUD_IDENTITY_LOST: &str = "CloudIdentityLost";
    /// The state was deleted, emptied or set back during a term, and was restored.
    pub const STATE_RESTORED: &str = "StateRestored";
    /// The provider refused the epoch of the leadership term.
    pub const LEAD_REFUSED: &str = "LeadRefused";
}
