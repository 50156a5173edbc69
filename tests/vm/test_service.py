# SPDX-License-Identifier: Apache-2.0
"""The package and its service on a machine of its own, from the first installation to the purge."""

import json

import specs

PIDS = "pgrep -x sleep | sort -n"
SCRIPT = "exec sleep 100000"
MANIFESTS = "/etc/kubernetes/manifests"


def launch(machine, name, **fields):
    pod = specs.pod(name, specs.container(script=SCRIPT, **fields))
    machine.write(f"{MANIFESTS}/{name}.yaml", specs.text(pod))
    wait_running(machine, name)


def wait_running(machine, name):
    machine.wait(f"mainstay get pods | grep -E '^{name}-machine +1/1 +Running'", f"pod {name} runs")


def processes(machine):
    """The containers' processes, each with the moment of its start."""
    return machine.run(f"for pid in $({PIDS}); do echo $pid $(cut -d ' ' -f 22 /proc/$pid/stat); done")


def agent(machine):
    return machine.run("systemctl show --property MainPID --value mainstay").strip()


def container_file(machine, name, file):
    uid = json.loads(machine.run(f"mainstay get pod {name}-machine -o json"))["metadata"]["uid"]
    return machine.run(f"cat $(find /sys/fs/cgroup -path '*{uid}*' -mindepth 2 -name {file} | tail -n 1)").strip()


def test_the_installed_package_runs_pods_under_systemd_without_more_ado(machine):
    assert machine.run("stat -f -c %T /sys/fs/cgroup").strip() == "cgroup2fs"
    assert machine.run("systemctl is-active mainstay; systemctl is-enabled mainstay").split() == ["active", "enabled"]
    launch(machine, "first")
    assert len(processes(machine).splitlines()) == 1


def test_limits_are_in_the_files_of_the_second_version_of_control_groups(machine):
    launch(machine, "limited", resources={"limits": {"cpu": "200m", "memory": "64Mi"}})
    assert container_file(machine, "limited", "memory.max") == str(64 << 20)
    assert container_file(machine, "limited", "cpu.max") == "20000 100000"


def test_restarting_the_service_restarts_no_container(machine):
    before, old = processes(machine), agent(machine)
    machine.run("systemctl restart mainstay")
    assert agent(machine) != old
    wait_running(machine, "first")
    assert processes(machine) == before


def test_a_killed_agent_is_started_again_and_no_container_is(machine):
    before, old = processes(machine), agent(machine)
    machine.run(f"kill -KILL {old}")
    machine.wait(f'pid=$(systemctl show -P MainPID mainstay); [ "$pid" != 0 ] && [ "$pid" != {old} ] && '
                 "systemctl is-active mainstay", "another agent runs")
    wait_running(machine, "first")
    assert processes(machine) == before


def test_the_watchdog_replaces_an_agent_that_stands_still(machine):
    machine.write("/run/systemd/system/mainstay.service.d/watchdog.conf", "[Service]\nWatchdogSec=2\n")
    machine.run("systemctl daemon-reload && systemctl restart mainstay")
    wait_running(machine, "first")
    before, old = processes(machine), agent(machine)
    machine.run(f"kill -STOP {old}")
    machine.wait(f'pid=$(systemctl show -P MainPID mainstay); [ "$pid" != 0 ] && [ "$pid" != {old} ] && '
                 "systemctl is-active mainstay", "another agent runs")
    wait_running(machine, "first")
    assert processes(machine) == before
    assert "atchdog" in machine.run("journalctl -u mainstay --no-pager -o cat | grep -i watchdog")
    machine.run("rm -r /run/systemd/system/mainstay.service.d && systemctl daemon-reload && systemctl restart mainstay")


def test_an_upgrade_restarts_the_agent_and_no_container(machine):
    wait_running(machine, "first")
    before, old = processes(machine), agent(machine)
    machine.run("dpkg --install /opt/test/mainstay_*.deb")
    assert agent(machine) not in (old, "0")
    wait_running(machine, "first")
    assert processes(machine) == before


def test_removing_the_package_stops_the_pods_and_purging_it_leaves_nothing(machine):
    machine.run("dpkg --remove mainstay")
    assert machine.ask(PIDS)[1] == ""
    assert machine.ask("pgrep mainstay")[1] == ""
    machine.run(f"rm {MANIFESTS}/*.yaml && dpkg --purge mainstay")
    left = machine.run("find / -xdev -name '*mainstay*' -not -path '/opt/test/*' -not -path '/var/log/*' -not -path '/proc/*'")
    assert left == ""
    assert machine.run("find /sys/fs/cgroup -name '*kubepods*'") == ""
    assert "mainstay" not in machine.run("cat /proc/self/mountinfo")
