"""Bindings made from the protos by protoc alone: what a provider or a core in Python starts from.

It generates and imports; it knows nothing of what the messages mean.
"""

import importlib
import pathlib
import sys

import grpc_tools
from grpc_tools import protoc

PROTO = pathlib.Path(__file__).resolve().parents[2] / "proto"


class Bindings:
    """The generated modules, by the names of the proto files: `bindings.instances` and `bindings.instances_grpc`."""

    def __getattr__(self, name):
        module = f"{name[:-5]}_pb2_grpc" if name.endswith("_grpc") else f"{name}_pb2"
        return importlib.import_module(f"ccm.provider.v1.{module}")


def generate(folder):
    """Generates the bindings into a folder and makes them importable."""
    protos = sorted(str(path.relative_to(PROTO)) for path in (PROTO / "ccm").rglob("*.proto"))
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    arguments = [f"--proto_path={PROTO}", f"--proto_path={well_known}", f"--python_out={folder}", f"--grpc_python_out={folder}"]
    if protoc.main(["protoc", *arguments, *protos]) != 0:
        raise RuntimeError("protoc refused the protos: see its messages above")
    sys.path.insert(0, str(folder))
    return Bindings()
