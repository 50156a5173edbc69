# SPDX-License-Identifier: Apache-2.0
"""DaemonSets in the manifest directory: which of them run on this node, and the pod that each becomes."""

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
    """Waits until the set has one pod, as it should be; gives it."""
    def look():
        found = pods_of(node, name)
        return found[0] if len(found) == 1 and predicate(found[0]) else None
    return wait(look, lambda: f"{name} runs; there are {pods_of(node, name)}\nthe agent said:\n{node.said()[-3000:]}")


def wait_none(node, name):
    wait(lambda: not pods_of(node, name), lambda: f"{name} has no pod; it has {pods_of(node, name)}")


def init_of(node, pod):
    return node.init(pod["metadata"]["name"])


@pytest.mark.quick
def test_a_daemonset_runs_one_pod_that_carries_what_the_controller_gives_it(node):
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


def test_the_pod_of_a_set_is_the_same_after_every_kind_of_restart(node):
    node.drop(specs.daemonset("logs"))
    pod = wait_daemon(node, "logs")
    pid, start = init_of(node, pod), world.start_time(init_of(node, pod))
    for _ in range(3):
        node.restart()
        again = wait_daemon(node, "logs")
        assert again["metadata"]["uid"] == pod["metadata"]["uid"]
        assert (init_of(node, again), world.start_time(pid)) == (pid, start)


def test_a_file_that_is_removed_ends_the_pods_of_its_set(node):
    node.drop(specs.daemonset("logs"))
    pid = init_of(node, wait_daemon(node, "logs"))
    node.remove("logs")
    wait_none(node, "logs")
    assert not world.is_alive(pid)
    wait(lambda: not os.listdir(f"{node.state}/daemonsets"), "its history is gone")


def test_a_file_that_breaks_ends_no_daemon(node):
    node.drop(specs.daemonset("logs"))
    pod = wait_daemon(node, "logs")
    pid = init_of(node, pod)
    node.write("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: [", "logs.yaml")
    wait(lambda: "logs.yaml" in node.said(), "the agent says so")
    assert world.is_alive(pid)
    node.restart()
    assert wait_daemon(node, "logs")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert world.is_alive(pid)
    node.drop(specs.daemonset("logs"))
    wait(lambda: all(not file.get("error") for file in json.loads(node.get("/manifests")[1])["items"]),
         "the file is good again")
    assert wait_daemon(node, "logs")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert world.is_alive(pid)


def test_a_daemon_that_dies_is_started_again(node):
    node.drop(specs.daemonset("logs"))
    pod = wait_daemon(node, "logs")
    os.kill(init_of(node, pod), signal.SIGKILL)
    node.wait_restarts(pod["metadata"]["name"], 1)


def test_old_versions_are_read_as_their_time_wrote_them(node):
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


# Which nodes

def test_labels_of_the_node_choose_what_runs(make_node):
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
         "disktype=ssd" in node.said(), "it says why")


def test_labels_that_change_start_and_stop_what_they_must(make_node):
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


def test_a_configuration_that_breaks_or_goes_changes_nothing(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "a"}}})
    node.drop(specs.daemonset("a", nodeSelector={"role": "a"}))
    pid = init_of(node, wait_daemon(node, "a"))
    node.write_config(mainstay={"nodeLabels": {"role": "not a label"}})
    wait(lambda: "mainstay.nodeLabels[role]: must be letters" in node.said(), "the agent says where")
    os.unlink(node.config)
    os.kill(node.agent.pid, signal.SIGHUP)
    wait(lambda: "No such file or directory, going on" in node.said(), "the agent says so")
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)


def test_taints_keep_out_who_does_not_tolerate_them(make_node):
    node = make_node(config={"registerWithTaints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]})
    node.drop(specs.daemonset("plain"))
    node.drop(specs.daemonset("tolerant", tolerations=[{"key": "dedicated", "operator": "Exists"}]))
    node.drop(specs.pod("static"))
    wait_daemon(node, "tolerant")
    node.wait_running("static")  # pods of files are not asked
    assert not pods_of(node, "plain")


def test_a_taint_that_comes_leaves_what_runs_unless_it_is_to_execute(node):
    node.drop(specs.daemonset("plain"))
    pid = init_of(node, wait_daemon(node, "plain"))
    node.write_config(registerWithTaints=[{"key": "a", "effect": "NoSchedule"}])
    wait(lambda: "the taint a:NoSchedule is not tolerated" in node.said(), "the taint is seen")
    assert world.is_alive(pid)
    node.write_config(registerWithTaints=[{"key": "a", "effect": "NoExecute"}])
    wait_none(node, "plain")
    node.write_config()
    wait_daemon(node, "plain")


def test_tolerated_seconds_end_across_a_restart_of_the_agent(node):
    patient = {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 4}
    node.drop(specs.daemonset("patient", tolerations=[patient]))
    pid = init_of(node, wait_daemon(node, "patient"))
    node.write_config(registerWithTaints=[{"key": "a", "effect": "NoExecute"}])
    wait(lambda: "other labels or taints" in node.said(), "the taint is seen")
    assert world.is_alive(pid)
    node.restart()
    wait_none(node, "patient")
    assert "for 4s has ended" in node.said()


def test_the_networks_own_daemon_starts_before_there_is_a_network(make_node):
    node = make_node(config={"registerWithTaints": [
        {"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]})
    node.drop(specs.daemonset("network"))
    node.drop(specs.daemonset("user", hostNetwork=False))
    wait_daemon(node, "network")
    wait(lambda: "'default/user' does not run here" in node.said(), "the other waits")


def test_a_daemon_wants_the_company_of_another_pod(node):
    company = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}]}}
    node.drop(specs.daemonset("social", affinity=company))
    wait(lambda: "no pod on this node matches podAffinity" in node.said(), "it waits")
    assert not pods_of(node, "social")
    node.drop(specs.pod("cache", metadata={"labels": {"app": "cache"}}))
    wait_daemon(node, "social")


def test_a_pod_of_a_file_is_refused_on_a_node_that_it_does_not_ask_for(make_node):
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
    wait(lambda: node.said().count("other labels or taints") == 2, "the labels are seen")
    assert world.is_alive(pid), "what runs is not asked again"


# Names and selectors

def test_a_pod_and_a_daemonset_cannot_have_one_name(node):
    node.drop(specs.pod("web"), file="a.yaml")
    node.wait_running("web")
    node.drop(specs.daemonset("web"), file="b.yaml")
    wait(lambda: "b.yaml: daemonset default/web is already defined by a.yaml" in node.said(), "the second is told")
    assert not pods_of(node, "web")
    node.remove("a")
    wait_daemon(node, "web")


def test_a_selector_cannot_change_while_its_set_is_there(node):
    node.drop(specs.daemonset("logs"))
    pid = init_of(node, wait_daemon(node, "logs"))
    other = specs.daemonset("logs")
    other["spec"]["selector"]["matchLabels"] = {"app": "logs", "tier": "x"}
    other["spec"]["template"]["metadata"]["labels"]["tier"] = "x"
    node.drop(other)
    wait(lambda: "spec.selector: field is immutable" in node.said(), "it is refused")
    assert world.is_alive(pid)


def test_selectors_that_overlap_are_warned_of(node):
    for name in ("one", "two"):
        daemonset = specs.daemonset(name)
        daemonset["spec"]["selector"]["matchLabels"] = {"team": "x"}
        daemonset["spec"]["template"]["metadata"]["labels"]["team"] = "x"
        node.drop(daemonset)
    wait_daemon(node, "one")
    wait_daemon(node, "two")
    wait(lambda: "one's selector matches the pods of the other" in node.said(), "they are warned of")


def test_a_thousand_other_things_in_a_file_do_not_hide_a_wrong_depth(node):
    wrong = specs.daemonset("wrong")
    wrong["spec"]["template"]["metadata"]["containers"] = wrong["spec"]["template"].pop("spec")["containers"]
    node.drop(wrong)
    wait(lambda: "spec.template.metadata.containers: is a field of the pod's spec" in node.said(), "it says where")


# match

def test_match_says_what_would_run_on_a_node_like_that(node, tmp_path):
    fast = tmp_path / "fast.yaml"
    fast.write_text(specs.text(specs.daemonset("fast", nodeSelector={"disktype": "ssd"})))
    picky = tmp_path / "picky.yaml"
    picky.write_text(specs.text(specs.pod("picky", nodeSelector={"zone": "a"})))
    def rows(*options):
        told = node.cli("match", "--no-headers", *options, str(fast), str(picky))
        assert told.returncode == 0, told.stderr
        return [line.split(None, 5)[3:] for line in told.stdout.splitlines()]
    assert rows()[0][:2] == ["fast", "no"]
    assert "the node lacks the label disktype" in rows()[0][2]
    assert rows("--labels", "disktype=ssd,zone=a") == [
        ["fast", "yes", "the node has all labels of nodeSelector"],
        ["picky", "yes", "a pod of a file runs on every node that it matches"]]
    assert rows("--labels", "disktype=ssd", "--taints", "a=b:NoSchedule")[0][1:] == \
        ["no", "the taint a=b:NoSchedule is not tolerated"]
    assert node.cli("match", "--taints", "nonsense", str(fast)).returncode == 2
    assert node.cli("match", str(tmp_path / "none.yaml")).returncode == 1


# What the pages of others have

def test_a_collector_of_logs_as_people_write_it(node):
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
        priorityClassName="system-node-critical", schedulerName="somebody", terminationGracePeriodSeconds=2)
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


def test_the_affinity_of_2016_still_chooses(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"zone": "a"}}})
    for zone in ("a", "b"):
        required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]}
        text = json.dumps({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})
        daemonset = specs.daemonset(f"in-{zone}")
        daemonset["spec"]["template"]["metadata"]["annotations"] = {"scheduler.alpha.kubernetes.io/affinity": text}
        node.drop(daemonset)
    wait_daemon(node, "in-a")
    assert not pods_of(node, "in-b")


def test_a_node_that_takes_no_new_pods_takes_daemons(make_node):
    node = make_node(config={"registerWithTaints": [{"key": "node.kubernetes.io/unschedulable",
                                                     "effect": "NoSchedule"}]})
    node.drop(specs.daemonset("logs"))
    wait_daemon(node, "logs")


def test_the_same_files_run_on_each_node_what_belongs_there(make_node):
    files = [specs.daemonset("everywhere"), specs.daemonset("storage", nodeSelector={"disktype": "ssd"}),
             specs.daemonset("gpu", nodeSelector={"gpu": "yes"})]
    for labels, expected in (({"disktype": "ssd"}, {"everywhere", "storage"}), ({"gpu": "yes"}, {"everywhere", "gpu"})):
        node = make_node(config={"mainstay": {"nodeLabels": labels}})
        for file in files:
            node.drop(file)
        for name in expected:
            wait_daemon(node, name)
        assert {pod["metadata"]["labels"]["app"] for pod in node.pods()} == expected


def test_an_edit_of_a_label_is_decided_at_once_among_many(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"role": "none"}}})
    node.drop(specs.text(*[specs.daemonset(f"idle{i}", nodeSelector={"role": f"r{i}"}) for i in range(300)]),
              file="many.yaml")
    wait(lambda: "'default/idle299' does not run here" in node.said(), "all are decided on")
    node.write_config(mainstay={"nodeLabels": {"role": "r7"}})
    wait_daemon(node, "idle7")
    assert len(node.pods()) == 1
    node.write_config(mainstay={"nodeLabels": {"role": "r8"}})
    wait_none(node, "idle7")
    wait_daemon(node, "idle8")


@pytest.mark.parametrize("file, sentence", [
    ("logs.yaml", "spec.selector: field is immutable; give the set another name"),
    ("other.yaml", "spec.selector: field is immutable; its pods keep running as they are")])
def test_a_selector_that_changed_while_no_agent_looked_changes_no_pod(node, file, sentence):
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
    wait(lambda: sentence in node.said(), "it is refused")
    assert world.is_alive(pid)
    assert pods_of(node, "logs")[0]["metadata"]["uid"] == pod["metadata"]["uid"]
    node.drop(specs.daemonset("logs"), file=file)
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)
    assert "Controlled By:" in node.cli("describe", "pod", pod["metadata"]["name"]).stdout
