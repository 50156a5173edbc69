# SPDX-License-Identifier: Apache-2.0
"""Random deaths of the agent, mainstay-plugins, a device plugin and a CSI driver while pods with devices and volumes come and go: no device
is given twice, no volume is unmounted under a pod, none stays mounted, and no pod is stuck."""

import os
import random
import signal
import time

import failing
import pytest
import specs
import world
from csi_driver import CsiDriver, mounted_at
from device_plugin import HEALTHY, DevicePlugin
from specs import mount
from test_csi_volumes import wait_cleaned
from test_device_plugins import GPU, counts, device_container, host_process
from world import wait

PODS, DEVICES = ["a", "b", "c", "d"], {name: HEALTHY for name in "tuvw"}
POINTS = ("mainstayd:csi.publishing", "mainstayd:csi.unpublished", "mainstayd:file.rename", "mainstayd:csi.staging")
KILLS = int(500 * float(os.environ.get("MAINSTAY_SCALE", "1")))


class Storm:
    def __init__(self, node, driver, plugin, seed):
        self.node, self.driver, self.plugin, self.random = node, driver, plugin, random.Random(seed)
        self.wanted, self.kills, self.unmounts = set(), {}, []
        driver.do_NodeUnpublishVolume = self.unpublish

    def unpublish(self, call):
        """A pod whose process runs has its volume."""
        uid = call["target"].split("/pods/")[1].split("/")[0]
        self.unmounts += [uid] if uid in self.users() else []
        return CsiDriver.do_NodeUnpublishVolume(call)

    def users(self):
        """UID of each pod of which a container runs: its devices."""
        found = {}
        ours = os.path.basename(self.node.directory)
        for pid in world.pids():
            words = world.environ(pid) or {}
            if words.get("STORM") == ours and (world.cmdline(pid) or [""])[0] == "/bin/sh":
                found[words["UID"]] = words.get("DEVICES", "")
        return found

    def manifest(self, name):
        env = [{"name": "STORM", "value": os.path.basename(self.node.directory)},
               {"name": "UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]
        return specs.pod(name, device_container(env=env, volumeMounts=[mount("v", "/v")]), terminationGracePeriodSeconds=0,
                         volumes=[{"name": "v", "csi": {"driver": self.driver.name}}])

    def change(self):
        name = self.random.choice(PODS)
        self.node.revive()
        if name in self.wanted:
            self.wanted.remove(name)
            self.node.remove(name)
        else:
            self.wanted.add(name)
            self.node.drop(self.manifest(name))

    def kill(self):
        who = self.random.choice(["agent", "plugins", "plugin", "driver", "point"])
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
        elif who == "point":
            self.node.arm({self.random.choice(POINTS): "1*panic"})
            self.change()
            for _ in range(40):  # it may pass none
                if self.node.agent.poll() is not None:
                    break
                time.sleep(0.05)

    def check_running(self):
        users = self.users()
        devices = [one for text in users.values() for one in text.split(",") if one]
        assert len(devices) == len(set(devices)), users
        assert not self.unmounts, self.unmounts

    def tend_plugin(self):
        """As a plugin that watches the kubelet's directory: an agent that starts removes its socket."""
        if self.node.get("/readyz")[0] == 200 and counts(self.node) != (str(len(DEVICES)), str(len(DEVICES))):
            self.plugin.end_lists()
            self.plugin.serve()
            self.plugin.register()

    def settle(self):
        """Everything that was killed is there again, and the pods are those of the manifests."""
        self.node.arm({})
        wait(self.node.is_ready, self.node.said)

        def is_settled():
            self.node.revive()
            self.tend_plugin()
            found = {pod["metadata"]["name"].rsplit("-", 1)[0]: pod for pod in self.node.pods() if pod["metadata"]["name"]}
            return set(found) == self.wanted and all(
                pod["status"].get("phase") == "Running" and pod["metadata"]["uid"] in self.users() for pod in found.values())
        wait(is_settled, lambda: (self.wanted, self.node.pods(), self.node.said()[-6000:]))
        mounted = {pod["metadata"]["uid"] for pod in self.node.pods()}
        volumes = os.path.join(self.driver.kubelet, "pods")
        assert set(os.listdir(volumes)) == mounted
        for uid in mounted:
            assert mounted_at(os.path.join(volumes, uid, "volumes", "kubernetes.io~csi", "v", "mount")), uid
        self.check_running()


@pytest.mark.parametrize("kills", [12, pytest.param(KILLS, marks=pytest.mark.long)], ids=["few", "many"])
def test_devices_and_volumes_survive_random_deaths(archive, kills):
    seed = int(os.environ.get("MAINSTAY_SEED", random.randrange(1 << 30)))
    print(f"MAINSTAY_SEED={seed}")
    node = failing.FailingNode(archive)
    driver = CsiDriver(node).register().wait_registered()
    plugin = DevicePlugin(node, GPU, dict(DEVICES))
    plugin.register()
    storm = Storm(node, driver, plugin, seed)
    try:
        while sum(storm.kills.values()) < kills:
            for _ in range(storm.random.randrange(1, 4)):
                storm.change()
            for _ in range(storm.random.randrange(1, 3)):
                storm.kill()
                storm.check_running()
            if storm.random.random() < 0.2:
                storm.settle()
        storm.settle()
        for name in sorted(storm.wanted):
            node.remove(name)
        storm.wanted = set()
        storm.settle()
        wait_cleaned(node)
        print(storm.kills, node.n_deaths)
    finally:
        node.finish()
        driver.stop()
        plugin.stop()
