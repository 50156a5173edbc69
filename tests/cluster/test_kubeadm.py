# SPDX-License-Identifier: Apache-2.0
"""kubeadm turns machines on which Mainstay replaces the kubelet into nodes, upgrades them and resets them. Only the
checks of packaging/kubeadm.yaml, and those that this machine cannot pass (kubeadm.IGNORED), are ignored."""

import glob
import json
import os
import ssl

import kubeadm
import pytest
import yaml
from node import is_ready
from release import COMPONENTS, Releases
from world import cmdline, is_alive, start_time, wait

# As many upgrades as a release requires: tests/run full cluster.
UPGRADES = int(os.environ.get("MAINSTAY_UPGRADES", "20"))
STATIC = ("etcd", *COMPONENTS)
NEXT_ETCD = "3.6.99-0"  # the same program, by a later tag


@pytest.fixture(scope="session", name="releases")
def fixture_releases():
    return Releases()


@pytest.fixture(scope="session", name="images")
def fixture_images(tmp_path_factory):
    """The directory for them."""
    return tmp_path_factory.mktemp("images")


@pytest.fixture(name="make_machine")
def fixture_make_machine(images):
    """Makes machines, each with the images of all releases that it will run, as one folder of archives."""
    machines = []

    def make(name, *releases, first=None):
        archives = [archive for release in releases for archive in release.make_images(images, NEXT_ETCD)]
        machines.append(kubeadm.Machine(name, archives, releases[0], first=first))
        return machines[-1]

    yield make
    problems = [problem for machine in reversed(machines) for problem in machine.finish()]
    assert not problems, "\n".join(problems)


def system_pods(machine):
    """The system pods by name."""
    pods = json.loads(machine.kubectl("get", "pods", "-n", "kube-system", "-o", "json"))["items"]
    return {pod["metadata"]["name"]: pod for pod in pods}


def describe_pods(machine):
    return machine.kubectl("get", "pods", "-A", "-o", "wide") + machine.kubectl("get", "events", "-A")[-6000:]


def wait_pods(machine, *names):
    """Waits for these static pods, one pod of kube-proxy for each node, and CoreDNS."""
    def are_ready():
        pods = system_pods(machine)
        nodes = {name.rsplit("-", 1)[1] for name in names}
        return all(name in pods and is_ready(pods[name]) for name in names) and all(is_ready(pod) for pod in pods.values()) \
            and len([name for name in pods if name.startswith("kube-proxy-")]) >= len(nodes)
    wait(are_ready, lambda: describe_pods(machine), 180)


def static_pods(*machines):
    return [f"{name}-{machine.name}" for machine in machines for name in STATIC]


def conditions(machine, name):
    node = json.loads(machine.kubectl("get", "node", name, "-o", "json"))
    return {one["type"]: one["status"] for one in node["status"]["conditions"]}


def wait_ready(control, machine):
    wait(lambda: conditions(control, machine.name).get("Ready") == "True",
         lambda: f"{machine.name} is Ready; the log of the agent:\n{machine.said()[-6000:]}", 120)
    node = json.loads(control.kubectl("get", "node", machine.name, "-o", "json"))
    assert node["metadata"]["labels"]["test.mainstay.dev/kubeadm"] == "yes"
    assert node["status"]["addresses"][0]["address"] == machine.address
    return node


def check_ignored(machine, checks, *words):
    """Asserts that each check that packaging/kubeadm.yaml ignores fails if it is not ignored, and that no other check
    fails."""
    for name in checks:
        assert machine.errors_without(name, *words) == [name]


def initialize(machine, **options):
    machine.kubeadm("init", "--config", machine.write_configuration(**options), "--upload-certs", "--v=2")
    wait_ready(machine, machine)


def join(machine, first, **options):
    machine.kubeadm("join", "--config", machine.write_configuration(**options), "--v=2")
    wait_ready(first, machine)


def processes_of(machine, name):
    return [pid for pid in machine.processes() if os.path.basename((cmdline(pid) or [""])[0]) == name]


def process_of(machine, name):
    """The PID and the start time of a component's only process."""
    found = processes_of(machine, name)
    assert len(found) == 1, f"{name}: {found}\n{machine.mainstay('get', 'pods', '-A')}\n{machine.said()[-6000:]}\n{machine.container_logs()}"
    return found[0], start_time(found[0])


def members(machine):
    """The members of etcd: their names, without learners."""
    pki = "/etc/kubernetes/pki/etcd/"
    said = machine.inside(machine.release.program("etcdctl"), "--endpoints=127.0.0.1:2379",
                          f"--cacert={pki}ca.crt", f"--cert={pki}server.crt", f"--key={pki}server.key", "member", "list", "-w", "json")
    return sorted(one["name"] for one in json.loads(said)["members"] if not one.get("isLearner"))


def served_certificate(machine, port=6443):
    """The serving certificate of its API server, or of etcd."""
    said = machine.inside("openssl", "s_client", "-connect", f"{machine.address}:{port}", check=False)
    return ssl.PEM_cert_to_DER_cert(said[said.index("-----BEGIN"):said.index("-----END")] + "-----END CERTIFICATE-----\n")


def answers(machine):
    """Whether its API server is ready and reports its version."""
    said = machine.inside("kubectl", f"--server=https://{machine.address}:6443", "get", "--raw", "/version", check=False)
    return json.loads(said)["gitVersion"] if said.startswith("{") else None


def restart_static_pods(machine):
    """Restarts static pods as 'kubeadm certs renew' advises: each manifest is moved away, and back when its container
    is gone."""
    for name in STATIC:
        before = process_of(machine, name)
        path = machine.path("kubernetes", "manifests", f"{name}.yaml")
        os.rename(path, machine.path(f"{name}.yaml"))
        wait(lambda pid=before[0]: not is_alive(pid), f"{name} stops", 90)
        os.rename(machine.path(f"{name}.yaml"), path)
        wait(lambda: processes_of(machine, name), f"{name} runs", 90)
        assert process_of(machine, name) != before


def check_node_certificate(machine):
    """The certificate of kubelet.conf is renewed immediately, at the path that kubeadm uses, and is in use before and
    after kubeadm finds it. It may be too late for 'kubeadm init' itself: it is approved after the API server has
    started."""
    pair = "/var/lib/kubelet/pki/kubelet-client-current.pem"
    wait(lambda: os.path.exists(machine.path("kubelet", "pki", os.path.basename(pair))),
         lambda: f"the certificate is renewed; the log of the agent:\n{machine.said()[-6000:]}", 120)
    wait(lambda: "is rotated in time" in machine.mainstay("debug", "dump"), lambda: machine.mainstay("debug", "dump")[-6000:], 30)
    machine.kubeadm("init", "phase", "kubelet-finalize", "enable-client-cert-rotation", "--config", machine.path("kubeadm.yaml"))
    user = yaml.safe_load(machine.inside("cat", "/etc/kubernetes/kubelet.conf"))["users"][0]["user"]
    assert user == {"client-certificate": pair, "client-key": pair}


def renew_certificates(machine):
    """Certificates that kubeadm renews are in use after the static pods were restarted."""
    before = served_certificate(machine)
    machine.kubeadm("certs", "renew", "all")
    machine.kubeadm("certs", "check-expiration")
    restart_static_pods(machine)
    wait(lambda: answers(machine), lambda: machine.container_logs(), 120)
    assert served_certificate(machine) != before


def reset(machine, control=None):
    """A control plane that is not the last one leaves the members of etcd."""
    machine.kubeadm("reset", "--force")
    if control:
        wait(lambda: machine.name not in members(control), lambda: str(members(control)), 60)
    machine.drain()
    assert not machine.processes()
    assert not glob.glob(machine.path("state", "pods", "*"))
    assert not os.listdir(machine.path("kubelet"))
    assert not glob.glob(machine.path("kubernetes", "manifests", "*"))


def run_life(make_machine, release):
    """Turns three bare machines into a cluster, and back into bare machines."""
    first = make_machine("first", release)
    first.write_configuration()
    check_ignored(first, ("CRI", "ContainerRuntimeVersion", "ImagePull"), "init", "phase", "preflight")
    initialize(first)
    wait_pods(first, *static_pods(first))
    check_node_certificate(first)
    assert first.said().count("Ignoring kubelet settings of ") >= 1

    second = make_machine("second", release, first=first)
    second.write_configuration(joins_control_plane=True)
    check_ignored(second, ("CRI", "ContainerRuntimeVersion", "ImagePull"), "join", "phase", "preflight")
    join(second, first, joins_control_plane=True)
    assert members(first) == ["first", "second"]
    third = make_machine("third", release, first=first)
    join(third, first)
    third.inside("test", "!", "-e", "/etc/kubernetes/bootstrap-kubelet.conf")
    third.inside("test", "-e", "/var/lib/kubelet/pki/kubelet-client-current.pem")
    wait_pods(first, *static_pods(first, second))
    assert answers(first) == answers(second) == release.version

    renew_certificates(first)
    wait_pods(first, *static_pods(first, second))

    reset(third)
    reset(second, control=first)
    first.kubeadm("reset", "--force")
    assert first.processes()  # pods outlive the agent
    reset(first)


def test_machines_are_initialized_joined_and_reset(make_machine, releases):
    run_life(make_machine, releases.newest)


@pytest.mark.long
def test_machines_are_initialized_joined_and_reset_with_the_previous_release(make_machine, releases):
    run_life(make_machine, releases.older)


def test_control_plane_uses_an_external_etcd(make_machine, releases):
    machine = make_machine("alone", releases.newest)
    initialize(machine, etcd=machine.start_etcd())
    wait_pods(machine, *(f"{name}-{machine.name}" for name in COMPONENTS))
    assert not processes_of(machine, "etcd")  # of a pod
    reset(machine)
    assert machine.etcd.poll() is None


def images_of(machine, name):
    """The images by component."""
    pods = system_pods(machine)
    return {one: pods[f"{one}-{name}"]["spec"]["containers"][0]["image"] for one in STATIC}


def check_upgraded(machine, release):
    """Asserts that the control plane of the machine is that of the release, and that mirror pods and processes
    agree."""
    wait(lambda: answers(machine) == release.version, lambda: f"{answers(machine)}", 60)
    images = images_of(machine, machine.name)
    for name in COMPONENTS:
        assert images[name].endswith(f":{release.version}"), images
        process_of(machine, name)
    tag = yaml.safe_load(machine.inside("cat", "/etc/kubernetes/manifests/etcd.yaml"))["spec"]["containers"][0]["image"]
    assert images["etcd"] == tag
    process_of(machine, "etcd")


def upgrade_first(machine, release):
    """Upgrades first the package of kubeadm and then the cluster, and restarts the agent that replaces the kubelet."""
    machine.use(release)
    before = {name: process_of(machine, name) for name in STATIC}
    said = machine.kubeadm("upgrade", "apply", release.version, "--yes", "--config", machine.path("kubeadm.yaml"), "--v=2")
    assert f"upgraded to \"{release.version}\"" in said, said
    check_upgraded(machine, release)
    after = {name: process_of(machine, name) for name in STATIC}
    assert all(after[name] != before[name] for name in STATIC)
    machine.inside("systemctl", "restart", "kubelet")
    wait_ready(machine, machine)
    wait_pods(machine, *static_pods(machine))
    assert {name: process_of(machine, name) for name in STATIC} == after


def choose_etcd(machine, tag):
    """Chooses the etcd for the next upgrade, in which kubeadm uses the cluster's configuration."""
    found = json.loads(machine.kubectl("get", "configmap", "kubeadm-config", "-n", "kube-system", "-o", "json"))
    cluster = yaml.safe_load(found["data"]["ClusterConfiguration"])
    cluster["etcd"]["local"]["imageTag"] = tag
    patch = json.dumps({"data": {"ClusterConfiguration": yaml.safe_dump(cluster)}})
    machine.kubectl("patch", "configmap", "kubeadm-config", "-n", "kube-system", "--type=merge", "-p", patch)


def wait_rollout(machine, release):
    """Waits until all pods of kube-proxy are those of the release, and CoreDNS is ready."""
    def is_over():
        pods = system_pods(machine)
        proxies = [pod for name, pod in pods.items() if name.startswith("kube-proxy-")]
        return all(pod["spec"]["containers"][0]["image"].endswith(f":{release.version}") for pod in proxies) and \
            all(is_ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in pods.values())
    wait(is_over, lambda: describe_pods(machine), 240)


@pytest.mark.long
def test_cluster_is_upgraded_by_a_minor_release(make_machine, releases):
    old, new = releases.older, releases.newest
    first = make_machine("first", old, new)
    initialize(first)
    second = make_machine("second", old, new, first=first)
    join(second, first, joins_control_plane=True)
    third = make_machine("third", old, new, first=first)
    join(third, first)
    wait_pods(first, *static_pods(first, second))

    upgrade_first(first, new)
    for machine in (second, third):
        machine.use(new)
        if machine is third:
            wait_rollout(first, new)  # kubeadm changes them with the last control plane
        checks = ("ContainerRuntimeVersion", "ImagePull") if machine is second else ("ContainerRuntimeVersion",)
        check_ignored(machine, checks, "upgrade", "node", "phase", "preflight")
        before = sorted(machine.processes())
        machine.kubeadm("upgrade", "node", "--config", machine.path("kubeadm.yaml"), "--v=2")
        if machine is third:
            assert sorted(machine.processes()) == before
        machine.inside("systemctl", "restart", "kubelet")
        wait_ready(first, machine)
    check_upgraded(second, new)
    wait_pods(first, *static_pods(first, second))
    assert members(second) == ["first", "second"]


@pytest.mark.long
@pytest.mark.parametrize("number", range((UPGRADES + 1) // 2))
def test_single_node_is_upgraded(make_machine, releases, number):
    """The node is upgraded twice, by a minor and by a patch release; etcd changes each time as well."""
    old, new, patched = releases.older, releases.newest, releases.patched
    machine = make_machine(f"single{number}", old, new, patched)
    initialize(machine)
    wait_pods(machine, *static_pods(machine))
    upgrade_first(machine, new)
    choose_etcd(machine, NEXT_ETCD)
    upgrade_first(machine, patched)
    assert images_of(machine, machine.name)["etcd"].endswith(f":{NEXT_ETCD}")


@pytest.mark.long
def test_etcd_keeps_running_if_an_upgrade_does_not_change_it(make_machine, releases):
    """kubeadm removes its manifest and restores it at once. The new certificate of etcd is read nevertheless."""
    machine = make_machine("only", releases.newest, releases.patched)
    initialize(machine)
    wait_pods(machine, *static_pods(machine))
    before, certificate = process_of(machine, "etcd"), served_certificate(machine, 2379)
    machine.use(releases.patched)
    check_ignored(machine, ("ContainerRuntimeVersion", "ImagePull"), "upgrade", "apply", "phase", "preflight", "--yes", releases.patched.version)
    machine.kubeadm("upgrade", "apply", releases.patched.version, "--yes", "--config", machine.path("kubeadm.yaml"), "--v=2")
    check_upgraded(machine, releases.patched)
    assert process_of(machine, "etcd") == before
    assert served_certificate(machine, 2379) != certificate
    wait_pods(machine, *static_pods(machine))
