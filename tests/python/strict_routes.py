"""The strict provider's RPC service Routes: a table in which each cluster finds its own routes by a tag.

It follows routes.proto and CONTRACT.md and nothing else. The rules are in strict_rules, the table in strict_cloud.
"""

import contextlib
import threading

import strict_rules
from google.rpc import code_pb2
from strict_services import MAX_BATCH, Patience, in_progress, led_now

REFUSALS = {
    "not_owned": (code_pb2.FAILED_PRECONDITION, "NOT_OWNED", "the route is not this cluster's"),
    "conflict": (code_pb2.ABORTED, "CONFLICT", "the route leads elsewhere by now"),
}


def routes(bindings, watch, cloud, leadership, name):
    """The RPC service Routes."""
    messages, patience, one_by_one, shown = bindings.routes, Patience(), threading.Lock(), set()

    class Routes(bindings.routes_grpc.RoutesServicer):
        def ListRoutes(self, request, context):
            with watch.call("Routes", "ListRoutes", context) as request_id:
                broken = strict_rules.message(request) + strict_rules.listing(request, cloud.cluster_uid())
                watch.require(context, "ListRoutes", request_id, broken)
                for known in cloud.routes():
                    route = listed(known, request.cluster.uid)
                    shown.add(content(route))
                    yield messages.ListRoutesResponse(routes=[route])

        def CreateRoutes(self, request, context):
            broken = strict_rules.message(request) + strict_rules.new_routes(request, bindings.types, MAX_BATCH, cloud.cluster_uid())
            with mutation("CreateRoutes", broken, request, context):
                return messages.CreateRoutesResponse(results=[create(item, request.cluster.uid) for item in request.items])

        def DeleteRoutes(self, request, context):
            was_listed = lambda route: not watch.calls["ListRoutes"] or content(route) in shown  # What a former process listed is not known.
            broken = strict_rules.message(request)
            broken += strict_rules.old_routes(request, bindings, MAX_BATCH, cloud.cluster_uid(), was_listed)
            with mutation("DeleteRoutes", broken, request, context):
                return messages.DeleteRoutesResponse(results=[delete(item, request.cluster.uid) for item in request.items])

    @contextlib.contextmanager
    def mutation(method, broken, request, context):
        with watch.call("Routes", method, context) as request_id, one_by_one:
            watch.require(context, method, request_id, broken, "BATCH_TOO_LARGE" if len(request.items) > MAX_BATCH else "")
            led_now(watch, leadership, method, request, context, request_id)
            hasty = [text for item in request.items for text in patience.begin((method, item.route.destination_cidr), content(item.route))]
            watch.require(context, method, request_id, hasty)
            yield

    def create(item, cluster):
        route, prefix = item.route, f"{name}://"
        machine = cloud.machine(route.target_node_name, route.target_provider_id.removeprefix(prefix))
        if machine is None or machine["state"] == "DELETED":
            return messages.RouteResult(key=item.key, target_not_found=messages.RouteTargetNotFound())
        outcome = cloud.claim(cluster, route.destination_cidr, machine["id"])
        if outcome == "in_progress":
            patience.at_work(("CreateRoutes", route.destination_cidr), content(route))
            return messages.RouteResult(key=item.key, in_progress=in_progress(bindings, "the route is being made"))
        return result(item.key, outcome)

    def delete(item, cluster):
        return result(item.key, cloud.release(cluster, item.route.destination_cidr, item.route.target_description))

    def result(key, outcome):
        if outcome == "done":
            return messages.RouteResult(key=key, done=messages.RouteDone())
        code, reason, text = REFUSALS[outcome]
        error = bindings.errors.ItemError(code=code, reason=f"ERROR_REASON_{reason}", message=text)
        return messages.RouteResult(key=key, error=error)

    def listed(known, cluster):
        owner = messages.ROUTE_OWNER_THIS_CLUSTER if known["cluster"] == cluster else messages.ROUTE_OWNER_OTHER
        route = messages.Route(name=known["id"], destination_cidr=known["destination"], owner=owner, target_description=known["target"])
        machine = cloud.machine("", known["target"])
        if machine is not None and machine["state"] != "DELETED":
            route.target_node_name, route.target_provider_id = machine["name"], f"{name}://{machine['id']}"
        route.blackhole = known["target"].startswith("i-") and (machine is None or machine["state"] != "RUNNING")
        return route

    return Routes()


def content(message):
    """What makes two messages equal."""
    return message.SerializeToString(deterministic=True)
