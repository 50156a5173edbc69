# SPDX-License-Identifier: Apache-2.0
"""Shutdown of the machine, with and without logind: pods are stopped by priority, each within its grace period, and run
again after the next boot."""

import pytest
import specs

MANIFESTS = "/etc/kubernetes/manifests"
NOTES = "/var/tmp/notes"
LOG = "journalctl --sync; journalctl -u mainstay --no-pager -o cat"

# Exits a second after SIGTERM; records the time of both. It creates a file when its trap is set: until then it ignores
# the signal.
SCRIPT = """note() {{ read up rest </proc/uptime; echo "{name} $1 $up" >>/notes/list; }}
trap 'note asked; {ending}; note ended; exit' TERM
: >/notes/{name}.ready
while :; do sleep 0.1; done"""


def launch(machine, name, priority_class=None, ending="sleep 1", after=None):
    machine.run(f"rm -f {NOTES}/{name}.ready")
    write(machine, name, priority_class, ending, after)
    wait_ready(machine, name)


def write(machine, name, priority_class=None, ending="sleep 1", after=None):
    pod = specs.pod(name, {**specs.container(script=SCRIPT.format(name=name, ending=ending)),
                           "volumeMounts": [{"name": "notes", "mountPath": "/notes"}, {"name": "kept", "mountPath": "/kept"}]})
    pod["spec"]["volumes"] = [{"name": "notes", "hostPath": {"path": NOTES, "type": "DirectoryOrCreate"}},
                              {"name": "kept", "emptyDir": {}}]
    pod["spec"]["terminationGracePeriodSeconds"] = 600
    if priority_class:
        pod["spec"]["priorityClassName"] = priority_class
    if after:
        pod["metadata"]["annotations"] = {"mainstay.dev/after": after}
    machine.write(f"{MANIFESTS}/{name}.yaml", specs.text(pod))


def configure(machine, period, critical):
    machine.write("/etc/mainstay/config.yaml",
                  "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"
                  f"shutdownGracePeriod: {period}s\nshutdownGracePeriodCriticalPods: {critical}s\n")
    machine.run("systemctl restart mainstay")


def wait_running(machine, name):
    machine.wait(f"mainstay get pods | grep -E '^{name}-machine +1/1 +Running'", f"pod {name} runs")


def wait_ready(machine, name):
    wait_running(machine, name)
    machine.wait(f"test -e {NOTES}/{name}.ready", f"pod {name} has set its trap")


def notes(machine):
    """Pairs of a pod and its record, in the order in which they were written."""
    return [tuple(line.split()[:2]) for line in machine.run(f"cat {NOTES}/list").splitlines()]


def logind_says(machine, name):
    return machine.run("busctl get-property org.freedesktop.login1 /org/freedesktop/login1 "
                       f"org.freedesktop.login1.Manager {name}").split()[1]


def wait_for_lock(machine):
    machine.wait("systemd-inhibit --list --no-legend | grep -E '^Mainstay +0 +root .* shutdown .* delay'", "the inhibitor lock is held")


def assert_order(machine):
    order = notes(machine)
    assert order.index(("plain", "ended")) < order.index(("critical", "asked")), order
    assert order.index(("slow", "asked")) < order.index(("critical", "asked")), order
    assert ("critical", "ended") in order and ("slow", "ended") not in order, order


def memory(machine):
    """The PSS of the agent, in KiB."""
    pid = machine.run("systemctl show -P MainPID mainstay").strip()
    return int(machine.run(f"awk '/^Pss:/ {{ print $2 }}' /proc/{pid}/smaps_rollup"))


def test_inhibitor_lock_of_logind_lasts_for_the_grace_period_of_all_pods(machine, figures):
    configure(machine, 600, 30)
    wait_for_lock(machine)
    machine.wait("busctl get-property org.freedesktop.login1 /org/freedesktop/login1 "
                 "org.freedesktop.login1.Manager InhibitDelayMaxUSec | grep ' 600000000$'", "logind waits for long enough")
    machine.run("systemctl restart systemd-logind")
    wait_for_lock(machine)
    figures.append(f"the agent with a lock of logind: {memory(machine)} KiB PSS")


def test_inhibitor_lock_is_taken_again_after_a_restart_of_the_bus(machine):
    machine.run("systemctl restart dbus systemd-logind")
    wait_for_lock(machine)
    machine.wait("busctl list --no-pager | grep -E ' mainstayd? +root '", "the agent is on the bus again")


def test_cancelled_shutdown_starts_the_pods_again(machine):
    launch(machine, "critical", priority_class="system-node-critical")
    launch(machine, "plain", ending=f"while ! test -e /notes/go; do sleep 0.1; done")
    machine.run("mainstay exec plain-machine -c main -- touch /kept/file")
    machine.run("systemctl poweroff")
    machine.wait(f"grep 'plain asked' {NOTES}/list", "it has received SIGTERM")
    assert logind_says(machine, "PreparingForShutdown") == "true"
    write(machine, "late")
    machine.wait("mainstay get events | grep 'NodeShutdown.*rejected as the node is shutting down'", "it is rejected")
    machine.run(f"systemctl mask --runtime poweroff.target; touch {NOTES}/go")
    for name in "critical", "plain", "late":
        wait_running(machine, name)
    assert machine.run(f"{LOG} | grep -c 'was cancelled, starting pods again'").strip() == "1"
    assert [one for one in notes(machine) if one[0] == "critical"] == [("critical", "asked"), ("critical", "ended")]
    machine.run("mainstay exec plain-machine -c main -- test -e /kept/file")
    wait_for_lock(machine)
    machine.run(f"systemctl unmask --runtime poweroff.target; rm {MANIFESTS}/*.yaml")
    machine.wait("! mainstay get pods | grep machine", "all pods are removed")


def test_poweroff_stops_pods_by_priority_each_within_its_grace_period(machine):
    machine.run(f"rm -f {NOTES}/*")
    configure(machine, 40, 20)
    launch(machine, "critical", priority_class="system-node-critical")
    launch(machine, "plain")
    launch(machine, "slow", ending="sleep 1000")
    wait_for_lock(machine)
    machine.power_off()
    machine.boot()
    assert_order(machine)


def test_pods_run_again_after_the_next_boot(machine):
    for name in "critical", "plain", "slow":
        wait_running(machine, name)
    output = machine.run("journalctl -b -1 --no-pager -o cat")
    moments = [output.rindex(what) for what in ("stopping all pods within 40s", "the shutdown may continue",
                                              "Stopping mainstay.service")]
    assert moments == sorted(moments), output[-4000:]


@pytest.mark.long
def test_without_a_bus_the_stop_of_the_service_stops_the_pods(machine, figures):
    machine.run(f"rm {NOTES}/list; systemctl mask --now dbus.socket dbus.service systemd-logind.service; rm -f /run/dbus/*socket")
    machine.run("systemctl restart mainstay")
    assert machine.run(f"{LOG} | grep -c 'Cannot delay shutdown until pods'").strip() == "1"
    for name in "critical", "plain", "slow":
        wait_running(machine, name)
    figures.append(f"the agent without a bus: {memory(machine)} KiB PSS")
    machine.power_off()
    machine.boot()
    assert_order(machine)
    output = machine.run("journalctl -b -1 --no-pager -o cat")
    assert output.rindex("Stopping mainstay.service") < output.rindex("stopping all pods within 40s"), output[-4000:]
    for name in "critical", "plain", "slow":
        wait_running(machine, name)


def test_service_restart_does_not_stop_pods(machine):
    machine.run(f"rm {NOTES}/list; systemctl restart mainstay")
    wait_running(machine, "plain")
    assert machine.ask(f"test -e {NOTES}/list")[0] != 0


@pytest.mark.long
def test_poweroff_stops_pods_before_their_dependencies(machine):
    machine.run(f"rm -f {MANIFESTS}/*.yaml")
    machine.ask("mainstay delete pod slow-machine --now")  # the pod would use its 600 seconds
    machine.wait("! mainstay get pods | grep machine", "all pods are removed")
    machine.run(f"rm -f {NOTES}/*")
    configure(machine, 120, 20)
    launch(machine, "db")
    launch(machine, "cache", after="db")
    launch(machine, "web", after="db, cache")
    machine.run(f"rm {NOTES}/*.ready")
    machine.power_off()
    machine.boot()
    for name in "db", "cache", "web":
        wait_ready(machine, name)
    assert notes(machine) == [(name, what) for name in ("web", "cache", "db") for what in ("asked", "ended")]
    machine.run(f"rm {MANIFESTS}/*.yaml")
    machine.wait("! mainstay get pods | grep machine", "all pods are removed")
