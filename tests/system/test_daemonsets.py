# SPDX-License-Identifier: Apache-2.0
"""DaemonSets in the manifest directory: the selection of those that run on this node, and the pod of each."""

import copy
import json
import os
import re
import signal

import pytest
import specs
import world
from harness import NODE_NAME, is_running
from world import wait


def pods_of(node, name):
    """All pods whose owner is the set, the oldest first."""
    found = [pod for pod in node.pods()
             if any(owner["kind"] == "DaemonSet" and owner["name"] == name
                    for owner in pod["metadata"].get("ownerReferences", []))]
    return sorted(found, key=lambda pod: pod["metadata"]["creationTimestamp"])


def wait_daemon(node, name, predicate=is_running):
    """Waits until the set has exactly one pod, and returns it."""
    def find_pod():
        found = pods_of(node, name)
        return found[0] if len(found) == 1 and predicate(found[0]) else None
    return wait(find_pod, lambda: f"{name} runs; there are {pods_of(node, name)}\nthe log:\n{node.said()[-3000:]}")


def wait_none(node, name):
    wait(lambda: not pods_of(node, name), lambda: f"{name} is without pods; it has {pods_of(node, name)}")


def init_of(node, pod):
    return node.init(pod["metadata"]["name"])


@pytest.mark.quick
def test_daemonset_runs_one_pod_with_the_fields_of_the_controller(node):
    node.drop(specs.daemonset("logs"))
    pod = wait_daemon(node, "logs")
    metadata, spec = pod["metadata"], pod["spec"]
    assert re.fullmatch("logs-[bcdfghjklmnpqrstvwxz2456789]{5}", metadata["name"])
    owner = metadata["ownerReferences"][0]
    assert owner["apiVersion"] == "apps/v1" and owner["controller"] is True
    assert metadata["labels"]["app"] == "logs"
    assert re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{10}", metadata["labels"]["controller-revision-hash"])
    assert metadata["labels"]["pod-template-generation"] == "1"
    tolerated = {(t.get("key"), t.get("effect")) for t in spec["tolerations"]}
    assert ("node.kubernetes.io/not-ready", "NoExecute") in tolerated
    assert ("node.kubernetes.io/network-unavailable", "NoSchedule") in tolerated  # in the node's network
    terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [NODE_NAME]}]}]
    assert world.is_alive(init_of(node, pod))


def test_daemon_pod_is_the_same_after_each_restart_of_the_agent(node):
    node.drop(specs.daemonset("logs"))
    pod = wait_daemon(node, "logs")
    pid, start = init_of(node, pod), world.start_time(init_of(node, pod))
    for _ in range(3):
        node.restart()
        again = wait_daemon(node, "logs")
        assert again["metadata"]["uid"] == pod["metadata"]["uid"]
        assert again["status"]["startTime"] == pod["status"]["startTime"]
        assert (init_of(node, again), world.start_time(pid)) == (pid, start)


def test_removed_manifest_stops_the_pod(node):
    node.drop(specs.daemonset("logs"))
    pid = init_of(node, wait_daemon(node, "logs"))
    node.remove("logs")
    wait_none(node, "logs")
    assert not world.is_alive(pid)
    wait(lambda: not os.listdir(f"{node.state}/daemonsets"), "its history is gone")


def test_broken_manifest_stops_no_pod(node):
    node.drop(specs.daemonset("logs"))
    pod = wait_daemon(node, "logs")
    pid = init_of(node, pod)
    node.write("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: [", "logs.yaml")
    wait(lambda: "logs.yaml" in node.said(), "the error is logged")
    assert world.is_alive(pid)
    node.restart()
    assert wait_daemon(node, "logs")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert world.is_alive(pid)
    node.drop(specs.daemonset("logs"))
    wait(lambda: all(not file.get("error") for file in json.loads(node.get("/manifests")[1])["items"]),
         "the file is valid again")
    assert wait_daemon(node, "logs")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert world.is_alive(pid)


def test_killed_daemon_is_restarted(node):
    node.drop(specs.daemonset("logs"))
    pod = wait_daemon(node, "logs")
    os.kill(init_of(node, pod), signal.SIGKILL)
    node.wait_restarts(pod["metadata"]["name"], 1)


def test_old_api_versions_have_their_old_defaults(node):
    old = specs.daemonset("old")
    old["apiVersion"] = "extensions/v1beta1"
    del old["spec"]["selector"]
    old["spec"]["template"]["metadata"]["name"] = "ignored"
    node.drop(old)
    wait_daemon(node, "old")
    changed = copy.deepcopy(old)
    changed["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "NEW", "value": "1"}]
    pid = init_of(node, wait_daemon(node, "old"))
    node.drop(changed)
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid), "OnDelete was the default"


# ---- which nodes ----

def test_node_labels_select_daemonsets(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"disktype": "ssd", "cpus": "8"}}})
    node.drop(specs.daemonset("here", nodeSelector={"disktype": "ssd"}))
    node.drop(specs.daemonset("not-here", nodeSelector={"disktype": "hdd"}))
    node.drop(specs.daemonset("known", nodeSelector={"kubernetes.io/os": "linux"}))
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "cpus", "operator": "Gt", "values": ["4"]}]}]}}}
    node.drop(specs.daemonset("large", affinity=affinity))
    for name in ("here", "known", "large"):
        wait_daemon(node, name)
    assert not pods_of(node, "not-here")
    wait(lambda: "DaemonSet 'default/not-here' does not run here: nodeSelector requires disktype=hdd, the node has "
         "disktype=ssd" in node.said(), "the reason is logged")


def test_changed_labels_start_and_stop_daemons(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "a"}}})
    for role in ("a", "b"):
        node.drop(specs.daemonset(role, nodeSelector={"role": role}))
    everywhere = specs.daemonset("everywhere")
    node.drop(everywhere)
    pid = init_of(node, wait_daemon(node, "everywhere"))
    wait_daemon(node, "a")
    node.write_config(mainstay={"nodeLabels": {"role": "b"}})
    wait_daemon(node, "b")
    wait_none(node, "a")
    assert world.is_alive(pid)
    node.write_config(mainstay={"nodeLabels": {"role": "a"}})
    os.kill(node.agent.pid, signal.SIGHUP)
    wait_daemon(node, "a")
    wait_none(node, "b")
    assert world.is_alive(pid)


def test_broken_or_removed_configuration_changes_nothing(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "a"}}})
    node.drop(specs.daemonset("a", nodeSelector={"role": "a"}))
    pid = init_of(node, wait_daemon(node, "a"))
    node.write_config(mainstay={"nodeLabels": {"role": "not a label"}})
    wait(lambda: "mainstay.nodeLabels[role]: must be letters" in node.said(), "the place is logged")
    os.unlink(node.config)
    os.kill(node.agent.pid, signal.SIGHUP)
    wait(lambda: "No such file or directory; continuing" in node.said(), "the error is logged")
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)


def test_taints_exclude_pods_that_do_not_tolerate_them(make_node):
    node = make_node(config={"registerWithTaints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]})
    node.drop(specs.daemonset("plain"))
    node.drop(specs.daemonset("tolerant", tolerations=[{"key": "dedicated", "operator": "Exists"}]))
    node.drop(specs.pod("static"))
    wait_daemon(node, "tolerant")
    node.wait_running("static")  # taints do not apply to static pods
    assert not pods_of(node, "plain")


def test_new_taint_stops_running_pods_with_no_execute_only(node):
    node.drop(specs.daemonset("plain"))
    pid = init_of(node, wait_daemon(node, "plain"))
    node.write_config(registerWithTaints=[{"key": "a", "effect": "NoSchedule"}])
    wait(lambda: "the taint a:NoSchedule is not tolerated" in node.said(), "the taint is seen")
    assert world.is_alive(pid)
    node.write_config(registerWithTaints=[{"key": "a", "effect": "NoExecute"}])
    wait_none(node, "plain")
    node.write_config()
    wait_daemon(node, "plain")


def test_toleration_seconds_end_across_a_restart_of_the_agent(node):
    patient = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 20}
    node.drop(specs.daemonset("patient", tolerations=[patient]))
    pid = init_of(node, wait_daemon(node, "patient"))
    node.write_config(registerWithTaints=[{"key": "a", "effect": "NoExecute"}])
    wait(lambda: "Labels or taints of the node changed" in node.said(), "the taint is seen")
    assert world.is_alive(pid)
    node.restart()
    wait_none(node, "patient")
    assert "for 20s has ended" in node.said()


def test_host_network_daemon_starts_without_a_network(make_node):
    node = make_node(config={"registerWithTaints": [
        {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]})
    node.drop(specs.daemonset("network"))
    node.drop(specs.daemonset("user", hostNetwork=False))
    wait_daemon(node, "network")
    wait(lambda: "'default/user' does not run here" in node.said(), "the other waits")


def test_pod_affinity_delays_a_daemon(node):
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}]}}
    node.drop(specs.daemonset("social", affinity=affinity))
    wait(lambda: "no pod on this node matches podAffinity" in node.said(), "it waits")
    assert not pods_of(node, "social")
    node.drop(specs.pod("cache", metadata={"labels": {"app": "cache"}}))
    wait_daemon(node, "social")


def test_static_pod_with_unmet_node_selector_is_rejected(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "a"}}})
    node.drop(specs.pod("picky", nodeSelector={"role": "b"}))
    pod = node.wait_phase("picky", "Failed")
    assert pod["status"]["reason"] == "NodeAffinity"
    assert pod["status"]["message"] == ("Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's "
                                        "node affinity/selector")
    assert not pod["status"].get("containerStatuses")
    assert not os.path.exists(f"{node.run}/pods/{pod['metadata']['uid']}")
    node.write_config(mainstay={"nodeLabels": {"role": "b"}})
    pod = node.wait_running("picky")
    pid = node.init("picky")
    node.write_config(mainstay={"nodeLabels": {"role": "a"}})
    wait(lambda: node.said().count("Labels or taints of the node changed") == 2, "the labels are seen")
    assert world.is_alive(pid), "a running pod is not admitted again"


# ---- names and selectors ----

def test_pod_and_daemonset_cannot_share_a_name(node):
    node.drop(specs.pod("web"), file="a.yaml")
    node.wait_running("web")
    node.drop(specs.daemonset("web"), file="b.yaml")
    wait(lambda: "b.yaml: daemonset default/web is already defined by a.yaml" in node.said(), "the second is refused")
    assert not pods_of(node, "web")
    node.remove("a")
    wait_daemon(node, "web")


def test_selector_is_immutable(node):
    node.drop(specs.daemonset("logs"))
    pid = init_of(node, wait_daemon(node, "logs"))
    other = specs.daemonset("logs")
    other["spec"]["selector"]["matchLabels"] = {"app": "logs", "tier": "x"}
    other["spec"]["template"]["metadata"]["labels"]["tier"] = "x"
    node.drop(other)
    wait(lambda: "spec.selector: field is immutable" in node.said(), "it is refused")
    assert world.is_alive(pid)


def test_overlapping_selectors_cause_a_warning(node):
    for name in ("one", "two"):
        daemonset = specs.daemonset(name)
        daemonset["spec"]["selector"]["matchLabels"] = {"team": "x"}
        daemonset["spec"]["template"]["metadata"]["labels"]["team"] = "x"
        node.drop(daemonset)
    wait_daemon(node, "one")
    wait_daemon(node, "two")
    wait(lambda: "one's selector matches the pods of the other" in node.said(), "the overlap is reported")


def test_field_at_the_wrong_depth_is_reported(node):
    wrong = specs.daemonset("wrong")
    wrong["spec"]["template"]["metadata"]["containers"] = wrong["spec"]["template"].pop("spec")["containers"]
    node.drop(wrong)
    wait(lambda: "spec.template.metadata.containers: is a field of the pod's spec" in node.said(), "the place is logged")


# ---- match ----

def test_match_evaluates_given_labels_and_taints(node, tmp_path):
    fast = tmp_path / "fast.yaml"
    fast.write_text(specs.text(specs.daemonset("fast", nodeSelector={"disktype": "ssd"})))
    picky = tmp_path / "picky.yaml"
    picky.write_text(specs.text(specs.pod("picky", nodeSelector={"zone": "a"})))
    def rows(*options):
        answer = node.cli("match", "--no-headers", *options, str(fast), str(picky))
        assert answer.returncode == 0, answer.stderr
        return [line.split(None, 5)[3:] for line in answer.stdout.splitlines()]
    assert rows()[0][:2] == ["fast", "no"]
    assert "the node lacks the label disktype" in rows()[0][2]
    assert rows("--labels", "disktype=ssd,zone=a") == [
        ["fast", "yes", "the node has all labels of nodeSelector"],
        ["picky", "yes", "a pod of a file runs on every node that it matches"]]
    assert rows("--labels", "disktype=ssd", "--taints", "a=b:NoSchedule")[0][1:] == \
        ["no", "the taint a=b:NoSchedule is not tolerated"]
    assert node.cli("match", "--taints", "nonsense", str(fast)).returncode == 2
    assert node.cli("match", str(tmp_path / "none.yaml")).returncode == 1


# ---- manifests of other projects ----

def test_typical_log_collector_runs(node):
    os.makedirs(f"{node.data}/log")
    os.makedirs(f"{node.data}/containers")
    collector = specs.daemonset(
        "collector",
        specs.container("agent", env=[{"name": "COLLECTOR_ARGS", "value": "-qq"}],
                        resources={"limits": {"memory": "200Mi"}, "requests": {"cpu": "100m", "memory": "100Mi"}},
                        volumeMounts=[specs.mount("log", "/var/log"),
                                      specs.mount("containers", "/var/lib/containers", readOnly=True)]),
        metadata={"namespace": "kube-system", "labels": {"k8s-app": "logging"}},
        tolerations=[{"key": f"node-role.kubernetes.io/{role}", "operator": "Exists", "effect": "NoSchedule"}
                     for role in ("control-plane", "master")],
        volumes=[specs.host_path("log", f"{node.data}/log"), specs.host_path("containers", f"{node.data}/containers")],
        priorityClassName="system-node-critical", schedulerName="other", terminationGracePeriodSeconds=2)
    node.drop(collector)
    pod = wait_daemon(node, "collector")
    assert pod["metadata"]["namespace"] == "kube-system"
    name = pod["metadata"]["name"]
    pid = wait(lambda: [pid for pid in world.pids_of_root(node.cgroup_root) if world.is_container_init(pid)],
               f"{name} has a process")[0]
    assert world.environ(pid)["COLLECTOR_ARGS"] == "-qq"
    with open(f"/proc/{pid}/root/var/log/written", "w", encoding="utf-8") as file:
        file.write("seen")
    assert world.read(f"{node.data}/log/written") == "seen"
    mounts = world.read(f"/proc/{pid}/mounts")
    assert re.search(r" /var/lib/containers \S+ ro[,\s]", mounts), mounts
    limits = [world.read(f"{world.CGROUP}/memory{line.split(':', 2)[2]}/memory.limit_in_bytes")
              for line in world.read(f"/proc/{pid}/cgroup").splitlines() if ":memory:" in line]
    assert not limits or int(limits[0]) == 200 * 1024 * 1024


def test_alpha_affinity_annotation_is_honoured(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"zone": "a"}}})
    for zone in ("a", "b"):
        required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}
        text = json.dumps({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
        daemonset = specs.daemonset(f"in-{zone}")
        daemonset["spec"]["template"]["metadata"]["annotations"] = {"scheduler.alpha.kubernetes.io/affinity": text}
        node.drop(daemonset)
    wait_daemon(node, "in-a")
    assert not pods_of(node, "in-b")


def test_unschedulable_node_runs_daemons(make_node):
    node = make_node(config={"registerWithTaints": [{"key": "node.kubernetes.io/unschedulable",
                                                     "effect": "NoSchedule"}]})
    node.drop(specs.daemonset("logs"))
    wait_daemon(node, "logs")


def test_each_node_runs_the_daemonsets_that_select_it_from_the_same_files(make_node):
    files = [specs.daemonset("everywhere"), specs.daemonset("storage", nodeSelector={"disktype": "ssd"}),
             specs.daemonset("gpu", nodeSelector={"gpu": "yes"})]
    for labels, expected in (({"disktype": "ssd"}, {"everywhere", "storage"}), ({"gpu": "yes"}, {"everywhere", "gpu"})):
        node = make_node(config={"mainstay": {"nodeLabels": labels}})
        for file in files:
            node.drop(file)
        for name in expected:
            wait_daemon(node, name)
        assert {pod["metadata"]["labels"]["app"] for pod in node.pods()} == expected


def test_label_change_is_evaluated_for_many_daemonsets(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "none"}}})
    node.drop(specs.text(*[specs.daemonset(f"idle{i}", nodeSelector={"role": f"r{i}"}) for i in range(300)]),
              file="many.yaml")
    wait(lambda: "'default/idle299' does not run here" in node.said(), "all sets have a decision")
    node.write_config(mainstay={"nodeLabels": {"role": "r7"}})
    wait_daemon(node, "idle7")
    assert len(node.pods()) == 1
    assert node.said().count("'default/idle299' does not run here") == 1, "only the value of the label has changed"
    node.write_config(mainstay={"nodeLabels": {"role": "r8"}})
    wait_none(node, "idle7")
    wait_daemon(node, "idle8")


@pytest.mark.parametrize("file, message", [
    ("logs.yaml", "spec.selector: field is immutable; give the set another name"),
    ("other.yaml", "spec.selector: field is immutable; its pods keep running as they are")])
def test_selector_changed_while_no_agent_ran_changes_no_pod(node, file, message):
    node.drop(specs.daemonset("logs"))
    pod = wait_daemon(node, "logs")
    pid = init_of(node, pod)
    node.kill9()
    node.remove("logs")
    other = specs.daemonset("logs", specs.container(env=[{"name": "NEW", "value": "1"}]))
    other["spec"]["selector"]["matchLabels"] = {"tier": "x"}
    other["spec"]["template"]["metadata"]["labels"] = {"tier": "x"}
    node.drop(other, file=file)
    node.start()
    wait(lambda: message in node.said(), "it is refused")
    assert world.is_alive(pid)
    assert pods_of(node, "logs")[0]["metadata"]["uid"] == pod["metadata"]["uid"]
    node.drop(specs.daemonset("logs"), file=file)
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)
    assert "Controlled By:" in node.cli("describe", "pod", pod["metadata"]["name"]).stdout
