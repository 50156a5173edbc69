# SPDX-License-Identifier: Apache-2.0
"""Rolling updates of DaemonSets: the order in which pods are stopped and started; revisions, undo and rollback."""

import hashlib
import os
import re
import subprocess
import time

import yaml

import harness
import specs
import world
from harness import condition, is_running
from test_daemonsets import init_of, pods_of, wait_daemon, wait_none
from world import wait


def logs(version, script=specs.IDLE, **fields):
    return specs.daemonset("logs", specs.container(script=script, env=[{"name": "VERSION", "value": version}]),
                           **fields)


def version_of(pod):
    return {env["name"]: env["value"] for env in pod["spec"]["containers"][0]["env"]}["VERSION"]


def wait_version(node, version, ready=is_running):
    return wait_daemon(node, "logs", lambda pod: version_of(pod) == version and ready(pod))


def surge(seconds=0):
    return {"update": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "spec": {"minReadySeconds": seconds}}


def test_update_stops_the_old_pod_before_it_starts_the_new_one(node):
    # Both revisions take the same lock: a pod that finds it held exits with an error.
    script = ("trap 'rmdir /v/lock; exit 0' TERM; mkdir /v/lock || exit 1; sleep 100000 & wait")
    fields = {"script": script, "volumeMounts": [specs.mount("v", "/v")]}
    def locked(version):
        return specs.daemonset("logs", specs.container(env=[{"name": "VERSION", "value": version}], **fields),
                               volumes=[specs.host_path("v", node.data)], terminationGracePeriodSeconds=60)
    node.drop(locked("1"))
    first = wait_version(node, "1")
    wait(lambda: os.path.isdir(os.path.join(node.data, "lock")), "the old pod has the lock")
    node.drop(locked("2"))
    second = wait_version(node, "2")
    assert second["metadata"]["name"] != first["metadata"]["name"]
    assert second["metadata"]["labels"]["pod-template-generation"] == "2"
    assert second["status"]["containerStatuses"][0]["restartCount"] == 0
    assert not node.pod(first["metadata"]["name"])


def test_surge_starts_the_new_pod_first_and_waits_for_min_ready_seconds(node):
    seconds = 20  # during which both pods run
    node.drop(logs("1", **surge(seconds)))
    first = wait_version(node, "1")
    pid = init_of(node, first)
    node.drop(logs("2", **surge(seconds)))
    wait(lambda: len(pods_of(node, "logs")) == 2 and all(map(is_running, pods_of(node, "logs"))), "both run")
    assert world.is_alive(pid)
    second = wait_version(node, "2")
    stopped = time.time()
    ready = condition(second, "Ready")["lastTransitionTime"]
    ready_at = time.mktime(time.strptime(ready, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert stopped - ready_at >= seconds
    assert not world.is_alive(pid)


def test_surge_continues_across_a_restart_of_the_agent(node):
    node.drop(logs("1", **surge(20)))
    wait_version(node, "1")
    node.drop(logs("2", **surge(20)))
    wait(lambda: len(pods_of(node, "logs")) == 2, "both exist")
    node.restart()
    wait_version(node, "2")


def test_on_delete_waits_until_the_old_pod_is_deleted(node):
    on_delete = {"type": "OnDelete"}
    node.drop(logs("1", update=on_delete))
    first = wait_version(node, "1")
    pid = init_of(node, first)
    node.drop(logs("2", update=on_delete))
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid) and version_of(wait_daemon(node, "logs")) == "1"
    node.restart()
    assert world.is_alive(pid) and version_of(wait_daemon(node, "logs")) == "1"
    answer = node.cli("delete", "pod", first["metadata"]["name"])
    assert answer.returncode == 0, answer.stderr
    wait_version(node, "2")


def test_deleted_pod_is_created_again(node):
    node.drop(logs("1"))
    pod = wait_version(node, "1")
    pid = init_of(node, pod)
    assert node.cli("delete", "pod", pod["metadata"]["name"]).returncode == 0
    wait(lambda: not world.is_alive(pid), "it is stopped")
    again = wait_version(node, "1")
    assert again["metadata"]["name"] == pod["metadata"]["name"]
    assert init_of(node, again) != pid


def test_change_outside_the_template_restarts_no_pod(node):
    node.drop(logs("1"))
    pid = init_of(node, wait_version(node, "1"))
    node.drop(logs("1", metadata={"labels": {"any": "thing"}}, spec={"minReadySeconds": 1}))
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert world.is_alive(pid)


def test_revision_that_misses_its_progress_deadline_is_rolled_back(node):
    deadline = {"metadata": {"annotations": {"mainstay.dev/progress-deadline-seconds": "3"}}}
    node.drop(logs("1", **deadline))
    wait_version(node, "1")
    node.drop(logs("2", script="exit 1", **deadline))
    wait(lambda: "Rolled back: revision 2 did not become available within 3s" in node.said(), "it is rolled back")
    wait_version(node, "1")
    node.restart()
    wait_version(node, "1")
    node.drop(logs("3"))  # without a deadline, which a slow start could miss
    wait_version(node, "3")


def test_damaged_revision_history_stops_no_pod(node):
    node.drop(logs("1"))
    pod = wait_version(node, "1")
    pid = init_of(node, pod)
    history, = os.listdir(f"{node.state}/daemonsets")
    node.kill9()
    with open(f"{node.state}/daemonsets/{history}", "r+b") as file:
        file.write(b"x")
    node.start()
    assert wait_version(node, "1")["metadata"]["uid"] == pod["metadata"]["uid"]
    assert world.is_alive(pid)
    assert "is damaged, setting it aside" in node.said()
    assert os.path.exists(f"{node.state}/daemonsets/{history}.damaged")


def test_daemonset_that_is_created_again_has_a_new_history(node):
    node.drop(logs("1"))
    wait_version(node, "1")
    node.drop(logs("2"))
    wait_version(node, "2")
    node.remove("logs")
    wait_none(node, "logs")
    node.drop(logs("2"))
    assert wait_version(node, "2")["metadata"]["labels"]["pod-template-generation"] == "1"


# ---- the command line ----

def run_cli(node, *words, status=0):
    answer = node.cli(*words)
    assert answer.returncode == status, answer.stdout + answer.stderr
    return answer.stdout if status == 0 else answer.stderr


def test_get_daemonsets_has_the_columns_of_kubectl(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"disktype": "ssd"}}})
    node.drop(logs("1", nodeSelector={"disktype": "ssd"}))
    node.drop(specs.daemonset("elsewhere", nodeSelector={"disktype": "hdd"}))
    wait_version(node, "1")
    wait(lambda: "0" not in run_cli(node, "get", "ds", "logs", "--no-headers").split()[1:6], "it is available")
    lines = run_cli(node, "get", "daemonsets").splitlines()
    assert lines[0].split() == ["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE", "SELECTOR",
                                "AGE"]
    assert lines[1].split()[:7] == ["elsewhere", "0", "0", "0", "0", "0", "disktype=hdd"]
    assert lines[2].split()[:7] == ["logs", "1", "1", "1", "1", "1", "disktype=ssd"]
    assert "CONTAINERS" in run_cli(node, "get", "ds", "-o", "wide")
    assert run_cli(node, "get", "ds", "-o", "name").splitlines() == ["daemonset.apps/elsewhere", "daemonset.apps/logs"]
    document = yaml.safe_load(run_cli(node, "get", "ds", "logs", "-o", "yaml"))
    assert (document["kind"], document["apiVersion"]) == ("DaemonSet", "apps/v1")
    assert document["status"]["numberReady"] == 1
    assert 'daemonsets.apps "none" not found' in run_cli(node, "get", "ds", "none", status=1)


def test_describe_daemonset_names_the_deciding_rule(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"disktype": "ssd"}}})
    node.drop(specs.daemonset("elsewhere", nodeSelector={"disktype": "hdd"}))
    node.drop(logs("1"))
    wait_version(node, "1")
    assert re.search(r"Runs Here:\s+no: nodeSelector requires disktype=hdd, the node has disktype=ssd",
                     run_cli(node, "describe", "daemonset", "elsewhere"))
    text = run_cli(node, "describe", "ds", "logs")
    assert re.search(r"Runs Here:\s+yes: nothing requires a different node", text)
    assert "Desired Number of Nodes Scheduled: 1" in text
    assert re.search(r"Image:\s+docker.io/library/busybox:1", text)


def test_get_nodes_has_labels_and_taints(make_node):
    node = make_node(config={"mainstay": {"nodeLabels": {"disktype": "ssd"}},
                             "registerWithTaints": [{"key": "a", "effect": "NoSchedule"}]})
    document, = yaml.safe_load(run_cli(node, "get", "nodes", "-o", "yaml"))["items"]
    labels = document["metadata"]["labels"]
    assert (labels["disktype"], labels["kubernetes.io/os"]) == ("ssd", "linux")
    assert labels["kubernetes.io/hostname"] and labels["kubernetes.io/arch"] == labels["beta.kubernetes.io/arch"]
    assert labels["feature.node.kubernetes.io/system-os_release.ID"] == "debian"
    assert document["spec"]["taints"] == [{"key": "a", "effect": "NoSchedule"}]


def test_rollout_history_undo_and_restart_apply_to_the_daemonset(node):
    for version, cause in (("1", "first"), ("2", "second")):
        node.drop(logs(version, metadata={"annotations": {"kubernetes.io/change-cause": cause}}))
        wait_version(node, version)
    lines = run_cli(node, "rollout", "history", "daemonset/logs").splitlines()
    assert lines[0] == "daemonset.apps/logs "
    assert [line.split() for line in lines[1:]] == [["REVISION", "CHANGE-CAUSE"], ["1", "first"], ["2", "second"]]
    assert re.search(r"VERSION:\s+1", run_cli(node, "rollout", "history", "ds/logs", "--revision", "1"))

    assert run_cli(node, "rollout", "undo", "daemonset/logs") == "daemonset.apps/logs rolled back\n"
    wait_version(node, "1")
    assert "successfully rolled out" in run_cli(node, "rollout", "status", "ds", "logs")
    assert [line.split()[0] for line in run_cli(node, "rollout", "history", "ds/logs").splitlines()[2:]] == ["2", "3"]
    node.restart()
    pid = init_of(node, wait_version(node, "1"))
    node.drop(specs.pod("other"))
    node.wait_running("other")
    assert world.is_alive(pid), "the undo holds"

    run_cli(node, "rollout", "undo", "ds/logs", "--to-revision", "2")
    wait_version(node, "2")
    first = wait_version(node, "2")["metadata"]["name"]
    run_cli(node, "rollout", "restart", "ds/logs")
    wait_daemon(node, "logs", lambda pod: pod["metadata"]["name"] != first and is_running(pod))

    node.drop(logs("3"))
    wait_version(node, "3")
    assert "unable to find specified revision 99" in run_cli(node, "rollout", "undo", "ds/logs", "--to-revision=99",
                                                          status=1)


def test_old_revisions_are_removed(node):
    for version in "1234":
        node.drop(logs(version, spec={"revisionHistoryLimit": 2}))
        wait_version(node, version)
    run_cli(node, "rollout", "status", "ds/logs")
    wait(lambda: [line.split()[0] for line in run_cli(node, "rollout", "history", "ds/logs").splitlines()[2:]] ==
         ["2", "3", "4"], "three are left")


def test_delete_removes_the_manifest_and_the_pods(node):
    node.drop(logs("1"))
    pid = init_of(node, wait_version(node, "1"))
    assert run_cli(node, "delete", "daemonset", "logs") == 'daemonset.apps "logs" deleted from default namespace\n'
    wait_none(node, "logs")
    assert not world.is_alive(pid) and not os.listdir(node.manifests)


def test_manifest_with_other_objects_is_not_removed(node):
    node.drop(specs.text(logs("1"), specs.pod("other")), file="both.yaml")
    pid = init_of(node, wait_version(node, "1"))
    assert "both.yaml contains other objects as well" in run_cli(node, "delete", "ds", "logs", status=1)
    assert world.is_alive(pid)


def test_orphan_pod_stays_is_adopted_and_updated(node):
    node.drop(logs("1"))
    pod = wait_version(node, "1")
    pid = init_of(node, pod)
    run_cli(node, "delete", "daemonset", "logs", "--cascade=orphan")
    name = pod["metadata"]["name"]
    node.wait_pod(name, lambda found: "ownerReferences" not in found["metadata"], "is an orphan")
    wait(lambda: not os.listdir(node.manifests), "the file is gone")
    node.restart()
    node.wait_running(name)
    assert world.is_alive(pid)

    node.drop(logs("1", update={"type": "OnDelete"}))
    wait(lambda: pods_of(node, "logs"), "it is adopted")
    assert world.is_alive(pid)
    node.restart()
    assert wait_version(node, "1")["metadata"]["name"] == name and world.is_alive(pid)
    node.drop(logs("2"))
    wait_version(node, "2")
    assert not world.is_alive(pid)


def test_orphan_pod_can_be_deleted(node):
    node.drop(logs("1"))
    name = wait_version(node, "1")["metadata"]["name"]
    run_cli(node, "delete", "daemonset", "logs", "--cascade=false")
    wait(lambda: not os.listdir(node.manifests), "the file is gone")
    assert node.pod(name)
    run_cli(node, "delete", "pod", name)
    node.wait_gone(name)


def test_old_pod_keeps_running_until_the_new_one_could_start(node, tmp_path):
    node.drop(logs("1"))
    pid = init_of(node, wait_version(node, "1"))
    missing = logs("2")
    missing["spec"]["template"]["spec"]["containers"][0]["image"] = "docker.io/library/later:1"
    node.drop(missing)
    wait(lambda: "; the old pod keeps running" in node.said(), "it is logged")
    assert world.is_alive(pid)
    node.kill9()
    said = len(node.said())
    node.start()
    wait(lambda: "; the old pod keeps running" in node.said()[said:], "it is logged again")
    assert world.is_alive(pid)
    later = str(tmp_path / "later.tar")
    subprocess.run([os.path.join(harness.TOP, "tests", "make-image"), "docker.io/library/later:1", later], check=True)
    node.preload(later)
    wait_version(node, "2")
    assert not world.is_alive(pid)


def test_unreadable_revision_stops_no_pod(node):
    for version in "12":
        node.drop(logs(version))
        wait_version(node, version)
    run_cli(node, "rollout", "undo", "ds/logs")
    pid = init_of(node, wait_version(node, "1"))
    node.kill9()
    path, = (f"{node.state}/daemonsets/{name}" for name in os.listdir(f"{node.state}/daemonsets"))
    with open(path, encoding="utf-8") as file:
        text = file.read().rsplit("\n", 2)[0].replace('"name":"main"', '"title":"main"') + "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text + hashlib.sha256(text.encode()).hexdigest() + "\n")
    node.start()
    node.drop(specs.pod("later"))
    node.wait_running("later")
    assert "Cannot sync DaemonSet 'default/logs'" in node.said(), node.said()
    assert world.is_alive(pid)
    node.remove("later")
    node.wait_gone("later")


def test_diff_reports_a_new_revision(node, tmp_path):
    def differs(daemonset):
        path = tmp_path / "file.yaml"
        path.write_text(specs.text(daemonset))
        answer = node.cli("diff", str(path))
        return answer.returncode, answer.stdout
    node.drop(logs("1"))
    wait_version(node, "1")
    assert differs(logs("1")) == (0, "daemonset default/logs: unchanged\n")
    assert differs(logs("2")) == (1, "daemonset default/logs: is a new revision; its pod is replaced, the old one "
                                     "terminates first\n")
    assert differs(logs("2", **surge()))[1].endswith("the new one starts first\n")
    assert differs(specs.daemonset("other")) == (1, "daemonset default/other: does not run on node1\n")
