# SPDX-License-Identifier: Apache-2.0
"""The CSI host path driver with its registrar, laid out as its published DaemonSet, on a node of a real control plane.
MAINSTAY_CSI names the directory of both programs, hostpathplugin and csi-node-driver-registrar; without it these tests
are left out."""

import json
import os
import subprocess

import grpc
import specs
import world
from specs import mount
from world import wait

PROGRAMS = os.environ.get("MAINSTAY_CSI")
MAKE_IMAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "make-image")
DRIVER = "hostpath.csi.k8s.io"
PLUGIN, REGISTRAR = "registry.k8s.io/sig-storage/hostpathplugin:v1.17.1", "registry.k8s.io/sig-storage/csi-node-driver-registrar:v2.17.0"
# A CreateVolumeRequest: the name, 1 MiB, and a mount that one node may write.
CREATE = b"\x0a\x03one" + b"\x12\x04\x08\x80\x80\x40" + b"\x1a\x06\x12\x00\x1a\x02\x08\x01"
NODE_ID = "csi.volume.kubernetes.io/nodeid"


def directory(name, path, kind="Directory"):
    return specs.host_path(name, path, type=kind)


class Driver:
    """A DaemonSet of the driver, which has registered."""

    def __init__(self, node):
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
        node.workload("DaemonSet", "driver", plugin, registrar, template={"volumes": [
            directory("socket-dir", f"{self.kubelet}/plugins/csi-hostpath", "DirectoryOrCreate"),
            directory("csi-data-dir", self.data, "DirectoryOrCreate"), directory("dev-dir", "/dev"),
            directory("mountpoint-dir", f"{self.kubelet}/pods"), directory("plugins-dir", f"{self.kubelet}/plugins"),
            directory("registration-dir", f"{self.kubelet}/plugins_registry")]})
        node.wait_pods("driver", 1)
        wait(self.registered, "the driver is in the CSINode")

    def registered(self):
        return (self.node.client.get("csinodes", None, self.node.node_name) or {}).get("spec", {}).get("drivers")

    def create_volume(self):
        """Its handle, the second field of the response's Volume."""
        with grpc.insecure_channel(f"unix:{self.socket}") as channel:
            create = channel.unary_unary("/csi.v1.Controller/CreateVolume", request_serializer=bytes, response_deserializer=bytes)
            volume = create(CREATE)[2:]
        start = volume.index(b"\x12") + 2
        return volume[start:start + volume[start - 1]].decode()

    def mounts(self):
        return [line for line in world.read("/proc/self/mountinfo").splitlines()
                if self.kubelet in line and "kubernetes.io" in line.split()[4]]


def make_images(node):
    for image, program in ((PLUGIN, "hostpathplugin"), (REGISTRAR, "csi-node-driver-registrar")):
        archive = os.path.join(node.directory, f"{program}.tar")
        subprocess.run([MAKE_IMAGE, image, archive, "--entrypoint", os.path.join(PROGRAMS, program)], check=True)
        node.preload(archive)


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
        assert node.node()["status"]["volumesInUse"] == [f"kubernetes.io/csi/{DRIVER}^{handle}"]
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
        client.delete("daemonsets", node.namespace, "driver", propagation="Background")
        wait(lambda: not driver.registered(), "the driver has left the CSINode")
        for plural, name in (("csidrivers", DRIVER), ("persistentvolumes", f"{node.node_name}-volume")):
            client.delete(plural, None, name)
