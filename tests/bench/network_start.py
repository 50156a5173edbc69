# SPDX-License-Identifier: Apache-2.0
"""The start of a pod with a separate network namespace, relative to the OCI runtime and the CNI plugins run one after another by
hand."""

import contextlib
import ctypes
import json
import os
import subprocess
import time

import bare
import network

PLUGIN_DIRECTORY = "/usr/lib/cni"
BANDWIDTH = {"type": "bandwidth", "capabilities": {"bandwidth": True}}
CLONE_NEWNET = 0x40000000


@contextlib.contextmanager
def network_namespace(pid):
    """Within it, this process and its children are in the other process's network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/self/ns/net", "rb") as home, open(f"/proc/{pid}/ns/net", "rb") as other:
        if libc.setns(other.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        try:
            yield
        finally:
            libc.setns(home.fileno(), CLONE_NEWNET)


class Plugins:
    """The node's CNI plugins, run by hand for a network namespace that already exists."""

    def __init__(self, node):
        self.node = node
        self.count = 0
        with open(os.path.join(node.cni, "10-test.conflist"), encoding="utf-8") as file:
            self.document = json.load(file)

    def call(self, command, plugin, namespace, previous):
        config = {"cniVersion": self.document["cniVersion"], "name": self.document["name"], **plugin}
        if previous:
            config["prevResult"] = previous
        done = subprocess.run([f"{PLUGIN_DIRECTORY}/{plugin['type']}"], input=json.dumps(config), text=True, check=True,
                              stdout=subprocess.PIPE, env={
                                  "CNI_COMMAND": command, "CNI_CONTAINERID": f"byhand{self.count}", "CNI_NETNS": namespace,
                                  "CNI_IFNAME": "eth0", "CNI_PATH": PLUGIN_DIRECTORY, "PATH": os.environ["PATH"]})
        return json.loads(done.stdout) if done.stdout else previous

    def add_and_delete(self):
        """Returns the seconds that ADD took for all plugins."""
        self.count += 1
        with subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE) as holder:
            home, namespace = os.readlink("/proc/self/ns/net"), f"/proc/{holder.pid}/ns/net"
            while os.readlink(namespace) == home:
                time.sleep(0.001)
            result, started = None, time.monotonic()
            for plugin in self.document["plugins"]:
                result = self.call("ADD", plugin, namespace, result)
            took = time.monotonic() - started
            for plugin in reversed(self.document["plugins"]):
                self.call("DEL", plugin, namespace, result)
            holder.stdin.close()
        return took


def sample(node, fifo, runtime, plugins, samples):
    starts, runs, additions = [], [], []
    for i in range(samples):
        name = f"networked{i}"
        with network_namespace(node.holder.pid):
            additions.append(plugins.add_and_delete())
        runs.append(runtime.run(fifo))
        starts.append(bare.start(node, fifo, bare.measured_pod(node, name, hostNetwork=False)))
        runtime.delete_all()
        node.remove(name)
        node.wait_gone(name)
    return starts, [a + b for a, b in zip(runs, additions)]


def measure(archive, arguments, figures):
    node = network.NetworkNode(archive, plugins=(network.PORTMAP, network.FIREWALL, BANDWIDTH))
    runtime = None
    try:
        fifo = bare.StartFifo(node.data)
        node.drop(bare.measured_pod(node, "warm", hostNetwork=False))
        fifo.wait_for(["warm"])
        runtime = bare.Runtime(node, archive, node.wait_running("warm"))
        starts, by_hand = sample(node, fifo, runtime, Plugins(node), arguments.samples)
        figures.compare(f"the same with a CNI network, over {bare.RUNTIME} run and its plugins",
                        starts, by_hand, 2.5)
    finally:
        if runtime:
            runtime.delete_all()
        node.finish()
