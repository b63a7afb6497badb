"""Load balancers from the outside: what the contract promises a core about each call, in the order of a Service's life."""

import grpc
import pytest

from plain_client import CLUSTER, MUTATION_SECONDS, LoadBalancers, error_info, leading, shake_hands

MAX_QPS = "simulated.ccm-core.dev/load-balancer-max-qps"


@pytest.fixture
def balancers(bindings, channel):
    """The calls, on a connection on which hands were shaken."""
    shake_hands(bindings, channel)
    return LoadBalancers(bindings, channel)


def refused(call):
    """The code, the reason and the message with which a call fails."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    info = error_info(caught.value)
    assert info.domain == "ccm.provider.v1"
    return caught.value.code(), info.reason, caught.value.details()


def test_the_provider_says_that_it_serves_load_balancers(bindings, channel):
    info = shake_hands(bindings, channel)
    served = {bindings.identity.Capability.Name(capability) for capability in info.capabilities}
    optional = {"CAPABILITY_NODE_SETS", "CAPABILITY_PLAN_LOAD_BALANCER", "CAPABILITY_LIST_LOAD_BALANCERS"}
    assert {"CAPABILITY_LEAD", "CAPABILITY_LOAD_BALANCERS"} | optional <= served
    assert info.limits.max_concurrent_load_balancer_calls > 0
    assert all(info.service_annotation_prefixes)


def test_a_load_balancer_is_made_found_and_removed(bindings, channel, balancers):
    service = balancers.service("web")
    with leading(bindings, channel, epoch=7) as renew:
        nodes = balancers.put("set-1", balancers.node_set("node-1", "node-2"))
        assert balancers.plan(service, nodes).plan.changes, "it has to be made"
        assert balancers.get(service).WhichOneof("outcome") == "not_found", "and a plan makes nothing"

        ready = balancers.ensure(7, service, nodes).ready
        assert [ingress.HasField("ip") for ingress in ready.status.ingress] == [True]
        renew()
        assert balancers.ensure(7, service, nodes).ready == ready, "a repeat changes nothing"
        assert balancers.get(service).found == ready.status
        name = balancers.name(service)
        listed = balancers.list()
        assert list(listed) == [name]
        assert (listed[name].service_uid, listed[name].status) == (service.uid, ready.status)
        assert (listed[name].service_namespace, listed[name].service_name) == (service.namespace, service.name)
        assert balancers.list(cluster_uid="another") == {}

        for _ in range(2):
            assert balancers.delete(7, service).WhichOneof("outcome") == "done", "nothing to remove is a success"
        assert balancers.get(service).WhichOneof("outcome") == "not_found"
        assert balancers.list() == {}


def test_the_plan_of_an_unchanged_one_has_no_changes_and_says_what_ensure_would(bindings, channel, balancers):
    service = balancers.service("web")
    nodes = balancers.put("set-1", balancers.node_set("node-1"))
    with leading(bindings, channel, epoch=1):
        ready = balancers.ensure(1, service, nodes).ready
    plan = balancers.plan(service, nodes).plan
    assert list(plan.changes) == []
    assert (plan.status, plan.annotations) == (ready.status, ready.annotations)
    prefixes = tuple(shake_hands(bindings, channel).service_annotation_prefixes)
    assert plan.annotations and all(key.startswith(prefixes) for key in plan.annotations)


def test_an_update_gives_it_the_targets_of_another_set(bindings, channel, balancers):
    service = balancers.service("web")
    both = balancers.put("set-1", balancers.node_set("node-1", "node-2"))
    with leading(bindings, channel, epoch=1):
        status = balancers.ensure(1, service, both).ready.status
        one = balancers.put("set-2", balancers.node_set("node-2"))
        assert balancers.plan(service, one).plan.changes
        assert balancers.update(1, service, one).WhichOneof("outcome") == "updated"
        assert list(balancers.plan(service, one).plan.changes) == []
        assert balancers.plan(service, both).plan.changes, "an older set is kept, and differs now"
        assert balancers.get(service).found == status


def test_nodes_may_come_inline_too(bindings, channel, balancers):
    service, nodes = balancers.service("web"), balancers.node_set("node-1", "node-2")
    with leading(bindings, channel, epoch=1):
        assert balancers.ensure(1, service, balancers.inline(nodes)).WhichOneof("outcome") == "ready"
        assert list(balancers.plan(service, balancers.put("set-1", nodes)).plan.changes) == []


def test_a_set_without_a_node_is_a_set_in_either_form(bindings, channel, balancers):
    service, empty = balancers.service("web"), balancers.node_set()
    with leading(bindings, channel, epoch=1):
        assert balancers.ensure(1, service, balancers.put("set-1", empty)).WhichOneof("outcome") == "ready"
        assert balancers.update(1, service, balancers.inline(empty)).WhichOneof("outcome") == "updated"
        with pytest.raises(grpc.RpcError) as caught:
            balancers.stub.PutNodeSet(balancers.messages.PutNodeSetRequest(hash="set-2"), timeout=MUTATION_SECONDS)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT, "an absent set is none"


def test_a_call_without_leadership_is_not_led_whatever_its_node_set(bindings, channel, balancers):
    request = balancers.messages.EnsureLoadBalancerRequest(
        cluster=balancers.types.ClusterRef(**CLUSTER), service=balancers.service("web"), nodes=balancers.by_hash("set-1")
    )
    with leading(bindings, channel, epoch=1):
        code, reason, _ = refused(lambda: balancers.stub.EnsureLoadBalancer(request, timeout=MUTATION_SECONDS))
    assert (code, reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_LEADING")


def test_a_set_that_was_never_put_is_unknown_and_the_call_succeeds_once_it_was(bindings, channel, balancers):
    service, unknown = balancers.service("web"), balancers.by_hash("set-1")
    expected = (grpc.StatusCode.FAILED_PRECONDITION, "NODE_SET_UNKNOWN")
    with leading(bindings, channel, epoch=1):
        for call in (
            lambda: balancers.plan(service, unknown),
            lambda: balancers.ensure(1, service, unknown),
            lambda: balancers.update(1, service, unknown),
        ):
            assert refused(call)[:2] == expected
        assert balancers.list() == {}
        balancers.put("set-1", balancers.node_set("node-1"))
        assert balancers.ensure(1, service, unknown).WhichOneof("outcome") == "ready"


def test_there_is_nothing_to_update_where_there_is_none(bindings, channel, balancers):
    nodes = balancers.inline(balancers.node_set("node-1"))
    with leading(bindings, channel, epoch=1):
        code, reason, _ = refused(lambda: balancers.update(1, balancers.service("web"), nodes))
    assert (code, reason) == (grpc.StatusCode.ABORTED, "CONFLICT")
    assert balancers.list() == {}, "only Ensure makes one"


def test_only_the_live_leader_changes_anything_and_everybody_may_ask(bindings, channel, balancers):
    service, nodes = balancers.service("web"), balancers.inline(balancers.node_set("node-1"))

    def nobody_changes(epoch):
        for call in (
            lambda: balancers.ensure(epoch, service, nodes),
            lambda: balancers.update(epoch, service, nodes),
            lambda: balancers.delete(epoch, service),
        ):
            assert refused(call)[:2] == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_LEADING")
        assert balancers.plan(service, nodes).WhichOneof("outcome") == "plan"

    nobody_changes(epoch=1)
    with leading(bindings, channel, epoch=2):
        nobody_changes(epoch=1)
        assert balancers.ensure(2, service, nodes).WhichOneof("outcome") == "ready"
    nobody_changes(epoch=2)
    assert balancers.get(service).WhichOneof("outcome") == "found", "and nothing went with the leader"


def test_what_the_user_wrote_wrongly_is_named_by_ensure_and_plan_alike(bindings, channel, balancers):
    service = balancers.service("web", annotations={MAX_QPS: "many"})
    nodes = balancers.inline(balancers.node_set("node-1"))
    with leading(bindings, channel, epoch=1):
        for call in (lambda: balancers.ensure(1, service, nodes), lambda: balancers.plan(service, nodes)):
            code, reason, message = refused(call)
            assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "USER_CONFIGURATION")
            assert MAX_QPS in message
        assert balancers.list() == {}


def test_a_cloud_that_is_at_work_is_an_answer_and_no_error(bindings, provider, channel, balancers):
    service, nodes = balancers.service("web"), balancers.inline(balancers.node_set("node-1"))
    with leading(bindings, channel, epoch=1):
        balancers.ensure(1, service, nodes)
        provider.ctl("fault", "set", "lb-in-progress")
        for answer in (balancers.ensure(1, service, nodes), balancers.delete(1, service)):
            assert answer.WhichOneof("outcome") == "in_progress"
            assert answer.in_progress.poll_after.ToMilliseconds() > 0
        provider.ctl("fault", "clear")
        assert balancers.delete(1, service).WhichOneof("outcome") == "done"
