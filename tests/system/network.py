# SPDX-License-Identifier: Apache-2.0
"""A node in a separate network namespace, so that bridges, addresses and packet filters of its pods are separate from
the machine's and vanish with it."""

import contextlib
import ctypes
import json
import os
import re
import subprocess

import harness
import world
from world import wait

BRIDGE = "test0"
SUBNET = "10.213.0.0/24"
SUBNET6 = "fd13::/64"
GATEWAY = "10.213.0.1"
NODE_ADDRESS = "198.51.100.7"


def chain(ipam_directory, *more, **bridge):
    """The configuration list of a bridge network, with further plugins after the bridge."""
    return {"cniVersion": "1.0.0", "name": "testnet", "plugins": [
        {"type": "bridge", "bridge": BRIDGE, "isGateway": True, "ipMasq": True, "hairpinMode": True,
         "ipam": {"type": "host-local", "dataDir": ipam_directory, "ranges": [[{"subnet": SUBNET}]],
                  "routes": [{"dst": "0.0.0.0/0"}]}, **bridge},
        *more]}


CLONE_NEWNET = 0x40000000


def enter(space):
    """Moves the calling thread, and with it the processes that it starts from now on, into a network namespace."""
    with open(space, "rb") as file:
        assert ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


@contextlib.contextmanager
def entered(space):
    with open("/proc/thread-self/ns/net", "rb") as own:
        enter(space)
        try:
            yield
        finally:
            enter(f"/proc/self/fd/{own.fileno()}")


PORTMAP = {"type": "portmap", "capabilities": {"portMappings": True}}
FIREWALL = {"type": "firewall"}


class NetworkNode(harness.Node):
    """A node with one interface, 'host0', and by default the bridge network."""

    def __init__(self, archive, config=None, plugins=(PORTMAP, FIREWALL), start=True):  # None: no configuration
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.space = f"/proc/{self.holder.pid}/ns/net"
        wait(lambda: os.readlink(self.space) != os.readlink("/proc/self/ns/net"), "a network namespace of the test's own")
        self.connect()
        self.plugins = plugins
        super().__init__(archive, config, start)

    def connect(self):
        """Creates the interface of the namespace."""
        self.run_inside("busybox", "ip", "link", "set", "lo", "up")
        self.run_inside("busybox", "ip", "link", "add", "host0", "type", "bridge")
        self.run_inside("busybox", "ip", "address", "add", f"{NODE_ADDRESS}/24", "dev", "host0")
        self.run_inside("busybox", "ip", "link", "set", "host0", "up")

    def write_config(self, **fields):
        self.ipam = os.path.join(self.directory, "ipam")
        self.cni = os.path.join(self.directory, "cni")
        self.plugin_directory = os.path.join(self.directory, "plugins")
        for path in (self.cni, self.plugin_directory):
            os.makedirs(path, exist_ok=True)
        if self.plugins is not None:
            self.configure(chain(self.ipam, *self.plugins))
        mainstay = {"cniConfDir": self.cni, "cniBinDir": f"{self.plugin_directory}:/usr/lib/cni"}
        super().write_config(**{**fields, "mainstay": {**mainstay, **fields.get("mainstay", {})}})

    def configure(self, document, name="10-test.conflist"):
        path = os.path.join(self.cni, name)
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump(document, file)
        os.rename(path + ".new", path)

    def install_plugin(self, name, script):
        path = os.path.join(self.plugin_directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)

    def inside(self, *words):
        return ["nsenter", f"--net={self.space}", *words]

    def run_inside(self, *words, check=True):
        return subprocess.run(self.inside(*words), check=check, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=world.DEADLINE).stdout

    def command(self):
        return self.inside(*super().command())

    def is_ours(self, pid):
        return super().is_ours(pid) and "nsenter" not in (world.cmdline(pid) or [""])[0]

    # ---- the result of plugins ----

    def reserved(self):
        """The addresses that host-local has allocated."""
        directory = os.path.join(self.ipam, "testnet")
        if not os.path.isdir(directory):
            return []
        return sorted(name for name in os.listdir(directory) if not name.startswith("l"))  # "lock", "last_reserved_ip.0"

    def reservations(self):
        """The content of the reservation files: the container that has each address, and its interface."""
        return {name: world.read(os.path.join(self.ipam, "testnet", name)) for name in self.reserved()}

    def veths(self):
        links = self.run_inside("busybox", "ip", "link", "show")
        return [line.split()[1].split("@")[0] for line in links.splitlines() if " veth" in line]

    def rules(self):
        """The packet filter rules that contain an address of the pods' network."""
        lines = [line for program in ("iptables", "ip6tables") for table in ("nat", "filter")
                 for line in self.run_inside(program, "-t", table, "-S").splitlines()]
        return [line for line in lines if "10.213.0." in line or "fd13::" in line]

    def chains(self):
        """The chains that plugins have created for single pods."""
        lines = self.run_inside("iptables", "-t", "nat", "-S") + self.run_inside("ip6tables", "-t", "nat", "-S")
        return [line for line in lines.splitlines() if re.match("-N CNI-(DN-|SN-)?[0-9a-f]{16,}$", line)]

    def network_leftovers(self):
        return [f"address {address}: {text!r}" for address, text in self.reservations().items()] + \
               [f"interface {name}" for name in self.veths()] + \
               [f"rule {rule}" for rule in self.rules() + self.chains()]

    def find_leftovers(self):
        yield from super().find_leftovers()
        yield from self.network_leftovers()

    def fetch(self, address, port):
        """Connects from the node to a listener, and returns the data that it sends."""
        return self.run_inside("busybox", "nc", "-w", "2", address, str(port), check=False)

    def address(self, name):
        return self.pod(name)["status"].get("podIP")

    def exec(self, name, *words):
        """Runs a program of the node in the pod's namespaces."""
        pid = self.init(name)
        return subprocess.run(["nsenter", f"--target={pid}", "--net", "--uts", "--mount", *words], check=False,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=world.DEADLINE).stdout

    def clean_up(self):
        super().clean_up()
        self.holder.kill()
        self.holder.wait()
