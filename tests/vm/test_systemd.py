# SPDX-License-Identifier: Apache-2.0
"""Pods and systemd: units of shims, slices of pods, the journal, and reloads of the manager."""

import json

from pods import MANIFESTS, SCRIPT, end, get, group, launch, process, show, uid, wait_asleep, wait_running, write
import pytest
import specs

pytestmark = pytest.mark.long


def test_shim_of_a_pod_is_a_unit_that_is_removed_with_the_pod(machine):
    launch(machine, "first")
    unit = f"mainstay-pod-{uid(machine, 'first')}.service"
    properties = show(machine, unit, "Description", "Slice", "ActiveState", "MainPID", "Before")
    assert properties["Description"] == "Mainstay pod default/first-machine"
    assert properties["Slice"] == "mainstay.slice"
    assert properties["ActiveState"] == "active"
    assert "mainstay.service" in properties["Before"].split()
    assert machine.run(f"cut -d ' ' -f 4 /proc/{properties['MainPID']}/stat").strip() == "1"
    end(machine, "first")
    machine.wait(f"! systemctl list-units --all --plain | grep {unit}", "the unit is unloaded")


def test_pod_starts_during_repeated_daemon_reloads(machine):
    machine.run("systemd-run --unit=reloads --quiet bash -c 'while :; do systemctl daemon-reload; done'")
    launch(machine, "reloaded")
    machine.run("systemctl stop reloads")
    end(machine, "reloaded")


def test_pod_starts_after_daemon_reexec(machine):
    launch(machine, "before")
    machine.run("systemctl daemon-reexec")
    launch(machine, "after")
    wait_running(machine, "before")
    end(machine, "before")
    end(machine, "after")


def test_killed_shim_is_restarted_by_systemd(machine):
    launch(machine, "shot")
    old = machine.run("pgrep -x sleep").strip()
    unit = f"mainstay-pod-{uid(machine, 'shot')}.service"
    machine.run(f"kill -KILL $(systemctl show -P MainPID {unit})")
    machine.wait(f'pid=$(pgrep -x sleep) && [ "$pid" != {old} ] && [ ! -e /proc/{old} ]', "only another container runs")
    wait_running(machine, "shot")
    assert show(machine, unit, "ActiveState")["ActiveState"] == "active"
    end(machine, "shot")


def values(machine, directory):
    return machine.run(f"cd /sys/fs/cgroup{directory} && grep -H . cpu.weight cpu.max memory.max pids.max "
                       "hugetlb.2MB.max memory.oom.group")


def test_pods_run_in_slices_with_their_limits(machine):
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
    assert scope.startswith(f"{group(machine, 'limited')}/cri-containerd-") and scope.endswith(".scope")
    assert machine.run(f"cat /sys/fs/cgroup{scope}/memory.max").strip() == str(64 << 20)
    assert machine.run(f"cat /sys/fs/cgroup{scope}/pids.max").strip() == "max"
    assert machine.run(f"cat /sys/fs/cgroup{scope}/memory.oom.group").strip() == "1"


def test_daemon_reload_does_not_change_control_groups(machine):
    scope = machine.run("cut -d : -f 3 /proc/$(pgrep -x sleep)/cgroup").strip()
    slices = [group(machine, "limited"), "/kubepods.slice/kubepods-burstable.slice"]
    before = [values(machine, one) for one in [scope, *slices]]
    machine.run("systemctl daemon-reload && systemctl daemon-reexec")
    launch(machine, "other")  # makes systemd update all units
    end(machine, "other")
    assert [values(machine, one) for one in [scope, *slices]] == before
    wait_running(machine, "limited")


def test_edited_limits_survive_a_daemon_reload(machine):
    launch(machine, "edited", resources={"limits": {"cpu": "200m", "memory": "64Mi"}})
    before = machine.run("pgrep -x sleep | tail -n 1").strip()
    scope = machine.run(f"cut -d : -f 3 /proc/{before}/cgroup").strip()
    pod = specs.pod("edited", specs.container(script=SCRIPT, resources={"limits": {"cpu": "355m", "memory": "80Mi"}}))
    machine.write(f"{MANIFESTS}/edited.yaml", specs.text(pod))
    for directory in scope, group(machine, "edited"):
        machine.wait(f"grep -x '36000 100000' /sys/fs/cgroup{directory}/cpu.max", "the edit is applied")
    machine.run("systemctl daemon-reload && systemctl daemon-reexec")
    for directory in scope, group(machine, "edited"):
        assert machine.run(f"cd /sys/fs/cgroup{directory} && cat cpu.max memory.max").split("\n")[:2] == \
            ["36000 100000", str(80 << 20)]
    assert machine.ask(f"test -e /proc/{before}")[0] == 0
    end(machine, "edited")


def test_container_without_enough_memory_is_oom_killed(machine):
    pod = specs.pod("greedy", specs.container(script="exec tail /dev/zero", resources={"limits": {"memory": "16Mi"}}))
    machine.write(f"{MANIFESTS}/greedy.yaml", specs.text(pod))
    machine.wait("mainstay get pod greedy-machine -o json | grep OOMKilled", "the reason is reported")
    end(machine, "greedy")


def test_pod_of_the_other_cgroup_driver_continues_and_is_removed_completely(machine):
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
    machine.wait("mainstay get pods | grep -E '^limited-machine +1/1 +Running +1 '", "the container has restarted")
    assert machine.run(f"cat /sys/fs/cgroup{old}/*.scope/memory.max").strip() == str(64 << 20)
    machine.write("/etc/mainstay/config.yaml", config)
    machine.run("systemctl restart mainstay")
    wait_running(machine, "plain")
    end(machine, "limited")
    end(machine, "plain")
    machine.wait("[ -z \"$(find /sys/fs/cgroup -name '*kubepods*')\" ]", "no control group remains")
    machine.wait("! systemctl list-units --all --plain --no-legend | grep -E 'kubepods|mainstay-(pod|.*scope)|cri-containerd-'", "no unit remains")


def test_sandboxing_of_the_service_does_not_apply_to_containers(machine):
    output = machine.run("systemd-analyze security --no-pager mainstay.service | tail -n 1")
    assert float(output.split(":")[1].split()[0]) <= 3.0, output
    pod = specs.pod("free", {**specs.container(script=SCRIPT), "securityContext": {"privileged": True}})
    machine.write(f"{MANIFESTS}/free.yaml", specs.text(pod))
    wait_asleep(machine, "free")
    status = machine.run("cat /proc/$(pgrep -x sleep)/status")
    assert "NoNewPrivs:\t0" in status and "Seccomp:\t0" in status
    assert "CapBnd:\t" + machine.run("sed -n 's/^CapBnd:\t//p' /proc/1/status") in status
    assert machine.run("ls -l /proc/$(pgrep -x sleep)/ns/mnt /proc/$(systemctl show -P MainPID mainstay)/ns/mnt "
                       "| sed 's/.*-> //' | sort -u | wc -l").strip() == "2"
    end(machine, "free")


def fields(machine, *matches):
    """The entries of the agent's journal."""
    output = machine.run("journalctl --no-pager -o json -u mainstay " + " ".join(matches))
    return [json.loads(line) for line in output.splitlines()]


def test_journal_entries_have_pod_and_container_fields_and_a_catalog_entry(machine):
    launch(machine, "restarted")
    machine.run("kill -KILL $(pgrep -x sleep)")
    machine.wait("mainstay get pods | grep -E '^restarted-machine +1/1 +Running +1 '", "the container has restarted")
    exits = [one for one in fields(machine, "CONTAINER_NAME=main", "POD_NAME=restarted-machine")
             if "exited with code" in one["MESSAGE"]]
    assert len(exits) == 1
    assert exits[0]["POD_NAMESPACE"] == "default" and exits[0]["POD_UID"] == uid(machine, "restarted")
    assert "Container main has " in machine.run(f"journalctl -x --no-pager MESSAGE_ID={exits[0]['MESSAGE_ID']} "
                                                     "POD_NAME=restarted-machine")
    end(machine, "restarted")


def lines(machine, name):
    """The output of a pod's containers in the journal."""
    output = machine.run(f"journalctl --sync; journalctl --no-pager --all -o json CONTAINER_NAME=main POD_NAME={name}-machine "
                       "_COMM=mainstay-shim")
    return [json.loads(line) for line in output.splitlines()]


def test_output_of_containers_is_in_the_journal_of_annotated_pods_only(machine):
    script = "echo hello; echo oh >&2; printf %020000d 0; exec sleep 100000"
    for name, says in ("spoken", "true"), ("silent", "false"):
        write(machine, specs.pod(name, specs.container(script=script), metadata={"annotations": {"mainstay.dev/journal-logs": says}}))
        wait_running(machine, name)
    machine.wait("journalctl --sync; [ $(journalctl -q CONTAINER_NAME=main POD_NAME=spoken-machine _COMM=mainstay-shim "
                 "-o cat | wc -l) = 3 ]", "all lines are in the journal")
    # Standard output and standard error are two pipes, which are read in no particular order.
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


def test_hanging_journal_does_not_block_containers(machine):
    script = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i + 1)); done; echo all >/tmp/all; exec sleep 100000"
    machine.run("systemctl kill -s STOP systemd-journald")
    try:
        write(machine, specs.pod("loud", specs.container(script=script), metadata={"annotations": {"mainstay.dev/journal-logs": "true"}}))
        machine.wait("tail -n 1 /var/log/pods/default_loud-machine_*/main/0.log | grep ' F line 19999$'", "the log file is complete")
    finally:
        machine.run("systemctl kill -s CONT systemd-journald")
    machine.wait("journalctl -q CONTAINER_NAME=main POD_NAME=loud-machine -o cat | grep -E 'line 1$'", "the journal receives lines again")
    end(machine, "loud")


# Fills the queue of a journal that does not read. A single socket may not be able to send enough for that.
FILL = """perl -MSocket -e 'for (1..8) {
    socket(S, AF_UNIX, SOCK_DGRAM, 0); connect(S, sockaddr_un("/run/systemd/journal/socket"));
    while (defined(send(S, "MESSAGE=filling\\n", MSG_DONTWAIT))) { }
}'
"""


def test_hanging_journal_blocks_neither_the_agent_nor_the_start_of_a_pod(machine):
    machine.write("/run/systemd/system/mainstay.service.d/watchdog.conf", "[Service]\nWatchdogSec=30\n")
    machine.run("systemctl daemon-reload; systemctl restart mainstay; systemctl kill -s STOP systemd-journald")
    try:
        old = show(machine, "mainstay", "MainPID")
        machine.run(FILL)
        launch(machine, "unheard")
        machine.run("sleep 36")
        wait_running(machine, "unheard")
        assert show(machine, "mainstay", "MainPID", "ActiveState") == {**old, "ActiveState": "active"}
    finally:
        machine.run("systemctl kill -s CONT systemd-journald; rm -r /run/systemd/system/mainstay.service.d; systemctl daemon-reload")
    end(machine, "unheard")
    machine.wait("journalctl -u mainstay -o cat | grep -E '^[1-9][0-9]* messages were lost$'", "the agent reports the number of lost messages")


def test_pod_restarts_when_its_units_are_stopped(machine):
    write(machine, specs.pod("stubborn", specs.container()))  # exits on SIGTERM
    wait_asleep(machine, "stubborn")
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


def test_pods_and_limits_are_restored_when_slices_are_stopped(machine):
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
            machine.wait(f"[ ! -e /proc/{before[name]} ]", f"after the stop of {unit} the container of {name} has exited")
            wait_running(machine, name)
        machine.wait("\n".join(["set -e", *(f"cd /sys/fs/cgroup{one}; " + "; ".join(
            f"grep -qx '{value}' {file}" for file, value in (line.split(":", 1) for line in has.splitlines()))
            for one, has in zip(groups, files))]), f"after the stop of {unit} all limits are set again")
        assert [show(machine, one.rsplit("/", 1)[1], *has) for one, has in zip(groups, units)] == units
    end(machine, "limited")
    end(machine, "modest")


def test_isolating_a_target_does_not_stop_pods(machine):
    launch(machine, "kept")
    before = machine.run("pgrep -x sleep").strip()
    machine.run("systemctl isolate multi-user.target && systemctl is-active mainstay")
    wait_running(machine, "kept")
    assert machine.run("pgrep -x sleep").strip() == before
    end(machine, "kept")


def test_repeated_restarts_during_pod_start_do_not_start_containers_twice(machine):
    names = [f"p{i}" for i in range(6)]
    for name in names:
        write(machine, specs.pod(name, specs.container(script=SCRIPT)))
    for _ in range(3):
        machine.run("systemctl restart mainstay; sleep 0.3; systemctl kill -s KILL mainstay; sleep 1")
    machine.run("dpkg --force-confold --install /opt/test/mainstay_*.deb")
    for name in names:
        wait_asleep(machine, name)
    assert len(machine.run("pgrep -x sleep").split()) == len(names)
    assert {get(machine, name)["status"]["containerStatuses"][0]["restartCount"] for name in names} == {0}
    for name in names:
        end(machine, name)


def test_reload_applies_new_labels_and_completes(machine):
    old = machine.run("systemctl show -P MainPID mainstay")
    machine.run("sed -i '$ a mainstay: {nodeLabels: {size: large}}' /etc/mainstay/config.yaml; systemctl reload mainstay")
    machine.wait("journalctl -u mainstay --no-pager -o cat | grep 'Labels or taints of the node changed'", "the new labels are in use")
    machine.wait("systemctl is-active mainstay", "the service is active again")
    assert machine.run("systemctl show -P MainPID mainstay") == old


def test_ready_target_is_reached_when_bootstrap_pods_are_ready(machine):
    pod = specs.pod("first", {**specs.container(script=SCRIPT),
                              "readinessProbe": {"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1, "timeoutSeconds": 60}})
    pod["metadata"]["annotations"] = {"mainstay.dev/bootstrap": "true"}
    machine.write(f"{MANIFESTS}/first.yaml", specs.text(pod))
    machine.wait("mainstay get pods | grep -E '^first-machine +0/1 +Running'", "it runs and is not ready")
    machine.run("systemctl start --no-block mainstay-ready.target")
    machine.wait("[ $(systemctl show -P ActiveState mainstay-ready.service) = activating ]", "the unit waits for the pod")
    assert machine.ask("systemctl is-active mainstay-ready.target")[0] != 0
    machine.run("systemctl restart mainstay")
    machine.run("mainstay exec first-machine -c main -- touch /ready")
    machine.wait("systemctl is-active mainstay-ready.target", "the target is reached")
    assert "1/1" in machine.run("mainstay get pods | grep first")
    end(machine, "first")


def test_healthy_target_holds_back_the_completion_of_the_boot_once_it_is_enabled(machine):
    assert machine.ask("systemctl is-enabled mainstay-healthy.target")[1].strip() == "disabled"
    pod = specs.pod("till", {**specs.container(script=SCRIPT),
                             "readinessProbe": {"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1, "timeoutSeconds": 60}})
    pod["metadata"]["annotations"] = {"mainstay.dev/critical": "true"}
    machine.write(f"{MANIFESTS}/till.yaml", specs.text(pod))
    machine.wait("mainstay get pods | grep -E '^till-machine +0/1 +Running'", "it runs and is not ready")
    machine.run("systemctl enable mainstay-healthy.target; systemctl start --no-block boot-complete.target")
    machine.wait("[ $(systemctl show -P ActiveState mainstay-healthy.service) = activating ]", "the unit waits for the pod")
    assert machine.ask("systemctl is-active boot-complete.target")[0] != 0
    machine.run("mainstay exec till-machine -c main -- touch /ready")
    machine.wait("systemctl is-active boot-complete.target", "the boot is complete")
    assert machine.ask("systemctl is-active mainstay-healthy.target")[0] == 0
    machine.run("systemctl stop boot-complete.target mainstay-healthy.target mainstay-healthy.service")
    machine.run("mainstay exec till-machine -c main -- rm /ready")
    machine.wait("mainstay get pods | grep -E '^till-machine +0/1 +Running'", "it is no longer ready")
    machine.run("mkdir -p /run/systemd/system/mainstay-healthy.service.d")
    machine.write("/run/systemd/system/mainstay-healthy.service.d/soon.conf", "[Service]\nTimeoutStartSec=3\n")
    machine.run("systemctl daemon-reload")
    assert machine.ask("systemctl start boot-complete.target")[0] != 0, "the boot is not complete"
    machine.run("systemctl disable mainstay-healthy.target; rm -r /run/systemd/system/mainstay-healthy.service.d; "
                "systemctl daemon-reload; systemctl reset-failed mainstay-healthy.service")
    end(machine, "till")
