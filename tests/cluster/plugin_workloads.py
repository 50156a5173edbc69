# SPDX-License-Identifier: Apache-2.0
"""The workloads of the comparison of plugins with the kubelet, and the plugins: each workload is a generator, see
comparison.Run. It has its own device plugin or CSI driver on each node. In addition to the pods, the facts are the
calls that the plugin gets, the paths below the kubelet's directory, and the plugins according to the Node."""

import contextlib
import hashlib
import json
import os
import re
import stat
import subprocess

import grpc
import world
from client import Refused
from comparison import RESTARTED, all_ready, both, deleted, has_ended, has_event, waits, was_restarted
from csi_driver import EXPAND, STAGE, CsiDriver
from device_plugin import HEALTHY, UNHEALTHY, DevicePlugin, PodResources
from specs import IDLE, container, mount

CODES = grpc.StatusCode
CSI = "plugins/kubernetes.io/csi"
GROUP = 1234


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Plugins:
    """The plugins of one node. 'devices' is its directory of device plugins, 'namespace' a process in its mount
    namespace."""

    def __init__(self, node, devices, namespace):
        self.node, self.devices, self.namespace = node, devices, namespace
        self.kubelet = os.path.join(node.directory, "kubelet")
        self.made = []
        node.plugins = self

    def see(self, path):
        """The path by which this process reaches a path of the kubelet's directory, with the mounts of the node."""
        return f"/proc/{self.namespace}/root{self.kubelet}/{path}"

    def make_whole(self):
        """Makes every plugin fulfil all requests, so that all pods can end."""
        for plugin in self.made:
            plugin.errors.clear()
            if isinstance(plugin, Driver):
                plugin.register()

    def finish(self):
        for plugin in self.made:
            plugin.stop()
            if isinstance(plugin, Driver):
                self.node.client.delete("persistentvolumes", None, plugin.pv)
                plugin.remove_disk()
                for plural in ("csidrivers", "storageclasses"):
                    self.node.client.delete(plural, None, plugin.name)


class Plugin(DevicePlugin):
    """A device plugin that, like published ones, registers again after its node has removed its socket."""

    def __init__(self, run, devices, **options):
        self.is_registered, self.is_stopped, self.run, self.n_lists = False, False, run, 0
        super().__init__(run.node, f"example.com/{run.name}", devices, directory=run.node.plugins.devices, **options)
        run.node.plugins.made.append(self)

    def list_and_watch(self, request, context):
        self.n_lists += 1
        yield from super().list_and_watch(request, context)

    def tend(self):
        if not self.is_stopped and not os.path.exists(os.path.join(self.directory, self.endpoint)):
            self.end_lists()
            self.serve()
            self.is_registered = False
        if not self.is_stopped and not self.is_registered and os.path.exists(os.path.join(self.directory, "kubelet.sock")):
            self.is_registered = self.register() is None

    def stop(self):
        self.is_stopped, self.is_registered = True, False
        super().stop()

    def restart(self):
        self.is_stopped = False
        self.serve()

    def counts(self):
        status = self.run.node.node()["status"]
        return status["capacity"].get(self.resource), status["allocatable"].get(self.resource)

    def has(self, capacity, allocatable):
        """A predicate of a run."""
        def look(_):
            self.tend()
            return self.counts() == (str(capacity), str(allocatable))
        return look

    def tended(self, predicate):
        def look(run):
            self.tend()
            return predicate(run)
        return look

    def user(self, n=1, **fields):
        return container(env=[{"name": "COMPARED", "value": f"{self.run.node.node_name}/{self.run.name}"}],
                         **{"resources": {"limits": {self.resource: n}}, **fields})

    def note(self, when):
        """The devices of the pods and of the node, and the calls since the last time."""
        run = self.run
        run.facts.add(f"{when}: capacity and allocatable {self.counts()}")
        for pod in run.live():
            for kind in ("initContainerStatuses", "containerStatuses"):
                for status in pod["status"].get(kind, []):
                    run.facts.add(f"{when}: {status['name']} has {json.dumps(status.get('allocatedResourcesStatus'))}")
        listed = PodResources(run.node).list()
        names = [f"{run.node.namespace}/{pod['metadata']['name']}" for pod in run.live()]
        run.facts.add(f"{when}: pod resources {[listed.get(name) for name in names]}")
        run.facts.add(f"{when}: calls {self.calls}")
        self.calls.clear()


class Driver(CsiDriver):
    """A driver with the CSIDriver of the workload, which both nodes share."""

    def __init__(self, run, spec=None, register=True, **options):
        self.run = run
        self.pv, self.volume_id = f"{run.node.node_name}-{run.name}", f"{run.node.node_name}.{run.name}"
        super().__init__(run.node, f"{run.name}.csi", node_id=f"id-{run.node.node_name}",
                         topology={"topology.example.com/zone": "z"}, namespace=run.node.plugins.namespace, **options)
        run.node.plugins.made.append(self)
        self.share("CSIDriver", spec={
            "attachRequired": False, "podInfoOnMount": True, "fsGroupPolicy": "File",
            "volumeLifecycleModes": ["Persistent", "Ephemeral"], **(spec or {})})
        if register:
            self.register()

    def share(self, kind, **fields):
        """Creates an object with the driver's name, unless the other node has created it."""
        try:
            self.run.client.create({"apiVersion": "storage.k8s.io/v1", "kind": kind, "metadata": {"name": self.name}, **fields})
        except Refused as refused:
            assert refused.code == 409, refused

    def account(self):
        """The driver's entry in the CSINode, or None."""
        spec = (self.run.client.get("csinodes", None, self.run.node.node_name) or {"spec": {}})["spec"]
        return next((one for one in spec.get("drivers") or [] if one["name"] == self.name), None)

    def is_there(self, _):
        return self.account() is not None

    def is_gone(self, _):
        """Whether the driver is gone from the CSINode and, after that, from the Node."""
        return self.account() is None and self.name not in self.ids()

    def ids(self):
        return json.loads(self.run.node.node()["metadata"]["annotations"].get("csi.volume.kubernetes.io/nodeid", "{}"))

    def claim(self, storage_class="none", **spec):
        """Creates a volume and a claim that is bound to it; returns the volume of a pod that refers to the claim."""
        node = self.run.node
        node.client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": self.pv}, "spec": {
            "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage_class, "mountOptions": ["noatime"],
            "csi": {"driver": self.name, "volumeHandle": self.volume_id, "fsType": "ext4", "volumeAttributes": {"size": "1"}}, **spec}})
        node.create("PersistentVolumeClaim", self.run.name, spec={
            "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "volumeName": self.pv,
            "volumeMode": spec.get("volumeMode", "Filesystem"), "resources": {"requests": {"storage": "1Mi"}}})
        return {"persistentVolumeClaim": {"claimName": self.run.name}}

    def make_disk(self):
        """Creates the block device that the driver publishes."""
        path = os.path.join(self.run.node.directory, f"{self.run.name}.disk")
        with open(path, "wb") as file:
            file.write(b"raw\n".ljust(1 << 20, b"\0"))
        self.disk = subprocess.run(["losetup", "--find", "--show", path], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()

    def remove_disk(self):
        if self.disk:
            subprocess.run(["losetup", "--detach", self.disk], check=True)

    def claim_disk(self, **spec):
        self.make_disk()
        return self.claim(volumeMode="Block", **spec)

    def expand(self):
        """Doubles the volume like a user and the driver's resizer."""
        client, namespace, size = self.run.client, self.run.node.namespace, {"storage": "2Mi"}
        client.patch("persistentvolumeclaims", namespace, self.run.name, {"spec": {"resources": {"requests": size}}})
        client.patch("persistentvolumes", None, self.pv, {"spec": {"capacity": size}})
        client.patch("persistentvolumeclaims", namespace, self.run.name, {"status": {
            "conditions": [{"type": "FileSystemResizePending", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            "allocatedResources": size, "allocatedResourceStatuses": {"storage": "NodeResizePending"}}}, "status")

    def is_expanded(self, _):
        status = self.run.node.read("persistentvolumeclaims", self.run.name)["status"]
        return status["capacity"] == {"storage": "2Mi"} and "allocatedResourceStatuses" not in status

    def note_claim(self):
        self.run.facts.add(f"claim {json.dumps(self.run.node.read('persistentvolumeclaims', self.run.name)['status'], sort_keys=True)}")

    def is_bound(self, _):
        return self.run.node.read("persistentvolumeclaims", self.run.name)["status"].get("phase") == "Bound"

    def inline(self, **fields):
        return {"csi": {"driver": self.name, "fsType": "ext4", "volumeAttributes": {"size": "1"}, **fields}}

    def bind(self, volume, *containers, **spec):
        user = disk_user() if self.disk else container(volumeMounts=[mount("v", "/v")])
        self.run.bind(*(containers or [user]), volumes=[{"name": "v", **volume}], **spec)

    def attach(self, _):
        """Attaches the volume like the driver's attacher; returns whether it is attached."""
        for one in self.run.client.all("volumeattachments"):
            if one["spec"]["source"].get("persistentVolumeName") == self.pv and not (one.get("status") or {}).get("attached"):
                self.run.client.patch("volumeattachments", None, one["metadata"]["name"], {"status": {
                    "attached": True, "attachmentMetadata": {"slot": "7"}}}, "status")
        return True

    def attached(self, predicate):
        return lambda run: self.attach(run) and predicate(run)

    def is_detached(self, _):
        return not [one for one in self.run.client.all("volumeattachments") if one["spec"]["source"].get("persistentVolumeName") == self.pv]

    # Facts

    def neutral(self, text):
        node = self.run.node
        known = [(node.plugins.kubelet, "ROOT"), (digest(self.volume_id), "STAGE"), (self.pv, "PV"), (self.name, "DRIVER")]
        for pod in self.run.pods():
            uid = pod["metadata"]["uid"]
            ephemeral = "csi-" + digest(f"{uid}v")
            known += [(ephemeral, "EPHEMERAL"), (self.attachment(ephemeral), "ATTACHMENT"), (uid, "UID"), (f'"{pod["metadata"]["name"]}"', '"POD"')]
        for value, word in [(self.attachment(self.volume_id), "ATTACHMENT"), *known, (self.volume_id, "HANDLE")]:
            text = text.replace(value, word)
        return without_node(self.run, text)

    def attachment(self, handle):
        return "csi-" + digest(f"{handle}{self.name}{self.run.node.node_name}")

    def paths(self):
        """The paths of the pod's volumes, with modes, groups and contents."""
        see = self.run.node.plugins.see
        places = [f"{CSI}/{self.name}", *(f"{CSI}/volumeDevices/{place}" for place in (f"staging/{self.pv}", f"publish/{self.pv}", self.pv)),
                  *(f"pods/{pod['metadata']['uid']}/{kind}/kubernetes.io~csi" for pod in self.run.pods()
                    for kind in ("volumes", "volumeDevices"))]
        for place in places:
            top = see(place)
            found = [top] + [os.path.join(directory, name) for directory, below, files in os.walk(top) for name in below + files]
            for path in found if os.path.lexists(top) else []:
                with contextlib.suppress(FileNotFoundError):  # it was removed since
                    yield f"{place}{path.removeprefix(top)} {self.describe_path(path)}".rstrip()

    def describe_path(self, path):
        status = os.lstat(path)
        content = world.read(path) if stat.S_ISREG(status.st_mode) else os.readlink(path) if stat.S_ISLNK(status.st_mode) else ""
        if stat.S_ISBLK(status.st_mode):
            content = "its volume" if status.st_rdev == os.stat(self.disk).st_rdev else "another volume"
        is_mount = any(one["at"] == path.removeprefix(f"/proc/{self.namespace}/root") for one in world.mounts(self.namespace))
        return f"{'mount ' if is_mount else ''}{stat.filemode(status.st_mode)} group {status.st_gid} {content or ''}"

    def is_clean(self, _):
        """Whether only directories are left of the pod's volumes."""
        return not [path for path in self.paths() if " mount " in path or " d" not in path]

    def note(self, when):
        facts = [f"path {line}" for line in self.paths()]
        calls = [(method, call) for method, call in self.calls if method not in ("NodeGetInfo", "NodeGetCapabilities")]
        facts += [f"call {method} {json.dumps(call, sort_keys=True)}" for method, call in calls]
        facts.append("calls " + " ".join(method for method, _ in calls))
        node = self.run.node.node()
        mine = [name for name in node["status"].get("volumesInUse", []) if f"/{self.name}^" in name]
        attached = [one for one in node["status"].get("volumesAttached", []) if f"/{self.name}^" in one["name"]]
        facts += [f"volumesInUse {mine}, volumesAttached {attached}, CSINode {json.dumps(self.account(), sort_keys=True)}, "
                  f"nodeid {self.ids().get(self.name)}, zone {node['metadata']['labels'].get('topology.example.com/zone')}"]
        self.run.facts.update(f"{when}: {self.neutral(fact)}" for fact in facts)
        self.calls.clear()

    def note_messages(self):
        self.run.facts.update(f"says {event['reason']}: {self.neutral(event['message'])}" for event in warnings(self.run))

    def stop(self):
        super().stop()
        if os.path.exists(self.path):
            os.unlink(self.path)

    def start(self):
        self.serve()
        self.register()


def disk_user(script=IDLE):
    return container(script=f"head -n 1 /dev/disk >/dev/termination-log; {script}",
                     volumeDevices=[{"name": "v", "devicePath": "/dev/disk"}])


def warnings(run):
    return [event for pod in run.pods() for event in run.node.events(pod["metadata"]["name"]) if event["type"] == "Warning"]


def without_node(run, text):
    return re.sub(rf"\b{run.node.node_name}\b", "NODE", text)


def note_messages(run):
    run.facts.update(f"says {event['reason']}: {without_node(run, event['message'])}" for event in warnings(run))


def kill_containers(run):
    mark = f"{run.node.node_name}/{run.name}"
    found = [pid for pid in world.pids() if (world.environ(pid) or {}).get("COMPARED") == mark]
    assert found, f"{run.name} runs"
    world.kill_all(found)


def is_healthy(value):
    """Whether the device of each container is healthy according to the pod's status."""
    def look(run):
        found = [device["health"] for pod in run.live() for status in pod["status"]["containerStatuses"]
                 for resource in status.get("allocatedResourcesStatus", []) for device in resource["resources"]]
        return bool(found) and set(found) == {value}
    return look


def has_stopped(run):
    """Whether the pod is being deleted and its containers have ended."""
    return bool(run.live()) and all("deletionTimestamp" in pod["metadata"] and all(
        "terminated" in status["state"] for status in pod["status"]["containerStatuses"]) for pod in run.live())


def cordon(run, is_on):
    run.client.patch("nodes", None, run.node.node_name, {"spec": {"unschedulable": is_on}})
    reason = "NodeNotSchedulable" if is_on else "NodeSchedulable"
    return lambda run: run.client.all("events", "default", fieldSelector=f"involvedObject.name={run.node.node_name},reason={reason}")


# Devices

def device(run):
    """Restarts the container, the plugin and the agent, one after the other."""
    plugin = Plugin(run, {"a": HEALTHY})
    yield plugin.has(1, 1)
    run.bind(plugin.user())
    yield plugin.tended(all_ready(1))
    plugin.note("running")
    kill_containers(run)
    yield both(was_restarted(1), all_ready(1))
    plugin.note("container restarted")
    plugin.stop()
    yield plugin.has(1, 0)
    plugin.note("plugin stopped")
    plugin.restart()
    yield plugin.has(1, 1)
    plugin.note("plugin restarted")
    plugin.n_lists = 0
    yield RESTARTED
    yield both(plugin.has(1, 1), lambda _: plugin.n_lists)
    plugin.note("agent restarted")
    run.delete()
    yield both(deleted, plugin.has(1, 1))
    plugin.note("deleted")


def device_falls_ill(run):
    plugin = Plugin(run, {"a": HEALTHY})
    yield plugin.has(1, 1)
    run.bind(plugin.user())
    yield plugin.tended(all_ready(1))
    plugin.set_devices({"a": UNHEALTHY})
    yield both(plugin.has(1, 0), is_healthy(UNHEALTHY))
    plugin.note("ill")
    plugin.set_devices({"a": HEALTHY})
    yield both(plugin.has(1, 1), is_healthy(HEALTHY))
    plugin.stop()
    yield plugin.has(1, 0)
    run.delete(grace=0)
    yield deleted
    plugin.restart()
    yield plugin.has(1, 1)
    run.bind(plugin.user(), suffix="-2")
    yield plugin.tended(all_ready(1))
    plugin.note("after a deletion by force")
    run.delete("-2")
    yield deleted


def devices_are_too_few(run):
    plugin = Plugin(run, {"a": HEALTHY})
    yield plugin.has(1, 1)
    run.bind(plugin.user(2))
    yield plugin.tended(both(has_ended, has_event("UnexpectedAdmissionError")))
    plugin.note("rejected")
    note_messages(run)


def device_is_refused(run):
    plugin = Plugin(run, {"a": HEALTHY})
    plugin.errors["Allocate"] = "not today"
    yield plugin.has(1, 1)
    run.bind(plugin.user())
    yield plugin.tended(both(has_ended, has_event("UnexpectedAdmissionError")))
    plugin.note("rejected")
    note_messages(run)


def device_is_not_ready(run):
    plugin = Plugin(run, {"a": HEALTHY}, pre_start=True)
    plugin.errors["PreStartContainer"] = "not yet"
    yield plugin.has(1, 1)
    run.bind(plugin.user())
    yield plugin.tended(both(has_event("Failed"), waits("CreateContainerConfigError")))
    note_messages(run)
    plugin.errors.clear()
    yield plugin.tended(all_ready(1))
    run.delete()
    yield deleted


def resource_of_nobody(run):
    run.bind(container(resources={"limits": {"example.com/nobody": 1}}))
    yield lambda run: all_ready(1)(run) or has_ended(run)
    note_messages(run)


def devices_of_init_containers(run):
    """The devices of init containers are reused, but not those of a sidecar."""
    plugin = Plugin(run, {"a": HEALTHY, "b": HEALTHY})
    yield plugin.has(2, 2)
    run.bind(plugin.user(), initContainers=[{**plugin.user(), "name": "first", "command": ["true"]},
                                            {**plugin.user(), "name": "side", "restartPolicy": "Always"}])
    yield plugin.tended(all_ready(1))
    listed = PodResources(run.node).list()[f"{run.node.namespace}/{run.name}"]
    run.facts.add(f"listed {sorted((name, len(found)) for name, found in listed.items())}, {plugin.count('Allocate')} allocations, "
                  f"{len({found[0][1] for found in listed.values()})} devices")
    run.delete()
    yield deleted


# Volumes

def volume(run):
    """Restarts the driver and the agent, one after the other."""
    driver = Driver(run, capabilities=[STAGE])
    yield driver.is_there
    claim = driver.claim()
    yield driver.is_bound
    driver.bind(claim, securityContext={"fsGroup": GROUP})
    yield all_ready(1)
    driver.note("running")
    driver.crash()
    driver.serve()
    driver.note("driver crashed")
    driver.registrar.stop()
    yield driver.is_gone
    driver.register()
    yield driver.is_there
    driver.note("driver registered again")
    yield RESTARTED
    yield both(all_ready(1), driver.is_there)
    driver.note("agent restarted")
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")
    driver.note_messages()


def volume_that_is_attached(run):
    driver = Driver(run, {"attachRequired": True}, capabilities=[STAGE])
    yield driver.is_there
    claim = driver.claim()
    yield driver.is_bound
    driver.bind(claim)
    yield driver.attached(all_ready(1))
    yield lambda run: bool(run.node.node()["status"].get("volumesAttached"))
    driver.note("running")
    run.delete()
    yield both(deleted, driver.is_clean, driver.is_detached)
    driver.note("deleted")


def volume_of_a_pod(run):
    """A pod that is deleted by force."""
    driver = Driver(run, capabilities=[STAGE])
    yield driver.is_there
    driver.bind(driver.inline(), securityContext={"fsGroup": GROUP})
    yield all_ready(1)
    driver.note("running")
    run.delete(grace=0)
    yield both(deleted, driver.is_clean)
    driver.note("deleted")
    driver.note_messages()


def volume_without_staging(run):
    driver = Driver(run, capabilities=[])
    yield driver.is_there
    claim = driver.claim()
    yield driver.is_bound
    driver.bind(claim)
    yield all_ready(1)
    driver.note("running")
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")


def block_volume(run):
    """Restarts the driver and the agent, one after the other."""
    driver = Driver(run, {"attachRequired": True}, capabilities=[STAGE])
    yield driver.is_there
    claim = driver.claim_disk()
    yield driver.is_bound
    driver.bind(claim, disk_user("trap 'echo written >/dev/disk; exit' TERM; sleep 100000 & wait"), securityContext={"fsGroup": GROUP})
    yield driver.attached(all_ready(1))
    yield lambda run: bool(run.node.node()["status"].get("volumesAttached"))
    driver.note("running")
    driver.crash()
    driver.serve()
    driver.note("driver crashed")
    yield RESTARTED
    yield both(all_ready(1), driver.is_there)
    driver.note("agent restarted")
    run.delete()
    yield both(deleted, driver.is_clean, driver.is_detached)
    with open(driver.disk, "rb") as disk:
        run.facts.add(f"the disk begins with {disk.readline()}")
    driver.note("deleted")
    driver.note_messages()


def block_volume_is_read_only(run):
    """Without staging, in a pod that ends by itself."""
    driver = Driver(run, capabilities=[])
    yield driver.is_there
    claim = driver.claim_disk()
    yield driver.is_bound
    claim["persistentVolumeClaim"]["readOnly"] = True
    driver.bind(claim, disk_user("echo written >/dev/disk"), restartPolicy="Never")
    yield both(has_ended, driver.is_clean)
    driver.note("ended")
    run.delete()
    yield deleted
    driver.note("deleted")
    driver.note_messages()


def block_volume_is_refused(run):
    """The driver refuses with final errors and with others, and the device cannot be released at first."""
    driver = Driver(run, capabilities=[STAGE])
    driver.errors["NodeStageVolume"] = [(CODES.INVALID_ARGUMENT, "no such disk"), (CODES.UNAVAILABLE, "no power")]
    driver.errors["NodePublishVolume"] = [(CODES.INVALID_ARGUMENT, "no such place"), (CODES.DEADLINE_EXCEEDED, "too slow")]
    yield driver.is_there
    claim = driver.claim_disk()
    yield driver.is_bound
    driver.bind(claim)
    yield all_ready(1)
    driver.note("running")
    driver.errors["NodeUnpublishVolume"] = [(CODES.INTERNAL, "in use")]
    driver.errors["NodeUnstageVolume"] = [(CODES.INTERNAL, "in use")]
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")
    driver.note_messages()


def driver_of_a_block_volume_is_late(run):
    driver = Driver(run, register=False, capabilities=[STAGE])
    claim = driver.claim_disk()
    yield driver.is_bound
    driver.bind(claim)
    yield has_event("FailedMapVolume")
    driver.register()
    yield all_ready(1)
    driver.note("running")
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")
    driver.note_messages()


def block_volume_is_used_as_files(run):
    driver = Driver(run, capabilities=[STAGE])
    yield driver.is_there
    claim = driver.claim_disk()
    yield driver.is_bound
    driver.bind(claim, container(volumeMounts=[mount("v", "/v")]))
    yield has_event("FailedMount")
    driver.note_messages()
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")


def volume_is_used_as_a_disk(run):
    driver = Driver(run, capabilities=[STAGE])
    yield driver.is_there
    claim = driver.claim()
    yield driver.is_bound
    driver.bind(claim, disk_user())
    yield has_event("FailedMount")
    driver.note_messages()
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")


def expand_volume(run, volume_mode):
    driver = Driver(run, capabilities=[STAGE, EXPAND])
    driver.share("StorageClass", provisioner="nobody.example.com", allowVolumeExpansion=True)
    yield driver.is_there
    if volume_mode == "Block":
        driver.make_disk()
    claim = driver.claim(driver.name, volumeMode=volume_mode)
    yield driver.is_bound
    driver.bind(claim)
    yield all_ready(1)
    driver.note("running")
    driver.errors["NodeExpandVolume"] = [(CODES.INTERNAL, "no space")]
    driver.expand()
    yield driver.is_expanded
    driver.note("expanded")
    driver.note_claim()
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note_messages()


def volume_is_expanded(run):
    yield from expand_volume(run, "Filesystem")


def block_volume_is_expanded(run):
    yield from expand_volume(run, "Block")


def driver_is_late_and_leaves_early(run):
    driver = Driver(run, register=False, capabilities=[STAGE])
    claim = driver.claim()
    yield driver.is_bound
    driver.bind(claim)
    yield has_event("FailedMount")
    driver.register()
    yield all_ready(1)
    driver.registrar.stop()
    yield driver.is_gone
    driver.note("driver left")
    run.delete()
    yield has_stopped
    driver.register()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")
    driver.note_messages()


def driver_of_a_pods_volume_is_missing(run):
    driver = Driver(run, register=False, capabilities=[STAGE])
    driver.bind(driver.inline())
    yield has_event("FailedMount")
    driver.note_messages()
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")


def driver_refuses(run):
    """The driver refuses with final errors and with others."""
    driver = Driver(run, capabilities=[STAGE])
    driver.errors["NodeStageVolume"] = [(CODES.INVALID_ARGUMENT, "no such disk"), (CODES.UNAVAILABLE, "no power")]
    driver.errors["NodePublishVolume"] = [(CODES.INVALID_ARGUMENT, "no such place"), (CODES.DEADLINE_EXCEEDED, "too slow")]
    yield driver.is_there
    claim = driver.claim()
    yield driver.is_bound
    driver.bind(claim)
    yield all_ready(1)
    driver.note("running")
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")
    driver.note_messages()


def volume_cannot_be_given_back(run):
    driver = Driver(run, capabilities=[STAGE])
    yield driver.is_there
    claim = driver.claim()
    yield driver.is_bound
    driver.bind(claim)
    yield all_ready(1)
    driver.errors["NodeUnpublishVolume"] = [(CODES.INTERNAL, "in use")] * 2
    driver.errors["NodeUnstageVolume"] = [(CODES.INTERNAL, "in use")]
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")
    driver.note_messages()


def claim_is_not_bound(run):
    driver = Driver(run, capabilities=[STAGE])
    yield driver.is_there
    run.node.create("PersistentVolumeClaim", run.name, spec={
        "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": {"requests": {"storage": "1Mi"}}})
    driver.bind({"persistentVolumeClaim": {"claimName": run.name}})
    yield has_event("FailedMount")
    driver.note_messages()
    run.delete()
    yield both(deleted, driver.is_clean)
    driver.note("deleted")


# Both

def drained(run):
    """A pod with a device and a volume is evicted from a node that accepts no more pods, and later returns to it."""
    plugin, driver = Plugin(run, {"a": HEALTHY}), Driver(run, capabilities=[STAGE])
    yield both(driver.is_there, plugin.has(1, 1))
    run.node.workload("ReplicaSet", run.name, plugin.user(volumeMounts=[mount("v", "/v")]), replicas=1,
                      template={"volumes": [{"name": "v", **driver.inline()}]})
    yield plugin.tended(all_ready(1))
    yield plugin.tended(cordon(run, True))
    run.evict(run.pods()[0]["metadata"]["name"])
    yield plugin.tended(lambda run: len(run.pods()) == 2 and len(run.live()) == 1)
    driver.note("drained")
    yield plugin.tended(both(cordon(run, False), all_ready(1)))
    driver.note("back")


def find_workloads():
    return [device, device_falls_ill, devices_are_too_few, device_is_refused, device_is_not_ready, resource_of_nobody,
            devices_of_init_containers, volume, volume_that_is_attached, volume_of_a_pod, volume_without_staging,
            driver_is_late_and_leaves_early, driver_of_a_pods_volume_is_missing, driver_refuses, volume_cannot_be_given_back,
            claim_is_not_bound, block_volume, block_volume_is_read_only, block_volume_is_refused, driver_of_a_block_volume_is_late,
            block_volume_is_used_as_files, volume_is_used_as_a_disk, volume_is_expanded,
            block_volume_is_expanded, drained]
