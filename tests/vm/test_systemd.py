# SPDX-License-Identifier: Apache-2.0
"""Pods as citizens of systemd: who starts them, where they live, and what a manager that reloads does to them."""

import json

import specs

SCRIPT = "exec sleep 100000"
MANIFESTS = "/etc/kubernetes/manifests"


def launch(machine, name, **fields):
    pod = specs.pod(name, specs.container(script=SCRIPT, **fields))
    machine.write(f"{MANIFESTS}/{name}.yaml", specs.text(pod))
    wait_running(machine, name)


def wait_running(machine, name):
    machine.wait(f"mainstay get pods | grep -E '^{name}-machine +1/1 +Running'", f"pod {name} runs")


def end(machine, name):
    machine.run(f"rm {MANIFESTS}/{name}.yaml")
    machine.wait(f"! mainstay get pods | grep -E '^{name}-machine '", f"pod {name} is gone")


def uid(machine, name):
    return json.loads(machine.run(f"mainstay get pod {name}-machine -o json"))["metadata"]["uid"]


def show(machine, unit, *properties):
    """What systemd knows of a unit."""
    said = machine.run(f"systemctl show {unit} " + " ".join(f"-p {one}" for one in properties))
    return dict(line.split("=", 1) for line in said.splitlines())


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


def group(machine, name):
    """Of the pod, in the file system."""
    return machine.run(f"cat /run/mainstay/pods/{uid(machine, name)}/cgroup").strip()


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


def test_a_reload_is_announced_and_ends(machine):
    old = machine.run("systemctl show -P MainPID mainstay")
    machine.run("sed -i '$ a mainstay: {nodeLabels: {size: large}}' /etc/mainstay/config.yaml; systemctl reload mainstay")
    machine.wait("journalctl -u mainstay --no-pager -o cat | grep 'other labels'", "the new labels are in use")
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
