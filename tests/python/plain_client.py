"""The core's part of the protocol, call by call, on nothing but generated bindings: a client to copy from in any language.

It makes calls and hands their answers over; what must hold is in the tests.
"""

import collections
import contextlib
import queue
import secrets
import uuid

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status

HANDSHAKE_SECONDS = 5
DEADLINE_SECONDS = 10
MUTATION_SECONDS = 30
CLUSTER = {"name": "kubernetes", "uid": "2b5f0c1e-0000-4000-8000-000000000001"}


class Details(
    collections.namedtuple("Details", ["method", "timeout", "metadata", "credentials", "wait_for_ready", "compression"]),
    grpc.ClientCallDetails,
):
    """What a call is made with."""


class Metadata(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    """The two metadata entries of every call: an id of its own, and a trace's."""

    def intercept_unary_unary(self, continuation, details, request):
        return continuation(self._with_entries(details), request)

    intercept_unary_stream = intercept_stream_unary = intercept_stream_stream = intercept_unary_unary

    def _with_entries(self, details):
        trace = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
        entries = [*(details.metadata or ()), ("x-request-id", str(uuid.uuid4())), ("traceparent", trace)]
        rest = (details.credentials, details.wait_for_ready, details.compression)
        return Details(details.method, details.timeout, entries, *rest)


def shake_hands(bindings, channel, versions=("v1",)):
    """What the core does first on every connection."""
    identity = bindings.identity_grpc.IdentityStub(channel)
    request = bindings.identity.GetProviderInfoRequest(
        cluster=bindings.types.ClusterRef(**CLUSTER), core_version="test", protocol_versions=versions
    )
    return identity.GetProviderInfo(request, timeout=HANDSHAKE_SECONDS).info


def look_up(bindings, channel, *names):
    """The results of one batch, by node name."""
    instances = bindings.instances_grpc.InstancesStub(channel)
    queries = [bindings.instances.InstanceQuery(node_name=name) for name in names]
    request = bindings.instances.BatchGetInstancesRequest(queries=queries)
    answer = instances.BatchGetInstances(request, timeout=DEADLINE_SECONDS)
    assert len(answer.results) == len(names), "exactly one result for each query"
    return {result.node_name: result for result in answer.results}


def lead_request(bindings, epoch):
    """The core's word that it leads."""
    request = bindings.identity.LeadRequest(epoch=epoch, holder="test", cluster=bindings.types.ClusterRef(**CLUSTER))
    request.valid_for.FromSeconds(30)
    return request


@contextlib.contextmanager
def leading(bindings, channel, epoch):
    """A Lead stream that is live within the block. It gives what a core does at each renewal of its lease."""
    words = queue.Queue()
    stream = bindings.identity_grpc.IdentityStub(channel).Lead(iter(words.get, None))

    def renew():
        words.put(lead_request(bindings, epoch))
        assert next(stream).epoch == epoch, "each word is acknowledged"

    renew()
    try:
        yield renew
    finally:
        words.put(None)
    assert list(stream) == [], "the provider ends the stream when the core has"


def error_info(error):
    """The google.rpc.ErrorInfo of a failed call."""
    for detail in rpc_status.from_call(error).details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return info
    raise AssertionError(f"the error has no ErrorInfo: {error}")


def add_ssh_key(bindings, channel, epoch):
    """A mutating call of the service Instances."""
    request = bindings.instances.AddSSHKeyToAllInstancesRequest(
        user="ada", key_data=b"ssh-ed25519 AAAA", leadership=bindings.types.Leadership(epoch=epoch)
    )
    return bindings.instances_grpc.InstancesStub(channel).AddSSHKeyToAllInstances(request, timeout=DEADLINE_SECONDS)


class Routes:
    """The calls of the service Routes. Mutating ones take the epoch of the Lead stream that is live."""

    def __init__(self, bindings, channel):
        self.messages = bindings.routes
        self.types = bindings.types
        self.stub = bindings.routes_grpc.RoutesStub(channel)

    def route(self, destination, node, provider_id=None):
        """A route to a node, as a core wants it."""
        return self.messages.Route(destination_cidr=destination, target_node_name=node, target_provider_id=provider_id)

    def list(self):
        """The table; the stream is read to its end."""
        request = self.messages.ListRoutesRequest(cluster=self._cluster())
        return [route for part in self.stub.ListRoutes(request, timeout=DEADLINE_SECONDS) for route in part.routes]

    def create(self, epoch, *routes, keys=None):
        """Makes these routes; answers one result for each, in their order."""
        items = [self.messages.CreateRouteItem(key=key, route=route) for key, route in self._keyed(routes, keys)]
        request = self.messages.CreateRoutesRequest(items=items, **self._as_leader(epoch))
        return self._in_order(items, self.stub.CreateRoutes(request, timeout=MUTATION_SECONDS).results)

    def delete(self, epoch, *routes, keys=None):
        """Removes these routes, as they were listed; answers one result for each, in their order."""
        items = [self.messages.DeleteRouteItem(key=key, route=route) for key, route in self._keyed(routes, keys)]
        request = self.messages.DeleteRoutesRequest(items=items, **self._as_leader(epoch))
        return self._in_order(items, self.stub.DeleteRoutes(request, timeout=MUTATION_SECONDS).results)

    def _keyed(self, routes, keys):
        return zip(keys or [f"key-{number}" for number in range(len(routes))], routes)

    def _in_order(self, items, results):
        by_key = {result.key: result for result in results}
        assert len(by_key) == len(results) == len(items), "exactly one result for each item"
        return [by_key[item.key] for item in items]

    def _cluster(self):
        return self.types.ClusterRef(**CLUSTER)

    def _as_leader(self, epoch):
        return {"cluster": self._cluster(), "leadership": self.types.Leadership(epoch=epoch)}


class LoadBalancers:
    """The calls of the service LoadBalancers. Mutating ones take the epoch of the Lead stream that is live."""

    def __init__(self, bindings, channel):
        self.messages = bindings.load_balancers
        self.types = bindings.types
        self.stub = bindings.load_balancers_grpc.LoadBalancersStub(channel)

    def service(self, name, **fields):
        """A Service with one port, as far as the core would fill it in."""
        port = self.messages.ServicePort(protocol=self.messages.PROTOCOL_TCP, port=80, node_port=30080)
        service = self.messages.Service(
            namespace="default", name=name, uid=f"uid-of-{name}", generation=1, ports=[port], **fields
        )
        service.ip_families.append(self.messages.IP_FAMILY_IPV4)
        service.times.created_at.GetCurrentTime()
        return service

    def node_set(self, *names):
        """A set of nodes, sorted by name."""
        return self.messages.NodeSet(nodes=[self.types.Node(name=name, uid=f"uid-of-{name}") for name in sorted(names)])

    def put(self, name, node_set):
        """Gives the provider a set, and answers by what later calls name it."""
        self.stub.PutNodeSet(self.messages.PutNodeSetRequest(hash=name, set=node_set), timeout=MUTATION_SECONDS)
        return self.by_hash(name)

    def by_hash(self, name):
        """The nodes of a call: a set that was put before."""
        return self.messages.NodeSetRef(hash=name)

    def inline(self, node_set):
        """The nodes of a call: the set itself."""
        return self.messages.NodeSetRef(inline=node_set)

    def get(self, service):
        """Whether there is one, and its status."""
        request = self.messages.GetLoadBalancerRequest(cluster=self._cluster(), service=service)
        return self.stub.GetLoadBalancer(request, timeout=DEADLINE_SECONDS)

    def name(self, service):
        """The name that it has or would have."""
        request = self.messages.GetLoadBalancerNameRequest(cluster=self._cluster(), service=service)
        return self.stub.GetLoadBalancerName(request, timeout=DEADLINE_SECONDS).name

    def plan(self, service, nodes):
        """What `ensure` would do. It changes nothing."""
        request = self.messages.PlanLoadBalancerRequest(cluster=self._cluster(), service=service, nodes=nodes)
        return self.stub.PlanLoadBalancer(request, timeout=DEADLINE_SECONDS)

    def ensure(self, epoch, service, nodes):
        """Makes it be as asked."""
        request = self.messages.EnsureLoadBalancerRequest(service=service, nodes=nodes, **self._as_leader(epoch))
        return self.stub.EnsureLoadBalancer(request, timeout=MUTATION_SECONDS)

    def update(self, epoch, service, nodes):
        """Gives the one that there is these targets."""
        request = self.messages.UpdateLoadBalancerRequest(service=service, nodes=nodes, **self._as_leader(epoch))
        return self.stub.UpdateLoadBalancer(request, timeout=MUTATION_SECONDS)

    def delete(self, epoch, service):
        """Removes it."""
        request = self.messages.EnsureLoadBalancerDeletedRequest(service=service, **self._as_leader(epoch))
        return self.stub.EnsureLoadBalancerDeleted(request, timeout=MUTATION_SECONDS)

    def list(self, cluster_uid=CLUSTER["uid"]):
        """All of a cluster's, by the name in the cloud; the stream is read to its end."""
        cluster = self.types.ClusterRef(name=CLUSTER["name"], uid=cluster_uid)
        request = self.messages.ListLoadBalancersRequest(cluster=cluster)
        parts = self.stub.ListLoadBalancers(request, timeout=DEADLINE_SECONDS)
        return {one.name: one for part in parts for one in part.load_balancers}

    def _cluster(self):
        return self.types.ClusterRef(**CLUSTER)

    def _as_leader(self, epoch):
        return {"cluster": self._cluster(), "leadership": self.types.Leadership(epoch=epoch)}
