"""What proto/ and CONTRACT.md demand of a core, checked sentence by sentence: each broken one is a line of text.

Pure: it reads messages and numbers, keeps nothing, answers no call and asks no cloud.
"""

import ipaddress
import re

from google.protobuf import timestamp_pb2
from google.protobuf.unknown_fields import UnknownFieldSet

MUTATION_DEADLINE = 30
MAX_DEADLINE = {
    "GetProviderInfo": 5,
    **dict.fromkeys(("EnsureLoadBalancer", "UpdateLoadBalancer", "EnsureLoadBalancerDeleted", "PutNodeSet"), MUTATION_DEADLINE),
    **dict.fromkeys(("CreateRoutes", "DeleteRoutes"), MUTATION_DEADLINE),
}
READING_DEADLINE = 10
ROUNDING = 0.25  # Clients round a deadline up before they send it.
WITHOUT_DEADLINE = {"Lead", "WatchInstances"}
MAX_VALID_FOR = 3600
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
TRACEPARENT = re.compile(r"[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
DNS_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
ONE_WORD = re.compile(r"\S+")


class Findings:
    """The sentences that were broken, each with the place where."""

    def __init__(self):
        self.broken = []

    def need(self, holds, text):
        """Notes `text` unless it holds; answers whether it does."""
        if not holds:
            self.broken.append(text)
        return bool(holds)

    def present(self, message, field, where):
        """A REQUIRED message field is set, even if it is set to an empty message."""
        return self.need(message.HasField(field), f"{where}{field} is REQUIRED and not set")

    def filled(self, message, *fields, where):
        """REQUIRED scalar fields are neither empty nor zero."""
        for field in fields:
            self.need(getattr(message, field), f"{where}{field} is REQUIRED and empty")

    def not_empty_if_set(self, message, *fields, where):
        """Optional texts that are set say something: absent is not empty."""
        for field in fields:
            self.need(not message.HasField(field) or getattr(message, field), f"{where}{field} is set and empty: absent is not empty")

    def unique(self, values, what):
        """No value twice."""
        values = list(values)
        self.need(len(values) == len(set(values)), f"{what} repeats itself: {values}")

    def is_port(self, number, where):
        """1 to 65535."""
        self.need(1 <= number <= 65535, f"{where} is {number} and no port")

    def parses(self, parse, text, where):
        """An address or a network in its usual text form."""
        try:
            parse(text)
        except ValueError as error:
            self.need(False, f"{where}: {error}")


def network(text):
    """A CIDR; the bits of the host may be set."""
    if "/" not in text:
        raise ValueError(f"{text!r} is no CIDR")
    ipaddress.ip_network(text, strict=False)


def call(method, entries, seconds_left, authority, seen_ids):
    """Metadata, authority and deadline of any call. `seconds_left` is None without a deadline."""
    found = Findings()
    values = {}
    for key, value in entries:
        values.setdefault(key, []).append(value)
    ids, traces = values.get("x-request-id", []), values.get("traceparent", [])
    if found.need(len(ids) == 1 and ids[0], f"the metadata entry x-request-id is {ids}, not one value"):
        found.need(ids[0] not in seen_ids, f"x-request-id {ids[0]} was that of another call")
    if found.need(len(traces) == 1, f"the metadata entry traceparent is {traces}, not one value"):
        found.need(TRACEPARENT.fullmatch(traces[0]), f"traceparent {traces[0]} is none of W3C's")
    found.need(authority == "localhost", f":authority is {authority!r}, not localhost")
    if method in WITHOUT_DEADLINE:
        found.need(seconds_left is None, f"{method} has a deadline")
    elif found.need(seconds_left is not None, "the call carries no grpc-timeout"):
        most = MAX_DEADLINE.get(method, READING_DEADLINE)
        found.need(seconds_left <= most + ROUNDING, f"the deadline is {seconds_left:.1f} s away, not at most {most} s")
    return found.broken


def message(request):
    """What holds in every message: known fields, known enum values, times within their ranges."""
    found = Findings()
    _walk(request, "", found)
    return found.broken


def _walk(one, where, found):
    found.need(len(UnknownFieldSet(one)) == 0, f"{where.rstrip('.') or 'the request'} has fields that the contract does not know")
    if one.DESCRIPTOR.file.package == "google.protobuf":
        valid = 0 <= one.nanos < 1_000_000_000 and (one.seconds > 0 or not isinstance(one, timestamp_pb2.Timestamp))
        found.need(valid, f"{where.rstrip('.')} is no valid time: {one.seconds} s, {one.nanos} ns")
    for field, value in one.ListFields():
        name = f"{where}{field.name}"
        for index, part in enumerate(value if field.is_repeated else [value]):
            at = f"{name}[{index}]" if field.is_repeated else name
            if field.enum_type is not None:
                found.need(part != 0 and part in field.enum_type.values_by_number, f"{at} is {part}, which is no value of {field.enum_type.name}")
            elif field.message_type is not None and not field.message_type.GetOptions().map_entry:
                _walk(part, f"{at}.", found)


def cluster(ref, uid, found, where="cluster."):
    """Who the cluster is; `uid` is what it was before, or None."""
    found.filled(ref, "name", "uid", where=where)
    found.need(uid is None or ref.uid == uid, f"{where}uid is {ref.uid}, and was {uid}: it is constant for the life of the cluster")


def handshake(request, uid):
    """GetProviderInfoRequest."""
    found = Findings()
    if found.present(request, "cluster", ""):
        cluster(request.cluster, uid, found)
    found.filled(request, "core_version", where="")
    found.need(request.protocol_versions, "protocol_versions is REQUIRED and empty")
    found.need(all(request.protocol_versions), "an empty protocol version is offered")
    found.unique(request.protocol_versions, "protocol_versions")
    for field in ("pod_cidrs", "service_cidrs"):
        for text in getattr(request, field):
            found.parses(network, text, field)
    return found.broken


def lead(request, first, uid):
    """A LeadRequest; `first` is the first one of its stream."""
    found = Findings()
    found.filled(request, "epoch", "holder", where="")
    if found.present(request, "valid_for", ""):
        seconds = request.valid_for.seconds + request.valid_for.nanos / 1e9
        found.need(0 < seconds <= MAX_VALID_FOR, f"valid_for is {seconds} s, not more than 0 and at most an hour")
    if found.present(request, "cluster", ""):
        cluster(request.cluster, uid, found)
    for field in ("epoch", "holder", "cluster"):
        same = getattr(request, field) == getattr(first, field)
        found.need(same, f"{field} differs from that of the first message of the stream")
    return found.broken


def batch(request, types, most, asked_for):
    """BatchGetInstancesRequest; `asked_for` tells which labels and annotations the provider asked for."""
    found = Findings()
    found.need(1 <= len(request.queries) <= most, f"the batch has {len(request.queries)} queries, not 1 to {most}")
    found.unique((query.node_name for query in request.queries), "node_name")
    for index, query in enumerate(request.queries):
        where = f"queries[{index}]."
        found.need(DNS_SUBDOMAIN.fullmatch(query.node_name), f"{where}node_name {query.node_name!r} is no name of a node")
        found.not_empty_if_set(query, "provider_id", "system_uuid", where=where)
        _addresses(query.addresses, types, where, found)
        _asked(query, asked_for, where, found)
    return found.broken


def node_set(request, types, asked_for):
    """PutNodeSetRequest. A set without a node is a set: it is there, and empty."""
    found = Findings()
    found.filled(request, "hash", where="")
    if found.present(request, "set", ""):
        _nodes(request.set, types, asked_for, "set.", found)
    return found.broken


def load_balancer(request, bindings, uid, asked_for):
    """A request of LoadBalancers about one service, but for its leadership."""
    found = Findings()
    fields = request.DESCRIPTOR.fields_by_name
    if found.present(request, "cluster", ""):
        cluster(request.cluster, uid, found)
    if found.present(request, "service", ""):
        if request.DESCRIPTOR.name == "EnsureLoadBalancerDeletedRequest":
            found.filled(request.service, "uid", "namespace", "name", where="service.")
        else:
            _service(request.service, bindings, found)
    if "nodes" in fields and found.present(request, "nodes", ""):
        form = request.nodes.WhichOneof("set")
        if found.need(form is not None, "nodes.set is REQUIRED and not set"):
            if form == "hash":
                found.filled(request.nodes, "hash", where="nodes.")
            else:
                _nodes(request.nodes.inline, bindings.types, asked_for, "nodes.inline.", found)
    return found.broken


def leadership(request, highest, led):
    """The leadership of a mutation; `highest` is the highest epoch seen, `led` the cluster of the live Lead stream or None."""
    found = Findings()
    if found.present(request, "leadership", ""):
        found.filled(request.leadership, "epoch", where="leadership.")
    if led is not None:
        epoch = request.leadership.epoch
        found.need(epoch <= highest, f"leadership.epoch {epoch} was sent on no Lead stream")
        found.need(request.cluster == led, "cluster differs from that of the Lead stream")
    return found.broken


def listing(request, uid):
    """ListLoadBalancersRequest and ListRoutesRequest."""
    found = Findings()
    if found.present(request, "cluster", ""):
        cluster(request.cluster, uid, found)
    return found.broken


def new_routes(request, types, most, uid):
    """CreateRoutesRequest, but for its leadership."""
    found = _route_items(request, most, uid)
    for index, item in enumerate(request.items):
        where, route = f"items[{index}].route.", item.route
        _route(route, types, where, found)
        found.need(DNS_SUBDOMAIN.fullmatch(route.target_node_name), f"{where}target_node_name {route.target_node_name!r} is no name of a node")
        for field in ("name", "target_description", "blackhole", "owner"):
            found.need(not getattr(route, field), f"{where}{field} is set, which only ListRoutes does")
    return found.broken


def old_routes(request, bindings, most, uid, listed):
    """DeleteRoutesRequest, but for its leadership; `listed` tells whether a route was returned by ListRoutes just so."""
    found = _route_items(request, most, uid)
    for index, item in enumerate(request.items):
        where, route = f"items[{index}].route.", item.route
        _route(route, bindings.types, where, found)
        found.need(route.owner == bindings.routes.ROUTE_OWNER_THIS_CLUSTER, f"{where}owner is {route.owner}: ccm-core removes only this cluster's")
        found.need(listed(route), f"{where.rstrip('.')} is not as ListRoutes returned any")
    return found.broken


def _route_items(request, most, uid):
    found = Findings()
    if found.present(request, "cluster", ""):
        cluster(request.cluster, uid, found)
    found.need(1 <= len(request.items) <= most, f"the batch has {len(request.items)} items, not 1 to {most}")
    found.unique((item.key for item in request.items), "key")
    for index, item in enumerate(request.items):
        found.filled(item, "key", where=f"items[{index}].")
        found.present(item, "route", f"items[{index}].")
    return found


def _route(route, types, where, found):
    found.parses(network, route.destination_cidr, f"{where}destination_cidr")
    found.not_empty_if_set(route, "target_provider_id", where=where)
    _addresses(route.target_addresses, types, f"{where}target_", found)


def _service(service, bindings, found):
    messages, where = bindings.load_balancers, "service."
    found.filled(service, "namespace", "name", "uid", where=where)
    if found.present(service, "times", where):
        found.present(service.times, "created_at", f"{where}times.")
    found.need(service.generation >= 0, f"{where}generation is negative")
    found.need(LAST_APPLIED not in service.annotations, f"{where}annotations has {LAST_APPLIED}")
    found.unique(service.finalizers, f"{where}finalizers")
    _service_ports(service, messages, found)
    found.unique(service.ip_families, f"{where}ip_families")
    found.need(len(service.ip_families) <= 2, f"{where}ip_families has more than two")
    found.not_empty_if_set(service, "load_balancer_class", "load_balancer_ip", where=where)
    for text in service.load_balancer_source_ranges:
        found.parses(network, text, f"{where}load_balancer_source_ranges")
    for field in ("external_ips", "cluster_ips"):
        for text in getattr(service, field):
            found.parses(ipaddress.ip_address, text, f"{where}{field}")
    is_local = service.external_traffic_policy == messages.TRAFFIC_POLICY_LOCAL
    if found.need(is_local == service.HasField("health_check_node_port"), f"{where}health_check_node_port is set where external_traffic_policy is LOCAL") and is_local:
        found.is_port(service.health_check_node_port, f"{where}health_check_node_port")
    if service.HasField("session_affinity_timeout_seconds"):
        found.need(service.session_affinity == messages.SESSION_AFFINITY_CLIENT_IP, f"{where}session_affinity_timeout_seconds without CLIENT_IP")
        found.need(0 < service.session_affinity_timeout_seconds <= 86400, f"{where}session_affinity_timeout_seconds is out of Kubernetes' range")
    if service.HasField("status"):
        _status(service.status, f"{where}status.", found)


def _service_ports(service, messages, found):
    found.unique(((port.port, port.protocol) for port in service.ports), "service.ports (port and protocol)")
    found.unique((port.name for port in service.ports), "service.ports (name)")
    for index, port in enumerate(service.ports):
        where = f"service.ports[{index}]."
        found.need(port.protocol != messages.PROTOCOL_UNSPECIFIED, f"{where}protocol is REQUIRED and not set")
        found.is_port(port.port, f"{where}port")
        if port.HasField("node_port"):
            found.is_port(port.node_port, f"{where}node_port")
        found.not_empty_if_set(port, "app_protocol", where=where)
        if port.target_port.isdigit():
            found.is_port(int(port.target_port), f"{where}target_port")


def _status(status, where, found):
    for index, ingress in enumerate(status.ingress):
        at = f"{where}ingress[{index}]."
        found.need(ingress.ip or ingress.hostname, f"{at} has neither ip nor hostname")
        found.not_empty_if_set(ingress, "ip", "hostname", where=at)
        if ingress.ip:
            found.parses(ipaddress.ip_address, ingress.ip, f"{at}ip")
        found.need(ingress.ip or not ingress.ip_mode, f"{at}ip_mode is for ip only")
        for port in ingress.ports:
            found.is_port(port.port, f"{at}ports")
            found.filled(port, "protocol", where=f"{at}ports.")
            found.not_empty_if_set(port, "error", where=f"{at}ports.")


def _nodes(nodes, types, asked_for, where, found):
    names = [node.name for node in nodes.nodes]
    found.need(names == sorted(names), f"{where}nodes are not sorted by name")
    found.unique(names, f"{where}nodes (name)")
    found.unique((node.uid for node in nodes.nodes), f"{where}nodes (uid)")
    for node in nodes.nodes:
        at = f"{where}nodes ({node.name})."
        found.need(DNS_SUBDOMAIN.fullmatch(node.name), f"{at}name is no name of a node")
        found.filled(node, "uid", where=at)
        found.not_empty_if_set(node, "provider_id", "system_uuid", "zone", "region", where=at)
        _addresses(node.addresses, types, at, found)
        for text in node.pod_cidrs:
            found.parses(network, text, f"{at}pod_cidrs")
        _asked(node, asked_for, at, found)
        found.need(EXCLUDED not in node.labels, f"{at}labels has {EXCLUDED}: the node may not receive traffic")
        _taints_and_conditions(node, asked_for, at, found)


def _taints_and_conditions(node, asked_for, where, found):
    for taint in node.taints:
        found.filled(taint, "key", "effect", where=f"{where}taints.")
        found.need(asked_for("node_taints", taint.key), f"{where}taints has {taint.key}, which was not asked for")
        found.need(taint.key != TO_BE_DELETED, f"{where}taints has {taint.key}: the node is about to go")
    for condition in node.conditions:
        found.filled(condition, "type", "status", where=f"{where}conditions.")
        found.need(asked_for("node_conditions", condition.type), f"{where}conditions has {condition.type}, which was not asked for")


def _addresses(addresses, types, where, found):
    for index, address in enumerate(addresses):
        at = f"{where}addresses[{index}]."
        found.filled(address, "type", "address", where=at)
        if address.type in (types.NODE_ADDRESS_TYPE_INTERNAL_IP, types.NODE_ADDRESS_TYPE_EXTERNAL_IP):
            found.parses(ipaddress.ip_address, address.address, f"{at}address")
        else:
            found.need(ONE_WORD.fullmatch(address.address), f"{at}address {address.address!r} is no DNS name")


def _asked(thing, asked_for, where, found):
    for kind in ("labels", "annotations"):
        for key in getattr(thing, kind):
            found.need(asked_for(f"node_{kind}", key), f"{where}{kind} has {key}, which was not asked for")
    found.need(LAST_APPLIED not in thing.annotations, f"{where}annotations has {LAST_APPLIED}")
