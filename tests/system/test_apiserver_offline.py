# SPDX-License-Identifier: Apache-2.0
"""The API server is unreachable, returns, or reports an implausible list."""

import shutil
import time

import os
import specs
import world
from harness import NODE_NAME
from world import wait

TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"


def reboot(member):
    """Removes everything that a boot removes: processes, mounts, the contents of /run. The state directory is kept."""
    member.kill9()
    found = [pid for pid in world.pids() if member.is_ours(pid)] + world.pids_of_root(member.cgroup_root)
    world.kill_all(found)
    wait(lambda: not [pid for pid in found if world.is_alive(pid)], "nothing runs")
    for mount in reversed(world.mounts()):
        if member.run in mount["at"]:
            os.system(f"umount --lazy {mount['at']}")
    wait(lambda: not world.pids_of_root(member.cgroup_root), "the cgroups are empty")
    world.remove_cgroups(member.cgroup_root)
    shutil.rmtree(member.run)
    os.mkdir(member.run)


def wait_kept(member, name, *objects):
    """Waits until the disk has all objects of a pod that starts without the server: its token, its objects, and the
    services."""
    uid = member.reported(name)["metadata"]["uid"]

    def find_missing():
        kept = {file for _, _, files in os.walk(os.path.join(member.state, "cluster")) for file in files}
        token = [] if any(file.startswith(f"{uid}_") for file in kept) else ["its token"]
        return token + sorted({"services", "configmap_default_kube-root-ca.crt", *objects} - kept)
    wait(lambda: not find_missing(), lambda: f"the objects that {name} needs are stored, including {find_missing()}")


def test_boot_without_the_server_starts_all_bound_pods(make_member):
    member = make_member()
    member.api.create("configmaps", {"metadata": {"name": "settings"}, "data": {"color": "red"}})
    member.api.create("services", {"metadata": {"name": "db"}, "spec": {"clusterIP": "10.0.0.7",
                                                                       "ports": [{"port": 5432, "protocol": "TCP"}]}})
    member.bind("web", specs.container(volumeMounts=[specs.mount("s", "/settings")]),
                volumes=[{"name": "s", "configMap": {"name": "settings"}}])
    member.wait_reported_phase("web", "Running")
    wait(lambda: "10.0.0.7" in (world.read(os.path.join(member.state, "cluster", "services")) or ""), "the services are kept")
    wait_kept(member, "web", "configmap_default_settings")
    uid = member.reported("web")["metadata"]["uid"]
    member.api.stop()
    reboot(member)
    member.start()
    member.wait_running("web")
    pid = member.init("web")
    root = f"/proc/{pid}/root"
    assert member.pod("web")["metadata"]["uid"] == uid
    assert world.read(f"{root}/settings/color") == "red"
    assert world.read(f"{root}{TOKENS}/token")
    assert world.environ(pid)["DB_SERVICE_HOST"] == "10.0.0.7"
    member.api.start()
    member.launch(specs.pod("own"))
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    assert member.init("web") == pid


def optional_environment(name):
    return {"envFrom": [{"configMapRef": {"name": name, "optional": True}}]}


def test_boot_without_the_server_starts_a_pod_whose_optional_object_does_not_exist(make_member):
    member = make_member()
    member.bind("web", specs.container(**optional_environment("absent")))
    member.wait_reported_phase("web", "Running")
    wait_kept(member, "web", "configmap_default_absent")
    member.api.stop()
    reboot(member)
    member.start()
    member.wait_running("web")
    member.api.start()


def test_object_created_while_no_agent_ran_is_not_considered_missing(make_member):
    member = make_member()
    member.bind("web", specs.container(**optional_environment("late")))
    member.wait_reported_phase("web", "Running")
    wait_kept(member, "web", "configmap_default_late")
    member.kill9()
    member.api.create("configmaps", {"metadata": {"name": "late"}, "data": {"COLOR": "red"}})
    member.bind("second", specs.container(**optional_environment("late")))
    member.start()
    member.wait_reported_phase("second", "Running")
    assert world.environ(member.init("second"))["COLOR"] == "red"


def test_object_whose_name_is_too_long_for_a_file_is_cached_too(make_member):
    member = make_member()
    long = "a" * 253
    member.api.create("configmaps", {"metadata": {"name": "settings"}, "data": {"SHORT": "red"}})
    member.api.create("configmaps", {"metadata": {"name": long}, "data": {"LONG": "blue"}})
    member.bind("before", specs.container(envFrom=[{"configMapRef": {"name": "b" * 253, "optional": True}}]))
    member.wait_reported_phase("before", "Running")
    member.bind("web", specs.container(envFrom=[{"configMapRef": {"name": name}} for name in (long, "settings")]))
    member.wait_reported_phase("web", "Running")
    wait_kept(member, "web", "configmap_default_settings")
    member.api.stop()
    reboot(member)
    member.start()
    member.wait_running("web")
    environ = world.environ(member.init("web"))
    assert environ["LONG"] == "blue" and environ["SHORT"] == "red"


def test_succeeded_pod_does_not_run_again_after_a_boot(make_member):
    member = make_member()
    member.bind("job", specs.container(script="echo once >> /data/runs"), restartPolicy="Never",
                volumes=[specs.host_path("d", member.data)])
    member.api.delete("pods", "default", "job", grace=0)
    member.bind("work", specs.container(script="echo once >> /data/runs", volumeMounts=[specs.mount("d", "/data")]),
                restartPolicy="Never", volumes=[specs.host_path("d", member.data)])
    member.wait_reported_phase("work", "Succeeded")
    member.api.stop()
    reboot(member)
    member.start()
    member.launch(specs.pod("own"))
    assert world.read(os.path.join(member.data, "runs")) == "once\n"
    member.api.start()
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    assert world.read(os.path.join(member.data, "runs")) == "once\n"
    assert member.reported("work")["status"]["phase"] == "Succeeded"


def test_pod_recreated_while_disconnected_replaces_the_old_one(make_member):
    member = make_member()
    script = "echo $$ starts >> /data/order; trap 'sleep 1; echo $$ stops >> /data/order; exit 0' TERM; sleep 1000 & wait"
    fields = {"volumes": [specs.host_path("d", member.data)], "terminationGracePeriodSeconds": 20}
    member.bind("web", specs.container(script=script.replace("$$", "old"), volumeMounts=[specs.mount("d", "/data")]), **fields)
    member.wait_reported_phase("web", "Running")
    member.wait_trap("web")
    old = member.reported("web")["metadata"]["uid"]
    member.kill9()
    member.api.delete("pods", "default", "web", grace=0)
    member.bind("web", specs.container(script=script.replace("$$", "new"), volumeMounts=[specs.mount("d", "/data")]), **fields)
    member.start()
    member.wait_reported("web", lambda pod: pod["status"].get("phase") == "Running" and pod["metadata"]["uid"] != old,
                     "runs")
    wait(lambda: world.read(os.path.join(member.data, "order")) == "old starts\nold stops\nnew starts\n",
         lambda: f"the pods start one after the other: {world.read(os.path.join(member.data, 'order'))}")


def test_empty_list_is_read_again_before_a_pod_is_stopped(make_member):
    member = make_member()
    for name in ("one", "two", "three"):
        member.bind(name)
    for name in ("one", "two", "three"):
        member.wait_reported_phase(name, "Running")
    pids = [member.init(name) for name in ("one", "two", "three")]
    lists = len(member.api.asked("list", "pods"))
    member.api.misbehave(times=1, verb="list", plural="pods", empty=True)
    member.restart()
    wait(lambda: len(member.api.asked("list", "pods")) >= lists + 2, "the list is requested again")
    assert [member.init(name) for name in ("one", "two", "three")] == pids
    assert all(world.is_alive(pid) for pid in pids)
    assert "omits more than half of the pods" in member.said()


def test_pods_missing_in_two_lists_are_stopped(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    pid = member.init("web")
    member.kill9()
    member.api.delete("pods", "default", "web", grace=0)
    member.start()
    wait(lambda: not world.is_alive(pid), "the pod is stopped")
    member.wait_gone("web")


def test_invalid_kubeconfig_is_reported_and_static_pods_run(make_member):
    member = make_member(start=False)
    good = world.read(member.kubeconfig)
    with open(member.kubeconfig, "w", encoding="utf-8") as file:
        file.write("apiVersion: v1\nkind: Config\nclusters: 7\n")
    member.start()
    member.launch(specs.pod("own"))
    wait(lambda: f"{member.kubeconfig}:1:1: current-context: is required" in member.said(), member.said)
    with open(member.kubeconfig, "w", encoding="utf-8") as file:
        file.write(good)
    member.agent.send_signal(1)
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")


def take_kubeconfig_away(member):
    os.rename(member.kubeconfig, member.kubeconfig + ".away")


def bring_kubeconfig_back(member):
    os.rename(member.kubeconfig + ".away", member.kubeconfig)


def test_events_before_the_kubeconfig_reach_the_server(make_member):
    member = make_member(start=False)
    take_kubeconfig_away(member)
    member.start()
    member.launch(specs.pod("own"))
    uid = member.pod("own")["metadata"]["uid"]
    assert not member.api.requests
    bring_kubeconfig_back(member)

    def started():
        return [event for event in member.api.all("events", "default")
                if event["reason"] == "Started" and event["involvedObject"]["uid"] == uid]
    (event,) = wait(started, lambda: f"the event is reported; there are {member.api.all('events')}\n{member.said()[-3000:]}")
    assert event["count"] == 1


def test_token_needed_before_the_kubeconfig_is_requested(make_member):
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    wait_kept(member, "web")
    member.kill9()
    shutil.rmtree(os.path.join(member.state, "cluster", "tokens"))
    take_kubeconfig_away(member)
    reboot(member)
    asked = len(member.api.requests)
    member.start()
    wait(lambda: "the API server has not issued a token yet" in member.cli("describe", "pod", "web").stdout,
         lambda: f"it waits for its token:\n{member.cli('describe', 'pod', 'web').stdout}\n{member.said()[-3000:]}")
    assert len(member.api.requests) == asked and member.find_init("web") is None
    bring_kubeconfig_back(member)
    member.wait_running("web")
    assert world.read(f"/proc/{member.init('web')}/root{TOKENS}/token")


def test_token_expired_without_a_kubeconfig_is_refreshed_later(make_member):
    member = make_member()
    member.api.api.token_life = 12
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    end = time.monotonic() + member.api.api.token_life
    take_kubeconfig_away(member)
    member.restart()
    pid = member.init("web")

    def token():
        return world.read(f"/proc/{pid}/root{TOKENS}/token")
    old = token()
    wait(lambda: time.monotonic() > end, "the token has expired")
    assert member.is_ready() and token() == old
    bring_kubeconfig_back(member)
    wait(lambda: token() not in (old, None, ""), lambda: f"the token has changed\n{member.said()[-3000:]}")
    assert member.init("web") == pid


def test_forced_deletion_during_the_grace_period_stops_at_once(make_member):
    member = make_member()
    member.bind("slow", specs.container(script="trap '' TERM; while :; do sleep 1; done"), terminationGracePeriodSeconds=600)
    member.wait_reported_phase("slow", "Running")
    pid = member.init("slow")
    member.api.delete("pods", "default", "slow")
    wait(lambda: (member.pod("slow") or {}).get("metadata", {}).get("deletionTimestamp"), "it is being stopped")
    time.sleep(0.2)
    assert world.is_alive(pid)
    member.api.delete("pods", "default", "slow", grace=0)
    wait(lambda: not world.is_alive(pid), "it is killed")
    member.wait_reported_gone("slow")


def test_patched_image_restarts_one_container_and_patched_labels_none(make_member):
    member = make_member()
    member.bind("web", specs.container("main"), specs.container("side"))
    member.wait_reported_phase("web", "Running")
    main, side = member.init("web"), member.init("web", "side")
    member.api.patch("pods", "default", "web", {"metadata": {"labels": {"color": "blue"}}})
    wait(lambda: member.pod("web")["metadata"].get("labels", {}).get("color") == "blue", "the label is known")
    member.api.patch("pods", "default", "web", {"spec": {"containers": [{"name": "side", "image": "docker.io/library/busybox:1@sha256:" + "0" * 64}]}})
    member.wait_waiting("web", "ErrImagePull", "side")
    assert member.init("web") == main and world.is_alive(main)
    member.api.patch("pods", "default", "web", {"spec": {"containers": [{"name": "side", "image": specs.IMAGE}]}})
    wait(lambda: member.find_init("web", "side") not in (None, side), "it runs again")
    assert member.init("web") == main


def test_services_are_kept_while_they_change_all_the_time(make_member):
    member = make_member()
    api, kept = member.api, os.path.join(member.state, "cluster", "services")
    api.create("services", {"metadata": {"name": "db"}, "spec": {"clusterIP": "10.0.0.7", "ports": [{"port": 5432}]}})
    wait(lambda: "10.0.0.7" in (world.read(kept) or ""), "the services are kept")

    def change():
        api.patch("services", "default", "db", {"spec": {"ports": [{"port": 1000 + time.monotonic_ns() % 60000}]}})
        return '"new"' in world.read(kept)
    api.create("services", {"metadata": {"name": "new"}, "spec": {"clusterIP": "10.0.0.8", "ports": [{"port": 80}]}})
    wait(change, "the new service is stored although the other one changes")
