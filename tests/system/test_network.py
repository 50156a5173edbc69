# SPDX-License-Identifier: Apache-2.0
"""Pods with a network of their own: real plugins, in a network namespace of the test's own."""

import json
import os
import random
import re
import shutil
import signal
import time

import pytest
import specs
import world
from network import FIREWALL, GATEWAY, NODE_ADDRESS, PORTMAP, SUBNET, SUBNET6, NetworkNode, chain
from world import wait

LISTEN = "while :; do echo {} | nc -l -p 8080; done & trap 'exit 0' TERM; wait"


@pytest.fixture(name="make_network_node")
def fixture_make_network_node(archive):
    nodes = []

    def make(**options):
        nodes.append(NetworkNode(archive, **options))
        return nodes[-1]

    yield make
    for node in nodes:
        node.finish()


@pytest.fixture(name="net")
def fixture_net(make_network_node):
    return make_network_node()


def pod(name, script=specs.IDLE, **spec):
    return specs.pod(name, specs.container(script=script), hostNetwork=False, **spec)


def listener(name, says, **fields):
    return specs.pod(name, specs.container(script=LISTEN.format(says), **fields), hostNetwork=False)


def file_of(node, name, path):
    return world.read(f"/proc/{node.init(name)}/root{path}")


def wait_clean(net):
    """Nothing is left; the kernel takes the interfaces of a lost namespace away in its own time."""
    wait(lambda: not net.network_leftovers(), lambda: f"nothing is left: {net.network_leftovers()}")


@pytest.mark.quick
def test_pods_reach_each_other_and_the_node_reaches_them(net):
    net.launch(listener("one", "I am one"))
    net.launch(listener("two", "I am two"))
    one, two = net.address("one"), net.address("two")
    assert one != two and one.startswith("10.213.0.") and two.startswith("10.213.0.")
    assert net.pod("one")["status"]["podIPs"] == [{"ip": one}]
    assert net.pod("one")["status"]["hostIP"] == NODE_ADDRESS
    assert net.reserved() == sorted([one, two])
    wait(lambda: net.fetch(one, 8080) == "I am one\n", "the node reaches a pod")
    wait(lambda: "I am two" in net.exec("one", "/bin/nc", "-w", "2", two, "8080"), "a pod reaches another")
    assert f"inet {one}/24" in net.exec("one", "/bin/ip", "address", "show", "eth0")
    assert "<LOOPBACK,UP" in net.exec("one", "/bin/ip", "link", "show", "lo")
    assert f"default via {GATEWAY}" in net.exec("one", "/bin/ip", "route")


def test_a_pod_has_namespaces_of_its_own_and_its_containers_share_them(net):
    net.launch(specs.pod("pair", specs.container("main"), specs.container("other"), hostNetwork=False))
    links = {kind: [os.readlink(f"/proc/{pid}/ns/{kind}") for pid in
                    (net.init("pair"), net.init("pair", "other"), net.shim("pair"), net.agent.pid)]
             for kind in ("net", "uts")}
    for main, other, shim, agent in links.values():
        assert main == other == shim != agent


def test_a_host_port_leads_to_the_pod(net):
    net.launch(listener("web", "through the port", ports=[
        {"containerPort": 8080, "hostPort": 18080}]))
    wait(lambda: net.fetch(NODE_ADDRESS, 18080) == "through the port\n", "the node's port leads to the pod")
    wait(lambda: net.fetch("127.0.0.1", 18080) == "through the port\n", "so does that of its loopback")


def test_nothing_is_left_of_the_network_when_the_pod_is_gone(net):
    net.launch(listener("web", "x", ports=[{"containerPort": 8080, "hostPort": 18081}]))
    assert net.reserved() and net.veths() and net.rules()
    net.remove("web")
    net.wait_gone("web")
    assert net.network_leftovers() == []


def test_a_plugin_that_fails_is_told_and_leaves_no_address(net):
    net.configure(chain(net.ipam, {"type": "refuses"}))
    net.install_plugin("refuses", 'cat >/dev/null; [ "$CNI_COMMAND" = DEL ] && exit 0\n'
                       'echo \'{"cniVersion":"1.0.0","code":999,"msg":"no room","details":"at the inn"}\'; exit 1\n')
    net.drop(pod("web"))
    message = "failed to set up sandbox network: plugin type=\"refuses\" failed (add): no room; at the inn"
    net.wait_pod("web", lambda it: it["status"]["containerStatuses"][0]["state"].get("waiting", {})
                 .get("message") == message, "says why it waits")
    assert net.status("web")["state"]["waiting"]["reason"] == "ContainerCreating"
    wait(lambda: net.network_leftovers() == [], lambda: f"nothing is left: {net.network_leftovers()}")
    net.configure(chain(net.ipam, PORTMAP, FIREWALL))
    net.wait_running("web")
    assert net.reserved() == [net.address("web")]


def test_a_plugin_that_also_fails_to_delete_keeps_no_other_from_deleting(net):
    net.configure(chain(net.ipam, {"type": "refuses"}))
    net.install_plugin("refuses", "cat >/dev/null; echo broken >&2; exit 1\n")
    net.drop(pod("web"))
    net.wait_pod("web", lambda it: "failed (add): broken; and then" in str(it), "says both")
    wait(lambda: not net.veths() and not net.reserved(), "the bridge has deleted what it had")
    net.install_plugin("refuses", "cat >/dev/null; exit 0\n")
    net.remove("web")
    net.wait_gone("web")


def test_a_missing_plugin_and_a_broken_configuration_are_told(net):
    net.configure(chain(net.ipam, {"type": "not-there"}))
    net.drop(pod("one"))
    net.wait_pod("one", lambda it: 'failed to find plugin \\"not-there\\" in path' in str(it) or
                 'failed to find plugin "not-there" in path' in str(it), "misses the plugin")
    net.configure({"cniVersion": "1.0.0", "name": "testnet", "plugins": [{"type": "../../bin/sh"}]})
    net.drop(pod("two"))
    net.wait_pod("two", lambda it: "10-test.conflist: plugins[0].type: must be" in str(it), "refuses the type")


def test_a_lost_shim_leaves_no_address_and_the_pod_gets_another(net):
    net.launch(listener("web", "back", ports=[{"containerPort": 8080, "hostPort": 18082}]))
    first, shim = net.address("web"), net.shim("web")
    os.kill(shim, signal.SIGKILL)
    net.wait_pod("web", lambda it: it["status"].get("podIP") not in (None, first), "has another address")
    net.wait_running("web")
    assert net.reserved() == [net.address("web")]
    assert len(net.veths()) == 1
    assert not [rule for rule in net.rules() if f"{first}/32" in rule or f"{first}:" in rule], net.rules()
    wait(lambda: net.fetch(NODE_ADDRESS, 18082) == "back\n", "the port leads to the new one")


def test_a_pod_that_has_failed_gives_its_address_back_also_when_its_shim_is_lost(net):
    net.launch(pod("late", script="trap '' TERM; sleep 100000 & wait", activeDeadlineSeconds=3,
                   terminationGracePeriodSeconds=600))
    net.wait_phase("late", "Failed")
    assert net.reserved()
    world.kill_all([net.shim("late")])
    wait(lambda: not net.reserved(), "its address is free")
    wait(lambda: not net.shims(), "nothing of it runs")
    assert net.pod("late")["status"]["reason"] == "DeadlineExceeded"
    net.restart()
    assert net.wait_phase("late", "Failed")["status"]["reason"] == "DeadlineExceeded"
    wait(lambda: not net.shims(), "nobody is left, nor one who cleans up")


def test_a_pod_that_had_come_to_its_end_holds_no_address_after_the_node_was_down(net):
    net.drop(pod("done", script="exit 0", restartPolicy="OnFailure"))
    net.wait_phase("done", "Succeeded")
    net.kill9()
    world.kill_all(net.shims())
    net.start()
    net.wait_phase("done", "Succeeded")
    wait(lambda: not net.reserved(), "its address is free")
    wait(lambda: not net.shims(), "nobody is left")
    assert net.status("done")["restartCount"] == 0
    assert "trying again" not in net.said()
    wait_clean(net)


def test_an_address_outlives_the_agent(net):
    net.launch(listener("web", "still here"))
    address, pid = net.address("web"), net.init("web")
    net.restart()
    net.wait_running("web")
    assert net.address("web") == address and net.init("web") == pid
    wait(lambda: net.fetch(address, 8080) == "still here\n", "the pod is reached")
    net.remove("web")
    net.wait_gone("web")
    assert net.network_leftovers() == []


def test_a_new_agent_tells_whose_network_is_not_what_it_was(net):
    for name in ("whole", "cut"):
        net.launch(specs.pod(name, hostNetwork=False))
    net.exec("cut", "busybox", "ip", "route", "delete", "default")
    net.restart()
    net.wait_running("cut")
    wait(lambda: "is not ready" in net.cli("get", "events").stdout, "an event about the network")
    events = net.cli("get", "events").stdout
    assert [line for line in events.splitlines() if "NetworkNotReady" in line and "pod/cut-" in line], events
    assert not [line for line in events.splitlines() if "NetworkNotReady" in line and "pod/whole-" in line], events


def test_an_agent_that_finds_neither_shim_nor_manifest_deletes_the_addresses(net):
    net.launch(pod("web"))
    shim = net.shim("web")
    net.kill9()
    os.kill(shim, signal.SIGKILL)
    net.remove("web")
    net.start()
    net.wait_gone("web")
    wait_clean(net)


def test_an_agent_that_finds_no_shim_gives_the_pod_another_address(net):
    net.launch(pod("web"))
    first, shim = net.address("web"), net.shim("web")
    net.kill9()
    os.kill(shim, signal.SIGKILL)
    net.start()
    net.wait_pod("web", lambda it: it["status"].get("podIP") not in (None, first), "has another address")
    net.wait_running("web")
    assert net.reserved() == [net.address("web")]
    assert not [rule for rule in net.rules() if f"{first}/32" in rule], net.rules()
    net.remove("web")
    net.wait_gone("web")
    wait_clean(net)


@pytest.mark.parametrize("shim_lives", [True, False])
def test_what_nobody_knows_by_its_record_any_more_loses_its_addresses_too(net, shim_lives):
    net.launch(pod("web"))
    uid, shim = net.pod("web")["metadata"]["uid"], net.shim("web")
    net.kill9()
    if not shim_lives:
        os.kill(shim, signal.SIGKILL)
    with open(os.path.join(net.state, "pods", uid, "record"), "r+", encoding="utf-8") as file:
        file.truncate(20)
    net.remove("web")
    net.start()
    wait_clean(net)
    wait(lambda: not os.path.exists(os.path.join(net.state, "pods", uid)), "its directory is removed")


@pytest.mark.parametrize("is_wanted", [True, False], ids=["wanted", "removed"])
def test_addresses_of_both_families_are_not_masqueraded_any_more_when_shim_and_agent_were_lost(net, is_wanted):
    ranges = [[{"subnet": SUBNET}], [{"subnet": SUBNET6}]]
    ipam = {"type": "host-local", "dataDir": net.ipam, "ranges": ranges}
    net.configure(chain(net.ipam, PORTMAP, FIREWALL, ipam=ipam))
    net.launch(listener("web", "x", ports=[{"containerPort": 8080, "hostPort": 18084}]))
    first, lost = net.reserved(), net.chains()
    assert len(first) == 2 and len(lost) == 4
    net.kill9()
    world.kill_all(net.shims())
    if not is_wanted:
        net.remove("web")
    net.start()
    if is_wanted:
        net.wait_pod("web", lambda it: it["status"].get("podIP") not in (None, *first), "has another address")
        net.wait_running("web")
        assert len(net.reserved()) == 2 and len(net.chains()) == 4 and not set(net.chains()) & set(lost)
        net.remove("web")
    net.wait_gone("web")
    wait_clean(net)


def once(net, script):
    """The bridge plugin, which does something else when it is run the first time with a command."""
    net.install_plugin("bridge", f'if mkdir "$0.$CNI_COMMAND" 2>/dev/null; then {script}; fi; '
                       "exec /usr/lib/cni/bridge\n")


@pytest.mark.parametrize("agent_lives", [True, False])
def test_a_shim_that_dies_in_the_middle_of_a_deletion_leaves_no_rule(net, agent_lives):
    once(net, '[ $CNI_COMMAND = DEL ] && busybox nsenter --net="$CNI_NETNS" busybox ip link delete eth0 && '
         ": >$0.cut && exec sleep 1000")
    net.launch(pod("web"))
    shim = net.shim("web")
    net.remove("web")
    wait(lambda: os.path.exists(os.path.join(net.plugin_directory, "bridge.cut")), "the interface is deleted")
    assert net.rules() and not net.veths()
    if not agent_lives:
        net.kill9()
    world.kill_all([shim])
    if not agent_lives:
        net.start()
    net.wait_gone("web")
    wait_clean(net)


def test_an_agent_that_comes_back_finishes_a_deletion_that_was_cut_off(net):
    once(net, '[ $CNI_COMMAND = DEL ] && busybox nsenter --net="$CNI_NETNS" busybox ip link delete eth0 && exit 1')
    net.launch(pod("web"))
    net.remove("web")
    net.wait_gone("web")
    wait_clean(net)


@pytest.mark.parametrize("is_wanted", [True, False], ids=["wanted", "removed"])
def test_what_a_plugin_had_added_when_shim_and_agent_died_is_deleted(net, is_wanted):
    once(net, "if [ $CNI_COMMAND = ADD ]; then /usr/lib/cni/bridge >/dev/null; : >$0.cut; exec sleep 1000; fi")
    net.drop(pod("web"))
    wait(lambda: os.path.exists(os.path.join(net.plugin_directory, "bridge.cut")), "the plugin has added")
    lost = net.chains()
    assert lost and net.rules() and net.reserved()
    net.kill9()
    world.kill_all(net.shims())
    if not is_wanted:
        net.remove("web")
    net.start()
    if is_wanted:
        net.wait_running("web")
        assert net.reserved() == [net.address("web")]
        assert len(net.chains()) == 1 and net.chains() != lost
        net.remove("web")
    net.wait_gone("web")
    wait_clean(net)


def hold_at(net, plugin, command, when):
    """The next run of the plugin with the command hangs before its work or after it; gives the file that says so."""
    held = os.path.join(net.plugin_directory, f"{plugin}.{command}.{when}")
    work = "" if when == "before" else f"/usr/lib/cni/{plugin} >/dev/null; "
    net.install_plugin(plugin, f"if [ $CNI_COMMAND = {command} ] && ! [ -e {held} ]; then {work}: >{held}; "
                       f"exec sleep 1000; fi; exec /usr/lib/cni/{plugin}\n")
    return held


def die(net, shim, who):
    """SIGKILL for those that are named, in that order; and an agent again."""
    for name in who.split("-"):
        if name == "agent":
            net.kill9()
        elif name == "shim":
            world.kill_all([shim])
        else:
            world.kill_all([pid for pid in world.pids() if world.cmdline(pid) == ["sleep", "1000"] and
                            world.status(pid, "PPid") == str(shim)])
    if "agent" in who:
        net.start()


@pytest.mark.parametrize("who", ["plugin", "shim", "agent-plugin", "shim-agent", "agent-shim"])
@pytest.mark.parametrize("plugin", ["bridge", "portmap", "firewall"])
def test_whoever_dies_before_or_after_a_plugin_has_worked_nothing_is_left_nor_made_twice(net, plugin, who):
    web = listener("web", "x", ports=[{"containerPort": 8080, "hostPort": 18085}])
    for when in ("before", "after"):
        held = hold_at(net, plugin, "ADD", when)
        net.drop(web)
        wait(lambda: os.path.exists(held), f"the plugin hangs {when} it adds")
        die(net, net.shim("web"), who)
        net.wait_running("web", 90)
        assert net.reserved() == [net.address("web")]
        wait(lambda: len(net.veths()) == 1 and len(net.chains()) == 2,
             lambda: f"there is what one pod has: {net.network_leftovers()}")
        held = hold_at(net, plugin, "DEL", when)
        shim = net.shim("web")
        net.remove("web")
        wait(lambda: os.path.exists(held), f"the plugin hangs {when} it deletes")
        die(net, shim, who)
        net.wait_gone("web", 90)
        wait_clean(net)


def test_deaths_at_any_time_while_addresses_come_and_go_leave_nothing(net):
    seed = int(os.environ.get("MAINSTAY_SEED", random.randrange(2**32)))
    print(f"MAINSTAY_SEED={seed}")
    chance = random.Random(seed)
    pods = [listener(name, name, ports=[{"containerPort": 8080, "hostPort": port}])
            for name, port in (("one", 18086), ("two", 18087))]
    for _ in range(12):
        web = chance.choice(pods)
        if os.path.exists(net.path(web["metadata"]["name"] + ".yaml")):
            net.remove(web["metadata"]["name"])
        else:
            net.drop(web)
        for _ in range(chance.randint(1, 3)):
            time.sleep(chance.random() * chance.choice([0.1, 0.5, 1.5]))
            who = chance.choice(["agent", "shims", "both"])
            if who != "agent":
                world.kill_all(net.shims())
            if who != "shims":
                net.restart(ready=False)
    wait(net.is_ready, "the agent is ready")
    for web in pods:
        net.drop(web)
    for name in ("one", "two"):
        net.wait_running(name, 90)
    wait(lambda: net.reserved() == sorted(net.address(name) for name in ("one", "two")), "no address is anybody else's")
    wait(lambda: len(net.veths()) == 2 and len(net.chains()) == 4,
         lambda: f"there is what two pods have: {net.network_leftovers()}")
    for name in ("one", "two"):
        net.remove(name)
        net.wait_gone(name, 90)
    wait_clean(net)


def test_an_agent_that_dies_while_plugins_run_leaves_one_address(net):
    net.configure(chain(net.ipam, {"type": "slow"}))
    net.install_plugin("slow", 'cat >$0.input.$$; [ "$CNI_COMMAND" = ADD ] && : >$0.adds && sleep 1\n'
                       "/usr/bin/python3 -c 'import json,sys; print(json.dumps(json.load(open(sys.argv[1]))"
                       "[\"prevResult\"]))' $0.input.$$\n")
    net.drop(pod("web"))
    wait(lambda: os.path.exists(os.path.join(net.plugin_directory, "slow.adds")), "the plugin runs")
    net.restart()
    net.wait_running("web")
    assert net.reserved() == [net.address("web")]
    assert len(net.veths()) == 1


def test_a_damaged_record_of_a_network_stops_nobody(make_network_node):
    net = make_network_node(plugins=(PORTMAP,))
    net.launch(pod("web"))
    uid, pid = net.pod("web")["metadata"]["uid"], net.init("web")
    record = os.path.join(net.state, "pods", uid, "network")
    net.kill9()
    with open(record, "r+", encoding="utf-8") as file:
        file.truncate(40)
    net.start()
    net.wait_running("web")
    assert net.init("web") == pid
    assert os.path.exists(record + ".damaged")
    net.remove("web")
    net.wait_gone("web")
    assert net.network_leftovers() == []


@pytest.fixture(name="allocations")
def fixture_allocations():
    """Where the default network's addresses are kept; put back as it was."""
    directory = "/var/lib/cni/networks/mainstay"
    was_there = os.path.exists(directory)
    yield directory
    if not was_there:
        shutil.rmtree(directory, ignore_errors=True)


def test_without_a_configuration_there_is_a_network_of_ours(make_network_node, allocations):
    net = make_network_node(plugins=None)
    net.launch(listener("web", "out of the box", ports=[{"containerPort": 8080, "hostPort": 18083}]))
    address = net.address("web")
    assert address.startswith("10.189.")
    wait(lambda: net.fetch(NODE_ADDRESS, 18083) == "out of the box\n", "the node's port leads to the pod")
    wait(lambda: net.fetch(address, 8080) == "out of the box\n", "the node reaches the pod")
    assert "inet 10.189.0.1/16" in net.run_inside("busybox", "ip", "address", "show", "mainstay0")
    net.remove("web")
    net.wait_gone("web")
    assert not [name for name in os.listdir(allocations) if name == address]
    assert net.veths() == [] and "10.189." not in net.run_inside("iptables-save")


# Names

def test_a_pod_knows_its_name_and_its_address(net):
    variable = {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    net.launch(specs.pod("web", specs.container(env=[variable]), hostNetwork=False,
                         hostAliases=[{"ip": "192.0.2.9", "hostnames": ["db", "db.example"]}]))
    assert world.environ(net.init("web"))["ADDRESS"] == net.address("web")
    assert net.exec("web", "/bin/hostname").strip() == "web-node1"
    assert world.environ(net.init("web"))["HOSTNAME"] == "web-node1"
    assert file_of(net, "web", "/etc/hostname") == "web-node1\n"
    hosts = file_of(net, "web", "/etc/hosts")
    assert hosts.startswith("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n")
    assert f"\n{net.address('web')}\tweb-node1\n" in hosts
    assert hosts.endswith("\n# Entries added by HostAliases.\n192.0.2.9\tdb\tdb.example\n")


def test_a_kernel_parameter_of_the_network_is_the_pod_s_alone(net):
    name = "net.ipv4.ip_unprivileged_port_start"
    path = "/proc/sys/" + name.replace(".", "/")
    before = net.run_inside("cat", path)
    net.launch(pod("web", securityContext={"sysctls": [{"name": name, "value": "0"}]}))
    assert net.exec("web", "/bin/cat", path) == "0\n"
    assert net.run_inside("cat", path) == before != "0\n"


def test_hostname_and_subdomain_make_a_domain_name(net):
    net.launch(pod("named", hostname="www", subdomain="shop"))
    net.launch(pod("full", hostname="www", subdomain="shop", setHostnameAsFQDN=True))
    assert net.exec("named", "/bin/hostname").strip() == "www"
    assert f"{net.address('named')}\twww.shop.default.svc.cluster.local\twww\n" in file_of(net, "named", "/etc/hosts")
    assert net.exec("full", "/bin/hostname").strip() == "www.shop.default.svc.cluster.local"
    assert world.environ(net.init("full"))["HOSTNAME"] == "www.shop.default.svc.cluster.local"
    assert world.read("/proc/sys/kernel/hostname") not in ("www\n", "www.shop.default.svc.cluster.local\n")


def test_a_host_alias_is_known_in_the_node_s_network_too(net):
    net.launch(specs.pod("web", hostAliases=[{"ip": "192.0.2.9", "hostnames": ["db"]}]))
    hosts = file_of(net, "web", "/etc/hosts")
    assert hosts.startswith("# Kubernetes-managed hosts file (host network).\n")
    assert hosts.endswith("# Entries added by HostAliases.\n192.0.2.9\tdb\n")


def test_dns_policies_make_resolv_conf(make_network_node, tmp_path):
    resolv = tmp_path / "resolv.conf"
    resolv.write_text("search lan\nnameserver 192.0.2.53\noptions rotate\n", encoding="utf-8")
    net = make_network_node(config={"clusterDNS": ["10.96.0.10"], "clusterDomain": "k.example",
                                    "resolvConf": str(resolv)})
    cluster = ("search default.svc.k.example svc.k.example k.example lan\nnameserver 10.96.0.10\n"
               "options ndots:5\n")
    node = "search lan\nnameserver 192.0.2.53\noptions rotate\n"
    config = {"nameservers": ["192.0.2.1"], "searches": ["a.example"],
              "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]}
    cases = {
        "first": ({}, cluster),
        "default": ({"dnsPolicy": "Default"}, node),
        "none": ({"dnsPolicy": "None", "dnsConfig": config},
                 "search a.example\nnameserver 192.0.2.1\noptions ndots:2 edns0\n"),
        "more": ({"dnsConfig": config},
                 "search default.svc.k.example svc.k.example k.example lan a.example\nnameserver 10.96.0.10\n"
                 "nameserver 192.0.2.1\noptions ndots:2 edns0\n"),
        "host": ({"hostNetwork": True}, node),
        "both": ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, cluster),
    }
    for name, (spec, _) in cases.items():
        net.drop(specs.pod(name, **{"hostNetwork": False, **spec}))
    for name, (_, expected) in cases.items():
        net.wait_running(name)
        assert file_of(net, name, "/etc/resolv.conf") == expected, name


def test_what_the_agent_runs_is_not_in_the_pod_s_namespace(net):
    net.configure(chain(net.ipam, {"type": "spy"}))
    net.install_plugin("spy", "cat >$0.input\nreadlink /proc/self/ns/net >$0.where; env >$0.environment\n"
                       "/usr/bin/python3 -c 'import json,sys; print(json.dumps(json.load(open(sys.argv[1]))"
                       ".get(\"prevResult\")))' $0.input\n")
    net.launch(pod("web"))
    spy = os.path.join(net.plugin_directory, "spy")
    assert world.read(spy + ".where").strip() == os.readlink(f"/proc/{net.agent.pid}/ns/net")
    environment = world.read(spy + ".environment")
    assert f"CNI_NETNS=/proc/{net.shim('web')}/ns/net\n" in environment
    assert re.search(r"^CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-node1;", environment, re.M)
    assert "MAINSTAY" not in environment and "ASAN" not in environment


def test_bandwidth_that_annotations_ask_for_reaches_the_plugin_that_can_limit_it(net):
    net.configure(chain(net.ipam, {"type": "spy", "capabilities": {"bandwidth": True}}))
    net.install_plugin("spy", "cat >$0.input\n/usr/bin/python3 -c 'import json,sys; "
                       "print(json.dumps(json.load(open(sys.argv[1])).get(\"prevResult\")))' $0.input\n")
    limited = pod("limited")
    limited["metadata"]["annotations"] = {"kubernetes.io/ingress-bandwidth": "1M", "kubernetes.io/egress-bandwidth": "2M"}
    net.launch(limited)
    told = json.loads(world.read(os.path.join(net.plugin_directory, "spy.input")))["runtimeConfig"]["bandwidth"]
    assert (told["ingressRate"], told["egressRate"]) == (1000000, 2000000)


def test_a_pod_is_probed_at_its_own_address(net):
    probe = {"periodSeconds": 1, "failureThreshold": 100}
    net.launch(listener("web", "hello", livenessProbe={"tcpSocket": {"port": 8080}, **probe},
                        readinessProbe={"tcpSocket": {"port": 8080}, **probe}))
    net.wait_pod("web", lambda pod: pod["status"]["containerStatuses"][0]["ready"], "is ready")
    assert net.status("web")["restartCount"] == 0


def test_an_edited_pod_keeps_its_address_and_gives_it_back(net):
    net.launch(pod("web"))
    address, shim = net.address("web"), net.shim("web")
    net.drop(pod("web", script="echo again; " + specs.IDLE, terminationGracePeriodSeconds=3))
    net.wait_restarts("web", 1)
    assert net.address("web") == address and net.reserved() == [address]
    net.drop(pod("web", script="echo again; " + specs.IDLE, hostname="other"))
    net.wait_pod("web", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] == 0 and
                 pod["status"]["phase"] == "Running", "is another")
    wait(lambda: net.reserved() == [net.address("web")], "the other has the only address")
    assert not world.is_alive(shim)
