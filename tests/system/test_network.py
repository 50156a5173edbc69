# SPDX-License-Identifier: Apache-2.0
"""Pod networks with real CNI plugins, in a network namespace of the test."""

import json
import os
import random
import re
import shutil
import signal
import time

import many
import pytest
import specs
import world
from network import FIREWALL, GATEWAY, NODE_ADDRESS, PORTMAP, SUBNET, SUBNET6, NetworkNode, chain
from sampling import some
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


def listener(name, text, **fields):
    return specs.pod(name, specs.container(script=LISTEN.format(text), **fields), hostNetwork=False)


def file_of(node, name, path):
    return world.read(f"/proc/{node.init(name)}/root{path}")


def wait_clean(net):
    """Waits until nothing is left; the kernel removes the interfaces of a lost namespace with a delay."""
    wait(lambda: not net.network_leftovers(), lambda: f"nothing is left: {net.network_leftovers()}")


def test_traffic_of_a_pods_network_is_counted(net):
    net.launch(listener("one", "I am one"))
    net.launch(pod("two"))
    one = net.address("one")
    wait(lambda: "I am one" in net.exec("two", "/bin/nc", "-w", "2", one, "8080"), "a pod reaches another")

    def received():
        text = net.get("/metrics/cadvisor")[1]
        lines = [line for line in text.splitlines() if line.startswith("container_network_receive_bytes_total{")]
        return {line.split('pod="')[1].split('"')[0]: float(line.split("} ")[1].split(" ")[0])
                for line in lines if 'interface="eth0"' in line}
    wait(lambda: received().get("one-node1", 0) > 100 and received().get("two-node1", 0) > 100,
         lambda: f"both pods have sent bytes: {received()}")
    summary = json.loads(net.get("/stats/summary")[1])
    assert all(entry["network"]["name"] == "eth0" and entry["network"]["txBytes"] > 100 for entry in summary["pods"])


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


def test_containers_of_a_pod_share_its_namespaces(net):
    net.launch(specs.pod("pair", specs.container("main"), specs.container("other"), hostNetwork=False))
    links = {kind: [os.readlink(f"/proc/{pid}/ns/{kind}") for pid in
                    (net.init("pair"), net.init("pair", "other"), net.shim("pair"), net.agent.pid)]
             for kind in ("net", "uts")}
    for main, other, shim, agent in links.values():
        assert main == other == shim != agent


def test_host_port_forwards_to_the_pod(net):
    net.launch(listener("web", "through the port", ports=[
        {"containerPort": 8080, "hostPort": 18080}]))
    wait(lambda: net.fetch(NODE_ADDRESS, 18080) == "through the port\n", "the node's port leads to the pod")
    wait(lambda: net.fetch("127.0.0.1", 18080) == "through the port\n", "the port on its loopback address leads to it, too")


def test_removed_pod_leaves_no_network_resources(net):
    net.launch(listener("web", "x", ports=[{"containerPort": 8080, "hostPort": 18081}]))
    assert net.reserved() and net.veths() and net.rules()
    net.remove("web")
    net.wait_gone("web")
    assert net.network_leftovers() == []


def test_failed_plugin_is_reported_and_leaves_no_address(net):
    net.configure(chain(net.ipam, {"type": "refuses"}))
    net.install_plugin("refuses", 'cat >/dev/null; [ "$CNI_COMMAND" = DEL ] && exit 0\n'
                       'echo \'{"cniVersion":"1.0.0","code":999,"msg":"no space","details":"in the pool"}\'; exit 1\n')
    net.drop(pod("web"))
    message = "failed to set up sandbox network: plugin type=\"refuses\" failed (add): no space; in the pool"
    net.wait_pod("web", lambda it: it["status"]["containerStatuses"][0]["state"].get("waiting", {})
                 .get("message") == message, "has the reason in its status")
    assert net.status("web")["state"]["waiting"]["reason"] == "ContainerCreating"
    wait(lambda: net.network_leftovers() == [], lambda: f"nothing is left: {net.network_leftovers()}")
    net.configure(chain(net.ipam, PORTMAP, FIREWALL))
    net.wait_running("web")
    assert net.reserved() == [net.address("web")]


def fail_adds(net, figure, n_pods, subnet):
    """Starts pods whose network setup fails halfway 'figure' times; then they run, each with its own address."""
    ipam = {"type": "host-local", "dataDir": net.ipam, "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]}
    failures = os.path.join(net.plugin_directory, "failures")
    net.configure(chain(net.ipam, FIREWALL, {"type": "refuses"}, ipam=ipam))
    net.install_plugin("refuses", f'cat >/dev/null; [ "$CNI_COMMAND" = DEL ] && exit 0\nprintf x >>{failures}\n'
                       'echo \'{"cniVersion":"1.0.0","code":999,"msg":"no"}\'; exit 1\n')
    names = [f"web{i}" for i in range(n_pods)]
    for name in names:
        net.drop(pod(name))

    def has_failed():
        assert len(net.reserved()) <= n_pods, net.reserved()
        return os.path.exists(failures) and os.path.getsize(failures) >= figure
    wait(has_failed, "the plugin has failed often enough", 3600)
    net.configure(chain(net.ipam, FIREWALL, ipam=ipam))
    for name in names:
        net.wait_running(name)
    assert net.reserved() == sorted(net.address(name) for name in names)
    for name in names:
        net.remove(name)
    for name in names:
        net.wait_gone(name)
    wait_clean(net)


def test_addresses_of_failed_adds_are_free_again(net):
    """The network has five addresses."""
    fail_adds(net, 12, 3, "10.213.0.0/29")


@pytest.mark.long
def test_all_addresses_are_free_after_thousands_of_failed_adds(net):
    fail_adds(net, many.scaled(10000), 20, SUBNET)


def test_failed_delete_of_a_plugin_does_not_prevent_the_others(net):
    net.configure(chain(net.ipam, {"type": "refuses"}))
    net.install_plugin("refuses", "cat >/dev/null; echo broken >&2; exit 1\n")
    net.drop(pod("web"))
    net.wait_pod("web", lambda it: "failed (add): broken; and then" in str(it), "reports both errors")
    wait(lambda: not net.veths() and not net.reserved(), "the plugin bridge has removed its interface")
    net.install_plugin("refuses", "cat >/dev/null; exit 0\n")
    net.remove("web")
    net.wait_gone("web")


def test_missing_plugin_and_broken_configuration_are_reported(net):
    net.configure(chain(net.ipam, {"type": "not-there"}))
    net.drop(pod("one"))
    net.wait_pod("one", lambda it: 'failed to find plugin \\"not-there\\" in path' in str(it) or
                 'failed to find plugin "not-there" in path' in str(it), "reports the missing plugin")
    net.configure({"cniVersion": "1.0.0", "name": "testnet", "plugins": [{"type": "../../bin/sh"}]})
    net.drop(pod("two"))
    net.wait_pod("two", lambda it: "10-test.conflist: plugins[0].type: must be" in str(it), "reports the invalid type")


def test_pod_gets_a_new_address_after_its_shim_was_lost(net):
    net.launch(listener("web", "back", ports=[{"containerPort": 8080, "hostPort": 18082}]))
    first, shim = net.address("web"), net.shim("web")
    os.kill(shim, signal.SIGKILL)
    net.wait_pod("web", lambda it: it["status"].get("podIP") not in (None, first), "has another address")
    net.wait_running("web")
    assert net.reserved() == [net.address("web")]
    wait(lambda: len(net.veths()) == 1, lambda: f"the lost namespace's interface is gone: {net.veths()}")
    assert not [rule for rule in net.rules() if f"{first}/32" in rule or f"{first}:" in rule], net.rules()
    wait(lambda: net.fetch(NODE_ADDRESS, 18082) == "back\n", "the port leads to the new address")


def test_failed_pod_releases_its_address_though_its_shim_was_lost(net):
    late = pod("late", script="trap '' TERM; sleep 100000 & wait", terminationGracePeriodSeconds=600)
    net.launch(late)
    late["spec"]["activeDeadlineSeconds"] = 1  # an edit in place
    net.drop(late)
    wait(lambda: "has failed, stopping it: DeadlineExceeded" in net.said(), "it is being stopped")
    assert net.reserved() and net.pod("late")["status"]["phase"] == "Running"
    world.kill_all([net.shim("late")])
    wait(lambda: not net.reserved(), "its address is released")
    wait(lambda: not net.shims(), "nothing of it runs")
    assert net.wait_phase("late", "Failed")["status"]["reason"] == "DeadlineExceeded"
    net.restart()
    assert net.wait_phase("late", "Failed")["status"]["reason"] == "DeadlineExceeded"
    wait(lambda: not net.shims(), "no shim is left, and no sandbox teardown")


def job(script, ports=()):
    return specs.pod("job", specs.container(script=script, ports=list(ports), volumeMounts=[specs.mount("v", "/v")]), hostNetwork=False,
                     restartPolicy="Never", volumes=[{"name": "v", "emptyDir": {}}])


def test_completed_static_pod_releases_address_port_and_volumes_and_runs_again_after_an_edit(net):
    ports = [{"containerPort": 8080, "hostPort": 18086}]
    net.drop(job("echo x > /v/x", ports))
    uid = net.wait_phase("job", "Succeeded")["metadata"]["uid"]
    wait(lambda: not net.reserved(), "its address is released")
    wait(lambda: not net.shims(), "no shim is left")
    wait(lambda: not os.path.exists(os.path.join(net.state, "pods", uid, "volumes")), "its volumes are removed")
    net.launch(listener("next", "mine now", ports=ports))
    wait(lambda: net.fetch(NODE_ADDRESS, 18086) == "mine now\n", "the port leads to the other pod")
    net.restart()
    assert net.wait_phase("job", "Succeeded")["metadata"]["uid"] == uid
    net.drop(job("ls /v; ls /sys/class/net"))
    wait(lambda: net.logged("job") == ["eth0", "lo"], lambda: f"it has run again: {net.logged('job')}")
    assert net.wait_phase("job", "Succeeded")["metadata"]["uid"] != uid
    wait(lambda: len(net.shims()) == 1, "only the other pod's shim is left")
    for name in "next", "job":
        net.remove(name)
        net.wait_gone(name)
    wait_clean(net)


def test_completed_pod_holds_no_address_after_the_node_was_down(net):
    net.drop(pod("done", script="exit 0", restartPolicy="OnFailure"))
    net.wait_phase("done", "Succeeded")
    net.kill9()
    world.kill_all(net.shims())
    net.start()
    net.wait_phase("done", "Succeeded")
    wait(lambda: not net.reserved(), "its address is released")
    wait(lambda: not net.shims(), "no shim is left")
    assert net.status("done")["restartCount"] == 0
    assert "Cannot start pod" not in net.said() and "trying again" not in net.said()
    wait_clean(net)


def test_address_stays_across_a_restart_of_the_agent(net):
    net.launch(listener("web", "still here"))
    address, pid = net.address("web"), net.init("web")
    net.restart()
    net.wait_running("web")
    assert net.address("web") == address and net.init("web") == pid
    wait(lambda: net.fetch(address, 8080) == "still here\n", "the pod can be reached")
    net.remove("web")
    net.wait_gone("web")
    assert net.network_leftovers() == []


def test_new_agent_records_an_event_for_a_changed_network(net):
    for name in ("whole", "cut"):
        net.launch(specs.pod(name, hostNetwork=False))
    net.exec("cut", "busybox", "ip", "route", "delete", "default")
    net.restart()
    net.wait_running("cut")
    wait(lambda: "is not ready" in net.cli("get", "events").stdout, "an event reports the network")
    events = net.cli("get", "events").stdout
    assert [line for line in events.splitlines() if "NetworkNotReady" in line and "pod/cut-" in line], events
    assert not [line for line in events.splitlines() if "NetworkNotReady" in line and "pod/whole-" in line], events


def test_addresses_are_released_after_shim_and_manifest_were_lost(net):
    net.launch(pod("web"))
    shim = net.shim("web")
    net.kill9()
    os.kill(shim, signal.SIGKILL)
    net.remove("web")
    net.start()
    net.wait_gone("web")
    wait_clean(net)


def test_new_agent_without_the_shim_sets_up_a_new_address(net):
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


@pytest.mark.parametrize("is_shim_running", [True, False])
def test_pod_with_a_damaged_record_releases_its_addresses(net, is_shim_running):
    net.launch(pod("web"))
    uid, shim = net.pod("web")["metadata"]["uid"], net.shim("web")
    net.kill9()
    if not is_shim_running:
        os.kill(shim, signal.SIGKILL)
    with open(os.path.join(net.state, "pods", uid, "record"), "r+", encoding="utf-8") as file:
        file.truncate(20)
    net.remove("web")
    net.start()
    wait_clean(net)
    wait(lambda: not os.path.exists(os.path.join(net.state, "pods", uid)), "its directory is removed")


@pytest.mark.parametrize("is_desired", [True, False], ids=["desired", "removed"])
def test_masquerading_of_both_families_is_removed_after_shim_and_agent_were_lost(net, is_desired):
    ranges = [[{"subnet": SUBNET}], [{"subnet": SUBNET6}]]
    ipam = {"type": "host-local", "dataDir": net.ipam, "ranges": ranges}
    net.configure(chain(net.ipam, PORTMAP, FIREWALL, ipam=ipam))
    net.launch(listener("web", "x", ports=[{"containerPort": 8080, "hostPort": 18084}]))
    first, lost = net.reserved(), net.chains()
    assert len(first) == 2 and len(lost) == 4
    net.kill9()
    world.kill_all(net.shims())
    if not is_desired:
        net.remove("web")
    net.start()
    if is_desired:
        net.wait_pod("web", lambda it: it["status"].get("podIP") not in (None, *first), "has another address")
        net.wait_running("web")
        assert len(net.reserved()) == 2 and len(net.chains()) == 4 and not set(net.chains()) & set(lost)
        net.remove("web")
    net.wait_gone("web")
    wait_clean(net)


def run_once_in_bridge_plugin(net, script):
    """A bridge plugin that runs the script at its first run with a command."""
    net.install_plugin("bridge", f'if mkdir "$0.$CNI_COMMAND" 2>/dev/null; then {script}; fi; '
                       "exec /usr/lib/cni/bridge\n")


@pytest.mark.parametrize("is_agent_running", [True, False])
def test_shim_killed_during_delete_leaves_no_rule(net, is_agent_running):
    run_once_in_bridge_plugin(net, '[ $CNI_COMMAND = DEL ] && busybox nsenter --net="$CNI_NETNS" busybox ip link delete eth0 && '
         ": >$0.cut && exec sleep 1000")
    net.launch(pod("web"))
    shim = net.shim("web")
    net.remove("web")
    wait(lambda: os.path.exists(os.path.join(net.plugin_directory, "bridge.cut")), "the interface is deleted")
    assert net.rules() and not net.veths()
    if not is_agent_running:
        net.kill9()
    world.kill_all([shim])
    if not is_agent_running:
        net.start()
    net.wait_gone("web")
    wait_clean(net)


def test_interrupted_delete_is_completed(net):
    run_once_in_bridge_plugin(net, '[ $CNI_COMMAND = DEL ] && busybox nsenter --net="$CNI_NETNS" busybox ip link delete eth0 && exit 1')
    net.launch(pod("web"))
    net.remove("web")
    net.wait_gone("web")
    wait_clean(net)


@pytest.mark.parametrize("is_desired", [True, False], ids=["desired", "removed"])
def test_interrupted_add_is_deleted(net, is_desired):
    run_once_in_bridge_plugin(net, "if [ $CNI_COMMAND = ADD ]; then /usr/lib/cni/bridge >/dev/null; : >$0.cut; exec sleep 1000; fi")
    net.drop(pod("web"))
    wait(lambda: os.path.exists(os.path.join(net.plugin_directory, "bridge.cut")), "the plugin has added")
    lost = net.chains()
    assert lost and net.rules() and net.reserved()
    net.kill9()
    world.kill_all(net.shims())
    if not is_desired:
        net.remove("web")
    net.start()
    if is_desired:
        net.wait_running("web")
        assert net.reserved() == [net.address("web")]
        assert len(net.chains()) == 1 and net.chains() != lost
        net.remove("web")
    net.wait_gone("web")
    wait_clean(net)


def hold_at(net, plugin, command, when):
    """Makes the next run of the plugin with the command hang before or after its work; returns the file that shows
    this."""
    held = os.path.join(net.plugin_directory, f"{plugin}.{command}.{when}")
    work = "" if when == "before" else f"/usr/lib/cni/{plugin} >/dev/null; "
    net.install_plugin(plugin, f"if [ $CNI_COMMAND = {command} ] && ! [ -e {held} ]; then {work}: >{held}; "
                       f"exec sleep 1000; fi; exec /usr/lib/cni/{plugin}\n")
    return held


def kill_processes(net, shim, victims):
    """Kills the named processes in that order, and starts the agent again."""
    for name in victims.split("-"):
        if name == "agent":
            net.kill9()
        elif name == "shim":
            world.kill_all([shim])
        else:
            world.kill_all(wait(lambda: [pid for pid in world.pids() if world.cmdline(pid) == ["sleep", "1000"] and
                                         world.status(pid, "PPid") == str(shim)], "the plugin executes the hanging program"))
    if "agent" in victims:
        net.start()


@pytest.mark.parametrize("plugin,victims", some(
    [(plugin, victims) for victims in ("plugin", "shim", "agent-plugin", "shim-agent", "agent-shim")
     for plugin in ("bridge", "portmap", "firewall")], 4))
def test_kill_during_a_plugin_run_leaves_nothing_behind_and_repeats_no_plugin(net, plugin, victims):
    web = listener("web", "x", ports=[{"containerPort": 8080, "hostPort": 18085}])
    for when in ("before", "after"):
        held = hold_at(net, plugin, "ADD", when)
        net.drop(web)
        wait(lambda: os.path.exists(held), f"the plugin hangs {when} it adds")
        kill_processes(net, net.shim("web"), victims)
        net.wait_running("web")
        assert net.reserved() == [net.address("web")]
        wait(lambda: len(net.veths()) == 1 and len(net.chains()) == 2,
             lambda: f"the network of one pod is set up: {net.network_leftovers()}")
        held = hold_at(net, plugin, "DEL", when)
        shim = net.shim("web")
        net.remove("web")
        wait(lambda: os.path.exists(held), f"the plugin hangs {when} it deletes")
        kill_processes(net, shim, victims)
        net.wait_gone("web")
        wait_clean(net)


def test_a_plugin_of_a_killed_shim_ends_before_the_next_plugin_starts(net):
    log = os.path.join(net.plugin_directory, "runs")
    run_once_in_bridge_plugin(net, f"if [ $CNI_COMMAND = ADD ]; then echo first >>{log}; sleep 0.5; echo end >>{log}; exit 1; fi; "
                                   f"else echo next >>{log}")
    net.drop(pod("web"))
    wait(lambda: os.path.exists(log), "the plugin runs")
    world.kill_all([net.shim("web")])
    net.wait_running("web")
    assert world.read(log).split()[:3] == ["first", "end", "next"]


def test_kills_at_any_time_leave_no_network_resources(net):
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
            victims = chance.choice(["agent", "shims", "both"])
            if victims != "agent":
                world.kill_all(net.shims())
            if victims != "shims":
                net.restart(ready=False)
    wait(net.is_ready, "the agent is ready")
    for web in pods:
        net.drop(web)
    for name in ("one", "two"):
        net.wait_running(name)
    wait(lambda: net.reserved() == sorted(net.address(name) or "" for name in ("one", "two")),
         lambda: f"only the addresses of the pods are allocated: {net.reservations()}; the log of the agent:\n{net.said()[-8000:]}")
    wait(lambda: len(net.veths()) == 2 and len(net.chains()) == 4,
         lambda: f"the networks of two pods are set up: {net.network_leftovers()}; the log of the agent:\n{net.said()[-8000:]}")
    for name in ("one", "two"):
        net.remove(name)
        net.wait_gone(name)
    wait_clean(net)


def test_agent_killed_during_plugins_leaves_one_address(net):
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


def test_damaged_network_record_stops_no_pod(make_network_node):
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
    """The IPAM directory of the default network, restored after the test."""
    directory = "/var/lib/cni/networks/mainstay"
    was_there = os.path.exists(directory)
    yield directory
    if not was_there:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.mark.xdist_group("built_in_network")
def test_default_network_works_without_a_configuration(make_network_node, allocations):
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


# ---- names ----

def test_hosts_file_has_name_and_address_of_the_pod(net):
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


def test_network_sysctl_applies_to_the_pod_only(net):
    name = "net.ipv4.ip_unprivileged_port_start"
    path = "/proc/sys/" + name.replace(".", "/")
    before = net.run_inside("cat", path)
    net.launch(pod("web", securityContext={"sysctls": [{"name": name, "value": "0"}]}))
    assert net.exec("web", "/bin/cat", path) == "0\n"
    assert net.run_inside("cat", path) == before != "0\n"


def test_hostname_and_subdomain_form_a_domain_name(net):
    net.launch(pod("named", hostname="www", subdomain="shop"))
    net.launch(pod("full", hostname="www", subdomain="shop", setHostnameAsFQDN=True))
    assert net.exec("named", "/bin/hostname").strip() == "www"
    assert f"{net.address('named')}\twww.shop.default.svc.cluster.local\twww\n" in file_of(net, "named", "/etc/hosts")
    assert net.exec("full", "/bin/hostname").strip() == "www.shop.default.svc.cluster.local"
    assert world.environ(net.init("full"))["HOSTNAME"] == "www.shop.default.svc.cluster.local"
    assert world.read("/proc/sys/kernel/hostname") not in ("www\n", "www.shop.default.svc.cluster.local\n")


def test_host_alias_applies_in_the_host_network(net):
    net.launch(specs.pod("web", hostAliases=[{"ip": "192.0.2.9", "hostnames": ["db"]}]))
    hosts = file_of(net, "web", "/etc/hosts")
    assert hosts.startswith("# Kubernetes-managed hosts file (host network).\n")
    assert hosts.endswith("# Entries added by HostAliases.\n192.0.2.9\tdb\n")


def test_resolv_conf_follows_the_dns_policy(make_network_node, tmp_path):
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


def test_plugins_do_not_run_in_the_namespace_of_the_pod(net):
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


def test_bandwidth_annotations_reach_the_plugin_with_the_capability(net):
    net.configure(chain(net.ipam, {"type": "spy", "capabilities": {"bandwidth": True}}))
    net.install_plugin("spy", "cat >$0.input\n/usr/bin/python3 -c 'import json,sys; "
                       "print(json.dumps(json.load(open(sys.argv[1])).get(\"prevResult\")))' $0.input\n")
    limited = pod("limited")
    limited["metadata"]["annotations"] = {"kubernetes.io/ingress-bandwidth": "1M", "kubernetes.io/egress-bandwidth": "2M"}
    net.launch(limited)
    bandwidth = json.loads(world.read(os.path.join(net.plugin_directory, "spy.input")))["runtimeConfig"]["bandwidth"]
    assert (bandwidth["ingressRate"], bandwidth["egressRate"]) == (1000000, 2000000)


def test_pod_is_probed_at_its_address(net):
    probe = {"periodSeconds": 1, "failureThreshold": 100}
    net.launch(listener("web", "hello", livenessProbe={"tcpSocket": {"port": 8080}, **probe},
                        readinessProbe={"tcpSocket": {"port": 8080}, **probe}))
    net.wait_pod("web", lambda pod: pod["status"]["containerStatuses"][0]["ready"], "is ready")
    assert net.status("web")["restartCount"] == 0


def test_edited_pod_keeps_its_address_until_it_is_recreated(net):
    net.launch(pod("web"))
    address, shim = net.address("web"), net.shim("web")
    net.drop(pod("web", script="echo again; " + specs.IDLE, terminationGracePeriodSeconds=3))
    net.wait_restarts("web", 1)
    assert net.address("web") == address and net.reserved() == [address]
    net.drop(pod("web", script="echo again; " + specs.IDLE, hostname="other"))
    net.wait_pod("web", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] == 0 and
                 pod["status"]["phase"] == "Running", "is recreated")
    wait(lambda: net.reserved() == [net.address("web")], "the new pod has the only address")
    assert not world.is_alive(shim)
