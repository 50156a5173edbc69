# SPDX-License-Identifier: Apache-2.0
"""The programs at the command line."""

import json
import os
import re
import subprocess

import harness
import pytest
import specs
import world
import yaml
from network import NetworkNode
from test_daemonsets import wait_daemon

EXAMPLES = os.path.join(harness.TOP, "manifests")


def run_program(name, *words, **options):
    return subprocess.run([harness.program(name), *words], check=False, text=True, timeout=world.DEADLINE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def version():
    with open(os.path.join(harness.TOP, "packaging", "debian", "changelog"), encoding="utf-8") as file:
        return re.match(r"mainstay \(([\d.]+)\)", file.read()).group(1)


@pytest.mark.parametrize("name", ["mainstayd", "mainstay"])
def test_help_is_printed_on_request(name):
    answer = run_program(name, "--help")
    assert answer.returncode == 0
    assert name in answer.stdout and "--help" in answer.stdout
    assert answer.stderr == ""


def test_help_of_the_agent_lists_its_options():
    answer = run_program("mainstayd", "--help")
    for option in ("--config", "--manifest-dir", "--state-dir", "--run-dir", "--log-dir", "--node-name", "--version"):
        assert option in answer.stdout


def test_the_version_is_printed():
    assert version() in run_program("mainstayd", "--version").stdout
    assert version() in run_program("mainstay", "version").stdout


@pytest.mark.parametrize("words", [("--no-such-option",), ("surplus",), ("--config",)])
def test_the_agent_refuses_unknown_arguments(words):
    answer = run_program("mainstayd", *words)
    assert answer.returncode == 2
    assert answer.stderr
    assert answer.stdout == ""


@pytest.mark.parametrize("words,hint", [(("gett", "pods"), "get"), (("get", "podz"), "pods"),
                                        (("descrbe", "pod", "x"), "describe"), (("--no-such-option",), ""), ((), "")])
def test_an_unknown_command_gets_a_hint_and_exit_status_2(words, hint):
    answer = run_program("mainstay", *words)
    assert answer.returncode == 2
    assert hint in answer.stderr and answer.stderr


def test_a_missing_agent_is_an_error_that_names_the_socket(tmp_path):
    path = str(tmp_path / "missing.sock")
    answer = run_program("mainstay", "--socket", path, "get", "pods")
    assert answer.returncode == 1
    assert path in answer.stderr


def test_an_invalid_configuration_stops_the_agent_with_its_location(make_node):
    node = make_node(start=False)
    with open(node.config, "w", encoding="utf-8") as file:
        file.write("kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\npodPidsLimit: many\n")
    answer = subprocess.run(node.command(), env=node.environment(), check=False, text=True, timeout=world.DEADLINE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert answer.returncode not in (0, 99)
    assert re.search(r"config\.yaml:3:\d+: podPidsLimit: ", answer.stderr), answer.stderr
    node.write_config()


@pytest.fixture(scope="module", name="busy")
def fixture_busy(shared_node):
    """A node with a pod in each of two namespaces, for tests that only read."""
    shared_node.launch(specs.pod("web", specs.container("a"), specs.container("b")))
    shared_node.drop(specs.pod("api", metadata={"namespace": "kube-system"}))
    world.wait(lambda: harness.is_running(shared_node.pod("api", "kube-system") or
                                          {"status": {}, "spec": {"containers": []}}), "both run")
    return shared_node


def test_get_pods_has_kubectl_s_columns(busy):
    lines = busy.cli("get", "pods").stdout.splitlines()
    assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert re.fullmatch(r"web-node1 +2/2 +Running +0 +\d+[smh]\S*", lines[1])
    assert len(lines) == 2


def test_get_pods_selects_one_namespace_or_all(busy):
    assert "api-node1" in busy.cli("get", "pods", "-n", "kube-system").stdout
    lines = busy.cli("get", "pods", "-A").stdout.splitlines()
    assert lines[0].split()[:2] == ["NAMESPACE", "NAME"]
    assert [line.split()[:2] for line in lines[1:]] == [["default", "web-node1"], ["kube-system", "api-node1"]]


def test_get_pods_wide_has_address_and_node(busy):
    lines = busy.cli("get", "pods", "-o", "wide").stdout.splitlines()
    assert lines[0].split()[:7] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"]
    assert "node1" in lines[1].split()


def test_get_pods_prints_a_list_as_json(busy):
    answer = json.loads(busy.cli("get", "pods", "-A", "-o", "json").stdout)
    assert answer["apiVersion"] == "v1"
    assert answer["kind"] in ("List", "PodList")
    assert sorted(pod["metadata"]["name"] for pod in answer["items"]) == ["api-node1", "web-node1"]
    assert all(pod["kind"] == "Pod" and pod["apiVersion"] == "v1" for pod in answer["items"])


def test_get_pod_prints_one_pod_as_json(busy):
    for name in ("web", "web-node1"):
        answer = json.loads(busy.cli("get", "pods", name, "-o", "json").stdout)
        assert (answer["kind"], answer["metadata"]["name"]) == ("Pod", "web-node1")


def test_get_pods_yaml_equals_json(busy):
    as_json = json.loads(busy.cli("get", "pods", "web", "-o", "json").stdout)
    assert yaml.load(busy.cli("get", "pods", "web", "-o", "yaml").stdout, yaml.BaseLoader)["metadata"]["uid"] == \
        as_json["metadata"]["uid"]


def test_get_pods_prints_pods_by_name(busy):
    assert busy.cli("get", "pods", "-o", "name").stdout == "pod/web-node1\n"


def test_get_of_a_missing_pod_fails(busy):
    answer = busy.cli("get", "pods", "missing")
    assert answer.returncode == 1
    assert "missing" in answer.stderr


def test_describe_shows_the_pod(busy):
    text = busy.cli("describe", "pod", "web").stdout
    for word in ("web-node1", "Namespace:", "default", "node1", "Running", specs.IMAGE, "Restart Count:", "QoS Class:",
                 "Conditions:", "mainstay://"):
        assert word in text, word


def test_the_socket_is_read_from_the_environment(busy):
    answer = run_program("mainstay", "get", "pods", env={**os.environ, "MAINSTAY_SOCKET": busy.socket})
    assert "web-node1" in answer.stdout


def test_the_socket_is_for_root_alone(busy):
    assert os.stat(busy.socket).st_mode & 0o007 == 0
    assert os.stat(busy.run).st_mode & 0o077 == 0 or os.stat(busy.run).st_mode & 0o777 == 0o755


def test_a_watch_shows_changes(node):
    with subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "get", "pods", "-w"], text=True,
                          stdout=subprocess.PIPE, env=node.environment()) as client:
        try:
            node.launch(specs.pod("seen"))
            for line in client.stdout:
                if line.startswith("seen-node1") and "Running" in line:
                    break
            else:
                raise AssertionError("the watch ended before the pod ran")
        finally:
            client.kill()


def test_validate_reports_nothing_about_the_examples(busy):
    files = [os.path.join(EXAMPLES, name) for name in sorted(os.listdir(EXAMPLES)) if name.endswith(".yaml")]
    answer = run_program("mainstay", "validate", *files)
    assert answer.returncode == 0, answer.stderr
    assert files


def test_validate_reports_an_unknown_field_as_an_error(tmp_path):
    file = tmp_path / "typo.yaml"
    file.write_text(specs.text(specs.pod("typo")) + "  hostNetwrok: true\n")
    answer = run_program("mainstay", "validate", str(file))
    assert answer.returncode == 1
    assert re.search(r"typo\.yaml:\d+:3: spec\.hostNetwrok: ", answer.stdout + answer.stderr)


def test_health_endpoints_respond(busy):
    assert busy.get("/healthz") == (200, "ok") or busy.get("/healthz")[0] == 200
    assert busy.get("/readyz")[0] == 200
    assert busy.get("/nothing")[0] == 404


def test_all_examples_run(archive, request):
    node = NetworkNode(archive)
    request.addfinalizer(node.finish)
    names = sorted(name for name in os.listdir(EXAMPLES) if name.endswith(".yaml"))
    pods, daemonsets = [], []
    for name in names:
        with open(os.path.join(EXAMPLES, name), encoding="utf-8") as file:
            text = file.read()
        for kind, found in (("Pod", pods), ("DaemonSet", daemonsets)):
            found += [document["metadata"]["name"] for document in yaml.safe_load_all(text) if document["kind"] == kind]
        node.drop(text, name)
    for pod in pods:
        node.wait_running(pod)
    for daemonset in daemonsets:
        wait_daemon(node, daemonset)
    assert len(set(pods)) == len(pods) >= 7
