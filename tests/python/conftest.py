"""Running providers, simulated and strict, and bindings freshly generated from the protos: no SDK, no code of the project's.

It only starts, waits and stops; what must hold is in the tests.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

import grpc
import pytest

from generated import generate
from plain_client import Metadata

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
START_SECONDS = 20


def channel_to(path):
    """A channel as the contract asks for it: metadata with every call, and a path that is not encoded into `:authority`."""
    options = [
        ("grpc.default_authority", "localhost"),
        ("grpc.max_receive_message_length", 16 << 20),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.min_reconnect_backoff_ms", 100),
    ]
    return grpc.insecure_channel(f"unix://{path}", options=options)


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
        """A channel to it."""
        return channel_to(self.socket)

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
    with tempfile.TemporaryDirectory(dir=TARGET, prefix="python-bindings-") as out:
        yield generate(out)
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
        yield grpc.intercept_channel(opened, Metadata())


class StrictProvider(Provider):
    """The strict server as a process of its own, with its cloud and its list of violations."""

    def __init__(self, directory):  # pylint: disable=super-init-not-called
        self.directory = directory
        self.socket = directory / "new" / "provider.sock"
        self.log = directory / "provider.log"
        self.start()

    def start(self):
        """Starts it, for the first time or again."""
        command = [sys.executable, "-B", str(HERE / "strict_server.py"), "serve"]
        with self.log.open("ab") as log:
            arguments = ["--endpoint", f"unix://{self.socket}", "--dir", str(self.directory)]
            self.process = subprocess.Popen([*command, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def command(self, do, *names):
        """Changes its cloud; answers what there is."""
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self.directory / "commands.sock"))
            line.sendall(json.dumps({"do": do, "names": names}).encode() + b"\n")
            return json.loads(line.makefile().readline())

    def violations(self):
        """The sentences of the contract that a client broke, with the method of the call."""
        lines = (self.directory / "violations.jsonl").read_text().splitlines()
        return [(one["method"], one["broken"]) for one in map(json.loads, lines)]


@pytest.fixture
def strict():
    """A strict provider of its own for each test."""
    with tempfile.TemporaryDirectory(prefix="ccm-") as directory:
        running = StrictProvider(pathlib.Path(directory))
        yield running
        if running.process.poll() is None:
            running.stop()


@pytest.fixture
def strict_channel(strict):
    """A connected channel to the strict provider."""
    with strict.channel() as opened:
        strict.wait(opened)
        yield grpc.intercept_channel(opened, Metadata())
