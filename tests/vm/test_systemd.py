# SPDX-License-Identifier: Apache-2.0
"""Pods as citizens of systemd: who starts them, where they live, and what a manager that reloads does to them."""

import json

from pods import MANIFESTS, SCRIPT, end, get, group, launch, process, show, uid, wait_running, write
import pytest
import specs

pytestmark = pytest.mark.long


def test_a_pods_shim_is_a_unit_of_its_own_that_is_gone_with_the_pod(machine):
    launch(machine, "first")
    unit = f"mainstay-pod-{uid(machine, 'first')}.service"
    properties = show(machine, unit, "Description", "Slice", "ActiveState", "MainPID", "Before")
    assert properties["Description"] == "Mainstay pod default/first-machine"
    assert properties["Slice"] == "mainstay.slice"
    assert properties["ActiveState"] == "active"
    assert "mainstay.service" in properties["Before"].split()
    assert machine.run(f"cut -d ' ' -f 4 /proc/{properties['MainPID']}/stat").strip() == "1"
    end(machine, "first")
    machine.wait(f"! systemctl list-units --all --plain | grep {unit}", "the unit is forgotten")


def test_a_pod_starts_while_systemd_reloads_again_and_again(machine):
    machine.run("systemd-run --unit=reloads --quiet bash -c 'while :; do systemctl daemon-reload; done'")
    launch(machine, "reloaded")
    machine.run("systemctl stop reloads")
    end(machine, "reloaded")


def test_a_pod_starts_after_systemd_has_executed_itself_anew(machine):
    launch(machine, "before")
    machine.run("systemctl daemon-reexec")
    launch(machine, "after")
    wait_running(machine, "before")
    end(machine, "before")
    end(machine, "after")


def test_a_shim_that_is_killed_is_started_again_by_systemd(machine):
    launch(machine, "shot")
    old = machine.run("pgrep -x sleep").strip()
    unit = f"mainstay-pod-{uid(machine, 'shot')}.service"
    machine.run(f"kill -KILL $(systemctl show -P MainPID {unit})")
    machine.wait(f'pid=$(pgrep -x sleep) && [ "$pid" != {old} ] && [ ! -e /proc/{old} ]', "another container runs, alone")
    wait_running(machine, "shot")
    assert show(machine, unit, "ActiveState")["ActiveState"] == "active"
    end(machine, "shot")


def values(machine, directory):
    return machine.run(f"cd /sys/fs/cgroup{directory} && grep -H . cpu.weight cpu.max memory.max pids.max "
                       "hugetlb.2MB.max memory.oom.group")


def test_pods_live_in_slices_that_have_their_limits(machine):
    machine.write("/etc/mainstay/config.yaml", "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"
                  "podPidsLimit: 100\n")
    machine.run("systemctl restart mainstay")
    launch(machine, "limited", resources={"requests": {"cpu": "100m"}, "limits": {"cpu": "235m", "memory": "64Mi"}})
    pod = uid(machine, "limited").replace("-", "_")
    assert group(machine, "limited") == f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{pod}.slice"
    slice_ = show(machine, f"kubepods-burstable-pod{pod}.slice", "CPUWeight", "CPUQuotaPerSecUSec", "MemoryMax",
                  "TasksMax", "ActiveState")
    assert slice_ == {"CPUWeight": "4", "CPUQuotaPerSecUSec": "240ms", "MemoryMax": str(64 << 20), "TasksMax": "100",
                      "ActiveState": "active"}
    files = dict(line.split(":", 1) for line in values(machine, group(machine, "limited")).splitlines())
    assert files == {"cpu.weight": "4", "cpu.max": "24000 100000", "memory.max": str(64 << 20), "pids.max": "100",
                     "hugetlb.2MB.max": "0", "memory.oom.group": "0"}
    assert show(machine, "kubepods-burstable.slice", "CPUWeight")["CPUWeight"] == "4"
    scope = machine.run("cut -d : -f 3 /proc/$(pgrep -x sleep)/cgroup").strip()
    assert scope.startswith(f"{group(machine, 'limited')}/mainstay-") and scope.endswith(".scope")
    assert machine.run(f"cat /sys/fs/cgroup{scope}/memory.max").strip() == str(64 << 20)
    assert machine.run(f"cat /sys/fs/cgroup{scope}/pids.max").strip() == "max"
    assert machine.run(f"cat /sys/fs/cgroup{scope}/memory.oom.group").strip() == "1"


def test_a_daemon_reload_changes_nothing_in_the_groups(machine):
    scope = machine.run("cut -d : -f 3 /proc/$(pgrep -x sleep)/cgroup").strip()
    slices = [group(machine, "limited"), "/kubepods.slice/kubepods-burstable.slice"]
    before = [values(machine, one) for one in [scope, *slices]]
    machine.run("systemctl daemon-reload && systemctl daemon-reexec")
    launch(machine, "other")  # makes systemd look at all of them
    end(machine, "other")
    assert [values(machine, one) for one in [scope, *slices]] == before
    wait_running(machine, "limited")


def test_an_edit_of_limits_outlives_a_daemon_reload(machine):
    launch(machine, "edited", resources={"limits": {"cpu": "200m", "memory": "64Mi"}})
    before = machine.run("pgrep -x sleep | tail -n 1").strip()
    scope = machine.run(f"cut -d : -f 3 /proc/{before}/cgroup").strip()
    pod = specs.pod("edited", specs.container(script=SCRIPT, resources={"limits": {"cpu": "355m", "memory": "80Mi"}}))
    machine.write(f"{MANIFESTS}/edited.yaml", specs.text(pod))
    for directory in scope, group(machine, "edited"):
        machine.wait(f"grep -x '36000 100000' /sys/fs/cgroup{directory}/cpu.max", "the edit is in the files")
    machine.run("systemctl daemon-reload && systemctl daemon-reexec")
    for directory in scope, group(machine, "edited"):
        assert machine.run(f"cd /sys/fs/cgroup{directory} && cat cpu.max memory.max").split("\n")[:2] == \
            ["36000 100000", str(80 << 20)]
    assert machine.ask(f"test -e /proc/{before}")[0] == 0
    end(machine, "edited")


def test_a_container_that_had_too_little_memory_is_said_to_be_oom_killed(machine):
    pod = specs.pod("greedy", specs.container(script="exec tail /dev/zero", resources={"limits": {"memory": "16Mi"}}))
    machine.write(f"{MANIFESTS}/greedy.yaml", specs.text(pod))
    machine.wait("mainstay get pod greedy-machine -o json | grep OOMKilled", "the reason is told")
    end(machine, "greedy")


def test_a_pod_of_the_other_driver_runs_on_and_is_removed_whole(machine):
    config = machine.run("cat /etc/mainstay/config.yaml")
    before = machine.run("pgrep -x sleep").strip()
    old = group(machine, "limited")
    machine.write("/etc/mainstay/config.yaml", config + "cgroupDriver: cgroupfs\n")
    machine.run("systemctl restart mainstay")
    wait_running(machine, "limited")
    assert machine.run("pgrep -x sleep").strip() == before
    launch(machine, "plain")
    assert group(machine, "plain").startswith("/kubepods/besteffort/pod")
    machine.run(f"kill -KILL {before}")
    machine.wait("mainstay get pods | grep -E '^limited-machine +1/1 +Running +1 '", "it is started again")
    assert machine.run(f"cat /sys/fs/cgroup{old}/*.scope/memory.max").strip() == str(64 << 20)
    machine.write("/etc/mainstay/config.yaml", config)
    machine.run("systemctl restart mainstay")
    wait_running(machine, "plain")
    end(machine, "limited")
    end(machine, "plain")
    machine.wait("[ -z \"$(find /sys/fs/cgroup -name '*kubepods*')\" ]", "no group is left")
    machine.wait("! systemctl list-units --all --plain --no-legend | grep -E 'kubepods|mainstay-(pod|.*scope)'", "no unit is left")


def test_the_agent_is_confined_and_containers_are_not(machine):
    said = machine.run("systemd-analyze security --no-pager mainstay.service | tail -n 1")
    assert float(said.split(":")[1].split()[0]) <= 3.5, said
    pod = specs.pod("free", {**specs.container(script=SCRIPT), "securityContext": {"privileged": True}})
    machine.write(f"{MANIFESTS}/free.yaml", specs.text(pod))
    wait_running(machine, "free")
    status = machine.run("cat /proc/$(pgrep -x sleep)/status")
    assert "NoNewPrivs:\t0" in status and "Seccomp:\t0" in status
    assert "CapBnd:\t" + machine.run("sed -n 's/^CapBnd:\t//p' /proc/1/status") in status
    assert machine.run("ls -l /proc/$(pgrep -x sleep)/ns/mnt /proc/$(systemctl show -P MainPID mainstay)/ns/mnt "
                       "| sed 's/.*-> //' | sort -u | wc -l").strip() == "2"
    end(machine, "free")


def fields(machine, *matches):
    """What the journal has, an object a line."""
    said = machine.run("journalctl --no-pager -o json -u mainstay " + " ".join(matches))
    return [json.loads(line) for line in said.splitlines()]


def test_the_journal_finds_sentences_by_pod_and_container_and_explains_them(machine):
    launch(machine, "told")
    machine.run("kill -KILL $(pgrep -x sleep)")
    machine.wait("mainstay get pods | grep -E '^told-machine +1/1 +Running +1 '", "it is started again")
    ended = [one for one in fields(machine, "CONTAINER_NAME=main", "POD_NAME=told-machine") if "ended with" in one["MESSAGE"]]
    assert len(ended) == 1
    assert ended[0]["POD_NAMESPACE"] == "default" and ended[0]["POD_UID"] == uid(machine, "told")
    assert "Container main has ended" in machine.run(f"journalctl -x --no-pager MESSAGE_ID={ended[0]['MESSAGE_ID']} "
                                                     "POD_NAME=told-machine")
    end(machine, "told")


def lines(machine, name):
    """What of a pod's containers is in the journal."""
    said = machine.run(f"journalctl --sync; journalctl --no-pager --all -o json CONTAINER_NAME=main POD_NAME={name}-machine "
                       "_COMM=mainstay-shim")
    return [json.loads(line) for line in said.splitlines()]


def test_lines_of_containers_are_in_the_journal_where_a_pod_wishes_it(machine):
    script = "echo hello; echo oh >&2; printf %020000d 0; exec sleep 100000"
    for name, says in ("spoken", "true"), ("silent", "false"):
        write(machine, specs.pod(name, specs.container(script=script), metadata={"annotations": {"mainstay.dev/journal-logs": says}}))
        wait_running(machine, name)
    machine.wait("journalctl --sync; [ $(journalctl -q CONTAINER_NAME=main POD_NAME=spoken-machine _COMM=mainstay-shim "
                 "-o cat | wc -l) = 3 ]", "they are there")
    # Two pipes: which is read first is nobody's to say.
    (second,) = [one for one in lines(machine, "spoken") if one["MESSAGE"] == "oh"]
    first, third = [one for one in lines(machine, "spoken") if one["MESSAGE"] != "oh"]
    status = get(machine, "spoken")["status"]["containerStatuses"][0]
    identity = status["containerID"].rsplit("/", 1)[1]
    assert (first["MESSAGE"], first["PRIORITY"]) == ("hello", "6") and (second["MESSAGE"], second["PRIORITY"]) == ("oh", "3")
    assert third["MESSAGE"] == 16384 * "0" and third["CONTAINER_PARTIAL_MESSAGE"] == "true"
    assert {first[key] for key in ("CONTAINER_ID_FULL", "POD_NAMESPACE", "POD_UID", "SYSLOG_IDENTIFIER")} == \
        {identity, "default", uid(machine, "spoken"), "main"} and first["CONTAINER_ID"] == identity[:12]
    assert first["_SYSTEMD_UNIT"] == f"mainstay-pod-{uid(machine, 'spoken')}.service"
    assert lines(machine, "silent") == []
    assert "hello" in machine.run("mainstay logs silent-machine")
    end(machine, "spoken")
    end(machine, "silent")


def test_a_journal_that_stands_still_holds_up_no_container(machine):
    script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); done; echo all >/tmp/all; exec sleep 100000"
    machine.run("systemctl kill -s STOP systemd-journald")
    try:
        write(machine, specs.pod("loud", specs.container(script=script), metadata={"annotations": {"mainstay.dev/journal-logs": "true"}}))
        machine.wait("tail -n 1 /var/log/pods/default_loud-machine_*/main/0.log | grep ' F line 19999$'", "all of it is written")
    finally:
        machine.run("systemctl kill -s CONT systemd-journald")
    machine.wait("journalctl -q CONTAINER_NAME=main POD_NAME=loud-machine -o cat | grep -E 'line 1$'", "it goes on")
    end(machine, "loud")


# Sends the journal more than it takes while it does not read, by several sockets: each alone may send only so much.
FILL = """perl -MSocket -e 'for (1..8) {
    socket(S, AF_UNIX, SOCK_DGRAM, 0); connect(S, sockaddr_un("/run/systemd/journal/socket"));
    while (defined(send(S, "MESSAGE=filling\\n", MSG_DONTWAIT))) { }
}'
"""


def test_a_journal_that_stands_still_holds_up_neither_the_agent_nor_the_start_of_a_pod(machine):
    machine.write("/run/systemd/system/mainstay.service.d/watchdog.conf", "[Service]\nWatchdogSec=10\n")
    machine.run("systemctl daemon-reload; systemctl restart mainstay; systemctl kill -s STOP systemd-journald")
    try:
        old = show(machine, "mainstay", "MainPID")
        machine.run(FILL)
        launch(machine, "unheard")
        machine.run("sleep 12")
        wait_running(machine, "unheard")
        assert show(machine, "mainstay", "MainPID", "ActiveState") == {**old, "ActiveState": "active"}
    finally:
        machine.run("systemctl kill -s CONT systemd-journald; rm -r /run/systemd/system/mainstay.service.d; systemctl daemon-reload")
    end(machine, "unheard")
    machine.wait("journalctl -u mainstay -o cat | grep -E '^[1-9][0-9]* messages were lost$'", "the agent says that some are missing")


def test_whoever_stops_units_of_a_pod_does_not_end_it(machine):
    write(machine, specs.pod("stubborn", specs.container()))  # ends when systemd asks it to
    wait_running(machine, "stubborn")
    unit = f"mainstay-pod-{uid(machine, 'stubborn')}.service"
    for script in (f"systemctl stop {unit}", f"systemctl restart {unit}", f"systemctl kill -s KILL {unit}; systemctl reset-failed",
                   "systemctl stop mainstay.slice"):
        before = machine.run("pgrep -x sleep").strip()
        machine.ask(script)
        machine.wait(f"pid=$(pgrep -x sleep) && [ \"$pid\" != '{before}' ] && [ ! -e /proc/{before} ]",
                     f"after '{script}' another container runs, alone")
        wait_running(machine, "stubborn")
        assert show(machine, unit, "ActiveState") == {"ActiveState": "active"}
    end(machine, "stubborn")


def test_whoever_stops_slices_of_pods_ends_no_pod_and_takes_no_limit_away(machine):
    resources = {"requests": {"cpu": "100m"}, "limits": {"cpu": "235m", "memory": "64Mi"}}
    write(machine, specs.pod("limited", specs.container(resources=resources)))
    write(machine, specs.pod("modest", specs.container()))
    for name in "limited", "modest":
        wait_running(machine, name)
    qos = "/kubepods.slice/kubepods-burstable.slice", "/kubepods.slice/kubepods-besteffort.slice"
    groups = [group(machine, "limited"), group(machine, "modest"), *qos]
    files = [values(machine, one) for one in groups]
    units = [show(machine, one.rsplit("/", 1)[1], "CPUWeight", "CPUQuotaPerSecUSec", "MemoryMax", "TasksMax") for one in groups]
    for unit, script in ((groups[0].rsplit("/", 1)[1], "systemctl stop {}"), ("kubepods-besteffort.slice", "systemctl stop {}"),
                         ("kubepods.slice", "systemctl stop {}"),
                         ("kubepods-burstable.slice", "systemctl stop mainstay; systemctl stop {}; systemctl start mainstay")):
        hit = [name for name in ("limited", "modest") if unit in group(machine, name).split("/")]
        before = {name: process(machine, name) for name in hit}
        machine.run(script.format(unit))
        for name in hit:
            machine.wait(f"[ ! -e /proc/{before[name]} ]", f"after the stop of {unit} the container of {name} has ended")
            wait_running(machine, name)
        machine.wait("\n".join(["set -e", *(f"cd /sys/fs/cgroup{one}; " + "; ".join(
            f"grep -qx '{value}' {file}" for file, value in (line.split(":", 1) for line in has.splitlines()))
            for one, has in zip(groups, files))]), f"after the stop of {unit} all limits are in the files")
        assert [show(machine, one.rsplit("/", 1)[1], *has) for one, has in zip(groups, units)] == units
    end(machine, "limited")
    end(machine, "modest")


def test_going_to_another_target_and_back_stops_no_pod(machine):
    launch(machine, "kept")
    before = machine.run("pgrep -x sleep").strip()
    machine.run("systemctl isolate multi-user.target && systemctl is-active mainstay")
    wait_running(machine, "kept")
    assert machine.run("pgrep -x sleep").strip() == before
    end(machine, "kept")


def test_an_agent_that_is_stopped_again_and_again_while_pods_start_doubles_none(machine):
    names = [f"p{i}" for i in range(6)]
    for name in names:
        write(machine, specs.pod(name, specs.container(script=SCRIPT)))
    for _ in range(3):
        machine.run("systemctl restart mainstay; sleep 0.3; systemctl kill -s KILL mainstay; sleep 1")
    machine.run("dpkg --force-confold --install /opt/test/mainstay_*.deb")
    for name in names:
        wait_running(machine, name)
    assert len(machine.run("pgrep -x sleep").split()) == len(names)
    assert {get(machine, name)["status"]["containerStatuses"][0]["restartCount"] for name in names} == {0}
    for name in names:
        end(machine, name)


def test_a_reload_is_announced_and_ends(machine):
    old = machine.run("systemctl show -P MainPID mainstay")
    machine.run("sed -i '$ a mainstay: {nodeLabels: {size: large}}' /etc/mainstay/config.yaml; systemctl reload mainstay")
    machine.wait("journalctl -u mainstay --no-pager -o cat | grep 'Labels or taints of the node changed'", "the new labels are in use")
    machine.wait("systemctl is-active mainstay", "the service is as it was")
    assert machine.run("systemctl show -P MainPID mainstay") == old


def test_a_target_is_reached_when_the_bootstrap_pods_are_ready(machine):
    pod = specs.pod("first", {**specs.container(script=SCRIPT),
                              "readinessProbe": {"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1}})
    pod["metadata"]["annotations"] = {"mainstay.dev/bootstrap": "true"}
    machine.write(f"{MANIFESTS}/first.yaml", specs.text(pod))
    machine.wait("mainstay get pods | grep -E '^first-machine +0/1 +Running'", "it runs, and is not ready")
    machine.run("systemctl start --no-block mainstay-ready.target")
    machine.wait("[ $(systemctl show -P ActiveState mainstay-ready.service) = activating ]", "it is waited for")
    assert machine.ask("systemctl is-active mainstay-ready.target")[0] != 0
    machine.run("systemctl restart mainstay")
    machine.run("mainstay exec first-machine -c main -- touch /ready")
    machine.wait("systemctl is-active mainstay-ready.target", "the target is reached")
    assert "1/1" in machine.run("mainstay get pods | grep first")
    end(machine, "first")
