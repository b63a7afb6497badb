"""The contract from the outside: a plain generated client in another language drives a provider over its socket."""

import json
import stat

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from plain_client import DEADLINE_SECONDS, LoadBalancers, add_ssh_key, error_info, lead_request, leading, look_up, shake_hands


def test_the_handshake_describes_the_provider(bindings, channel):
    info = shake_hands(bindings, channel)
    assert info.name == "simulated"
    assert info.protocol_version == "v1"
    assert 0 < len(info.cloud_identity) <= 256
    assert list(info.provider_id_prefixes) == ["simulated://"]
    assert info.limits.max_batch_size == 500
    served = {bindings.identity.Capability.Name(capability) for capability in info.capabilities}
    assert {"CAPABILITY_LEAD", "CAPABILITY_INSTANCES", "CAPABILITY_ZONES", "CAPABILITY_VOLUMES"} <= served


def test_a_core_of_another_protocol_version_is_told_so(bindings, channel):
    with pytest.raises(grpc.RpcError) as caught:
        shake_hands(bindings, channel, versions=["v9"])
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    info = error_info(caught.value)
    assert (info.domain, info.reason) == ("ccm.provider.v1", "PROTOCOL_VERSION_UNSUPPORTED")


def test_a_batch_answers_for_every_node_what_is_known(bindings, provider, channel):
    provider.ctl("stop", "node-2")
    results = look_up(bindings, channel, "node-1", "node-2")
    running = results["node-1"].instance
    assert running.provider_id.startswith("simulated://")
    assert running.state == bindings.instances.INSTANCE_STATE_RUNNING
    assert running.instance_type and running.zone and running.region and running.addresses
    assert results["node-2"].instance.state == bindings.instances.INSTANCE_STATE_STOPPED
    assert all(result.observed_at.seconds > 0 for result in results.values())
    assert json.loads(provider.ctl("calls"))["BatchGetInstances"] == 1


def test_a_forgotten_machine_is_a_result_and_not_an_error(bindings, provider, channel):
    provider.ctl("forget", "node-1")
    results = look_up(bindings, channel, "node-1", "node-2")
    assert results["node-1"].WhichOneof("outcome") == "not_found"
    assert results["node-1"].observed_at.seconds > 0
    assert results["node-2"].WhichOneof("outcome") == "instance"


def test_a_terminated_machine_is_known_as_deleted(bindings, provider, channel):
    provider.ctl("terminate", "node-1")
    results = look_up(bindings, channel, "node-1")
    assert results["node-1"].instance.state == bindings.instances.INSTANCE_STATE_DELETED


def test_lost_credentials_are_an_error_and_never_not_found(bindings, provider, channel):
    provider.ctl("fault", "set", "unauthenticated")
    with pytest.raises(grpc.RpcError) as caught:
        look_up(bindings, channel, "node-1")
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
    assert error_info(caught.value).reason == "CREDENTIALS_INVALID"


def test_a_batch_over_the_limit_is_refused(bindings, channel):
    with pytest.raises(grpc.RpcError) as caught:
        look_up(bindings, channel, *(f"node-{number}" for number in range(501)))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert error_info(caught.value).reason == "BATCH_TOO_LARGE"


def test_the_zone_of_a_machine_is_that_of_its_instance(bindings, provider, channel):
    provider.ctl("add", "node-1")
    instance = look_up(bindings, channel, "node-1")["node-1"].instance
    zones = bindings.zones_grpc.ZonesStub(channel)
    answer = zones.GetZone(bindings.zones.GetZoneRequest(node_name="node-1"), timeout=DEADLINE_SECONDS)
    assert (answer.zone.zone, answer.zone.region) == (instance.zone, instance.region)
    by_id = zones.GetZone(bindings.zones.GetZoneRequest(provider_id=instance.provider_id), timeout=DEADLINE_SECONDS)
    assert by_id == answer
    own = zones.GetZone(bindings.zones.GetZoneRequest(own=bindings.zones.OwnZone()), timeout=DEADLINE_SECONDS)
    assert own.zone.region == instance.region


def test_the_zone_of_an_unknown_machine_is_a_result_and_not_an_error(bindings, provider, channel):
    provider.ctl("forget", "node-1")
    zones = bindings.zones_grpc.ZonesStub(channel)
    answer = zones.GetZone(bindings.zones.GetZoneRequest(node_name="node-1"), timeout=DEADLINE_SECONDS)
    assert answer.WhichOneof("outcome") == "not_found"


def test_an_unknown_volume_and_a_foreign_one_are_told_apart(bindings, channel):
    volumes = bindings.volumes_grpc.VolumesStub(channel)
    request = bindings.volumes.GetVolumeLabelsRequest(name="pv-1", plugin="simulated.ccm-core.dev", volume_id="vol-none")
    assert volumes.GetVolumeLabels(request, timeout=DEADLINE_SECONDS).WhichOneof("outcome") == "not_found"
    request.plugin = "other.example.com"
    assert volumes.GetVolumeLabels(request, timeout=DEADLINE_SECONDS).WhichOneof("outcome") == "not_mine"


def test_a_mutating_call_without_leadership_is_refused(bindings, channel):
    shake_hands(bindings, channel)
    balancers = LoadBalancers(bindings, channel)
    with pytest.raises(grpc.RpcError) as caught:
        balancers.delete(1, balancers.service("web"))
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    info = error_info(caught.value)
    assert (info.domain, info.reason) == ("ccm.provider.v1", "NOT_LEADING")


def test_a_lead_stream_acknowledges_its_epoch_and_fences_older_ones(bindings, channel):
    shake_hands(bindings, channel)
    identity = bindings.identity_grpc.IdentityStub(channel)
    with leading(bindings, channel, epoch=7) as renew:
        renew()
        with pytest.raises(grpc.RpcError) as older:
            next(identity.Lead(iter([lead_request(bindings, epoch=6)]), timeout=DEADLINE_SECONDS))
        refusal = error_info(older.value)
        assert (refusal.reason, refusal.metadata["highest_epoch"]) == ("NOT_LEADING", "7")
        balancers = LoadBalancers(bindings, channel)
        for other in (6, 8):
            with pytest.raises(grpc.RpcError) as stale:
                balancers.delete(other, balancers.service("web"))
            assert error_info(stale.value).reason == "NOT_LEADING"
        assert balancers.delete(7, balancers.service("web")).WhichOneof("outcome") == "done"


def test_a_method_that_is_not_served_says_so_before_it_asks_who_leads(bindings, channel):
    shake_hands(bindings, channel)
    with pytest.raises(grpc.RpcError) as caught:
        add_ssh_key(bindings, channel, epoch=1)
    assert (caught.value.code(), error_info(caught.value).reason) == (grpc.StatusCode.UNIMPLEMENTED, "NOT_IMPLEMENTED")


# What the simulated provider does not list: no client's call of it may end in anything else.
UNSERVED = {
    "Instances": {"WatchInstances", "AddSSHKeyToAllInstances", "GetCurrentNodeName"},
    "Clusters": {"ListClusters", "GetMaster"},
}

# What it serves, and which tests call it here, in test_load_balancers and in test_routes.
SERVED = {
    "Identity": {"GetProviderInfo", "Lead"},
    "Instances": {"BatchGetInstances"},
    "Zones": {"GetZone"},
    "Volumes": {"GetVolumeLabels"},
    "Routes": {"ListRoutes", "CreateRoutes", "DeleteRoutes"},
    "LoadBalancers": {
        "GetLoadBalancer",
        "GetLoadBalancerName",
        "EnsureLoadBalancer",
        "UpdateLoadBalancer",
        "EnsureLoadBalancerDeleted",
        "PutNodeSet",
        "PlanLoadBalancer",
        "ListLoadBalancers",
    },
}


def test_every_method_of_the_contract_is_called_by_some_test(bindings):
    contract = {}
    for name in ("identity", "instances", "load_balancers", "routes", "zones", "clusters", "volumes"):
        for service in getattr(bindings, name).DESCRIPTOR.services_by_name.values():
            contract[service.name] = {method.name for method in service.methods}
    assert contract == {name: SERVED.get(name, set()) | UNSERVED.get(name, set()) for name in {*SERVED, *UNSERVED}}


@pytest.mark.parametrize("service, method", [(name, one) for name, methods in UNSERVED.items() for one in sorted(methods)])
def test_what_is_not_served_answers_unimplemented(bindings, channel, service, method):
    shake_hands(bindings, channel)
    file = getattr(bindings, service.lower())
    described = file.DESCRIPTOR.services_by_name[service].methods_by_name[method]
    stub = getattr(getattr(bindings, f"{service.lower()}_grpc"), f"{service}Stub")(channel)
    with pytest.raises(grpc.RpcError) as caught:
        answer = getattr(stub, method)(getattr(file, described.input_type.name)(), timeout=DEADLINE_SECONDS)
        if described.server_streaming:
            next(answer)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert error_info(caught.value).reason == "NOT_IMPLEMENTED"


def test_health_is_serving(channel):
    health = health_pb2_grpc.HealthStub(channel)
    answer = health.Check(health_pb2.HealthCheckRequest(), timeout=DEADLINE_SECONDS)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_a_cloud_that_refuses_the_credentials_does_not_change_health(bindings, provider, channel):
    provider.ctl("fault", "set", "unauthenticated")
    with pytest.raises(grpc.RpcError):
        look_up(bindings, channel, "node-1")
    health = health_pb2_grpc.HealthStub(channel)
    answer = health.Check(health_pb2.HealthCheckRequest(service=""), timeout=DEADLINE_SECONDS)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_a_lead_message_holds_for_an_hour_at_most(bindings, channel):
    shake_hands(bindings, channel)
    identity = bindings.identity_grpc.IdentityStub(channel)
    for seconds, code in ((3600, None), (3601, grpc.StatusCode.INVALID_ARGUMENT)):
        request = lead_request(bindings, epoch=seconds)
        request.valid_for.FromSeconds(seconds)
        stream = identity.Lead(iter([request]), timeout=DEADLINE_SECONDS)
        if code is None:
            assert next(stream).epoch == seconds
            continue
        with pytest.raises(grpc.RpcError) as caught:
            next(stream)
        assert caught.value.code() == code
        assert "valid_for" in caught.value.details()


def test_reflection_lists_every_service(channel):
    # The Python package has only v1alpha, whose messages are those of v1.
    ask = channel.stream_stream(
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    answer = next(ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=DEADLINE_SECONDS))
    listed = {service.name for service in answer.list_services_response.service}
    assert {"ccm.provider.v1.Identity", "ccm.provider.v1.Instances", "grpc.health.v1.Health"} <= listed


def test_the_socket_is_closed_to_others_and_goes_with_the_provider(bindings, provider, channel):
    shake_hands(bindings, channel)
    assert stat.S_IMODE(provider.socket.stat().st_mode) == 0o660
    channel.close()
    assert provider.stop() == 0
    assert not provider.socket.exists()
