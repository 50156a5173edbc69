# SPDX-License-Identifier: Apache-2.0
"""kubeadm makes nodes of machines on which Mainstay is in the kubelet's place, and resets them."""

import glob
import json
import os
import subprocess

import kubeadm
import pytest
import yaml
from conftest import TOP
from control_plane import programs
from world import wait

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
SKIPPED = "addon"  # the images of kube-proxy and CoreDNS are not here


@pytest.fixture(scope="session", name="images")
def fixture_images(tmp_path_factory):
    """Archives with the programs of the control plane, by the names that kubeadm gives to their images."""
    directory = tmp_path_factory.mktemp("images")
    listed = subprocess.run([os.path.join(programs(), "kubeadm"), "config", "images", "list",
                             f"--kubernetes-version={kubeadm.VERSION}"], check=True, stdout=subprocess.PIPE, text=True)
    archives = []
    for name in COMPONENTS:
        image = next(line for line in listed.stdout.split() if f"/{name}:" in line)
        archives.append(str(directory / f"{name}.tar"))
        subprocess.run([os.path.join(TOP, "tests", "make-image"), image, archives[-1],
                        "--program", os.path.join(programs(), name)], check=True)
    return archives


@pytest.fixture(name="make_machine")
def fixture_make_machine():
    machines = []

    def make(*arguments, **options):
        machines.append(kubeadm.Machine(*arguments, **options))
        return machines[-1]

    yield make
    problems = [problem for machine in reversed(machines) for problem in machine.finish()]
    assert not problems, "\n".join(problems)


def names_of_pods(machine):
    pods = json.loads(machine.kubectl("get", "pods", "-n", "kube-system", "-o", "json"))["items"]
    return {pod["metadata"]["name"] for pod in pods}


def conditions(machine, name):
    node = json.loads(machine.kubectl("get", "node", name, "-o", "json"))
    return {one["type"]: one["status"] for one in node["status"]["conditions"]}


def wait_ready(control, machine):
    wait(lambda: conditions(control, machine.name).get("Ready") == "True",
         lambda: f"{machine.name} is Ready; the agent said:\n{machine.said()[-6000:]}", 120)
    return json.loads(control.kubectl("get", "node", machine.name, "-o", "json"))


def test_machines_are_initialized_joined_and_reset(make_machine, images):
    first = make_machine("first", images)
    first.start_etcd()
    first.kubeadm("init", "--config", first.write_configuration(), f"--skip-phases={SKIPPED}", "--v=2")
    node = wait_ready(first, first)
    assert node["metadata"]["labels"]["test.mainstay.dev/kubeadm"] == "yes"
    assert node["status"]["addresses"][0]["address"] == first.address
    wait(lambda: names_of_pods(first) == {f"{name}-first" for name in COMPONENTS}, lambda: str(names_of_pods(first)), 60)
    # The certificate of kubelet.conf is renewed at once, where kubeadm looks for it, and in use before and after kubeadm has
    # found it. It may be too late for 'kubeadm init' itself: it is approved after the API server has started.
    pair = "/var/lib/kubelet/pki/kubelet-client-current.pem"
    wait(lambda: os.path.exists(first.path("kubelet", "pki", os.path.basename(pair))),
         lambda: f"the certificate is renewed; the agent said:\n{first.said()[-6000:]}", 120)
    wait(lambda: "is rotated in time" in first.mainstay("debug", "dump"), lambda: first.mainstay("debug", "dump")[-6000:], 30)
    first.kubeadm("init", "phase", "kubelet-finalize", "enable-client-cert-rotation", "--config", first.path("kubeadm.yaml"))
    user = yaml.safe_load(first.inside("cat", "/etc/kubernetes/kubelet.conf"))["users"][0]["user"]
    assert user == {"client-certificate": pair, "client-key": pair}
    assert first.said().count("Ignoring kubelet settings of ") >= 1

    second = make_machine("second", [], first=first)
    second.kubeadm("join", "--config", second.write_configuration())
    joined = wait_ready(first, second)
    assert joined["metadata"]["labels"]["test.mainstay.dev/kubeadm"] == "yes"
    second.inside("test", "!", "-e", "/etc/kubernetes/bootstrap-kubelet.conf")
    second.inside("test", "-e", pair)

    second.kubeadm("reset", "--force")
    second.drain()
    first.kubeadm("reset", "--force")
    assert first.processes()  # pods outlive the agent
    first.drain()
    for machine in (first, second):
        assert not machine.processes()
        assert not glob.glob(machine.path("state", "pods", "*"))
        assert not os.listdir(machine.path("kubelet"))
