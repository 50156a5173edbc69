# SPDX-License-Identifier: Apache-2.0
"""A device plugin and a client of the pod resources API, based on the reference implementation of gRPC, with the
messages that plugins of the kubelet send and expect. They are encoded here by their published field numbers."""

import concurrent.futures
import contextlib
import os
import queue
import threading

import grpc
from world import DEADLINE

HEALTHY, UNHEALTHY = "Healthy", "Unhealthy"
LOCALHOST = [("grpc.default_authority", "localhost")]


def varint(value):
    result = b""
    while value >= 0x80:
        result += bytes([value & 0x7f | 0x80])
        value >>= 7
    return result + bytes([value])


def field(number, value):
    """Encodes a field with a number, a text, or the bytes of a message."""
    if isinstance(value, bool) or isinstance(value, int):
        return varint(number << 3) + varint(int(value)) if value else b""
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def fields(data):
    """Number and value of each field."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            length = number()
            at += length
            yield key >> 3, data[at - length:at]


def texts(data, wanted):
    return [value.decode() for number, value in fields(data) if number == wanted]


def start_server(path, services, old=None):
    """Serves {service: {method: handler}} at a new socket. The server 'old' is ended first, because it would remove the
    socket later."""
    if old:
        old.stop(0).wait()
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(name, methods) for name, methods in services.items()])
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    assert server.add_insecure_port(f"unix:{path}")
    server.start()
    return server


class Registrant:
    """Serves pluginregistration v1 at a socket of plugins_registry, with other services there if they are given."""

    def __init__(self, node, kind, name, endpoint="", versions=("v1beta1",), socket="plugin-reg.sock", services=None):
        self.directory = os.path.join(node.directory, "kubelet", "plugins_registry")
        self.path = os.path.join(self.directory, socket)
        self.kind, self.name, self.endpoint, self.versions, self.services = kind, name, endpoint, versions, services or {}
        self.statuses = []  # (registered, error) of each notification
        self.questions = 0
        self.notify_error = None
        self.server = None
        self.serve()

    def serve(self):
        handlers = {"GetInfo": grpc.unary_unary_rpc_method_handler(self.info),
                    "NotifyRegistrationStatus": grpc.unary_unary_rpc_method_handler(self.notify)}
        self.server = start_server(self.path, {"pluginregistration.Registration": handlers, **self.services}, self.server)

    def info(self, request, context):
        self.questions += 1
        return field(1, self.kind) + field(2, self.name) + field(3, self.endpoint) + b"".join(field(4, v) for v in self.versions)

    def notify(self, request, context):
        found = dict(fields(request))
        self.statuses.append((bool(found.get(1)), found.get(2, b"").decode()))
        if self.notify_error:
            context.abort(grpc.StatusCode.UNKNOWN, self.notify_error)
        return b""

    def remove(self):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def stop(self):
        self.server.stop(0).wait()
        self.remove()


class DevicePlugin:
    """Serves DevicePlugin v1beta1 at a socket of device-plugins, and registers. The test chooses its responses."""

    def __init__(self, node, resource, devices, endpoint=None, preferred=None, pre_start=False, directory=None):
        self.directory = directory or os.path.join(node.directory, "kubelet", "device-plugins")
        self.resource, self.endpoint = resource, endpoint or resource.replace("/", "_") + ".sock"
        self.preferred, self.pre_start = preferred, pre_start
        self.devices = devices  # ID: health, or (health, NUMA node)
        self.lists = set()
        self.calls = []  # ("Allocate", [IDs]), …
        self.answer = lambda ids: field(1, field(1, field(1, "DEVICES") + field(2, ",".join(ids))))
        self.errors = {}  # method: text
        self.hold = None  # an event for which Allocate waits
        self.server = None
        self.serve()

    def serve(self):
        path = os.path.join(self.directory, self.endpoint)
        self.server = start_server(path, {"v1beta1.DevicePlugin": self.handlers()}, self.server)

    def handlers(self):
        return {"GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(self.options),
                "ListAndWatch": grpc.unary_stream_rpc_method_handler(self.list_and_watch),
                "GetPreferredAllocation": grpc.unary_unary_rpc_method_handler(self.prefer),
                "Allocate": grpc.unary_unary_rpc_method_handler(self.allocate),
                "PreStartContainer": grpc.unary_unary_rpc_method_handler(self.start_container)}

    def check(self, method, context):
        if method in self.errors:
            context.abort(grpc.StatusCode.UNKNOWN, self.errors[method])

    def options(self, request, context):
        self.check("GetDevicePluginOptions", context)
        return field(1, self.pre_start) + field(2, bool(self.preferred))

    def list_message(self):
        message = b""
        for name, health in self.devices.items():
            health, nodes = health if isinstance(health, tuple) else (health, None)
            topology = field(3, field(1, field(1, nodes))) if nodes is not None else b""
            message += field(1, field(1, name) + field(2, health) + topology)
        return message

    def list_and_watch(self, request, context):
        self.check("ListAndWatch", context)
        changes = queue.Queue()
        self.lists.add(changes)
        context.add_callback(lambda: changes.put(False))
        yield self.list_message()
        while changes.get():
            yield self.list_message()

    def set_devices(self, devices):
        self.devices = devices
        for changes in self.lists:
            changes.put(True)

    def end_lists(self):
        """ListAndWatch returns."""
        for changes in self.lists:
            changes.put(False)

    def prefer(self, request, context):
        self.check("GetPreferredAllocation", context)
        container = next(value for number, value in fields(request) if number == 1)
        size = [value for number, value in fields(container) if number == 3]
        self.calls.append(("GetPreferredAllocation", sorted(texts(container, 1)), sorted(texts(container, 2)), size[0]))
        return field(1, b"".join(field(1, name) for name in self.preferred))

    def allocate(self, request, context):
        container = next(value for number, value in fields(request) if number == 1)
        self.calls.append(("Allocate", texts(container, 1)))
        if self.hold:
            self.hold.wait(DEADLINE)
        self.check("Allocate", context)
        return self.answer(texts(container, 1))

    def start_container(self, request, context):
        self.calls.append(("PreStartContainer", texts(request, 1)))
        self.check("PreStartContainer", context)
        return b""

    def count(self, method):
        return sum(call[0] == method for call in self.calls)

    def register(self, version="v1beta1", resource=None, endpoint=None):
        """The error, or None."""
        request = field(1, version) + field(2, endpoint or self.endpoint) + field(3, resource or self.resource)
        return call(os.path.join(self.directory, "kubelet.sock"), "/v1beta1.Registration/Register", request)[1]

    def stop(self):
        self.end_lists()
        self.server.stop(0).wait()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(self.directory, self.endpoint))


def call(path, method, request=b"", channel=None):
    """The answer and the error of one call, one of which is None."""
    with contextlib.ExitStack() as stack:
        if not channel:
            channel = stack.enter_context(grpc.insecure_channel(f"unix:{path}", LOCALHOST))
        try:
            return channel.unary_unary(method)(request, timeout=DEADLINE), None
        except grpc.RpcError as error:
            return None, error


class PodResources:
    """A client of pod-resources/kubelet.sock."""

    def __init__(self, node):
        self.path = os.path.join(node.directory, "kubelet", "pod-resources", "kubelet.sock")

    def devices_of(self, data, number):
        return sorted((texts(item, 1)[0], texts(item, 2)[0],
                       *(node[1] for value in fields(item) if value[0] == 3
                         for topology in [value[1]] for nodes in fields(topology) for node in fields(nodes[1])))
                      for key, item in fields(data) if key == number)

    def pods_of(self, data):
        """{"namespace/name": {container: devices}}"""
        return {f"{texts(pod, 2)[0]}/{texts(pod, 1)[0]}":
                {texts(container, 1)[0]: self.devices_of(container, 2) for key, container in fields(pod) if key == 3}
                for number, pod in fields(data) if number == 1}

    def list(self, service="v1"):
        answer, error = call(self.path, f"/{service}.PodResourcesLister/List")
        assert not error, error
        return self.pods_of(answer)

    def get(self, name, namespace="default"):
        """The containers of a pod, or the error."""
        answer, error = call(self.path, "/v1.PodResourcesLister/Get", field(1, name) + field(2, namespace))
        return error or self.pods_of(answer)[f"{namespace}/{name}"]

    def allocatable(self):
        answer, error = call(self.path, "/v1.PodResourcesLister/GetAllocatableResources")
        assert not error, error
        return self.devices_of(answer, 1)

    def storm(self, n):
        """Sends this number of List calls at once, and returns their status codes."""
        with grpc.insecure_channel(f"unix:{self.path}", LOCALHOST) as channel:
            method = channel.unary_unary("/v1.PodResourcesLister/List")
            pending = [method.future(b"", timeout=DEADLINE) for _ in range(n)]
            return {one.code() for one in pending if one.code() or True}


def event():
    return threading.Event()
