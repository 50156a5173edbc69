# SPDX-License-Identifier: Apache-2.0
"""The examples of the Kubernetes documentation of DaemonSets, in its order: objects, nodes, taints, updates, ways to
communicate with daemons, and alternatives."""

import json
import os
import re

import pytest
import specs
import world
from harness import NODE_NAME, condition
from network import NODE_ADDRESS, NetworkNode
from test_daemonsets import init_of, pods_of, wait_daemon
from test_rollouts import logs, run_cli, wait_version
from world import wait

SELECTED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


# ---- objects and fields ----

@pytest.mark.parametrize("version, strategy", [("apps/v1", "RollingUpdate"), ("apps/v1beta2", "RollingUpdate"),
                                               ("apps/v1beta1", "OnDelete"), ("extensions/v1beta1", "OnDelete")])
def test_each_api_version_has_its_own_defaults(node, version, strategy):
    node.drop({**specs.daemonset("old"), "apiVersion": version})
    assert world.is_alive(init_of(node, wait_daemon(node, "old")))
    shown = json.loads(run_cli(node, "get", "ds", "old", "-o", "json"))
    assert shown["apiVersion"] == "apps/v1" and shown["spec"]["updateStrategy"]["type"] == strategy
    assert shown["spec"]["minReadySeconds"] == 0


def test_daemonset_without_a_selector_runs(node):
    for name in ("containers", "log"):
        os.makedirs(f"{node.data}/{name}")
    node.write(f"""
apiVersion: extensions/v1beta1
kind: DaemonSet
metadata:
  name: collector
spec:
  template:
    metadata:
      labels:
        app: logging
        id: collector
      name: collector
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: 2
      containers:
      - name: collect
        image: {specs.IMAGE}
        imagePullPolicy: IfNotPresent
        command: [/bin/sh, -c, "{specs.IDLE}"]
        env:
         - name: FLUENTD_ARGS
           value: -qq
        volumeMounts:
         - name: containers
           mountPath: /var/lib/docker/containers
         - name: varlog
           mountPath: /varlog
      volumes:
         - hostPath:
             path: {node.data}/containers
           name: containers
         - hostPath:
             path: {node.data}/log
           name: varlog
""", "collector.yaml")
    pod = wait_daemon(node, "collector")
    assert re.fullmatch("collector-[a-z0-9]{5}", pod["metadata"]["name"])
    pid = node.init(pod["metadata"]["name"], "collect")
    assert world.environ(pid)["FLUENTD_ARGS"] == "-qq"
    for inside, outside in (("var/lib/docker/containers", "containers"), ("varlog", "log")):
        with open(f"/proc/{pid}/root/{inside}/seen", "w", encoding="utf-8") as file:
            file.write("yes")
        assert world.read(f"{node.data}/{outside}/seen") == "yes"
    assert "app=logging,id=collector" in run_cli(node, "get", "ds", "-o", "wide")


def test_template_at_the_wrong_depth_is_refused_with_line_and_reason(node, tmp_path):
    wrong = specs.daemonset("collector")
    template = wrong["spec"]["template"]
    template.update(template.pop("spec"))  # next to the metadata, as in an example
    path = tmp_path / "collector.yaml"
    path.write_text(specs.text(wrong))
    lines = path.read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if text.strip() == "hostNetwork: true")
    answer = node.cli("validate", str(path))
    assert answer.returncode == 1
    assert f"collector.yaml:{line}:5: spec.template.hostNetwork: is a field of the pod's spec; it belongs below " \
        "spec.template.spec" in answer.stderr + answer.stdout
    node.drop(wrong)
    wait(lambda: f"collector.yaml:{line}:5: spec.template.hostNetwork" in node.said(), "the agent logs it")
    assert not node.pods()


def test_priority_class_next_to_the_set_applies(node):
    node.drop(specs.text(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "important"},
         "value": 100000},
        specs.daemonset("collector", priorityClassName="important")), file="collector.yaml")
    assert wait_daemon(node, "collector")["spec"]["priority"] == 100000


# ---- which nodes ----

def test_only_required_node_affinity_excludes_the_node(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"kubernetes.io/e2e-az-name": "e2e-az2"}}})

    def with_zones(name, *zones):
        required = {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/e2e-az-name", "operator": "In", "values": list(zones)}]}]}
        preferred = [{"weight": 1, "preference": {"matchExpressions": [
            {"key": "another-node-label-key", "operator": "In", "values": ["another-node-label-value"]}]}}]
        return specs.daemonset(name, affinity={"nodeAffinity": {SELECTED: required, PREFERRED: preferred}})

    node.drop(with_zones("here", "e2e-az1", "e2e-az2"))
    node.drop(with_zones("elsewhere", "e2e-az1", "e2e-az3"))
    wait_daemon(node, "here")
    wait(lambda: "'default/elsewhere' does not run here: the required node affinity" in node.said(), "the other does not run")
    assert not pods_of(node, "elsewhere")


@pytest.mark.parametrize("operator, values, runs", [
    ("In", ["8"], True), ("NotIn", ["8"], False), ("Exists", None, True), ("DoesNotExist", None, False),
    ("Gt", ["4"], True), ("Gt", ["8"], False), ("Lt", ["9"], True), ("Lt", ["8"], False)])
def test_each_node_affinity_operator_is_evaluated(shared_node, tmp_path, operator, values, runs):
    expression = {"key": "cpus", "operator": operator, **({"values": values} if values else {})}
    path = tmp_path / "set.yaml"
    path.write_text(specs.text(specs.daemonset("set", affinity={"nodeAffinity": {SELECTED: {
        "nodeSelectorTerms": [{"matchExpressions": [expression]}]}}})))
    answer = run_cli(shared_node, "match", "--no-headers", "--labels", "cpus=8", str(path))
    assert answer.split()[4] == ("yes" if runs else "no"), answer


def test_pod_affinity_of_a_zone_counts_only_pods_of_this_node(make_node):
    zone = "failure-domain.beta.kubernetes.io/zone"
    node = make_node(config={"mainstay": {"nodeLabels": {zone: "z1"}}})

    def term(value, key):
        return {"labelSelector": {"matchExpressions": [{"key": "security", "operator": "In", "values": [value]}]},
                "topologyKey": key}
    node.drop(specs.daemonset("social", affinity={
        "podAffinity": {SELECTED: [term("S1", zone)]},
        "podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": term("S2", "kubernetes.io/hostname")}]}}))
    node.drop(specs.daemonset("shy", affinity={
        "podAntiAffinity": {SELECTED: [term("S2", "kubernetes.io/hostname")]}}))
    wait_daemon(node, "shy")
    wait(lambda: "'default/social' does not run here: no pod on this node" in node.said(), "it waits for the other pod")
    node.launch(specs.pod("two", metadata={"labels": {"security": "S2"}}))
    node.launch(specs.pod("one", metadata={"labels": {"security": "S1"}}))
    wait_daemon(node, "social")
    assert world.is_alive(init_of(node, wait_daemon(node, "shy"))), "a running pod is not evaluated again"


def test_node_name_of_the_template_selects_the_node(node):
    node.drop(specs.daemonset("here", nodeName=NODE_NAME))
    node.drop(specs.daemonset("elsewhere", nodeName="node2"))
    assert wait_daemon(node, "here")["spec"]["nodeName"] == NODE_NAME
    wait(lambda: "'default/elsewhere' does not run here: nodeName is 'node2', this node is 'node1'" in node.said(),
         "the other does not run")


# ---- taints and tolerations ----

def test_daemons_run_under_all_node_conditions(make_node):
    conditions = [("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("disk-pressure", "NoSchedule"),
                ("memory-pressure", "NoSchedule"), ("pid-pressure", "NoSchedule"), ("unschedulable", "NoSchedule"),
                ("network-unavailable", "NoSchedule")]
    node = make_node(config={"registerWithTaints": [
        {"key": f"node.kubernetes.io/{key}", "effect": effect} for key, effect in conditions]})
    node.drop(specs.daemonset("network"))
    node.drop(specs.daemonset("user", hostNetwork=False))
    pod = wait_daemon(node, "network")
    tolerated = {(t["key"].rpartition("/")[2], t["effect"]) for t in pod["spec"]["tolerations"]}
    assert tolerated == set(conditions)
    assert all("tolerationSeconds" not in t and t["operator"] == "Exists" for t in pod["spec"]["tolerations"])
    wait(lambda: "'default/user' does not run here: the taint node.kubernetes.io/network-unavailable:NoSchedule is not "
         "tolerated" in node.said(), "pods with their own network wait")


def test_prefer_no_schedule_excludes_no_pod(make_node):
    node = make_node(config={"registerWithTaints": [{"key": "busy", "effect": "PreferNoSchedule"}]})
    node.drop(specs.daemonset("logs"))
    wait_daemon(node, "logs")


# ---- updating ----

def test_rollback_example_restores_the_previous_revision(node):
    for version in ("1", "2", "3"):
        node.drop(logs(version))
        wait_version(node, version)
    assert run_cli(node, "rollout", "history", "daemonset", "logs").splitlines()[2].split() == ["1", "<none>"]
    assert re.search(r"VERSION:\s+1", run_cli(node, "rollout", "history", "daemonset", "logs", "--revision=1"))
    assert run_cli(node, "rollout", "undo", "daemonset", "logs", "--to-revision=1") == "daemonset.apps/logs rolled back\n"
    assert run_cli(node, "rollout", "status", "ds/logs").endswith('daemon set "logs" successfully rolled out\n')
    wait_version(node, "1")


def test_on_delete_set_adopts_orphan_pods_of_another_template(node):
    node.drop(logs("1"))
    pod = wait_version(node, "1")
    pid = init_of(node, pod)
    run_cli(node, "delete", "daemonset", "logs", "--cascade=false")
    wait(lambda: not os.listdir(node.manifests), "the file is removed")
    node.drop({**logs("2"), "apiVersion": "extensions/v1beta1"})
    wait(lambda: pods_of(node, "logs"), "it is adopted")
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid), "the pod keeps running despite a mismatch in the template"
    run_cli(node, "delete", "pod", pod["metadata"]["name"])
    wait_version(node, "2")


# ---- communicating with daemons ----

@pytest.fixture(name="net")
def fixture_net(archive):
    node = NetworkNode(archive)
    yield node
    node.finish()


def test_daemon_is_reached_by_node_address_and_host_port(net):
    script = "while :; do echo I am the daemon | nc -l -p 8080; done & trap 'exit 0' TERM; wait"
    net.drop(specs.daemonset("web", specs.container(
        script=script, ports=[{"containerPort": 8080, "hostPort": 18090}],
        readinessProbe={"tcpSocket": {"port": 8080}, "periodSeconds": 1}), hostNetwork=False))
    pod = wait_daemon(net, "web", lambda found: condition(found, "Ready")["status"] == "True")
    status = pod["status"]
    assert status["hostIP"] == NODE_ADDRESS and status["podIP"].startswith("10.213.0.")
    wait(lambda: net.fetch(NODE_ADDRESS, 18090) == "I am the daemon\n", "the node's address leads to it")
    wait(lambda: net.fetch(status["podIP"], 8080) == "I am the daemon\n", "its own address leads to it, too")
    # The data that a Service would use: labels, address, readiness.
    def row():
        return run_cli(net, "get", "pods", "-l", "app=web", "-o", "wide", "--no-headers").split()
    # The server does not listen between two clients, and a probe may come at that moment.
    wait(lambda: (row()[1], row()[5]) == ("1/1", status["podIP"]), row)


def test_daemon_pushes_to_a_service_of_its_node(net):
    net.launch(specs.pod("store", specs.container(script="nc -l -p 9000 > /got; trap 'exit 0' TERM; sleep 100000 & wait"),
                         hostNetwork=False))
    address = net.address("store")
    net.drop(specs.daemonset("pusher", specs.container(
        script=f"until echo a figure | nc -w 2 {address} 9000; do sleep 0.1; done; {specs.IDLE}"), hostNetwork=False))
    wait_daemon(net, "pusher")
    wait(lambda: world.read(f"/proc/{net.init('store')}/root/got") == "a figure\n", "it arrives")


# ---- alternatives ----

def test_static_pod_follows_its_file(node):
    node.launch(specs.pod("static"))
    pid = node.init("static")
    run_cli(node, "delete", "pod", f"static-{NODE_NAME}")
    wait(lambda: not world.is_alive(pid), "it is stopped")
    node.wait_running("static")
    assert node.init("static") != pid, "its file still requires it"
    node.remove("static")
    node.wait_gone("static")


def test_static_pod_path_of_the_kubelet_is_read(make_node):
    node = make_node(start=False)
    words = ["--pod-manifest-path=" + node.manifests if word == node.manifests else word
             for word in node.command() if word != "--manifest-dir"]
    node.command = lambda: words
    node.start()
    node.launch(specs.pod("static"))


def test_daemonset_pod_has_logs_limits_and_metrics(node):
    node.drop(specs.daemonset("plain", specs.container(
        script="echo as any application; " + specs.IDLE,
        resources={"limits": {"memory": "64Mi", "cpu": "200m"}, "requests": {"cpu": "100m"}})))
    pod = wait_daemon(node, "plain")
    name = pod["metadata"]["name"]
    assert wait(lambda: run_cli(node, "logs", name), "it wrote") == "as any application\n"
    assert node.logged(name) == ["as any application"], "the log is where collectors look for it"
    limit = world.cgroup_value(node.container_cgroup(name), "memory",
                               "memory.max" if world.cgroup_version() == 2 else "memory.limit_in_bytes")
    assert int(limit) == 64 * 1024 * 1024
    status, metrics = node.get("/metrics/resource")
    assert status == 200 and f'pod="{name}"' in metrics
