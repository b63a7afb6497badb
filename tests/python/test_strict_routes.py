"""The strict provider's routes: an orderly client passes, and each sentence of the contract that is broken is found."""

import time

import pytest

from plain_client import Routes, leading, shake_hands
from test_routes import NET, SECOND, only, outcome, refused

EPOCH = 3


@pytest.fixture
def table(bindings, strict, strict_channel):
    """The calls of Routes, on a connection on which hands were shaken, to a cloud with two machines."""
    shake_hands(bindings, strict_channel)
    strict.command("add", "node-1", "node-2")
    return Routes(bindings, strict_channel)


def made(table, *routes):
    """The results of a creation when the cloud is done, asked again after each `poll_after`."""
    results = table.create(EPOCH, *routes)
    while any(result.HasField("in_progress") for result in results):
        time.sleep(max(result.in_progress.poll_after.ToTimedelta().total_seconds() for result in results))
        results = table.create(EPOCH, *routes)
    return [outcome(result) for result in results]


def test_an_orderly_client_breaks_nothing(bindings, strict, strict_channel, table):
    strict.command("add-routes", "192.168.0.0/16")
    with leading(bindings, strict_channel, EPOCH):
        assert made(table, table.route(NET, "node-1", "strict://i-0001"), table.route(SECOND, "node-1")) == ["done", "done"]
        assert made(table, table.route("192.168.0.0/16", "node-1")) == ["ERROR_REASON_NOT_OWNED"]
        assert made(table, table.route(NET, "node-9"), table.route(SECOND, "node-2")) == ["target_not_found", "done"]
        strict.command("terminate", "node-1")
        gone = only(table, NET)
        assert (gone.target_node_name, gone.blackhole, gone.target_description) == ("", True, "i-0001")
        assert only(table, SECOND).target_node_name == "node-2", "it was replaced"
        for _ in range(2):
            assert outcome(table.delete(EPOCH, gone)[0]) == "done"
    assert [one["destination"] for one in strict.command("show")["routes"]] == ["192.168.0.0/16", SECOND]
    assert strict.violations() == []


def test_a_wrong_item_is_found(bindings, strict, strict_channel, table):
    messages = table.messages
    wrong = {
        "has 0 items": [],
        "has 8 items": [table.route(f"10.0.{number}.0/24", "node-1") for number in range(8)],
        "target_node_name '' is no name": [table.route(NET, "")],
        "'10.0.0.1' is no CIDR": [table.route("10.0.0.1", "node-1")],
        "target_provider_id is set and empty": [table.route(NET, "node-1", "")],
        "owner is set, which only ListRoutes does": [messages.Route(destination_cidr=NET, target_node_name="node-1", owner=1)],
        "name is set, which only ListRoutes does": [messages.Route(destination_cidr=NET, target_node_name="node-1", name="x")],
    }
    with leading(bindings, strict_channel, EPOCH):
        for sentence, routes in wrong.items():
            assert sentence in refused(lambda: table.create(EPOCH, *routes)).details()
        twice = refused(lambda: table.create(EPOCH, table.route(NET, "node-1"), table.route(SECOND, "node-1"), keys=["k", "k"]))
        assert "key repeats itself" in twice.details()
    assert len(strict.violations()) >= len(wrong) + 1


def test_a_deletion_of_what_was_never_listed_so_or_of_others_is_found(bindings, strict, strict_channel, table):
    strict.command("add-routes", "192.168.0.0/16")
    with leading(bindings, strict_channel, EPOCH):
        made(table, table.route(NET, "node-1"))
        changed = only(table, NET)
        changed.target_description = "i-0002"
        assert "is not as ListRoutes returned any" in refused(lambda: table.delete(EPOCH, changed)).details()
        foreign = only(table, "192.168.0.0/16")
        assert "ccm-core removes only this cluster's" in refused(lambda: table.delete(EPOCH, foreign)).details()
        assert len(table.list()) == 2


def test_an_equal_item_that_comes_too_soon_is_found(bindings, strict_channel, table):
    with leading(bindings, strict_channel, EPOCH):
        table.create(EPOCH, table.route(NET, "node-1"))
        assert "though poll_after was" in refused(lambda: table.create(EPOCH, table.route(NET, "node-1"))).details()
