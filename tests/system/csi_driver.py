# SPDX-License-Identifier: Apache-2.0
"""A CSI driver for tests, based on the reference implementation of gRPC, with its registrar. It stages a volume as a
tmpfs and publishes it as a bind mount of that; without staging it publishes a tmpfs."""

import contextlib
import os
import stat
import subprocess
import threading

import grpc
import world
from device_plugin import Registrant, field, fields, start_server, texts

DRIVER = "disk.csi.example.com"
STAGE, STATS, EXPAND, CONDITION, MULTI_WRITER, GROUP = range(1, 7)


def mapping(data, wanted):
    """Decodes a map of strings."""
    return {texts(value, 1)[0]: "".join(texts(value, 2)) for number, value in fields(data) if number == wanted}


def first(data, wanted, default=""):
    return next((value if isinstance(value, int) else value.decode() for number, value in fields(data) if number == wanted), default)


def message(data, wanted):
    return next((value for number, value in fields(data) if number == wanted), None)


def capability_of(data):
    """Decodes a VolumeCapability."""
    mode = first(message(data, 3) or b"", 1, 0)
    if message(data, 1) is not None:
        assert message(data, 2) is None
        return {"block": True, "mode": mode}
    mount = message(data, 2)
    return {"fs_type": first(mount, 1), "flags": texts(mount, 2), "group": first(mount, 3), "mode": mode}


class CsiDriver:
    """Serves csi.v1.Node. The test chooses its responses."""

    def __init__(self, node, name=DRIVER, capabilities=(STAGE,), node_id="n1", limit=0, topology=None, versions=("1.0.0",),
                 namespace="self"):
        self.kubelet = os.path.join(node.directory, "kubelet")
        self.name, self.capabilities, self.node_id, self.limit = name, list(capabilities), node_id, limit
        self.topology, self.versions = topology or {}, versions
        self.directory = os.path.join(self.kubelet, "plugins", name)
        self.path = os.path.join(self.directory, "csi.sock")
        self.calls = []  # (method, {request})
        self.errors = {}  # method: (code, text), or a list of them
        self.hold = {}  # method: the event that its call waits for
        self.server = self.registrar = None
        self.usages = [(700, 1000, 300, 1), (70, 100, 30, 2)]  # available, total, used, unit
        self.is_abnormal = False
        self.disk = None  # the block device of all volumes, if they are block devices
        self.node = node
        self.namespace = namespace  # a process in the mount namespace of the node
        os.makedirs(self.directory, exist_ok=True)
        self.serve()

    def serve(self):
        names = ("NodeGetInfo", "NodeGetCapabilities", "NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume",
                 "NodeUnstageVolume", "NodeGetVolumeStats", "NodeExpandVolume")
        handlers = {name: grpc.unary_unary_rpc_method_handler(lambda request, context, name=name: self.handle(name, request, context))
                    for name in names}
        self.server = start_server(self.path, {"csi.v1.Node": handlers}, self.server)

    def register(self, **options):
        """Registers the driver, like its registrar, a container of the same pod."""
        if self.registrar:
            self.registrar.stop()
        self.registrar = Registrant(self.node, "CSIPlugin", self.name, endpoint=self.path, versions=self.versions,
                                    socket=f"{self.name}-reg.sock", **options)
        return self

    def wait_registered(self):
        world.wait(lambda: (True, "") in self.registrar.statuses, lambda: self.registrar.statuses)
        return self

    def handle(self, method, request, context):
        parsed = getattr(self, "parse_" + method, lambda data: {})(request)
        self.calls.append((method, parsed))
        if method in self.hold:
            self.hold[method].wait(world.DEADLINE)
        error = self.errors.get(method)
        if isinstance(error, list):
            error = error.pop(0) if error else None
        if error:
            context.abort(*error)
        return getattr(self, "do_" + method, lambda parsed: b"")(parsed)

    def do_NodeGetInfo(self, _):
        segments = b"".join(field(1, field(1, key) + field(2, value)) for key, value in self.topology.items())
        return field(1, self.node_id) + field(2, self.limit) + (field(3, segments) if segments else b"")

    def do_NodeGetCapabilities(self, _):
        return b"".join(field(1, field(1, field(1, capability))) for capability in self.capabilities)

    @staticmethod
    def parse_NodeStageVolume(data):
        return {"id": first(data, 1), "publish_context": mapping(data, 2), "staging": first(data, 3),
                "capability": capability_of(message(data, 4)), "secrets": mapping(data, 5), "context": mapping(data, 6)}

    @staticmethod
    def parse_NodePublishVolume(data):
        return {"id": first(data, 1), "publish_context": mapping(data, 2), "staging": first(data, 3), "target": first(data, 4),
                "capability": capability_of(message(data, 5)), "read_only": bool(first(data, 6, 0)), "secrets": mapping(data, 7),
                "context": mapping(data, 8)}

    @staticmethod
    def parse_NodeUnpublishVolume(data):
        return {"id": first(data, 1), "target": first(data, 2)}

    @staticmethod
    def parse_NodeUnstageVolume(data):
        return {"id": first(data, 1), "staging": first(data, 2)}

    parse_NodeGetVolumeStats = parse_NodeUnpublishVolume

    def do_NodeGetVolumeStats(self, _):
        usages = [field(1, b"".join(field(number + 1, value) for number, value in enumerate(values))) for values in self.usages]
        return b"".join(usages) + (field(2, field(1, 1) + field(2, "worn out")) if self.is_abnormal else b"")

    @staticmethod
    def parse_NodeExpandVolume(data):
        return {"id": first(data, 1), "path": first(data, 2), "bytes": first(message(data, 3) or b"", 1, 0), "staging": first(data, 4),
                "capability": capability_of(message(data, 5)), "secrets": mapping(data, 6)}

    def do_NodeExpandVolume(self, call):
        if "block" not in call["capability"]:
            self.mount("-o", f"remount,size={call['bytes']}", call["path"])
        return field(1, call["bytes"])

    def do_NodeStageVolume(self, call):
        if "block" in call["capability"]:
            assert os.path.isdir(call["staging"])
            return b""
        if not self.has_mount(call["staging"]):
            self.mount("-t", "tmpfs", "-o", "mode=0777", self.name, call["staging"])
        return b""

    def do_NodePublishVolume(self, call):
        if "block" in call["capability"]:
            if not os.path.exists(call["target"]):
                os.mknod(call["target"], stat.S_IFBLK | 0o660, os.stat(self.disk).st_rdev)
            return b""
        os.makedirs(call["target"], exist_ok=True)
        if self.has_mount(call["target"]):
            return b""
        if call["staging"]:
            self.mount("--bind", call["staging"], call["target"])
        else:
            self.mount("-t", "tmpfs", "-o", "mode=0777", self.name, call["target"])
        return b""

    def do_NodeUnpublishVolume(self, call):
        self.unmount(call["target"])
        with contextlib.suppress(FileNotFoundError):
            (os.rmdir if os.path.isdir(call["target"]) else os.remove)(call["target"])
        return b""

    def do_NodeUnstageVolume(self, call):
        self.unmount(call["staging"])
        return b""

    def inside(self, *words):
        """Runs a command in the mount namespace of its node."""
        entering = [] if self.namespace == "self" else ["nsenter", f"--target={self.namespace}", "--mount"]
        subprocess.run([*entering, *words], check=True)

    def mount(self, *words):
        self.inside("mount", *words)

    def unmount(self, path):
        while self.has_mount(path):
            self.inside("umount", path)

    def has_mount(self, path):
        return mounted_at(path, self.namespace)

    def methods(self, *without):
        """The methods that were called, in their order."""
        return [method for method, _ in self.calls if method not in ("NodeGetInfo", "NodeGetCapabilities", *without)]

    def call(self, method):
        """The request of the last call of a method."""
        return [parsed for name, parsed in self.calls if name == method][-1]

    def count(self, method):
        return self.methods().count(method)

    def fail(self, method, code, text, times=None):
        error = (code, text)
        self.errors[method] = [error] * times if times else error

    def hold_back(self, method):
        self.hold[method] = threading.Event()
        return self.hold[method]

    def crash(self):
        """Ends the server like a process that crashes: its sockets stay."""
        self.server.stop(0).wait()

    def stop(self):
        for event in self.hold.values():
            event.set()
        if self.registrar:
            self.registrar.stop()
        self.server.stop(0).wait()


def mounted_at(path, pid="self"):
    return any(line.split()[4] == path for line in (world.read(f"/proc/{pid}/mountinfo") or "").splitlines())
