# SPDX-License-Identifier: Apache-2.0
"""The CSI host path driver with its sidecars, laid out as published, on a node of a real control plane. MAINSTAY_CSI
names the directory of their programs: hostpathplugin, csi-node-driver-registrar, csi-attacher, csi-provisioner,
csi-resizer, csi-snapshotter, snapshot-controller and, of csi-driver-nfs, nfsplugin; without it these tests are left out."""

import json
import os
import subprocess

import grpc
import pytest
import specs
import world
from node import is_ready
from serving_node import allow_everything, make_kind, preload_programs
from specs import mount
from world import wait

PROGRAMS = os.environ.get("MAINSTAY_CSI")
DRIVER = "hostpath.csi.k8s.io"
RESIZER = "registry.k8s.io/sig-storage/csi-resizer:v2.2.0"
ATTACHER, PROVISIONER = "registry.k8s.io/sig-storage/csi-attacher:v4.12.0", "registry.k8s.io/sig-storage/csi-provisioner:v6.3.0"
PLUGIN, REGISTRAR = "registry.k8s.io/sig-storage/hostpathplugin:v1.17.1", "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.17.0"
# A CreateVolumeRequest with the name, 1 MiB, and a mount that one node may write.
CREATE = b"\x0a\x03one" + b"\x12\x04\x08\x80\x80\x40" + b"\x1a\x06\x12\x00\x1a\x02\x08\x01"
NODE_ID = "csi.volume.kubernetes.io/nodeid"

MODES = ("Filesystem", "Block")
SNAPSHOTS = "snapshot.storage.k8s.io"
SNAPSHOTTER = "registry.k8s.io/sig-storage/csi-snapshotter:v8.6.0"
SNAPSHOT_CONTROLLER = "registry.k8s.io/sig-storage/snapshot-controller:v8.6.0"
NFS, NFS_PLUGIN = "nfs.csi.k8s.io", "registry.k8s.io/sig-storage/nfsplugin:v4.13.2"
# A server needs the kernel's client: mount.nfs is a stand-in that mounts a tmpfs.
MOUNT_NFS = """#!/bin/sh
echo "$@" >>/sbin/calls
[ ! -e /sbin/fails ] || { echo 'mount.nfs: Connection refused' >&2; exit 32; }
exec mount -t tmpfs -o size=1m nfs "$2"
"""

pytestmark = pytest.mark.xdist_group("csi")  # the driver's name occurs once


@pytest.fixture(name="loops", autouse=True)
def fixture_loops():
    """Removes loop devices of a driver that a failed test has left: their files are gone together with the node."""
    yield
    for line in subprocess.run(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines():
        if "/csi-data/" in line and line.endswith("(deleted)"):
            subprocess.run(["losetup", "--detach", line.split()[0]], check=False)


def directory(name, path, kind="Directory"):
    return specs.host_path(name, path, type=kind)


class Driver:
    """The driver, which has registered: a DaemonSet, or a StatefulSet with sidecars of its controller, (name, image,
    [argument…])."""

    def __init__(self, node, controllers=()):
        self.node, self.kubelet, self.data = node, os.path.join(node.directory, "kubelet"), os.path.join(node.data, "csi-data")
        self.socket = f"{self.kubelet}/plugins/csi-hostpath/csi.sock"
        env = [{"name": "KUBE_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]
        plugin = {"name": "hostpath", "image": PLUGIN, "env": env, "securityContext": {"privileged": True},
                  "args": [f"--drivername={DRIVER}", "--v=5", "--endpoint=unix:///csi/csi.sock", "--nodeid=$(KUBE_NODE_NAME)"],
                  "volumeMounts": [mount("socket-dir", "/csi"), mount("csi-data-dir", "/csi-data-dir"), mount("dev-dir", "/dev"),
                                   mount("mountpoint-dir", f"{self.kubelet}/pods", mountPropagation="Bidirectional"),
                                   mount("plugins-dir", f"{self.kubelet}/plugins", mountPropagation="Bidirectional")]}
        registrar = {"name": "node-driver-registrar", "image": REGISTRAR, "env": env, "securityContext": {"privileged": True},
                     "args": ["--v=5", "--csi-address=/csi/csi.sock", f"--kubelet-registration-path={self.socket}"],
                     "volumeMounts": [mount("socket-dir", "/csi"), mount("registration-dir", "/registration")]}
        sidecars = [{"name": name, "image": image, "args": ["--v=5", "--csi-address=/csi/csi.sock", *more], "env": env,
                     "securityContext": {"privileged": True}, "volumeMounts": [mount("socket-dir", "/csi")]}
                    for name, image, more in controllers]
        if controllers:  # it calls losetup, which its published image contains
            plugin["env"] = env + [{"name": "PATH", "value": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"}]
            plugin["volumeMounts"] += [mount("usr", "/usr"), mount("lib", "/lib"), mount("lib64", "/lib64")]
        self.kind = "StatefulSet" if controllers else "DaemonSet"
        more = {"replicas": 1, "serviceName": "driver"} if controllers else {}
        node.workload(self.kind, "driver", plugin, registrar, *sidecars, **more, template={"volumes": [
            directory("usr", "/usr"), directory("lib", "/usr/lib"), directory("lib64", "/usr/lib64"),
            directory("socket-dir", f"{self.kubelet}/plugins/csi-hostpath", "DirectoryOrCreate"),
            directory("csi-data-dir", self.data, "DirectoryOrCreate"), directory("dev-dir", "/dev"),
            directory("mountpoint-dir", f"{self.kubelet}/pods"), directory("plugins-dir", f"{self.kubelet}/plugins"),
            directory("registration-dir", f"{self.kubelet}/plugins_registry")]})
        node.wait_pods("driver", 1)
        wait(self.registered, lambda: f"the driver is in the CSINode; the log of the agent:\n{node.said()[-4000:]}")

    def registered(self):
        return (self.node.client.get("csinodes", None, self.node.node_name) or {}).get("spec", {}).get("drivers")

    def end(self):
        self.node.client.delete(f"{self.kind.lower()}s", self.node.namespace, "driver", propagation="Background")
        wait(lambda: not self.registered(), "the driver has left the CSINode")

    def create_volume(self):
        """Creates a volume; returns its handle, the second field of the response's Volume."""
        with grpc.insecure_channel(f"unix:{self.socket}") as channel:
            create = channel.unary_unary("/csi.v1.Controller/CreateVolume", request_serializer=bytes, response_deserializer=bytes)
            volume = create(CREATE)[2:]
        start = volume.index(b"\x12") + 2
        return volume[start:start + volume[start - 1]].decode()

    def mounts(self):
        return [line for line in world.read("/proc/self/mountinfo").splitlines()
                if self.kubelet in line and "kubernetes.io" in line.split()[4]]


def make_images(node, *images):
    preload_programs(node, PROGRAMS, (PLUGIN, "hostpathplugin"), (REGISTRAR, "csi-node-driver-registrar"), *images)


def writer(text):
    return specs.container(script=f"echo {text} >/data/file; {specs.IDLE}", volumeMounts=[mount("data", "/data")])


if PROGRAMS:
    def test_published_driver_mounts_claims_and_ephemeral_volumes(make_node, plane):
        node = make_node(start=False)
        make_images(node)
        node.start()
        node.wait_node_ready()
        client = plane.client
        client.create({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER},
                       "spec": {"attachRequired": False, "podInfoOnMount": True, "fsGroupPolicy": "File",
                                "volumeLifecycleModes": ["Persistent", "Ephemeral"]}})
        driver = Driver(node)
        assert driver.registered() == [{"name": DRIVER, "nodeID": node.node_name, "topologyKeys": ["topology.hostpath.csi/node"]}]
        metadata = node.node()["metadata"]
        assert json.loads(metadata["annotations"][NODE_ID]) == {DRIVER: node.node_name}
        assert metadata["labels"]["topology.hostpath.csi/node"] == node.node_name

        handle = driver.create_volume()
        client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"{node.node_name}-volume"}, "spec": {
            "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "none", "csi": {"driver": DRIVER, "volumeHandle": handle}}})
        node.create("PersistentVolumeClaim", "claim", spec={
            "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "volumeName": f"{node.node_name}-volume",
            "resources": {"requests": {"storage": "1Mi"}}})
        node.place("claimed", writer("kept"), securityContext={"fsGroup": 1234},
                   volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}])
        node.place("inline", writer("lost"), volumes=[{"name": "data", "csi": {"driver": DRIVER}}])
        for name in ("claimed", "inline"):
            node.wait_api_running(name)
        assert not node.node()["status"].get("volumesInUse"), "no volume is attached"
        assert len(driver.mounts()) == 2, driver.mounts()
        assert os.stat(f"{driver.data}/{handle}").st_gid == 1234

        process = node.init("claimed")
        node.kill9()
        node.start()
        node.wait_api_running("claimed")
        assert node.init("claimed") == process, "the new agent leaves it alone"
        for name in ("claimed", "inline"):
            client.delete("pods", node.namespace, name, grace=1)
            node.wait_api_gone(name)
        assert not driver.mounts() and not os.listdir(f"{driver.kubelet}/pods")
        assert world.read(f"{driver.data}/{handle}/file") == "kept\n"
        assert sorted(os.listdir(driver.data)) == sorted([handle, "state.json"])
        driver.end()
        for plural, name in (("csidrivers", DRIVER), ("persistentvolumes", f"{node.node_name}-volume")):
            client.delete(plural, None, name)

    def test_published_sidecars_provision_and_attach_filesystems_and_block_devices(make_node, plane):
        node = make_node(start=False)
        make_images(node, (ATTACHER, "csi-attacher"), (PROVISIONER, "csi-provisioner"))
        node.start()
        node.wait_node_ready()
        client, storage = plane.client, "storage.k8s.io/v1"
        allow_everything(node)
        client.create({"apiVersion": storage, "kind": "CSIDriver", "metadata": {"name": DRIVER},
                       "spec": {"attachRequired": True, "podInfoOnMount": True, "fsGroupPolicy": "File",
                                "volumeLifecycleModes": ["Persistent", "Ephemeral"]}})
        client.create({"apiVersion": storage, "kind": "StorageClass", "metadata": {"name": "csi-hostpath-sc"}, "provisioner": DRIVER,
                       "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer"})
        driver = Driver(node, [("csi-attacher", ATTACHER, []), ("csi-provisioner", PROVISIONER, ["--feature-gates=Topology=true"])])
        for name, mode in (("files", "Filesystem"), ("device", "Block")):
            node.create("PersistentVolumeClaim", name, spec={
                "accessModes": ["ReadWriteOnce"], "volumeMode": mode, "storageClassName": "csi-hostpath-sc",
                "resources": {"requests": {"storage": "4Mi"}}})
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("files", "device")]
        node.place("both", specs.container(
            script=f"echo kept >/data/file; echo raw >/dev/disk; sync; {specs.IDLE}", volumeMounts=[mount("files", "/data")],
            volumeDevices=[{"name": "device", "devicePath": "/dev/disk"}]), volumes=volumes)
        node.wait_api_running("both", 120)
        bound = {name: node.read("persistentvolumeclaims", name)["spec"]["volumeName"] for name in ("files", "device")}
        handles = {name: client.get("persistentvolumes", None, volume)["spec"]["csi"]["volumeHandle"] for name, volume in bound.items()}
        attached = {one["spec"]["source"]["persistentVolumeName"] for one in client.all("volumeattachments") if one["status"]["attached"]}
        assert attached == set(bound.values())
        assert set(node.node()["status"]["volumesInUse"]) == {f"kubernetes.io/csi/{DRIVER}^{handle}" for handle in handles.values()}
        wait(lambda: world.read(f"{driver.data}/{handles['files']}/file") == "kept\n", "the file is in the volume")
        wait(lambda: (world.read(f"{driver.data}/{handles['device']}") or "").startswith("raw\n"), "the device is the volume")

        def usages():
            pods = json.loads(node.get("/stats/summary")[1])["pods"]
            return {one["pvcRef"]["name"]: one["capacityBytes"] for pod in pods for one in pod.get("volume", []) if "pvcRef" in one}
        wait(lambda: set(usages()) == {"files", "device"}, lambda: (usages(), node.said()))
        assert usages()["device"] >= 4 << 20

        process = node.init("both")
        node.kill9()
        node.start()
        node.wait_api_running("both")
        assert node.init("both") == process, "the new agent leaves it alone"
        client.delete("pods", node.namespace, "both", grace=1)
        node.wait_api_gone("both")
        wait(lambda: not client.all("volumeattachments"), "the controller has detached both")
        for name in bound:
            client.delete("persistentvolumeclaims", node.namespace, name)
        wait(lambda: not any(client.get("persistentvolumes", None, volume) for volume in bound.values()), "the provisioner has deleted both")
        assert not driver.mounts() and os.listdir(driver.data) == ["state.json"]
        assert os.listdir(f"{driver.kubelet}/pods") == [] and not os.path.exists(f"{driver.kubelet}/plugins/kubernetes.io/csi/volumeDevices")
        driver.end()
        for plural, name in (("csidrivers", DRIVER), ("storageclasses", "csi-hostpath-sc"), ("clusterrolebindings", node.namespace)):
            client.delete(plural, None, name)

    def test_published_resizer_expands_volumes_before_and_while_a_pod_runs(make_node, plane):
        node = make_node(start=False)
        make_images(node, (RESIZER, "csi-resizer"))
        node.start()
        node.wait_node_ready()
        client, name = plane.client, f"{node.node_name}-volume"
        allow_everything(node)
        client.create({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER},
                       "spec": {"attachRequired": False, "podInfoOnMount": True, "volumeLifecycleModes": ["Persistent", "Ephemeral"]}})
        client.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "expandable"}, "provisioner": DRIVER,
                       "allowVolumeExpansion": True})
        driver = Driver(node, [("csi-resizer", RESIZER, [])])
        handle = driver.create_volume()
        client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "expandable", "csi": {"driver": DRIVER, "volumeHandle": handle}}})
        node.create("PersistentVolumeClaim", "claim", spec={
            "accessModes": ["ReadWriteOnce"], "storageClassName": "expandable", "volumeName": name,
            "resources": {"requests": {"storage": "1Mi"}}})

        def status():
            return node.read("persistentvolumeclaims", "claim")["status"]

        def request(size):
            wait(lambda: status().get("phase") == "Bound", status)
            client.patch("persistentvolumeclaims", node.namespace, "claim", {"spec": {"resources": {"requests": {"storage": size}}}})
            wait(lambda: status().get("allocatedResourceStatuses") == {"storage": "NodeResizePending"}, lambda: (status(), node.said()))

        def wait_size(size):
            wait(lambda: status()["capacity"] == {"storage": size}, lambda: (status(), node.said()))
            assert not status().get("conditions") and "allocatedResourceStatuses" not in status()

        request("2Mi")
        node.place("web", writer("kept"), volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "claim"}}])
        node.wait_api_running("web")
        wait_size("2Mi")
        process = node.init("web")
        request("3Mi")
        wait_size("3Mi")
        assert node.init("web") == process
        events = [one for one in client.all("events", node.namespace) if one["reason"] == "FileSystemResizeSuccessful"]
        assert {one["involvedObject"]["kind"] for one in events} == {"Pod", "PersistentVolumeClaim"}
        client.delete("pods", node.namespace, "web", grace=1)
        node.wait_api_gone("web")
        driver.end()
        client.delete("persistentvolumeclaims", node.namespace, "claim")
        for plural, what in (("csidrivers", DRIVER), ("storageclasses", "expandable"), ("persistentvolumes", name),
                             ("clusterrolebindings", node.namespace)):
            client.delete(plural, None, what)

    def test_published_sidecars_expand_and_copy_filesystems_and_block_devices(make_node, plane):
        node = make_node(start=False)
        make_images(node, (ATTACHER, "csi-attacher"), (PROVISIONER, "csi-provisioner"), (RESIZER, "csi-resizer"),
                    (SNAPSHOTTER, "csi-snapshotter"), (SNAPSHOT_CONTROLLER, "snapshot-controller"))
        node.start()
        node.wait_node_ready()
        client = plane.client
        kinds = [make_kind(client, kind, subresources={"status": {}})
                 for kind in ("VolumeSnapshot", "VolumeSnapshotClass", "VolumeSnapshotContent")]
        allow_everything(node)
        client.create({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": {
            "podInfoOnMount": True, "fsGroupPolicy": "File", "volumeLifecycleModes": ["Persistent", "Ephemeral"]}})
        client.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "copied"}, "provisioner": DRIVER,
                       "reclaimPolicy": "Delete", "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": True})
        client.create({"apiVersion": f"{SNAPSHOTS}/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": "copies"}, "driver": DRIVER,
                       "deletionPolicy": "Delete"})
        driver = Driver(node, [("csi-attacher", ATTACHER, []), ("csi-provisioner", PROVISIONER, ["--feature-gates=Topology=true"]),
                               ("csi-resizer", RESIZER, []), ("csi-snapshotter", SNAPSHOTTER, [])])
        node.workload("Deployment", "controller", {"name": "controller", "image": SNAPSHOT_CONTROLLER, "args": ["--v=5"]}, replicas=1)
        node.wait_pods("controller", 1)

        def use(pod, script, size, source=None):
            """Runs a pod with a file system and a block device, both from their snapshots or empty."""
            for mode in MODES:
                node.create("PersistentVolumeClaim", f"{pod}-{mode.lower()}", spec={
                    "accessModes": ["ReadWriteOnce"], "volumeMode": mode, "storageClassName": "copied",
                    "resources": {"requests": {"storage": size}}, **({"dataSource": {
                        "apiGroup": SNAPSHOTS, "kind": "VolumeSnapshot", "name": f"{source}-{mode.lower()}"}} if source else {})})
            node.place(pod, specs.container(
                script=f"{script}; {specs.IDLE}", volumeMounts=[mount("filesystem", "/data")],
                volumeDevices=[{"name": "block", "devicePath": "/dev/disk"}]),
                volumes=[{"name": mode.lower(), "persistentVolumeClaim": {"claimName": f"{pod}-{mode.lower()}"}} for mode in MODES])
            node.wait_api_running(pod, 120)

        def capacities():
            return {one["metadata"]["name"]: one["status"].get("capacity", {}).get("storage")
                    for one in client.all("persistentvolumeclaims", node.namespace)}

        use("first", "echo kept >/data/file; echo raw >/dev/disk; sync; echo done", "4Mi")
        wait(lambda: node.output("first") == ["done"], lambda: node.output("first"))
        process = node.init("first")
        for mode in MODES:
            client.patch("persistentvolumeclaims", node.namespace, f"first-{mode.lower()}",
                         {"spec": {"resources": {"requests": {"storage": "8Mi"}}}})
        wait(lambda: capacities() == {"first-filesystem": "8Mi", "first-block": "8Mi"}, lambda: (capacities(), node.said()), 150)
        assert node.init("first") == process
        for mode in MODES:
            node.create("VolumeSnapshot", f"first-{mode.lower()}", f"{SNAPSHOTS}/v1", spec={
                "volumeSnapshotClassName": "copies", "source": {"persistentVolumeClaimName": f"first-{mode.lower()}"}})
        for mode in MODES:
            node.wait_for("volumesnapshots", f"first-{mode.lower()}", lambda one: one.get("status", {}).get("readyToUse"), "is ready", 120)
        use("second", "cat /data/file; head -n 1 /dev/disk", "8Mi", "first")
        wait(lambda: node.output("second") == ["kept", "raw"], lambda: node.output("second"))
        for pod in ("first", "second"):
            client.delete("pods", node.namespace, pod, grace=1)
            node.wait_api_gone(pod)
        wait(lambda: not client.all("volumeattachments"), "the controller has detached all")
        assert not driver.mounts() and not os.listdir(f"{driver.kubelet}/pods")
        for name in capacities():
            client.delete("persistentvolumeclaims", node.namespace, name)
        for mode in MODES:
            client.delete("volumesnapshots", node.namespace, f"first-{mode.lower()}")
        wait(lambda: os.listdir(driver.data) == ["state.json"], lambda: f"the driver has deleted all: {os.listdir(driver.data)}")
        client.delete("deployments", node.namespace, "controller", propagation="Background")
        driver.end()
        for plural, name in (("csidrivers", DRIVER), ("storageclasses", "copied"), ("volumesnapshotclasses", "copies"),
                             ("clusterrolebindings", node.namespace), *(("customresourcedefinitions", kind) for kind in kinds)):
            client.delete(plural, None, name)

    def test_published_nfs_driver_mounts_a_share_and_its_errors_are_events(make_node, plane):
        node = make_node(start=False)
        preload_programs(node, PROGRAMS, (NFS_PLUGIN, "nfsplugin"), (REGISTRAR, "csi-node-driver-registrar"))
        node.start()
        node.wait_node_ready()
        client, name, kubelet = plane.client, f"{node.node_name}-share", os.path.join(node.directory, "kubelet")
        tools = os.path.join(node.data, "tools")
        os.makedirs(tools)
        for file, text in (("mount.nfs", MOUNT_NFS), ("fails", "")):
            with open(os.path.join(tools, file), "w", encoding="utf-8") as out:
                out.write(text)
            os.chmod(os.path.join(tools, file), 0o755)
        client.create({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": NFS}, "spec": {
            "attachRequired": False, "volumeLifecycleModes": ["Persistent"], "fsGroupPolicy": "File"}})
        socket = mount("socket-dir", "/csi")
        node.workload("DaemonSet", "csi-nfs-node", {
            "name": "node-driver-registrar", "image": REGISTRAR,
            "args": ["--v=2", "--csi-address=/csi/csi.sock", f"--kubelet-registration-path={kubelet}/plugins/csi-nfsplugin/csi.sock"],
            "volumeMounts": [socket, mount("registration-dir", "/registration")]}, {
                "name": "nfs", "image": NFS_PLUGIN, "args": ["-v=5", "--nodeid=$(NODE_ID)", "--endpoint=$(CSI_ENDPOINT)"],
                "env": [{"name": "NODE_ID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                        {"name": "CSI_ENDPOINT", "value": "unix:///csi/csi.sock"},
                        {"name": "PATH", "value": "/usr/local/sbin:/usr/sbin:/usr/bin:/bin"}],
                "securityContext": {"privileged": True, "capabilities": {"add": ["SYS_ADMIN"]}, "allowPrivilegeEscalation": True},
                "volumeMounts": [socket, mount("pods-mount-dir", f"{kubelet}/pods", mountPropagation="Bidirectional"), mount("tools", "/sbin"),
                                 mount("usr", "/usr"), mount("lib", "/lib"), mount("lib64", "/lib64")]},
            template={"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet", "volumes": [
                directory("socket-dir", f"{kubelet}/plugins/csi-nfsplugin", "DirectoryOrCreate"),
                directory("pods-mount-dir", f"{kubelet}/pods"), directory("registration-dir", f"{kubelet}/plugins_registry"),
                directory("tools", tools), directory("usr", "/usr"), directory("lib", "/usr/lib"), directory("lib64", "/usr/lib64")]})
        node.wait_pods("csi-nfs-node", 1)

        def registered():
            return (client.get("csinodes", None, node.node_name) or {}).get("spec", {}).get("drivers")
        wait(registered, lambda: f"the driver is in the CSINode; the log of the agent:\n{node.said()[-4000:]}")
        client.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteMany"], "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "none", "mountOptions": ["nfsvers=4.1"],
            "csi": {"driver": NFS, "volumeHandle": name, "volumeAttributes": {"server": "192.0.2.7", "share": "/export"}}}})
        node.create("PersistentVolumeClaim", "share", spec={
            "accessModes": ["ReadWriteMany"], "storageClassName": "none", "volumeName": name, "resources": {"requests": {"storage": "1Mi"}}})
        for pod in ("one", "two"):
            node.place(pod, writer(pod), volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "share"}}])
        event = node.wait_event("one", "FailedMount", 120)
        assert event["message"].startswith(f'MountVolume.SetUp failed for volume "{name}" : rpc error: code = Internal desc = mount failed: exit status 32')
        assert "mount.nfs: Connection refused" in event["message"]
        assert not is_ready(node.read("pods", "one")) and not [one for one in world.mounts() if one["at"].startswith(f"{kubelet}/pods/")]
        os.unlink(os.path.join(tools, "fails"))
        for pod in ("one", "two"):
            node.wait_api_running(pod)
        assert "192.0.2.7:/export" in world.read(os.path.join(tools, "calls")) and "nfsvers=4.1" in world.read(os.path.join(tools, "calls"))
        published = [one["at"] for one in world.mounts() if one["at"].startswith(f"{kubelet}/pods/")]
        assert sorted(world.read(f"{path}/file") for path in published) == ["one\n", "two\n"]
        for pod in ("one", "two"):
            client.delete("pods", node.namespace, pod, grace=1)
            node.wait_api_gone(pod)
        assert not [one for one in world.mounts() if one["at"].startswith(f"{kubelet}/pods/")]
        client.delete("daemonsets", node.namespace, "csi-nfs-node", propagation="Background")
        wait(lambda: not registered(), "the driver has left the CSINode")
        client.delete("persistentvolumeclaims", node.namespace, "share")
        for plural, what in (("csidrivers", NFS), ("persistentvolumes", name)):
            client.delete(plural, None, what)
