# SPDX-License-Identifier: Apache-2.0
"""The built-in network with both address families, with real CNI plugins, in a network namespace of the test."""

import ipaddress
import json
import os
import re
import shutil
import subprocess

import pytest
import specs
import world
from network import NODE_ADDRESS, NetworkNode
from world import wait

# The machine has a single place for the allocations of host-local, /var/lib/cni/networks/mainstay.
pytestmark = pytest.mark.xdist_group("built_in_network")
ALLOCATIONS = "/var/lib/cni/networks/mainstay"
NODE_ADDRESS6 = "2001:db8::7"
LISTEN = "while :; do echo {} | nc -l -p 8080; done & trap 'exit 0' TERM; wait"
# Each of these programs is another name of the same binary.
IPTABLES = ["/usr/sbin/xtables-nft-multi", "/usr/sbin/xtables-legacy-multi"]
# The plugins for the test with nftables, of version 1.9 or later; Debian 12 and 13 have 1.1.
NEWER_PLUGINS = os.environ.get("MAINSTAY_CNI_PLUGINS")


class BuiltInNode(NetworkNode):
    """A node without a network plugin, with an address of each family."""

    def __init__(self, archive, hidden=(), programs=None, arguments=(), **options):
        self.hidden, self.programs, self.arguments = hidden, programs, list(arguments)
        super().__init__(archive, plugins=None, **options)

    def connect(self):
        super().connect()
        self.run_inside("ip", "address", "add", f"{NODE_ADDRESS6}/64", "dev", "host0", "nodad", check=False)

    def command(self):
        """Runs a command in a mount namespace without some programs, or with others in place of them."""
        words = super().command() + self.arguments
        mounts = [f"mount --bind /dev/null {path}" for path in self.hidden if os.path.exists(path)]
        if self.programs:
            mounts.append(f"mount --bind {self.programs} /usr/local/sbin")
        script = " && ".join(["mount --make-rprivate /", *mounts, 'exec "$@"'])
        inside = len(self.inside())
        return words[:inside] + ["unshare", "--mount", "sh", "-c", script, "sh"] + words[inside:]

    def is_ours(self, pid):
        return super().is_ours(pid) and (world.cmdline(pid) or [""])[0] not in ("unshare", "sh")

    def addresses(self, name):
        return [entry["ip"] for entry in self.pod(name)["status"].get("podIPs", [])]

    def sysctl(self, name):
        return self.run_inside("cat", "/proc/sys/net/ipv6/conf/" + name).strip()

    def filters(self):
        """The packet filter rules that belong to a pod of the built-in network."""
        lines = [line for program in ("iptables-save", "ip6tables-save") for line in self.run_inside(program).splitlines()]
        return [line for line in lines if re.search(r"-[sd] (10\.189|fd[0-9a-f]{2}:)|:CNI-(DN-)?[0-9a-f]{16,}", line)]

    def network_leftovers(self):
        mine = getattr(self, "seen", set())
        names = os.listdir(ALLOCATIONS) if os.path.isdir(ALLOCATIONS) else []
        return [f"address {name}" for name in names if name in mine] + [f"interface {name}" for name in self.veths()] + \
               [f"rule {rule}" for rule in self.filters()]

    def launch_seen(self, pod):
        self.launch(pod)
        found = self.addresses(pod["metadata"]["name"])
        self.seen = getattr(self, "seen", set()) | set(found)
        return found


@pytest.fixture(name="make_built_in")
def fixture_make_built_in(archive):
    was_there = os.path.exists(ALLOCATIONS)
    nodes = []

    def make(**options):
        nodes.append(BuiltInNode(archive, **options))
        return nodes[-1]

    yield make
    for node in nodes:
        node.finish()
    if not was_there:
        shutil.rmtree(ALLOCATIONS, ignore_errors=True)


def listener(name, text, **fields):
    return specs.pod(name, specs.container(script=LISTEN.format(text), **fields), hostNetwork=False)


def pod(name, **fields):
    return specs.pod(name, specs.container(**fields), hostNetwork=False)


def wait_reached(node, address, port, text):
    wait(lambda: node.fetch(address, port) == text + "\n", f"port {port} of {address} leads to the pod")


def expect_refused(node, address, port):
    """Asserts that a connection is refused at once, so that a client that tries ::1 first goes on to 127.0.0.1."""
    said = subprocess.run(node.inside("busybox", "nc", address, str(port)), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=world.DEADLINE)
    assert "refused" in said.stderr and said.stdout == "", (address, port, said)


def remove(node, *names):
    for name in names:
        node.remove(name)
    for name in names:
        node.wait_gone(name)
    wait(lambda: not node.network_leftovers(), lambda: f"nothing is left: {node.network_leftovers()}")


def file_of(node, name, path):
    return world.read(f"/proc/{node.init(name)}/root{path}")


@pytest.mark.quick
def test_pod_has_an_address_of_each_family(make_built_in):
    node = make_built_in()
    variables = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                 for name, path in (("ONE", "status.podIP"), ("ALL", "status.podIPs"), ("HOSTS", "status.hostIPs"))]
    v4, v6 = node.launch_seen(listener("web", "hello", env=variables, ports=[{"containerPort": 8080, "hostPort": 18090}]))
    assert v4.startswith("10.189.") and ipaddress.ip_address(v6) in ipaddress.ip_network("fd00::/8")
    assert node.pod("web")["status"]["podIP"] == v4
    environ = world.environ(node.init("web"))
    assert (environ["ONE"], environ["ALL"], environ["HOSTS"]) == (v4, f"{v4},{v6}", NODE_ADDRESS)
    assert f"\n{v4}\tweb-node1\n{v6}\tweb-node1\n" in file_of(node, "web", "/etc/hosts")
    assert re.search(r"^IPs:\n  IP:\s+" + re.escape(v4) + r"\n  IP:\s+" + re.escape(v6), node.cli("describe", "pod", "web-node1").stdout, re.M)
    assert "default via fd" in node.exec("web", "/bin/ip", "-6", "route")
    for address, port in ((v4, 8080), (v6, 8080), (NODE_ADDRESS, 18090), ("127.0.0.1", 18090), (NODE_ADDRESS6, 18090)):
        wait_reached(node, address, port, "hello")
    expect_refused(node, "::1", 18090)
    sources = [rule for rule in node.filters() if rule.startswith("-A POSTROUTING")]
    assert [f"-s {address} " in rule for address, rule in zip((f"{v4}/32", f"{v6}/128"), sources, strict=True)] == [True, True], sources
    other4, other6 = node.launch_seen(pod("other"))
    for address in (v4, v6):
        wait(lambda: "hello" in node.exec("other", "/bin/nc", "-w", "2", address, "8080"), f"a pod reaches {address}")
    assert ipaddress.ip_network(f"{v6}/64", strict=False) == ipaddress.ip_network(f"{other6}/64", strict=False)
    assert other4 != v4
    remove(node, "web", "other")


def test_pod_range_of_the_node_stays_across_restarts(make_built_in):
    node = make_built_in()
    _, first = node.launch_seen(pod("one"))
    pid = node.init("one")
    node.restart()
    assert node.init("one") == pid and node.addresses("one")[1] == first
    _, second = node.launch_seen(pod("two"))
    assert ipaddress.ip_network(f"{first}/64", strict=False) == ipaddress.ip_network(f"{second}/64", strict=False)
    assert world.read(os.path.join(node.state, "pod-range")).startswith(str(ipaddress.ip_network(f"{first}/64", strict=False)))
    assert "NetworkNotReady" not in node.cli("get", "events").stdout
    remove(node, "one", "two")


HOST_IPS = {
    "": [NODE_ADDRESS, NODE_ADDRESS6, "127.0.0.1"],
    "0.0.0.0": [NODE_ADDRESS, "127.0.0.1"],
    "::": [NODE_ADDRESS6],
    NODE_ADDRESS: [NODE_ADDRESS],
    NODE_ADDRESS6: [NODE_ADDRESS6],
    "127.0.0.1": ["127.0.0.1"],
    "::1": [],
}


def test_host_ip_selects_the_families_and_addresses_of_a_host_port(make_built_in):
    """The kernel lets no connection to ::1 leave the node, as with every container engine that uses portmap."""
    node = make_built_in()
    ports = [{"name": f"p{i}", "containerPort": 8080, "hostPort": 18100 + i, **({"hostIP": ip} if ip else {})}
             for i, ip in enumerate(HOST_IPS)]
    node.launch_seen(listener("web", "hello", ports=ports))
    for i, reached in enumerate(HOST_IPS.values()):
        for address in reached:
            wait_reached(node, address, 18100 + i, "hello")
        for address in {NODE_ADDRESS, NODE_ADDRESS6, "127.0.0.1", "::1"} - set(reached):
            expect_refused(node, address, 18100 + i)
    node.restart()
    assert "NetworkNotReady" not in node.cli("get", "events").stdout, "the plugins' check passes"
    remove(node, "web")


@pytest.mark.parametrize("name", ["all", "default"])
def test_node_without_ipv6_has_an_ipv4_network(make_built_in, name):
    node = make_built_in(start=False)
    node.run_inside("sh", "-c", f"echo 1 >/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
    node.start()
    addresses = node.launch_seen(listener("web", "hello", ports=[{"containerPort": 8080, "hostPort": 18091}]))
    assert len(addresses) == 1 and addresses[0].startswith("10.189.")
    wait_reached(node, NODE_ADDRESS, 18091, "hello")
    assert "IPv6" not in node.said() and "failed" not in node.said(), node.said()
    remove(node, "web")


def test_ipv4_pods_keep_running_when_the_network_gets_ipv6(make_built_in):
    """The pods keep running, as after an upgrade from a version whose network had IPv4 only."""
    node = make_built_in(config={"mainstay": {"podCIDRs": ["10.189.0.0/16"]}})
    old = node.launch_seen(listener("old", "still here", ports=[{"containerPort": 8080, "hostPort": 18092}]))
    assert len(old) == 1
    pid = node.init("old")
    os.unlink(os.path.join(node.state, "pod-range"))
    node.write_config()
    node.restart()
    assert node.init("old") == pid and node.addresses("old") == old
    new = node.launch_seen(listener("new", "new here"))
    assert len(new) == 2
    for address, port in ((old[0], 8080), (NODE_ADDRESS, 18092)):
        wait_reached(node, address, port, "still here")
    wait(lambda: "still here" in node.exec("new", "/bin/nc", "-w", "2", old[0], "8080"), "the new pod reaches the old one")
    assert "NetworkNotReady" not in node.cli("get", "events").stdout
    # The change is reverted.
    node.write_config(mainstay={"podCIDRs": ["10.189.0.0/16"]})
    node.restart()
    assert node.addresses("new") == new and node.init("old") == pid
    remove(node, "old", "new")


@pytest.mark.parametrize("settings,expected", [
    ({"mainstay": {"podCIDRs": ["10.7.0.0/24"]}}, ["10.7.0.0/24"]),
    ({"mainstay": {"podCIDRs": ["fd07:1::/64"]}}, ["fd07:1::/64"]),
    ({"mainstay": {"podCIDRs": ["fd07:1::/64", "10.7.0.0/24"]}}, ["10.7.0.0/24", "fd07:1::/64"]),
    ({"podCIDR": "10.7.0.0/24,fd07:1::/64"}, ["10.7.0.0/24", "fd07:1::/64"]),
    ({"podCIDR": "10.7.0.0/24"}, ["10.7.0.0/24"]),
])
def test_ranges_are_configurable(make_built_in, settings, expected):
    node = make_built_in(config=settings)
    found = node.launch_seen(listener("web", "hello", ports=[{"containerPort": 8080, "hostPort": 18093}]))
    assert [ipaddress.ip_address(address) in ipaddress.ip_network(cidr) for address, cidr in zip(found, expected, strict=True)] == \
        [True] * len(expected), found
    for address in found:
        wait_reached(node, address, 8080, "hello")
        wait_reached(node, NODE_ADDRESS6 if ":" in address else NODE_ADDRESS, 18093, "hello")
    assert f"\n{found[0]}\tweb-node1\n" in file_of(node, "web", "/etc/hosts")
    remove(node, "web")


def test_probe_reaches_a_pod_that_has_ipv6_only(make_built_in):
    node = make_built_in(config={"mainstay": {"podCIDRs": ["fd07:1::/64"]}})
    probe = {"periodSeconds": 1, "failureThreshold": 100, "tcpSocket": {"port": 8080}}
    node.launch_seen(listener("web", "hello", readinessProbe=probe))
    node.wait_pod("web", lambda pod: pod["status"]["containerStatuses"][0]["ready"], "is ready")
    remove(node, "web")


def test_node_with_an_ipv6_address_puts_that_family_first(make_built_in):
    node = make_built_in(arguments=["--node-ip", NODE_ADDRESS6])
    found = node.launch_seen(pod("web"))
    assert ":" in found[0] and found[1].startswith("10.189."), found
    assert node.pod("web")["status"]["hostIP"] == NODE_ADDRESS6
    assert re.search(re.escape(found[0]) + r"\tweb-node1\n" + re.escape(found[1]) + "\tweb-node1\n", file_of(node, "web", "/etc/hosts"))
    remove(node, "web")


@pytest.mark.parametrize("order", [1, -1], ids=["ipv4", "ipv6"])
def test_node_with_a_pair_of_addresses_reports_both(make_built_in, order):
    pair = [NODE_ADDRESS, NODE_ADDRESS6][::order]
    node = make_built_in(arguments=["--node-ip", ",".join(pair)])
    variables = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                 for name, path in (("HOST", "status.hostIP"), ("HOSTS", "status.hostIPs"), ("PODS", "status.podIPs"))]
    node.launch(specs.pod("host", specs.container(env=variables)))
    found = node.launch_seen(pod("own", env=variables))
    both = [{"ip": address} for address in pair]
    for name in ("host", "own"):
        status = node.pod(name)["status"]
        assert (status["hostIP"], status["hostIPs"]) == (pair[0], both)
        environ = world.environ(node.init(name))
        assert (environ["HOST"], environ["HOSTS"]) == (pair[0], ",".join(pair))
        assert environ["PODS"] == ",".join(node.addresses(name))
    assert node.addresses("host") == pair
    assert [":" in address for address in found] == [":" in address for address in pair]
    addresses = [one["address"] for one in json.loads(node.get("/node")[1])["status"]["addresses"] if one["type"] == "InternalIP"]
    assert addresses == pair
    node.restart()
    assert node.addresses("host") == pair and node.addresses("own") == found
    remove(node, "host", "own")


@pytest.mark.parametrize("arguments", [[], ["--node-ip", "::"]], ids=["discovered", "selected"])
def test_node_address_may_be_an_ipv6_address(make_built_in, arguments):
    node = make_built_in(start=False, arguments=arguments)
    if not arguments:
        node.run_inside("ip", "address", "delete", f"{NODE_ADDRESS}/24", "dev", "host0")
    # A bridge counts as the network of a plugin unless it has the default route.
    node.run_inside("ip", "-6", "route", "add", "default", "via", "2001:db8::1", "dev", "host0")
    node.start()
    node.launch(specs.pod("host", specs.container()))
    assert node.pod("host")["status"]["hostIP"] == NODE_ADDRESS6 and node.addresses("host") == [NODE_ADDRESS6]
    node.remove("host")
    node.wait_gone("host")


def test_changed_ipv4_range_is_an_error_with_its_remedy(make_built_in):
    node = make_built_in()
    node.launch_seen(pod("web"))
    node.write_config(mainstay={"podCIDRs": ["10.7.0.0/24"]})
    node.restart()
    node.drop(pod("late"))
    node.wait_pod("late", lambda it: "when no pod uses that bridge any more, delete it (ip link delete)" in json.dumps(it), "has the remedy")
    node.remove("web")
    node.wait_gone("web")
    node.run_inside("ip", "link", "delete", "mainstay0")
    node.wait_running("late")
    node.seen |= set(node.addresses("late"))
    assert node.addresses("late")[0].startswith("10.7.0.")
    remove(node, "late")


ECHO = """import socket
server = socket.create_server(("::", 8080), family=socket.AF_INET6, dualstack_ipv6=True)
while True:
    connection, peer = server.accept()
    connection.sendall((peer[0].removeprefix("::ffff:") + "\\n").encode())
    connection.close()
"""


@pytest.fixture(name="other_machine")
def fixture_other_machine():
    """A machine that has no route to pods, and whose server sends its clients their address."""
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", 'read line; exec python3 -c "$0"', ECHO], stdin=subprocess.PIPE)
    wait(lambda: os.readlink(f"/proc/{process.pid}/ns/net") != os.readlink("/proc/self/ns/net"), "the pod has a network namespace")
    yield process
    process.kill()
    process.wait()


def test_pod_reaches_other_machines_with_the_nodes_address_of_each_family(make_built_in, other_machine):
    node = make_built_in()
    node.run_inside("ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", str(other_machine.pid))
    node.run_inside("ip", "link", "set", "wire", "master", "host0", "up")
    there = ["nsenter", f"--net=/proc/{other_machine.pid}/ns/net", "ip"]
    for words in ("link set lo up", "link set wire up", "address add 198.51.100.9/24 dev wire", "address add 2001:db8::9/64 dev wire nodad"):
        subprocess.run(there + words.split(), check=True, timeout=world.DEADLINE)
    other_machine.stdin.write(b"\n")
    other_machine.stdin.close()
    node.launch_seen(pod("web"))
    for address, seen in (("198.51.100.9", NODE_ADDRESS), ("2001:db8::9", NODE_ADDRESS6)):
        wait(lambda: node.exec("web", "/bin/nc", "-w", "2", address, "8080") == seen + "\n", f"{address} sees the pod as {seen}")
    remove(node, "web")


# ---- the node's own IPv6 ----

def test_node_still_follows_router_advertisements_when_it_forwards_ipv6(make_built_in):
    """The kernel ignores the advertisements of routers at an interface with accept_ra=1 once IPv6 is forwarded."""
    node = make_built_in(start=False)
    node.run_inside("ip", "link", "add", "deaf0", "type", "bridge")
    node.run_inside("sh", "-c", "echo 0 >/proc/sys/net/ipv6/conf/deaf0/accept_ra")
    assert (node.sysctl("all/forwarding"), node.sysctl("host0/accept_ra")) == ("0", "1")
    node.start()
    node.launch_seen(pod("web"))
    assert node.sysctl("all/forwarding") == "1"
    assert [node.sysctl(f"{name}/accept_ra") for name in ("host0", "deaf0", "default", "mainstay0")] == ["2", "0", "2", "0"]
    remove(node, "web")


def test_node_that_already_forwards_keeps_its_settings(make_built_in):
    node = make_built_in(start=False)
    node.run_inside("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/forwarding")
    node.start()
    node.launch_seen(pod("web"))
    assert node.sysctl("host0/accept_ra") == "1"
    remove(node, "web")


def test_ipv4_network_forwards_no_ipv6(make_built_in):
    node = make_built_in(config={"mainstay": {"podCIDRs": ["10.189.0.0/16"]}})
    node.launch_seen(pod("web"))
    assert (node.sysctl("all/forwarding"), node.sysctl("host0/accept_ra")) == ("0", "1")
    remove(node, "web")


# ---- packet filters ----

def test_kernel_without_ipv6_nat_gets_an_ipv4_network(make_built_in, tmp_path):
    program = tmp_path / "ip6tables"
    program.write_text("#!/bin/sh\n[ \"$1\" = --version ] && { echo 'ip6tables v1.8.9 (legacy)'; exit; }\n"
                       "echo \"ip6tables v1.8.9 (legacy): can't initialize ip6tables table \\`nat': Table does not exist\" >&2; exit 3\n",
                       encoding="utf-8")
    program.chmod(0o755)
    node = make_built_in(programs=tmp_path)
    addresses = node.launch_seen(listener("web", "hello"))
    assert len(addresses) == 1
    wait_reached(node, addresses[0], 8080, "hello")
    assert node.said().count("The built-in network continues without IPv6: ") == 1
    assert len(node.launch_seen(pod("next"))) == 1
    remove(node, "web", "next")


SPY = """#!/bin/sh
cat >"$0.$CNI_COMMAND.input"
[ "$CNI_COMMAND" = ADD ] || exit 0
echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"/x"}],"ips":[{"interface":0,"address":"10.189.9.9/16"}]}'
"""


def test_plugins_use_nftables_if_there_is_no_iptables(make_built_in):
    """The plugins are replaced by scripts that record their configuration."""
    node = make_built_in(hidden=IPTABLES, start=False)
    for name in ("bridge", "portmap", "bandwidth"):
        node.install_plugin(name, SPY)
    node.install_plugin("firewall", "exit 1\n")
    node.start()
    node.launch(pod("web"))

    def told(name):
        return json.loads(world.read(os.path.join(node.plugin_directory, f"{name}.ADD.input")))
    assert told("bridge")["ipMasqBackend"] == "nftables" and told("portmap")["backend"] == "nftables"
    node.remove("web")
    node.wait_gone("web")


MISSING_IPTABLES = """cat >/dev/null
[ "$CNI_COMMAND" = ADD ] || exit 0
echo '{"code":999,"msg":"failed to locate iptables: exec: \\"iptables\\": executable file not found in $PATH"}'
exit 1
"""


def test_missing_iptables_is_an_error_with_its_remedy(make_built_in):
    """The error is the one of plugins of version 1.1; newer ones use nftables."""
    node = make_built_in(hidden=IPTABLES, start=False)
    node.install_plugin("bridge", MISSING_IPTABLES)
    node.start()
    node.drop(pod("web"))
    node.wait_pod("web", lambda it: "install iptables, or nftables with network plugins of version 1.9 or later" in json.dumps(it),
                  "reports the remedy")
    node.remove("web")
    node.wait_gone("web")


if NEWER_PLUGINS:
    def test_network_works_with_nftables_alone(make_built_in):
        node = make_built_in(hidden=IPTABLES, start=False)
        node.write_config(mainstay={"cniBinDir": NEWER_PLUGINS})
        node.start()
        v4, v6 = node.launch_seen(listener("web", "hello", ports=[{"containerPort": 8080, "hostPort": 18094}]))
        for address, port in ((v4, 8080), (v6, 8080), (NODE_ADDRESS, 18094), ("127.0.0.1", 18094), (NODE_ADDRESS6, 18094)):
            wait_reached(node, address, port, "hello")
        expect_refused(node, "::1", 18094)
        assert v6 in node.run_inside("nft", "list", "ruleset")
        node.restart()
        assert "NetworkNotReady" not in node.cli("get", "events").stdout
        remove(node, "web")
        wait(lambda: v6 not in node.run_inside("nft", "list", "ruleset"), "no rule is left")
        assert v4 not in node.run_inside("nft", "list", "ruleset")
