# SPDX-License-Identifier: Apache-2.0
"""A node without an API server answers kubectl. The tests run for each program in MAINSTAY_KUBECTL
("/path/kubectl:/other/kubectl"); without this variable conftest.py leaves the file out."""

import json
import os
import subprocess

import pytest
import specs
import world
from lone_node import LoneNode
from world import wait

pytestmark = pytest.mark.xdist_group("lone_kubectl")

KUBECTLS = [path for path in os.environ.get("MAINSTAY_KUBECTL", "").split(":") if path]


@pytest.fixture(scope="module", name="lone")
def fixture_lone(archive):
    found = LoneNode(archive)
    with open(os.path.join(found.node.directory, "kubeconfig"), "w", encoding="utf-8") as file:
        file.write(found.kubeconfig("--server", f"https://127.0.0.1:{found.api.port}"))
    yield found
    found.finish()


class Kubectl:
    def __init__(self, lone, program):
        self.lone, self.program = lone, program
        version = json.loads(subprocess.run([program, "version", "--client", "-o", "json"], capture_output=True, check=True).stdout)
        self.minor = int(version["clientVersion"]["minor"].rstrip("+"))

    def command(self, *words):
        directory = self.lone.node.directory
        return [self.program, "--kubeconfig", os.path.join(directory, "kubeconfig"),
                "--cache-dir", os.path.join(directory, f"kubectl-{self.minor}"), *words]

    def run(self, *words, check=True, **options):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, check=False, timeout=120, **options)
        assert not check or done.returncode == 0, done.stderr
        return done

    def say(self, *words, **options):
        return self.run(*words, **options).stdout

    def start(self, *words):
        return subprocess.Popen(self.command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture(name="kubectl", params=KUBECTLS, ids=[str(number) for number in range(len(KUBECTLS))])
def fixture_kubectl(request, lone):
    return Kubectl(lone, request.param)


def until_line(process, words):
    """Reads lines up to one that has all of the words."""
    lines = []
    while True:
        line = process.stdout.readline()
        assert line, (lines, process.stderr.read())
        lines.append(line)
        if all(word in line for word in words):
            return lines


def end(process):
    process.terminate()
    process.communicate(timeout=world.DEADLINE)


def test_kubectl_watches_pods(kubectl, lone):
    watch = kubectl.start("get", "pods", "-A", "-o", "wide", "-w")
    until_line(watch, [lone.pods["web"], "Running"])
    lone.node.launch(specs.pod("seen", specs.container(script=specs.IDLE)))
    name = lone.node.pod("seen")["metadata"]["name"]
    until_line(watch, [name, "1/1", "Running"])
    lone.node.remove("seen")
    until_line(watch, [name, "Terminating"])
    lone.node.wait_gone("seen")
    end(watch)


def test_kubectl_waits_for_a_pod(kubectl, lone):
    lone.node.drop(specs.pod("late", specs.container(script=specs.IDLE)))
    name = wait(lambda: lone.node.pod("late"), "the pod exists")["metadata"]["name"]
    assert "condition met" in kubectl.say("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    gone = kubectl.start("wait", "--for=delete", f"pod/{name}", "--timeout=60s")
    lone.node.remove("late")
    out, error = gone.communicate(timeout=120)
    # Earlier versions print this if the pod was gone first.
    assert gone.returncode == 0 or (kubectl.minor < 23 and "no matching resources" in error), out + error


def test_kubectl_gets_and_describes_objects(kubectl, lone):
    assert "Kernel Version:" in kubectl.say("describe", "node", "node1")
    assert os.uname().release in kubectl.say("get", "nodes", "-o", "wide")
    assert "Started" in kubectl.say("describe", "pod", lone.pods["solo"])
    assert lone.pods["solo"] in kubectl.say("get", "all")
    assert "Started" in kubectl.say("get", "events")


def test_kubectl_reads_logs_and_executes_commands(kubectl, lone):
    lone.node.wait_running("solo")
    assert kubectl.say("logs", lone.pods["solo"]) == "alone\n"
    follow = kubectl.start("logs", "-f", lone.pods["solo"])
    until_line(follow, ["alone"])
    end(follow)
    assert kubectl.say("exec", "-i", lone.pods["solo"], "--", "cat", input="text") == "text"
    assert kubectl.run("exec", lone.pods["solo"], "--", "sh", "-c", "exit 7", check=False).returncode == 7


def test_kubectl_deletes_a_pod_that_starts_again(kubectl, lone):
    lone.node.wait_running("solo")
    before = lone.node.init("solo")
    assert "deleted" in kubectl.say("delete", "pod", lone.pods["solo"], "--grace-period=1")
    wait(lambda: not world.is_alive(before), "the container is gone")
    lone.node.wait_running("solo")
    assert lone.node.init("solo") != before


def test_unsupported_commands_are_refused_with_the_alternative(kubectl, lone):
    done = kubectl.run("drain", "node1", "--force", "--ignore-daemonsets", check=False)
    assert done.returncode != 0
    assert "it cannot be cordoned or drained" in done.stderr
    assert f"it would start again, because it is from a file; remove {lone.node.manifests}/solo.yaml" in done.stderr
    done = kubectl.run("label", "pod", lone.pods["solo"], "a=b", check=False)
    assert f"its objects are files; edit {lone.node.manifests}/solo.yaml" in done.stderr


STOCK = """apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {one: two}
---
apiVersion: v1
kind: Secret
metadata: {name: keys}
stringData: {password: hello}
"""


def test_kubectl_prints_the_file_of_an_object_that_it_cannot_write(kubectl, lone):
    stock, solo = os.path.join(lone.node.manifests, "stock.yaml"), os.path.join(lone.node.manifests, "solo.yaml")
    lone.node.write(STOCK, "stock.yaml")
    wait(lambda: kubectl.run("get", "cm/words", "secret/keys", check=False).returncode == 0, "the objects exist")
    editor = {**os.environ, "EDITOR": "sed -i s/two/three/"}
    for words in ("apply", "-f", stock), ("create", "-f", stock), ("replace", "-f", stock), ("delete", "-f", stock), \
            ("edit", "cm", "words"), ("annotate", "secret", "keys", "a=b"), ("label", "cm", "words", "a=b"), \
            ("patch", "cm", "words", "-p", '{"data":{"one":"x"}}'), ("delete", "secret", "keys"), \
            ("create", "configmap", "words", "--from-literal=a=b"):
        done = kubectl.run(*words, check=False, env=editor)
        assert done.returncode != 0 and "its objects are files" in done.stderr and f"edit {stock}" in done.stderr, done.stderr
    for words in ("apply", "-f", solo), ("create", "-f", solo), ("delete", "-f", solo), ("replace", "-f", solo), \
            ("label", "pod", lone.pods["solo"], "a=b"):
        done = kubectl.run(*words, check=False)
        assert done.returncode != 0 and f"edit {solo}" in done.stderr, done.stderr
    assert "hello" not in kubectl.say("get", "secret", "keys", "-o", "yaml")
    assert "password:  5 bytes" in kubectl.say("describe", "secret", "keys")
    lone.node.remove("stock")


def test_kubectl_explains_and_describes_the_node(kubectl, lone):
    assert "control plane" in kubectl.say("cluster-info")
    assert "imagePullPolicy" in kubectl.say("explain", "pod.spec.containers")
    assert "system-node-critical" in kubectl.say("describe", "priorityclasses")
    assert "<unknown>" not in kubectl.say("get", "namespaces")
    description = kubectl.say("describe", "node", "node1")
    assert "HolderIdentity:  node1" in description
    for path in "/livez", "/readyz", "/healthz", "/api/v1/nodes/node1/proxy/healthz":
        assert kubectl.say("get", "--raw", path) == "ok"
    for kind in "pods", "nodes", "namespaces", "configmaps", "secrets", "daemonsets", "controllerrevisions", "priorityclasses", \
            "runtimeclasses", "leases", "poddisruptionbudgets", "services", "deployments", "events":
        kubectl.say("describe", kind, "-A")
        for form in "wide", "yaml", "json", "name":
            kubectl.say("get", kind, "-A", "-o", form)


def test_debug_shows_the_output_of_a_command_that_ends_at_once(kubectl, lone):
    lone.node.wait_running("web")
    for number in range(3 if kubectl.minor >= 23 else 0):
        done = kubectl.run("debug", lone.pods["web"], f"--image={specs.IMAGE}", f"--container=short-{kubectl.minor}-{number}", "-i", "-q",
                           "--", "sh", "-c", "echo done", input="")
        assert done.stdout == "done\n", done.stderr


def test_kubectl_top_shows_usage(kubectl, lone):
    lone.node.wait_running("web")
    assert lone.pods["web"] in kubectl.say("top", "pods")
    assert "second" in kubectl.say("top", "pod", lone.pods["web"], "--containers")
    assert "node1" in kubectl.say("top", "nodes")


def test_kubectl_auth_shows_permissions(kubectl):
    assert kubectl.say("auth", "can-i", "list", "pods") == "yes\n"
    done = kubectl.run("auth", "can-i", "create", "pods", check=False)
    assert done.returncode == 1 and done.stdout.startswith("no")
    assert "pods/exec" in kubectl.say("auth", "can-i", "--list")


def test_kubectl_debugs_a_pod(kubectl, lone):
    lone.node.wait_running("web")
    quiet = ["-q"] if kubectl.minor >= 23 else []
    words = ("debug", lone.pods["web"], f"--image={specs.IMAGE}", f"--container=look-{kubectl.minor}", "-i", "--target=main", *quiet,
             "--", "sh", "-c", "read line; echo got $line")
    done = kubectl.run(*words, check=False, input="this\n")
    if kubectl.minor < 23:
        assert "ephemeral containers are disabled" in done.stderr
    else:
        assert done.stdout == "got this\n", done.stderr


def test_kubectl_follows_restarts_and_undoes_a_rollout(kubectl, lone):
    lone.node.drop(specs.daemonset("every"), "every.yaml")
    wait(lambda: kubectl.run("get", "ds", "every", check=False).returncode == 0, "the set exists")
    assert "successfully rolled out" in kubectl.say("rollout", "status", "ds/every", "--timeout=60s")
    first = history(kubectl)
    kubectl.say("rollout", "restart", "ds/every")
    assert "successfully rolled out" in kubectl.say("rollout", "status", "ds/every", "--timeout=60s")
    second = history(kubectl)
    assert len(second) == len(first) + 1
    assert "rolled back" in kubectl.say("rollout", "undo", "ds/every")
    assert history(kubectl)[-1] == second[-1] + 1
    lone.node.remove("every")
    wait(lambda: kubectl.run("get", "ds", "every", check=False).returncode != 0, "the set is gone")


def history(kubectl):
    return [int(line.split()[0]) for line in kubectl.say("rollout", "history", "ds/every").splitlines() if line[:1].isdigit()]
