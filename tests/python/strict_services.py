"""The strict provider's answers: every request is checked first, and what breaks the contract is recorded and refused.

It follows proto/ and CONTRACT.md and nothing else. The rules are in strict_rules, the cloud in strict_cloud.
"""

import collections
import contextlib
import json
import queue
import threading
import time

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

import strict_rules

DOMAIN = "ccm.provider.v1"
POLL_SECONDS = 0.3
FOREVER = 1e9
MAX_BATCH = 7
MAX_CALLS = {"Instances": 2, "LoadBalancers": 3, "Routes": 2}
ANNOTATIONS = "strict.example.com/"
ASKED = {
    "node_labels": ["kubernetes.io/hostname", "node.kubernetes.io/*"],
    "node_annotations": ["example.com/*"],
    "node_taints": [strict_rules.TO_BE_DELETED],
    "node_conditions": [],
}
DRAIN = object()


def asked_for(kind, key):
    """Whether the handshake asks for this key."""
    return any(key.startswith(one[:-1]) if one.endswith("*") else key == one for one in ASKED[kind])


def refuse(context, code, reason, text, **metadata):
    """Ends the call with an error as the contract wants it."""
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.ErrorInfo(domain=DOMAIN, reason=reason, metadata=metadata))
    status = status_pb2.Status(code=code, message=text, details=[detail] if reason else [])
    context.abort_with_status(rpc_status.to_status(status))


class Watch:
    """What the rules need to know of earlier calls, and the file of what was broken."""

    def __init__(self, violations):
        self.violations = violations
        self.lock = threading.Lock()
        self.ended = threading.Condition(self.lock)
        self.calls = collections.Counter()
        self.running = collections.Counter()
        self.mutation_seconds = 0.0
        self.seen_ids = set()
        self.shaken = False
        violations.touch()

    def record(self, method, request_id, broken):
        """Appends each broken sentence to the file."""
        with self.lock, self.violations.open("a") as file:
            for text in broken:
                file.write(json.dumps({"method": method, "request": request_id, "broken": text}) + "\n")

    def require(self, context, method, request_id, broken, reason=""):
        """Records what is broken and ends the call, if anything is."""
        if broken:
            self.record(method, request_id, broken)
            refuse(context, code_pb2.INVALID_ARGUMENT, reason, "; ".join(broken))

    @contextlib.contextmanager
    def call(self, service, method, context):
        """Checks what holds for any call; counts it; gives its id. Those of one service at one time are within its limit."""
        entries = [(entry.key, entry.value) for entry in context.invocation_metadata()]
        request_id = dict(entries).get("x-request-id", "")
        print(f"{method} request={request_id} traceparent={dict(entries).get('traceparent')}", flush=True)
        with self.lock:
            broken = strict_rules.call(method, entries, seconds_left(context), authority(context), self.seen_ids)
            self.seen_ids.add(request_id)
            self.calls[method] += 1
            if method != "GetProviderInfo" and not self.shaken:
                broken.append("the call comes before the first handshake")
            end = self._begin(service, broken)
        context.add_callback(end)
        try:
            self.require(context, method, request_id, broken)
            yield request_id
        finally:
            end()

    def _begin(self, service, broken):
        """Counts a running call. What it answers ends the call, once."""
        self.running[service] += 1
        if self.running[service] > MAX_CALLS.get(service, self.running[service]):
            broken.append(f"{self.running[service]} calls of {service} at once, not at most {MAX_CALLS[service]}")
        ended = threading.Event()

        def end():
            with self.lock:
                if not ended.is_set():
                    ended.set()
                    self.running[service] -= 1
                    self.ended.notify_all()

        return end

    def wait_for_end(self, service, seconds):
        """Returns when no call of the service runs, or the time is over."""
        with self.ended:
            self.ended.wait_for(lambda: self.running[service] == 0, seconds)


def seconds_left(context):
    """Until the deadline; None if the call has none, which grpc reports as a time in the far future."""
    seconds = context.time_remaining()
    return seconds if seconds < FOREVER else None


def authority(context):
    """What the client sent as :authority. grpc has no public way to read it."""
    host = context._rpc_event.call_details.host  # pylint: disable=protected-access
    return host.decode() if isinstance(host, bytes) else host


class Leadership:
    """Which Lead stream is live, by the contract's rules of epochs."""

    def __init__(self):
        self.lock = threading.Lock()
        self.highest = 0
        self.holder = None
        self.cluster = None
        self.live = None
        self.draining = False

    def opens(self, first, words):
        """Whether a stream with this first word becomes the live one. It ends the one that it replaces."""
        with self.lock:
            again = first.epoch == self.highest and self.live is None and first.holder == self.holder
            if self.draining or not (first.epoch > self.highest or again):
                return False
            if self.live is not None:
                self.live.put(None)
            self.highest, self.holder, self.cluster, self.live = first.epoch, first.holder, first.cluster, words
            return True

    def ends(self, words):
        """The stream is over."""
        with self.lock:
            if self.live is words:
                self.live = None

    def is_live(self, words):
        """Whether this stream is the live one."""
        return self.live is words

    def leads(self, epoch):
        """Whether a mutation under this epoch may run."""
        return self.live is not None and epoch == self.highest

    def supersede(self):
        """A leader with a higher epoch was here, and has gone."""
        with self.lock:
            self.highest, self.holder = self.highest + 5, "another"
            if self.live is not None:
                self.live.put(None)
            self.live = None

    def drain(self):
        """Ends the live stream and refuses new ones."""
        with self.lock:
            self.draining = True
            if self.live is not None:
                self.live.put(DRAIN)


def identity(bindings, watch, cloud, leadership, name):
    """The RPC service Identity."""
    messages = bindings.identity

    class Identity(bindings.identity_grpc.IdentityServicer):
        def GetProviderInfo(self, request, context):
            with watch.call("Identity", "GetProviderInfo", context) as request_id:
                broken = strict_rules.message(request) + strict_rules.handshake(request, cloud.cluster_uid())
                watch.require(context, "GetProviderInfo", request_id, broken)
                if "v1" not in request.protocol_versions:
                    refuse(context, code_pb2.FAILED_PRECONDITION, "PROTOCOL_VERSION_UNSUPPORTED", "this provider speaks v1")
                cloud.meet(request.cluster.uid)
                watch.shaken = True
                return messages.GetProviderInfoResponse(info=describe())

        def Lead(self, requests, context):
            with watch.call("Identity", "Lead", context) as request_id:
                words = queue.Queue()
                threading.Thread(target=listen, args=(requests, words), daemon=True).start()
                try:
                    yield from self.acknowledge(words, context, request_id)
                finally:
                    leadership.ends(words)

        def acknowledge(self, words, context, request_id):
            first, word = None, words.get()
            while word is not None and word is not DRAIN:
                first = first or word
                broken = strict_rules.message(word) + strict_rules.lead(word, first, cloud.cluster_uid())
                watch.require(context, "Lead", request_id, broken)
                if word is first and not leadership.opens(first, words):
                    not_leading(context, leadership, f"epoch {first.epoch} is refused")
                yield messages.LeadResponse(epoch=word.epoch)
                try:
                    word = words.get(timeout=word.valid_for.ToTimedelta().total_seconds())
                except queue.Empty:
                    not_leading(context, leadership, "valid_for has passed without a message")
            if word is DRAIN:
                refuse(context, code_pb2.UNAVAILABLE, "", "the provider stops")
            if first is not None and not leadership.is_live(words):
                not_leading(context, leadership, "another stream has taken over")

    def describe():
        served = ["LEAD", "INSTANCES", "LOAD_BALANCERS", "NODE_SETS", "PLAN_LOAD_BALANCER", "LIST_LOAD_BALANCERS", "ROUTES"]
        return messages.ProviderInfo(
            name=name,
            version="strict",
            protocol_version="v1",
            capabilities=[messages.Capability.Value(f"CAPABILITY_{one}") for one in served],
            provider_id_prefixes=[f"{name}://"],
            cloud_identity=f"{name}://account/region",
            cluster_id="strict-cluster",
            limits=messages.ProviderLimits(
                max_batch_size=MAX_BATCH,
                max_concurrent_instance_calls=MAX_CALLS["Instances"],
                max_concurrent_load_balancer_calls=MAX_CALLS["LoadBalancers"],
                max_concurrent_route_calls=MAX_CALLS["Routes"],
            ),
            service_annotation_prefixes=[ANNOTATIONS],
            **ASKED,
        )

    return Identity()


def listen(requests, words):
    """Puts each message of a stream into the queue, and None at its end."""
    try:
        for word in requests:
            words.put(word)
    except grpc.RpcError:
        pass  # The client has gone: the same as an end.
    words.put(None)


def not_leading(context, leadership, text):
    """NOT_LEADING, with the highest epoch seen."""
    refuse(context, code_pb2.FAILED_PRECONDITION, "NOT_LEADING", text, highest_epoch=str(leadership.highest))


def led_now(watch, leadership, method, request, context, request_id):
    """Ends a mutation that is not led, and records what its leadership breaks."""
    epoch, led = request.leadership.epoch, leadership.cluster if leadership.live else None
    broken = strict_rules.leadership(request, leadership.highest, led)
    watch.record(method, request_id, broken)
    if broken or not leadership.leads(epoch):
        not_leading(context, leadership, "; ".join(broken) or f"epoch {epoch} does not lead")


def in_progress(bindings, text):
    """The cloud is at work; the core comes back after a while."""
    progress = bindings.types.InProgress(message=text)
    progress.poll_after.FromMilliseconds(int(POLL_SECONDS * 1000))
    return progress


def instances(bindings, watch, cloud, name):
    """The RPC service Instances."""
    messages, types = bindings.instances, bindings.types

    class Instances(bindings.instances_grpc.InstancesServicer):
        def BatchGetInstances(self, request, context):
            with watch.call("Instances", "BatchGetInstances", context) as request_id:
                broken = strict_rules.message(request) + strict_rules.batch(request, types, MAX_BATCH, asked_for)
                reason = "BATCH_TOO_LARGE" if len(request.queries) > MAX_BATCH else ""
                watch.require(context, "BatchGetInstances", request_id, broken, reason)
                return messages.BatchGetInstancesResponse(results=[look_up(query) for query in request.queries])

    def look_up(query):
        result = messages.InstanceResult(node_name=query.node_name)
        result.observed_at.GetCurrentTime()
        prefix = f"{name}://"
        if query.provider_id and not query.provider_id.startswith(prefix):
            result.not_mine.message = f"{query.provider_id} does not begin with {prefix}"
            return result
        machine = cloud.machine(query.node_name, query.provider_id.removeprefix(prefix))
        if machine is None:
            result.not_found.SetInParent()
            return result
        instance = result.instance
        instance.provider_id = prefix + machine["id"]
        instance.state = messages.InstanceState.Value(f"INSTANCE_STATE_{machine['state']}")
        instance.instance_type, instance.zone, instance.region = "small", "region-a", "region"
        instance.addresses.add(type=types.NODE_ADDRESS_TYPE_HOSTNAME, address=machine["name"])
        instance.addresses.add(type=types.NODE_ADDRESS_TYPE_INTERNAL_IP, address=machine["address"])
        return result

    return Instances()


class NodeSets:
    """The sets that were put. A hash stands for one content, and a content has one hash."""

    def __init__(self):
        self.held = {}
        self.known = set()

    def put(self, name, content):
        """Keeps a set, unless that breaks the contract; answers in which way."""
        broken = []
        data = content.SerializeToString(deterministic=True)
        if name in self.held and self.held[name][0] != data:
            broken.append(f"the hash {name} stood for another content")
        if any(other != name and known == data for other, (known, _) in self.held.items()):
            broken.append(f"the content of {name} has another hash, too")
        if not broken:
            self.held[name] = (data, [node.name for node in content.nodes])
            self.known.add(name)
        return broken

    def targets(self, name):
        """The names of the nodes, or None if the set is not held."""
        return self.held[name][1] if name in self.held else None

    def forget(self):
        """All of them, as a provider may at any time."""
        self.held.clear()


class Patience:
    """Checks `poll_after`: the core repeats an equal call after it, and not before."""

    def __init__(self):
        self.asked = {}

    def begin(self, key, content):
        """What the call breaks by coming now. Equal calls have the same content."""
        same, since = self.asked.pop(key, (None, 0.0))
        waited = time.monotonic() - since
        if same == content and waited < POLL_SECONDS * 0.9:
            return [f"the same call comes again after {waited:.2f} s, though poll_after was {POLL_SECONDS} s"]
        return []

    def at_work(self, key, content):
        """The call was answered with `in_progress`."""
        self.asked[key] = (content, time.monotonic())


def essence(request):
    """What makes two requests equal: all but the leadership, and the service's status and generation."""
    copy = type(request)()
    copy.CopyFrom(request)
    copy.ClearField("leadership")
    copy.service.ClearField("status")
    copy.service.ClearField("generation")
    return copy.SerializeToString(deterministic=True)


def load_balancers(bindings, watch, cloud, leadership, sets):
    """The RPC service LoadBalancers."""
    messages, patience, one_by_one = bindings.load_balancers, Patience(), threading.Lock()

    class LoadBalancers(bindings.load_balancers_grpc.LoadBalancersServicer):
        def GetLoadBalancer(self, request, context):
            with checked("GetLoadBalancer", request, context):
                known = cloud.load_balancer(request.service.uid)
                if known is None:
                    return messages.GetLoadBalancerResponse(not_found=messages.LoadBalancerNotFound())
                return messages.GetLoadBalancerResponse(found=status(known))

        def GetLoadBalancerName(self, request, context):
            with checked("GetLoadBalancerName", request, context):
                return messages.GetLoadBalancerNameResponse(name=name_of(request.service))

        def PutNodeSet(self, request, context):
            with watch.call("LoadBalancers", "PutNodeSet", context) as request_id, one_by_one:
                broken = strict_rules.message(request) + strict_rules.node_set(request, bindings.types, asked_for)
                watch.require(context, "PutNodeSet", request_id, broken or sets.put(request.hash, request.set))
                return messages.PutNodeSetResponse()

        def PlanLoadBalancer(self, request, context):
            with checked("PlanLoadBalancer", request, context) as request_id:
                wanted, known = wish("PlanLoadBalancer", request, context, request_id), cloud.load_balancer(request.service.uid)
                if known is None:
                    return messages.PlanLoadBalancerResponse(plan=messages.LoadBalancerPlan(changes=["create it"]))
                differs = [f"change {key} from {known[key]} to {wanted[key]}" for key in wanted if known[key] != wanted[key]]
                if known["state"] != "ACTIVE":
                    differs.append(f"wait for the end of {known['state']}")
                plan = messages.LoadBalancerPlan(changes=differs, status=status(known), annotations=annotations(known))
                return messages.PlanLoadBalancerResponse(plan=plan)

        def EnsureLoadBalancer(self, request, context):
            with mutation("EnsureLoadBalancer", request, context) as request_id:
                known = cloud.provision(request.service.uid, wish("EnsureLoadBalancer", request, context, request_id))
                if known["state"] != "ACTIVE":
                    return messages.EnsureLoadBalancerResponse(in_progress=at_work("EnsureLoadBalancer", request))
                ready = messages.LoadBalancerReady(status=status(known), annotations=annotations(known))
                return messages.EnsureLoadBalancerResponse(ready=ready)

        def UpdateLoadBalancer(self, request, context):
            with mutation("UpdateLoadBalancer", request, context) as request_id:
                targets = wish("UpdateLoadBalancer", request, context, request_id)["targets"]
                if cloud.load_balancer(request.service.uid) is None:
                    refuse(context, code_pb2.ABORTED, "CONFLICT", "there is no load balancer to update")
                known = cloud.provision(request.service.uid, {"targets": targets})
                return messages.UpdateLoadBalancerResponse(updated=messages.LoadBalancerUpdated(annotations=annotations(known)))

        def EnsureLoadBalancerDeleted(self, request, context):
            with mutation("EnsureLoadBalancerDeleted", request, context):
                if cloud.remove(request.service.uid):
                    return messages.EnsureLoadBalancerDeletedResponse(done=messages.LoadBalancerDeleted())
                return messages.EnsureLoadBalancerDeletedResponse(in_progress=at_work("EnsureLoadBalancerDeleted", request))

        def ListLoadBalancers(self, request, context):
            with watch.call("LoadBalancers", "ListLoadBalancers", context) as request_id:
                broken = strict_rules.message(request) + strict_rules.listing(request, cloud.cluster_uid())
                watch.require(context, "ListLoadBalancers", request_id, broken)
                for known in cloud.load_balancers():
                    owned = {field: known[field] for field in ("name", "service_uid", "service_namespace", "service_name")}
                    one = messages.OwnedLoadBalancer(status=status(known), **owned)
                    yield messages.ListLoadBalancersResponse(load_balancers=[one])

    @contextlib.contextmanager
    def checked(method, request, context):
        with watch.call("LoadBalancers", method, context) as request_id:
            broken = strict_rules.message(request)
            broken += strict_rules.load_balancer(request, bindings, cloud.cluster_uid(), asked_for)
            watch.require(context, method, request_id, broken)
            yield request_id

    @contextlib.contextmanager
    def mutation(method, request, context):
        with checked(method, request, context) as request_id, one_by_one:
            epoch = request.leadership.epoch
            led_now(watch, leadership, method, request, context, request_id)
            watch.require(context, method, request_id, patience.begin((method, request.service.uid), essence(request)))
            time.sleep(watch.mutation_seconds)
            if not leadership.leads(epoch):
                not_leading(context, leadership, f"the leadership of epoch {epoch} ended while the call ran")
            yield request_id

    def wish(method, request, context, request_id):
        service, name = request.service, request.nodes.hash
        inline = [node.name for node in request.nodes.inline.nodes]
        targets = sets.targets(name) if request.nodes.WhichOneof("set") == "hash" else inline
        if targets is None:
            watch.record(method, request_id, [] if name in sets.known else [f"the set {name} was never put"])
            refuse(context, code_pb2.FAILED_PRECONDITION, "NODE_SET_UNKNOWN", "this set of nodes is not held")
        ports = [[messages.Protocol.Name(port.protocol), port.port, port.node_port] for port in service.ports]
        marks = {"cluster": request.cluster.uid, "service_uid": service.uid, "service_namespace": service.namespace, "service_name": service.name}
        return {**marks, "name": name_of(service), "ports": ports, "targets": targets}

    def at_work(method, request):
        patience.at_work((method, request.service.uid), essence(request))
        return in_progress(bindings, "the load balancer is being provisioned")

    def status(known):
        ingress = messages.LoadBalancerIngress(ip=known["address"], ip_mode=messages.LOAD_BALANCER_IP_MODE_VIP)
        return messages.LoadBalancerStatus(ingress=[ingress])

    def annotations(known):
        return {f"{ANNOTATIONS}name": known["name"]}

    return LoadBalancers()


def name_of(service):
    """The name in the cloud: upstream's default."""
    return f"a{service.uid.replace('-', '')}"[:32]
