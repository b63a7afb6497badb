"""A running provider-simulated and bindings freshly generated from the protos: no SDK, no code of the project's.

It only starts, waits and stops; what must hold is in the tests.
"""

import importlib
import os
import pathlib
import subprocess
import sys
import tempfile

import grpc
import grpc_tools
import pytest
from grpc_tools import protoc

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
START_SECONDS = 20


class Bindings:
    """The generated modules, by the names of the proto files: `bindings.instances` and `bindings.instances_grpc`."""

    def __getattr__(self, name):
        module = f"{name[:-5]}_pb2_grpc" if name.endswith("_grpc") else f"{name}_pb2"
        return importlib.import_module(f"ccm.provider.v1.{module}")


class Provider:
    """A provider-simulated with a socket of its own, and a hand in its cloud."""

    def __init__(self, binary, directory):
        self.binary = binary
        self.socket = directory / "provider.sock"
        self.control = directory / "control.sock"
        self.log = directory / "provider.log"
        arguments = ["serve", "--endpoint", f"unix://{self.socket}", "--control", f"unix://{self.control}", "--auto-instances"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([binary, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def channel(self):
        """A channel as the contract asks for it: a path that is not encoded into `:authority`."""
        options = [
            ("grpc.default_authority", "localhost"),
            ("grpc.max_receive_message_length", 16 << 20),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
        ]
        return grpc.insecure_channel(f"unix://{self.socket}", options=options)

    def ctl(self, *arguments):
        """What `provider-simulated ctl` prints."""
        command = [self.binary, "ctl", "--control", f"unix://{self.control}", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=START_SECONDS).stdout

    def wait(self, channel):
        """Returns once the channel is connected; says why if the provider ended."""
        try:
            grpc.channel_ready_future(channel).result(timeout=START_SECONDS)
        except grpc.FutureTimeoutError:
            pytest.fail(f"no provider at {self.socket} (exit code {self.process.poll()}):\n{self.log.read_text()}")

    def stop(self):
        """Ends the provider the way kubelet does, and returns its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(timeout=START_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture(scope="session")
def bindings():
    """Generates the bindings with protoc into a directory below target, and makes them importable."""
    TARGET.mkdir(parents=True, exist_ok=True)
    protos = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto/ccm").rglob("*.proto"))
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory(dir=TARGET, prefix="python-bindings-") as out:
        arguments = [f"--proto_path={ROOT / 'proto'}", f"--proto_path={well_known}", f"--python_out={out}", f"--grpc_python_out={out}"]
        assert protoc.main(["protoc", *arguments, *protos]) == 0
        sys.path.insert(0, out)
        yield Bindings()
        sys.path.remove(out)


@pytest.fixture(scope="session")
def binary():
    """PROVIDER_SIMULATED_BIN, or else the workspace's own build."""
    given = os.environ.get("PROVIDER_SIMULATED_BIN")
    if given:
        return given
    subprocess.run(["cargo", "build", "--workspace", "--locked", "--bins"], cwd=ROOT, check=True)
    return str(TARGET / "debug/provider-simulated")


@pytest.fixture
def provider(binary):
    """A provider of its own for each test. Below /tmp, since the path of a socket must be short."""
    with tempfile.TemporaryDirectory(prefix="ccm-") as directory:
        running = Provider(binary, pathlib.Path(directory))
        yield running
        if running.process.poll() is None:
            running.stop()


@pytest.fixture
def channel(provider):
    """A connected channel to the provider."""
    with provider.channel() as opened:
        provider.wait(opened)
        yield opened
