"""A provider without an SDK: a server on bare generated bindings that checks every call of a core against the contract.

This is the process: lock, socket, health, reflection and the orderly end. What it answers is in strict_services.

    strict_server.py serve --endpoint unix:///PATH --dir DIR [--name NAME]
    strict_server.py health --endpoint unix:///PATH

DIR keeps the cloud (cloud.json) and what the core did wrong (violations.jsonl, empty if nothing). Commands to the cloud are
lines of JSON on the socket DIR/commands.sock.
"""

import argparse
import fcntl
import json
import os
import pathlib
import signal
import socket
import socketserver
import sys
import tempfile
import threading
from concurrent import futures

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

import strict_routes
import strict_services
from generated import generate
from strict_cloud import Cloud

WORKERS = 32
GRACE_SECONDS = 20
MAX_RECEIVED = 64 << 20
MAX_PATH = 107
HEALTH_SECONDS = 5


def main():
    """Runs the command."""
    arguments = parse()
    path = path_of(arguments.endpoint)
    return is_healthy(path) if arguments.command == "health" else serve(path, arguments)


def parse():
    """The command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["serve", "health"])
    parser.add_argument("--endpoint", default=os.environ.get("PROVIDER_ENDPOINT"))
    parser.add_argument("--dir", type=pathlib.Path)
    parser.add_argument("--name", default="strict")
    arguments = parser.parse_args()
    if arguments.endpoint is None:
        parser.error("--endpoint or PROVIDER_ENDPOINT is needed")
    if arguments.command == "serve" and arguments.dir is None:
        parser.error("--dir is needed")
    return arguments


def path_of(endpoint):
    """The path of a unix:// endpoint."""
    path = endpoint.removeprefix("unix://")
    if path == endpoint or not path.startswith("/") or len(os.fsencode(path)) > MAX_PATH:
        sys.exit(f"the endpoint {endpoint} is not unix:// and an absolute path of at most {MAX_PATH} bytes")
    return pathlib.Path(path)


def is_healthy(path):
    """The exit code of `health`."""
    with grpc.insecure_channel(f"unix://{path}", options=[("grpc.default_authority", "localhost")]) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=HEALTH_SECONDS)
    return 0 if answer.status == health_pb2.HealthCheckResponse.SERVING else 1


def serve(path, arguments):
    """Serves until SIGTERM, then lets running calls end, ends Lead, and removes the socket. The lock file stays."""
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stop.set())
    make_folder(path.parent)
    with lock(path), tempfile.TemporaryDirectory(dir=arguments.dir, prefix="bindings-") as folder:
        make_way(path)
        bindings, cloud = generate(folder), Cloud(arguments.dir / "cloud.json")
        watch = strict_services.Watch(arguments.dir / "violations.jsonl")
        leadership, sets = strict_services.Leadership(), strict_services.NodeSets()
        server = grpc.server(futures.ThreadPoolExecutor(WORKERS), options=[("grpc.max_receive_message_length", MAX_RECEIVED)])
        add_services(server, bindings, watch, cloud, leadership, sets, arguments.name)
        healthy = add_health_and_reflection(server, bindings)
        listen(server, path)
        with Commands(arguments.dir / "commands.sock", cloud, watch, sets, leadership):
            print(f"serving at {path}", flush=True)
            stop.wait()
        healthy.enter_graceful_shutdown()
        ended = server.stop(GRACE_SECONDS)
        watch.wait_for_end("LoadBalancers", GRACE_SECONDS)
        watch.wait_for_end("Routes", GRACE_SECONDS)
        leadership.drain()
        ended.wait()
        path.unlink(missing_ok=True)
    return 0


def make_folder(folder):
    """Creates the socket's folder with mode 0770, whatever the umask is. One that is there stays as it is."""
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o770)


def lock(path):
    """The exclusive lock, held until the file is closed."""
    file = open(f"{path}.lock", "w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"another provider holds the lock {path}.lock")
    return file


def make_way(path):
    """Removes a socket at which no process answers; refuses to start if one does."""
    if not path.exists():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink()
            return
    sys.exit(f"another process answers at {path}")


def listen(server, path):
    """Binds the socket with mode 0660 from its first moment on."""
    before = os.umask(0o117)
    try:
        if server.add_insecure_port(f"unix:{path}") == 0:
            sys.exit(f"cannot listen at {path}")
    finally:
        os.umask(before)
    server.start()


class Unregistered:
    """A server that takes handlers by their names only: for registered methods grpc reports no :authority."""

    def __init__(self, server):
        self.add_generic_rpc_handlers = server.add_generic_rpc_handlers

    def add_registered_method_handlers(self, service, handlers):
        """Not needed: the same handlers come by their names, too."""


def add_services(server, bindings, watch, cloud, leadership, sets, name):
    """The RPC services that the handshake lists. Methods of others answer UNIMPLEMENTED by themselves."""
    server = Unregistered(server)
    identity = strict_services.identity(bindings, watch, cloud, leadership, name)
    bindings.identity_grpc.add_IdentityServicer_to_server(identity, server)
    instances = strict_services.instances(bindings, watch, cloud, name)
    bindings.instances_grpc.add_InstancesServicer_to_server(instances, server)
    balancers = strict_services.load_balancers(bindings, watch, cloud, leadership, sets)
    bindings.load_balancers_grpc.add_LoadBalancersServicer_to_server(balancers, server)
    table = strict_routes.routes(bindings, watch, cloud, leadership, name)
    bindings.routes_grpc.add_RoutesServicer_to_server(table, server)


def add_health_and_reflection(server, bindings):
    """grpc.health.v1 and grpc.reflection.v1. The package has the latter's messages under their older name only."""
    healthy = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
    files = (bindings.identity, bindings.instances, bindings.load_balancers, bindings.routes, health_pb2)
    names = [service.full_name for file in files for service in file.DESCRIPTOR.services_by_name.values()]
    reflect = grpc.stream_stream_rpc_method_handler(
        reflection.ReflectionServicer([*names, "grpc.reflection.v1.ServerReflection"]).ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    handlers = {"ServerReflectionInfo": reflect}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.reflection.v1.ServerReflection", handlers),))
    return healthy


class Commands(socketserver.ThreadingUnixStreamServer):
    """Lines of JSON that change the cloud, each answered by one, with the calls that were counted. Beside them `forget-sets`,
    `supersede` (another leader was here) and `slow-down` (mutations take so many seconds)."""

    daemon_threads = True

    def __init__(self, path, cloud, watch, sets, leadership):
        path.unlink(missing_ok=True)
        self.cloud, self.watch, self.sets, self.leadership = cloud, watch, sets, leadership
        super().__init__(str(path), Line)
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def obey(self, command):
        """Carries one out."""
        own = {
            "forget-sets": self.sets.forget,
            "supersede": self.leadership.supersede,
            "slow-down": lambda: setattr(self.watch, "mutation_seconds", float(command["names"][0])),
        }
        if command["do"] in own:
            own[command["do"]]()
            command = {"do": "show"}
        return {**self.cloud.obey(command), "calls": dict(self.watch.calls)}

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Line(socketserver.StreamRequestHandler):
    """One connection of Commands."""

    def handle(self):
        for line in self.rfile:
            try:
                answer = self.server.obey(json.loads(line))
            except Exception as error:  # The caller gets every error of its command.
                answer = {"error": repr(error)}
            self.wfile.write(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main())
