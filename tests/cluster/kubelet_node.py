# SPDX-License-Identifier: Apache-2.0
"""A node of the cluster that runs the real kubelet and containerd: in separate network, mount and PID
namespaces, so that nothing outlives them."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

import network
import world
from control_plane import with_parent
from node import LABEL, ApiNode
from real_kubelet import RealKubelet
from world import wait

# Paths to which a kubelet and containerd write regardless of their settings; bound over the machine's own directories.
PATHS = {"kubelet-state": "/var/lib/kubelet", "logs-of-machine": "/var/log", "plugins": "/etc/kubernetes", "containerd": "/run/containerd"}
# The first process of the namespaces: it reaps orphaned processes in them.
INIT = "while :; do sleep 100000 & wait; done"


class KubeletNode(ApiNode):
    """Like ClusterNode, for the same kind of pods; 'config' contains fields of the kubelet's configuration."""

    def __init__(self, plane, archives, config=None):
        self.join(plane)
        self.directory = tempfile.mkdtemp(prefix="mainstay-kubelet-")
        os.chmod(self.directory, 0o711)
        self.cgroup_root = f"/mainstay-kubelet-{os.getpid()}-{self.number}"
        self.real = None
        self.make_namespaces()
        try:
            self.address = plane.link(self.init, self.number)
            self.configure_network()
            self.make_cgroups()
            self.real = RealKubelet(self.directory, archives, self.words(), self.flags(), cgroupRoot=self.cgroup_root,
                                    **(config or {}))
            self.make_namespace()
            self.start()
            self.wait_node_ready(180)  # on a busy machine the kubelet alone needs more than a minute
        except BaseException:
            self.clean_up()
            raise

    def make_namespaces(self):
        self.holder = subprocess.Popen(with_parent("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child",
                                                   "--mount-proc", "sh", "-c", INIT), stdin=subprocess.DEVNULL)
        self.init = wait(self.find_init, "namespaces of the node's own")
        for name, path in PATHS.items():
            os.makedirs(os.path.join(self.directory, name))
            os.makedirs(path, exist_ok=True)
            self.inside("mount", "--bind", os.path.join(self.directory, name), path)

    def find_init(self):
        children = (world.read(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children") or "").split()
        return next((int(pid) for pid in children if world.cmdline(pid)[:1] == ["sh"]), None)

    def words(self):
        return ["nsenter", f"--target={self.init}", "--net", "--mount", "--pid"]

    def inside(self, *words):
        return subprocess.run([*self.words(), *words], check=True, text=True, stdout=subprocess.PIPE).stdout

    def configure_network(self):
        """Configures the network like ClusterNode."""
        os.mkdir(os.path.join(self.directory, "cni"))
        with open(os.path.join(self.directory, "cni", "10-test.conflist"), "w", encoding="utf-8") as file:
            json.dump(network.chain(os.path.join(self.directory, "ipam"), network.PORTMAP, network.FIREWALL), file)

    def make_cgroups(self):
        """Creates the control group that the kubelet uses as its root, which must exist."""
        for hierarchy in world.hierarchies():
            os.makedirs(hierarchy + self.cgroup_root)

    def flags(self):
        kubeconfig = os.path.join(self.directory, "kubeconfig")
        self.plane.make_kubeconfig(f"node-{self.node_name}", f"/O=system:nodes/CN=system:node:{self.node_name}", kubeconfig)
        return ["--kubeconfig", kubeconfig, "--hostname-override", self.node_name, "--node-ip", self.address,
                "--node-labels", f"{LABEL}={self.node_name}"]

    # The kubelet

    def said(self):
        return self.real.said() if self.real else ""

    def start(self):
        self.real.start()

    def restart(self):
        """Kills the kubelet and starts a new one; containerd and the containers keep running."""
        self.real.stop(signal.SIGKILL)
        self.start()

    # The end

    def finish(self):
        """Fails if anything is left that does not end with the namespaces."""
        try:
            self.delete_all()
        finally:
            self.clean_up()
        left = [f"process {pid} {world.cmdline(pid)}" for pid in world.pids()
                if any(self.directory in word for word in world.cmdline(pid)) and world.is_alive(pid)]
        left += [f"cgroup {path}" for path in world.cgroups_below(self.cgroup_root)]
        left += [self.directory] if os.path.exists(self.directory) else []
        assert not left, "\n".join(left)

    def clean_up(self):
        if self.real:
            self.real.finish()
        self.holder.kill()
        self.holder.wait()
        wait(lambda: not [pid for pid in world.pids_of_root(self.cgroup_root) if world.is_alive(pid)], "its processes end")
        self.remove_cgroups()
        shutil.rmtree(self.directory)
        self.leave()

    def remove_cgroups(self):
        def is_removed():
            try:
                world.remove_cgroups(self.cgroup_root)
            except OSError:
                return False
            return True
        wait(is_removed, "its control groups are removed")
