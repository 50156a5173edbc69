# SPDX-License-Identifier: Apache-2.0
"""Deaths of the agent, mainstay-plugins, a device plugin and a CSI driver, at any time and at each of their failpoints, while pods with
devices and volumes come and go: no device is given twice, no volume is unmounted under a pod, none stays mounted, and no pod is stuck."""

import os
import random
import signal
import subprocess
import time

import failing
import pytest
import specs
import world
from csi_driver import EXPAND, STAGE, CsiDriver
from device_plugin import HEALTHY, DevicePlugin
from specs import mount
from test_apiserver_volumes import claim, volume
from test_csi_claims import csi_driver_object
from test_device_plugins import GPU, counts, device_container, host_process
from world import wait

KILLS = int(os.environ.get("MAINSTAY_KILLS", 500 * float(os.environ.get("MAINSTAY_SCALE", "1"))))
POINTS = [name for name in failing.names() if name.startswith(("mainstayd:csi.", "mainstayd:devices.", "mainstayd:file.", "mainstay-plugins:plugins."))]
CLAIMED = ("mainstayd:csi.staging", "mainstayd:csi.unstag", "mainstayd:csi.device", "mainstayd:csi.expand")


class Storm:
    """Pods of files with ephemeral volumes. There are fewer devices than pods."""

    pods = dict.fromkeys("abcd", "inline")
    devices = {name: HEALTHY for name in "tuvw"}
    points = [name for name in POINTS if not name.startswith(CLAIMED)]

    def __init__(self, node, driver, seed):
        self.node, self.driver, self.random = node, driver, random.Random(seed)
        self.plugin = DevicePlugin(node, GPU, dict(self.devices))
        self.wanted, self.kills, self.hits, self.deck, self.wrong = set(), {}, set(), [], []
        driver.do_NodeUnpublishVolume, driver.do_NodeUnstageVolume = self.unpublish, self.unstage
        driver.register().wait_registered()
        self.plugin.register()

    def stop(self):
        self.driver.stop()
        self.plugin.stop()

    # While a process of the pod runs, its volume is mounted

    def unpublish(self, call):
        target = call["target"]
        uid = target.split("/pods/")[1].split("/")[0] if "/pods/" in target else os.path.basename(target)
        self.wrong += [f"{target} of a running pod"] if uid in self.users() else []
        return CsiDriver.do_NodeUnpublishVolume(self.driver, call)

    def unstage(self, call):
        self.wrong += [f"{call} of a running pod" for user in self.users().values() if user["KIND"] == call["id"]]
        return CsiDriver.do_NodeUnstageVolume(self.driver, call)

    def users(self):
        """UID of each pod of which a container runs: its environment."""
        found = {}
        ours = os.path.basename(self.node.directory)
        for pid in world.pids():
            words = world.environ(pid) or {}
            if words.get("STORM") == ours and (world.cmdline(pid) or [""])[0] == "/bin/sh":
                found[words["UID"]] = words
        return found

    # Pods

    def container(self, kind):
        env = [{"name": "STORM", "value": os.path.basename(self.node.directory)}, {"name": "KIND", "value": kind},
               {"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]
        return device_container(env=env, **({"volumeDevices": [{"name": "v", "devicePath": "/dev/v"}]} if kind == "block" else
                                            {"volumeMounts": [mount("v", "/v")]}))

    def volume(self, kind):
        return {"name": "v", **({"csi": {"driver": self.driver.name}} if kind == "inline" else
                                {"persistentVolumeClaim": {"claimName": kind}})}

    def begin(self, name):
        kind = self.pods[name]
        self.node.drop(specs.pod(name, self.container(kind), terminationGracePeriodSeconds=0, volumes=[self.volume(kind)]))

    def end(self, name):
        self.node.remove(name)

    def found(self):
        return {pod["metadata"]["name"].rsplit("-", 1)[0]: pod for pod in self.node.pods() if pod["metadata"]["name"]}

    def change(self):
        name = self.random.choice(list(self.pods))
        self.node.revive()
        if name in self.wanted:
            self.wanted.remove(name)
            self.end(name)
        else:
            self.wanted.add(name)
            self.begin(name)

    # Deaths

    def draw(self):
        """Yields each of them once, in random order, and then again."""
        if not self.deck:
            self.deck = ["agent", "plugins", "plugin", "driver", *self.points]
            self.random.shuffle(self.deck)
        return self.deck.pop()

    def kill(self):
        who = self.draw()
        self.kills[who] = self.kills.get(who, 0) + 1
        self.node.revive()
        if who == "agent":
            self.node.agent.send_signal(signal.SIGKILL)
            self.node.agent.wait()
            self.node.start(ready=False)
        elif who == "plugins" and (pid := host_process(self.node)):
            os.kill(pid, signal.SIGKILL)
        elif who == "plugin":
            self.plugin.end_lists()
            self.plugin.serve()
        elif who == "driver":
            self.driver.crash()
            self.driver.serve()
        elif who in self.points:
            self.die_at(who)

    def die_at(self, point):
        self.node.arm({point: "1*panic"})
        for _ in range(3):  # some failpoints are passed only at a start or at an end
            self.tend_plugin()
            self.change()
            for _ in range(20):
                if self.node.hits()[point]:
                    self.hits.add(point)
                    return
                time.sleep(0.05)

    def check_running(self):
        users = self.users()
        devices = [one for user in users.values() for one in user.get("DEVICES", "").split(",") if one]
        assert len(devices) == len(set(devices)), users
        assert not self.wrong, self.wrong

    def tend_plugin(self):
        """Registers again, like a plugin that watches the kubelet's directory: an agent that starts removes the
        plugin's socket."""
        n_devices = str(len(self.devices))
        try:
            is_complete = self.node.get("/readyz")[0] != 200 or counts(self.node) == (n_devices, n_devices)
        except (AssertionError, ValueError):  # the agent has died in the meantime
            return
        if not is_complete:
            self.plugin.end_lists()
            self.plugin.serve()
            self.plugin.register()

    # After the storm

    def paths(self):
        """Mounts and devices of pods below the kubelet's directory."""
        kubelet = self.driver.kubelet
        devices = os.path.join(kubelet, "plugins/kubernetes.io/csi/volumeDevices/publish")
        return {one["at"] for one in world.mounts() if one["at"].startswith(kubelet) and "kubernetes.io" in one["at"]} | {
            os.path.join(directory, name) for directory, _, names in os.walk(devices) for name in names}

    def left(self):
        return [path for path, _, _ in os.walk(os.path.join(self.driver.kubelet, "plugins/kubernetes.io"))]

    def expected_paths(self, found):
        return {os.path.join(self.driver.kubelet, "pods", pod["metadata"]["uid"], "volumes/kubernetes.io~csi/v/mount") for pod in found.values()}

    def is_settled(self):
        self.tend_plugin()
        found = self.found()
        running = {name: pod for name, pod in found.items() if pod["status"].get("phase") == "Running" and pod["metadata"]["uid"] in self.users()}
        return set(found) == set(running) == self.wanted and self.paths() == self.expected_paths(running) and \
            set(os.listdir(os.path.join(self.driver.kubelet, "pods"))) == {pod["metadata"]["uid"] for pod in running.values()}

    def settle(self):
        """Waits until everything that was killed runs again, the pods are the desired ones, and only their volumes are
        mounted."""
        self.node.arm({})
        wait(self.node.is_ready, self.node.said)
        wait(self.is_settled, lambda: (self.wanted, self.found(), self.paths(), self.node.said()[-6000:]))
        self.check_running()

    def blow(self, kills):
        while sum(self.kills.values()) < kills:
            for _ in range(self.random.randrange(1, 4)):
                self.tend_plugin()
                self.change()
            for _ in range(self.random.randrange(1, 3)):
                self.kill()
                self.check_running()
            if self.random.random() < 0.2:
                self.settle()
        self.settle()
        for name in sorted(self.wanted):
            self.end(name)
        self.wanted = set()
        self.settle()
        wait(lambda: not self.left(), lambda: (self.left(), self.node.said()[-6000:]))  # the devices are unstaged after the pods
        print(self.kills, self.node.n_deaths, "never passed:", set(self.points) - self.hits)


class ClaimStorm(Storm):
    """Pods of an API server, also with claims: two on one filesystem, which is expanded each time, and one on a block device."""

    pods = {"a": "inline", "b": "files", "c": "files", "d": "block", "e": "inline"}
    devices = {name: HEALTHY for name in "tuvwxyz"}
    points = POINTS

    def __init__(self, node, driver, disk, seed):
        driver.disk = disk
        csi_driver_object(node, volumeLifecycleModes=["Persistent", "Ephemeral"], podInfoOnMount=True)
        for kind, mode in (("files", "Filesystem"), ("block", "Block")):
            owner = claim(node, kind, f"pv-{kind}")
            volume(node, f"pv-{kind}", owner, volumeMode=mode, capacity={"storage": "2Mi"}, csi={"driver": driver.name, "volumeHandle": kind},
                   claimRef={"namespace": "default", "name": kind, "uid": owner["metadata"]["uid"]})
        super().__init__(node, driver, seed)

    def begin(self, name):
        kind = self.pods[name]
        wait(lambda: not self.node.revive() and self.node.reported(name) is None,
             lambda: f"{name} is gone: {self.node.reported(name)}\n{self.node.said()[-6000:]}")
        if kind == "files":
            self.node.api.patch("persistentvolumeclaims", "default", kind, {"status": {"capacity": {"storage": "1Mi"}}}, subresource="status")
        self.node.bind(name, self.container(kind), volumes=[self.volume(kind)])

    def end(self, name):
        self.node.api.delete("pods", "default", name, grace=self.random.choice([0, 1]))

    def found(self):
        """The pods. A pod that was rejected is created again, as its controller would do."""
        pods = {pod["metadata"]["name"]: pod for pod in self.node.api.all("pods")}
        for name, pod in pods.items():
            if pod["status"].get("phase") == "Failed" and name in self.wanted and "deletionTimestamp" not in pod["metadata"]:
                assert pod["status"].get("reason") == "UnexpectedAdmissionError", pod["status"]
                self.node.api.delete("pods", "default", name, grace=0)
                self.begin(name)
        return pods

    def expected_paths(self, found):
        csi = os.path.join(self.driver.kubelet, "plugins/kubernetes.io/csi")
        paths = set()
        for name, pod in found.items():
            uid, kind = pod["metadata"]["uid"], self.pods[name]
            paths.add(os.path.join(csi, "volumeDevices/publish/pv-block", uid) if kind == "block" else os.path.join(
                self.driver.kubelet, "pods", uid, "volumes/kubernetes.io~csi", "v" if kind == "inline" else "pv-files", "mount"))
            paths |= {call["staging"] for method, call in self.driver.calls if method == "NodeStageVolume" and call["id"] == kind == "files"}
        return paths


def run_storm(make, kills):
    seed = int(os.environ.get("MAINSTAY_SEED", random.randrange(1 << 30)))
    print(f"MAINSTAY_SEED={seed}")
    storm = make(seed)
    try:
        storm.blow(kills)
    finally:
        storm.node.finish()
        storm.stop()


COUNTS = pytest.mark.parametrize("kills", [3, pytest.param(KILLS, marks=pytest.mark.long)], ids=["few", "many"])


@COUNTS
def test_devices_and_ephemeral_volumes_survive_deaths_at_each_failpoint(archive, kills):
    def make(seed):
        node = failing.FailingNode(archive)
        return Storm(node, CsiDriver(node), seed)
    run_storm(make, kills)


@COUNTS
def test_devices_and_claims_survive_deaths_at_each_failpoint(archive, api, tmp_path, kills):
    image = str(tmp_path / "disk")
    with open(image, "wb") as file:
        file.truncate(1 << 20)
    loop = subprocess.run(["losetup", "--find", "--show", image], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()

    def make(seed):
        node = failing.FailingMember(api, archive=archive)
        return ClaimStorm(node, CsiDriver(node, capabilities=[STAGE, EXPAND]), loop, seed)
    try:
        run_storm(make, kills)
    finally:
        world.run("losetup", "--detach", loop)
