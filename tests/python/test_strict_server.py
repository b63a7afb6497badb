"""The strict provider itself: an orderly client passes, and each sentence of the contract that is broken is found."""

import queue
import stat
import subprocess
import sys
import time
from concurrent import futures

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from conftest import HERE, channel_to
from plain_client import CLUSTER, DEADLINE_SECONDS, LoadBalancers, error_info, lead_request, leading, look_up, shake_hands

EPOCH = 3


def once_done(call):
    """What the call answers when the cloud is done, asked again after each `poll_after`."""
    answer = call()
    while answer.WhichOneof("outcome") == "in_progress":
        time.sleep(answer.in_progress.poll_after.ToTimedelta().total_seconds())
        answer = call()
    return answer


def refused(call):
    """The code and the message with which a call fails."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code(), caught.value.details()


@pytest.fixture
def balancers(bindings, strict_channel):
    """The calls of LoadBalancers, on a connection on which hands were shaken."""
    shake_hands(bindings, strict_channel)
    return LoadBalancers(bindings, strict_channel)


def test_an_orderly_client_breaks_nothing(bindings, strict, strict_channel, balancers):
    strict.command("add", "node-1", "node-2")
    strict.command("stop", "node-2")
    results = look_up(bindings, strict_channel, "node-1", "node-2", "node-3")
    assert results["node-1"].instance.provider_id == "strict://i-0001"
    assert results["node-2"].instance.state == bindings.instances.INSTANCE_STATE_STOPPED
    assert results["node-3"].WhichOneof("outcome") == "not_found"
    service = balancers.service("web")
    with leading(bindings, strict_channel, EPOCH) as renew:
        nodes = balancers.put("set-1", balancers.node_set("node-1", "node-2"))
        assert balancers.plan(service, nodes).plan.changes
        ready = once_done(lambda: balancers.ensure(EPOCH, service, nodes)).ready
        renew()
        plan = balancers.plan(service, nodes).plan
        assert (list(plan.changes), plan.status, plan.annotations) == ([], ready.status, ready.annotations)
        assert balancers.get(service).found == ready.status
        assert list(balancers.list()) == [balancers.name(service)]
        empty = balancers.put("set-0", balancers.node_set())
        assert balancers.update(EPOCH, service, empty).WhichOneof("outcome") == "updated"
        assert strict.command("show")["load_balancers"][0]["targets"] == []
        once_done(lambda: balancers.delete(EPOCH, service))
        assert balancers.list() == {}
    assert strict.violations() == []


def test_the_contracts_own_refusals_are_no_violations(bindings, strict, strict_channel, balancers):
    service, nodes = balancers.service("web"), balancers.put("set-1", balancers.node_set("node-1"))
    assert "NOT_LEADING" == reason_of(lambda: balancers.ensure(EPOCH, service, nodes))
    with leading(bindings, strict_channel, EPOCH):
        assert "NOT_LEADING" == reason_of(lambda: balancers.ensure(EPOCH - 1, service, nodes))
        assert "CONFLICT" == reason_of(lambda: balancers.update(EPOCH, service, nodes))
        strict.command("forget-sets")
        assert "NODE_SET_UNKNOWN" == reason_of(lambda: balancers.ensure(EPOCH, service, nodes))
        older = bindings.identity_grpc.IdentityStub(strict_channel).Lead(iter([lead_request(bindings, EPOCH - 1)]))
        with pytest.raises(grpc.RpcError) as caught:
            next(older)
        assert error_info(caught.value).metadata["highest_epoch"] == str(EPOCH)
    assert strict.violations() == []


def reason_of(call):
    """The reason of the ErrorInfo with which a call fails."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return error_info(caught.value).reason


SERVICES = {
    "uid": (lambda s: s.ClearField("uid"), "service.uid is REQUIRED"),
    "times": (lambda s: s.ClearField("times"), "service.times is REQUIRED"),
    "port": (lambda s: setattr(s.ports[0], "port", 65536), "service.ports[0].port is 65536"),
    "node port": (lambda s: setattr(s.ports[0], "node_port", 0), "service.ports[0].node_port is 0"),
    "protocol": (lambda s: s.ports[0].ClearField("protocol"), "service.ports[0].protocol is REQUIRED"),
    "enum": (lambda s: setattr(s, "session_affinity", 9), "session_affinity is 9, which is no value of SessionAffinity"),
    "unset in a list": (lambda s: s.ip_families.append(0), "ip_families[1] is 0, which is no value of IpFamily"),
    "class": (lambda s: setattr(s, "load_balancer_class", ""), "load_balancer_class is set and empty"),
    "range": (lambda s: s.load_balancer_source_ranges.append("10.0.0.1"), "'10.0.0.1' is no CIDR"),
    "health check": (lambda s: setattr(s, "external_traffic_policy", 2), "health_check_node_port is set where"),
    "time": (lambda s: setattr(s.times.created_at, "nanos", -1), "service.times.created_at is no valid time"),
    "unknown field": (lambda s: s.MergeFromString(b"\xf8\x7f\x01"), "service has fields that the contract does not know"),
}


@pytest.mark.parametrize("name", SERVICES)
def test_a_wrong_service_is_found(strict, balancers, name):
    change, sentence = SERVICES[name]
    service = balancers.service("web")
    change(service)
    code, message = refused(lambda: balancers.get(service))
    assert code == grpc.StatusCode.INVALID_ARGUMENT and sentence in message
    assert [method for method, broken in strict.violations() if sentence in broken] == ["GetLoadBalancer"]


def test_a_missing_set_is_told_from_an_empty_one(strict, balancers):
    service, messages = balancers.service("web"), balancers.messages
    put = messages.PutNodeSetRequest(hash="set-0")
    assert "set is REQUIRED" in refused(lambda: balancers.stub.PutNodeSet(put, timeout=30))[1]
    for nodes, sentence in (
        (None, "nodes is REQUIRED"),
        (messages.NodeSetRef(), "nodes.set is REQUIRED"),
        (balancers.by_hash(""), "nodes.hash is REQUIRED"),
        (balancers.inline(balancers.node_set("b", "b")), "nodes.inline.nodes (name) repeats itself"),
    ):
        assert sentence in refused(lambda: balancers.plan(service, nodes))[1]
    found = len(strict.violations())
    assert "NODE_SET_UNKNOWN" == reason_of(lambda: balancers.plan(service, balancers.by_hash("never")))
    assert strict.violations()[found:] == [("PlanLoadBalancer", "the set never was never put")]
    assert balancers.plan(service, balancers.inline(balancers.node_set())).plan.changes
    assert len(strict.violations()) == found + 1


def test_a_wrong_set_of_nodes_is_found(balancers):
    balancers.put("set-1", balancers.node_set("node-1"))
    wrong = {
        "the hash set-1 stood for another content": ("set-1", balancers.node_set("node-2")),
        "the content of set-2 has another hash": ("set-2", balancers.node_set("node-1")),
        "not sorted by name": ("set-3", balancers.messages.NodeSet(nodes=reversed(balancers.node_set("a", "b").nodes))),
        "nodes (name) repeats itself": ("set-4", balancers.node_set("a", "a")),
    }
    labelled = balancers.node_set("a")
    labelled.nodes[0].labels["example.com/rack"] = "7"
    wrong["labels has example.com/rack, which was not asked for"] = ("set-5", labelled)
    excluded = balancers.node_set("a")
    excluded.nodes[0].labels["node.kubernetes.io/exclude-from-external-load-balancers"] = ""
    wrong["the node may not receive traffic"] = ("set-6", excluded)
    for sentence, (name, node_set) in wrong.items():
        assert sentence in refused(lambda: balancers.put(name, node_set))[1]


def test_leadership_that_is_missing_or_was_never_told_is_found(bindings, strict_channel, balancers):
    service, nodes = balancers.service("web"), balancers.put("set-1", balancers.node_set("node-1"))
    with leading(bindings, strict_channel, EPOCH):
        request = balancers.messages.EnsureLoadBalancerRequest(cluster=bindings.types.ClusterRef(**CLUSTER), service=service, nodes=nodes)
        assert "leadership is REQUIRED" in refused(lambda: balancers.stub.EnsureLoadBalancer(request, timeout=30))[1]
        assert "was sent on no Lead stream" in refused(lambda: balancers.ensure(EPOCH + 1, service, nodes))[1]
        request.leadership.epoch, request.cluster.uid = EPOCH, "another"
        assert "constant for the life of the cluster" in refused(lambda: balancers.stub.EnsureLoadBalancer(request, timeout=30))[1]


def test_an_equal_call_that_comes_too_soon_is_found(bindings, strict_channel, balancers):
    service, nodes = balancers.service("web"), balancers.put("set-1", balancers.node_set("node-1"))
    with leading(bindings, strict_channel, EPOCH):
        balancers.ensure(EPOCH, service, nodes)
        assert "though poll_after was" in refused(lambda: balancers.ensure(EPOCH, service, nodes))[1]


@pytest.mark.parametrize("field", ["epoch", "holder", "valid_for", "cluster"])
def test_a_word_of_lead_without_a_field_is_found(bindings, strict_channel, field):
    shake_hands(bindings, strict_channel)
    word = lead_request(bindings, EPOCH)
    word.ClearField(field)
    stream = bindings.identity_grpc.IdentityStub(strict_channel).Lead(iter([word]))
    assert f"{field} is REQUIRED" in refused(lambda: next(stream))[1]


@pytest.mark.parametrize("change", [{"epoch": EPOCH + 1}, {"holder": "another"}, {"valid_for": 3601}, {"valid_for": 0}])
def test_a_later_word_of_lead_that_differs_is_found(bindings, strict, strict_channel, change):
    shake_hands(bindings, strict_channel)
    first, second = lead_request(bindings, EPOCH), lead_request(bindings, EPOCH)
    for field, value in change.items():
        second.valid_for.FromSeconds(value) if field == "valid_for" else setattr(second, field, value)
    stream = bindings.identity_grpc.IdentityStub(strict_channel).Lead(iter([first, second]))
    assert next(stream).epoch == EPOCH
    assert refused(lambda: next(stream))[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert [method for method, _ in strict.violations()] == ["Lead"]


def test_a_stream_of_lead_ends_when_its_word_has_run_out(bindings, strict, strict_channel):
    shake_hands(bindings, strict_channel)
    word = lead_request(bindings, EPOCH)
    word.valid_for.FromMilliseconds(100)
    silence = iter(lambda: time.sleep(DEADLINE_SECONDS), 0)
    stream = bindings.identity_grpc.IdentityStub(strict_channel).Lead(one for part in ([word], silence) for one in part)
    assert next(stream).epoch == EPOCH
    with pytest.raises(grpc.RpcError) as caught:
        next(stream)
    assert error_info(caught.value).reason == "NOT_LEADING"
    assert strict.violations() == []


def lead(bindings, channel, words, epoch):
    """A Lead stream of its own, acknowledged once; it ends with None in `words`."""
    words.put(lead_request(bindings, epoch))
    stream = bindings.identity_grpc.IdentityStub(channel).Lead(iter(words.get, None))
    assert next(stream).epoch == epoch
    return stream


def test_a_leader_of_a_higher_epoch_ends_the_first_whose_epoch_then_changes_nothing(bindings, strict, strict_channel, balancers):
    service, nodes, words = balancers.service("web"), balancers.put("set-1", balancers.node_set("node-1")), queue.Queue()
    first = lead(bindings, strict_channel, words, EPOCH)
    once_done(lambda: balancers.ensure(EPOCH, service, nodes))
    with leading(bindings, strict_channel, EPOCH + 2) as renew:
        assert "NOT_LEADING" == reason_of(lambda: next(first))
        changes = strict.command("show")["load_balancers"][0]["changes"]
        assert "NOT_LEADING" == reason_of(lambda: balancers.delete(EPOCH, service))
        for epoch in (EPOCH, EPOCH + 1, EPOCH + 2):
            late = bindings.identity_grpc.IdentityStub(strict_channel).Lead(iter([lead_request(bindings, epoch)]))
            with pytest.raises(grpc.RpcError) as caught:
                next(late)
            info = error_info(caught.value)
            assert (info.reason, info.metadata["highest_epoch"]) == ("NOT_LEADING", str(EPOCH + 2))
        renew()
        assert strict.command("show")["load_balancers"][0]["changes"] == changes
        assert balancers.ensure(EPOCH + 2, service, nodes).WhichOneof("outcome") == "ready"
    words.put(None)
    assert strict.violations() == []


def test_a_mutation_ends_with_the_leadership_that_it_runs_under(bindings, strict, strict_channel, balancers):
    service, nodes = balancers.service("web"), balancers.put("set-1", balancers.node_set("node-1"))
    lead(bindings, strict_channel, queue.Queue(), EPOCH)
    strict.command("slow-down", "1")
    with futures.ThreadPoolExecutor() as pool:
        running = pool.submit(reason_of, lambda: balancers.ensure(EPOCH, service, nodes))
        until_called(strict, "EnsureLoadBalancer")
        strict.command("supersede")
        assert running.result() == "NOT_LEADING"
    assert strict.command("show")["load_balancers"] == []


def test_lead_stays_open_while_a_call_runs_in_a_provider_that_drains(bindings, strict, strict_channel, balancers):
    service, nodes, words = balancers.service("web"), balancers.put("set-1", balancers.node_set("node-1")), queue.Queue()
    stream = lead(bindings, strict_channel, words, EPOCH)
    strict.command("slow-down", "1")
    with futures.ThreadPoolExecutor() as pool:
        running = pool.submit(balancers.ensure, EPOCH, service, nodes)
        until_called(strict, "EnsureLoadBalancer")
        stopped = pool.submit(strict.stop)
        words.put(lead_request(bindings, EPOCH))
        assert next(stream).epoch == EPOCH, "it is acknowledged meanwhile"
        assert running.result().WhichOneof("outcome") == "in_progress"
        assert refused(lambda: next(stream))[0] == grpc.StatusCode.UNAVAILABLE
        words.put(None)
        assert stopped.result() == 0
    assert strict.violations() == []


def until_called(strict, method):
    """Waits until the provider counts a call of the method."""
    while strict.command("show")["calls"].get(method, 0) == 0:
        time.sleep(0.01)


def test_a_wrong_batch_is_found(bindings, strict_channel):
    shake_hands(bindings, strict_channel)
    stub = bindings.instances_grpc.InstancesStub(strict_channel)
    query = bindings.instances.InstanceQuery
    empty_address = query(node_name="a")
    empty_address.addresses.add(address="10.0.0.1")
    for sentence, queries in {
        "has 0 queries": [],
        "has 8 queries": [query(node_name=f"node-{number}") for number in range(8)],
        "node_name repeats itself": [query(node_name="a"), query(node_name="a")],
        "is no name of a node": [query()],
        "provider_id is set and empty": [query(node_name="a", provider_id="")],
        "addresses[0].type is REQUIRED": [empty_address],
        "annotations has strange, which was not asked for": [query(node_name="a", annotations={"strange": ""})],
    }.items():
        request = bindings.instances.BatchGetInstancesRequest(queries=queries)
        code, message = refused(lambda: stub.BatchGetInstances(request, timeout=DEADLINE_SECONDS))
        assert code == grpc.StatusCode.INVALID_ARGUMENT and sentence in message


def test_a_call_without_metadata_or_deadline_or_handshake_is_found(bindings, strict):
    with channel_to(strict.socket) as bare:
        strict.wait(bare)
        stub = bindings.instances_grpc.InstancesStub(bare)
        queries = [bindings.instances.InstanceQuery(node_name="a")]
        request = bindings.instances.BatchGetInstancesRequest(queries=queries)
        entries = [("x-request-id", "one"), ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01")]
        message = refused(lambda: stub.BatchGetInstances(request))[1]
        for sentence in ("x-request-id is []", "traceparent is []", "no grpc-timeout", "before the first handshake"):
            assert sentence in message
        for timeout, metadata, sentence in (
            (60, entries, "not at most 10 s"),
            (5, entries, "x-request-id one was that of another call"),
            (5, [("x-request-id", "two"), ("traceparent", f"00-{'0' * 32}-{'b' * 16}-01")], "is none of W3C's"),
        ):
            assert sentence in refused(lambda: stub.BatchGetInstances(request, timeout=timeout, metadata=metadata))[1]


def test_an_encoded_path_as_authority_is_found(bindings, strict, strict_channel):
    with grpc.insecure_channel(f"unix://{strict.socket}") as encoded:
        with pytest.raises(grpc.RpcError) as caught:
            shake_hands(bindings, encoded)
    assert "provider.sock', not localhost" in caught.value.details()


def test_a_handshake_without_its_fields_is_found(bindings, strict, strict_channel):
    stub = bindings.identity_grpc.IdentityStub(strict_channel)
    message = refused(lambda: stub.GetProviderInfo(bindings.identity.GetProviderInfoRequest(pod_cidrs=["10"]), timeout=5))[1]
    for sentence in ("cluster is REQUIRED", "core_version is REQUIRED", "protocol_versions is REQUIRED", "'10' is no CIDR"):
        assert sentence in message
    assert "PROTOCOL_VERSION_UNSUPPORTED" == reason_of(lambda: shake_hands(bindings, strict_channel, versions=["v9"]))


def test_it_answers_as_a_process_what_the_contract_says(bindings, strict, strict_channel):
    shake_hands(bindings, strict_channel)
    assert stat.S_IMODE(strict.socket.stat().st_mode) == 0o660
    assert stat.S_IMODE(strict.socket.parent.stat().st_mode) == 0o770
    health = health_pb2_grpc.HealthStub(strict_channel)
    assert health.Check(health_pb2.HealthCheckRequest(), timeout=5).status == health_pb2.HealthCheckResponse.SERVING
    assert "ccm.provider.v1.LoadBalancers" in reflected(strict_channel)
    assert run("health", strict.socket).returncode == 0
    assert b"holds the lock" in run("serve", strict.socket, "--dir", str(strict.directory)).stderr
    with leading(bindings, strict_channel, EPOCH):
        pass
    assert strict.stop() == 0
    assert not strict.socket.exists() and strict.socket.with_name("provider.sock.lock").exists()
    assert run("health", strict.socket).returncode != 0


def test_its_cloud_outlives_a_kill_and_a_left_over_socket_is_no_hindrance(bindings, strict, strict_channel):
    shake_hands(bindings, strict_channel)
    strict.command("add", "node-1")
    strict.process.kill()
    strict.process.wait()
    assert strict.socket.exists()
    strict.start()
    with channel_to(strict.socket) as fresh:
        strict.wait(fresh)
    assert strict.command("show")["machines"] == 1


def run(command, path, *arguments):
    """The program once, to its end."""
    line = [sys.executable, "-B", str(HERE / "strict_server.py"), command, "--endpoint", f"unix://{path}", *arguments]
    return subprocess.run(line, capture_output=True, timeout=20, check=False)


def reflected(channel):
    """The names of the services that reflection lists."""
    ask = channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    answer = next(ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=5))
    return {service.name for service in answer.list_services_response.service}
