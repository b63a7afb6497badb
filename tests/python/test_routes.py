"""Routes from the outside: what the contract promises a core about each call, in the order of a route's life."""

import grpc
import pytest

from plain_client import CLUSTER, Routes, error_info, leading, shake_hands

NET = "10.244.1.0/24"
SECOND = "fd00:1::/64"


@pytest.fixture
def table(bindings, channel):
    """The calls, on a connection on which hands were shaken."""
    shake_hands(bindings, channel)
    return Routes(bindings, channel)


def outcome(result):
    """What became of an item: the name of the outcome, or the reason of its error."""
    kind = result.WhichOneof("outcome")
    return kind if kind != "error" else type(result.error).DESCRIPTOR.fields_by_name["reason"].enum_type.values_by_number[result.error.reason].name


def refused(call):
    """The code and the message with which a call fails."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value


def only(table, destination):
    """The route to a destination, as it is listed."""
    (route,) = [route for route in table.list() if route.destination_cidr == destination]
    return route


def test_the_provider_says_that_it_serves_routes(bindings, channel):
    info = shake_hands(bindings, channel)
    assert bindings.identity.CAPABILITY_ROUTES in info.capabilities
    assert info.limits.max_concurrent_route_calls > 0


def test_a_route_is_made_listed_and_removed(bindings, channel, table):
    with leading(bindings, channel, epoch=7) as renew:
        results = table.create(7, table.route(NET, "node-1"), table.route(SECOND, "node-1"))
        assert [outcome(result) for result in results] == ["done", "done"]
        before = table.list()
        assert [route.destination_cidr for route in before] == [NET, SECOND]
        assert all(route.owner == table.messages.ROUTE_OWNER_THIS_CLUSTER and not route.blackhole for route in before)
        assert before[0].target_node_name == "node-1" and before[0].target_provider_id
        renew()
        again = table.create(7, table.route("10.244.1.77/24", "node-1", before[0].target_provider_id))
        assert [outcome(result) for result in again] == ["done"], "host bits do not count"
        assert table.list() == before, "a repeat changes nothing"
        for _ in range(2):
            assert [outcome(result) for result in table.delete(7, *before)] == ["done", "done"], "nothing to remove is a success"
        assert table.list() == []


def test_a_creation_replaces_the_clusters_own_route_and_a_late_deletion_is_a_conflict(bindings, channel, table):
    with leading(bindings, channel, epoch=1):
        table.create(1, table.route(NET, "node-1"))
        before = only(table, NET)
        assert outcome(table.create(1, table.route(NET, "node-2"))[0]) == "done"
        assert only(table, NET).target_node_name == "node-2"
        assert outcome(table.delete(1, before)[0]) == "ERROR_REASON_CONFLICT"
        assert only(table, NET).target_node_name == "node-2"


def test_of_duplicates_one_is_left(bindings, provider, channel, table):
    with leading(bindings, channel, epoch=1):
        table.create(1, table.route(NET, "node-1"))
        provider.ctl("add", "node-2")
        provider.ctl("route", "duplicate", NET, "--node", "node-2")
        assert len(table.list()) == 2, "both are listed"
        assert outcome(table.create(1, table.route(NET, "node-2"))[0]) == "done"
        assert only(table, NET).target_node_name == "node-2"


def test_a_route_of_others_is_neither_replaced_nor_removed_nor_taken_over(bindings, provider, channel, table):
    provider.ctl("add", "node-1")
    provider.ctl("route", "add", NET, "--node", "node-1")
    with leading(bindings, channel, epoch=1):
        before = only(table, NET)
        assert before.owner == table.messages.ROUTE_OWNER_OTHER
        assert outcome(table.create(1, table.route(NET, "node-2"))[0]) == "ERROR_REASON_NOT_OWNED"
        assert outcome(table.create(1, table.route(NET, "node-1"))[0]) == "done", "it is as requested"
        assert outcome(table.delete(1, before)[0]) == "ERROR_REASON_NOT_OWNED"
        assert table.list() == [before]


def test_a_machine_that_the_cloud_does_not_know_is_no_target_and_leaves_the_others_alone(bindings, provider, channel, table):
    provider.ctl("add", "node-1", "node-2")
    with leading(bindings, channel, epoch=1):
        table.create(1, table.route(NET, "node-1"))
        provider.ctl("forget", "node-1")
        results = table.create(1, table.route(NET, "node-2", "simulated://sim-1a/ghost"), table.route(SECOND, "node-2"))
        assert [outcome(result) for result in results] == ["target_not_found", "done"]
        left = only(table, NET)
        assert (left.target_node_name, left.HasField("target_provider_id"), left.blackhole) == ("", False, True)
        assert left.target_description, "a target that cannot be resolved is described"
        assert outcome(table.delete(1, left)[0]) == "done"


def test_a_stopped_machine_is_a_target_whose_route_is_a_blackhole(bindings, provider, channel, table):
    provider.ctl("stop", "node-1")
    with leading(bindings, channel, epoch=1):
        assert outcome(table.create(1, table.route(NET, "node-1"))[0]) == "done"
        route = only(table, NET)
        assert (route.blackhole, route.target_node_name) == (True, "node-1")


def test_a_batch_that_breaks_the_contract_is_refused_as_a_whole(bindings, channel, table):
    most = shake_hands(bindings, channel).limits.max_batch_size
    routes = [table.route(f"10.{number // 250}.{number % 250}.0/24", "node-1") for number in range(most + 1)]
    with leading(bindings, channel, epoch=1):
        error = refused(lambda: table.create(1, *routes))
        assert (error.code(), error_info(error).reason) == (grpc.StatusCode.INVALID_ARGUMENT, "BATCH_TOO_LARGE")
        for call in (
            lambda: table.create(1),
            lambda: table.create(1, *routes[:2], keys=["same", "same"]),
            lambda: table.create(1, routes[0], keys=[""]),
            lambda: table.create(1, table.route("10.244.1.0", "node-1")),
            lambda: table.create(1, table.route(NET, "")),
            lambda: table.delete(1, *routes[:2], keys=["same", "same"]),
        ):
            assert refused(call).code() == grpc.StatusCode.INVALID_ARGUMENT
        assert table.list() == []


def test_a_call_without_the_leaders_epoch_changes_nothing(bindings, channel, table):
    with leading(bindings, channel, epoch=3):
        table.create(3, table.route(NET, "node-1"))
        before = table.list()
        for epoch in (2, 4):
            for call in (lambda: table.create(epoch, table.route(NET, "node-2")), lambda: table.delete(epoch, *before)):
                error = refused(call)
                assert (error.code(), error_info(error).reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_LEADING")
        other = table.messages.CreateRoutesRequest(
            cluster=table.types.ClusterRef(name=CLUSTER["name"], uid="another"),
            leadership=table.types.Leadership(epoch=3),
            items=[table.messages.CreateRouteItem(key="k", route=table.route(NET, "node-2"))],
        )
        assert error_info(refused(lambda: table.stub.CreateRoutes(other, timeout=5))).reason == "NOT_LEADING"
        assert table.list() == before


def test_a_list_that_breaks_off_ends_with_an_error(bindings, provider, channel, table):
    with leading(bindings, channel, epoch=1):
        table.create(1, table.route(NET, "node-1"), table.route(SECOND, "node-1"))
    provider.ctl("fault", "set", "route-list-broken")
    assert refused(table.list).code() == grpc.StatusCode.UNAVAILABLE


def test_a_cloud_that_is_at_work_is_an_answer_and_no_error(bindings, provider, channel, table):
    provider.ctl("fault", "set", "route-in-progress")
    with leading(bindings, channel, epoch=1):
        (result,) = table.create(1, table.route(NET, "node-1"))
        assert outcome(result) == "in_progress" and result.in_progress.poll_after.ToMilliseconds() > 0
        assert table.list() == []
