# SPDX-License-Identifier: Apache-2.0
"""The machine goes down in order: pods by their priority, each with its time; and comes up with all of them."""

import specs

MANIFESTS = "/etc/kubernetes/manifests"
NOTES = "/var/tmp/notes"

# Ends a second after it was asked to, and says when both was.
SCRIPT = """note() {{ read up rest </proc/uptime; echo "{name} $1 $up" >>/notes/list; }}
trap 'note asked; sleep {seconds}; note ended; exit' TERM
while :; do sleep 0.1; done"""


def launch(machine, name, priority_class=None, priority=None, seconds=1):
    pod = specs.pod(name, {**specs.container(script=SCRIPT.format(name=name, seconds=seconds)),
                           "volumeMounts": [{"name": "notes", "mountPath": "/notes"}]})
    pod["spec"]["volumes"] = [{"name": "notes", "hostPath": {"path": NOTES, "type": "DirectoryOrCreate"}},
                              {"name": "kept", "emptyDir": {}}]
    pod["spec"]["terminationGracePeriodSeconds"] = 30
    if priority_class:
        pod["spec"]["priorityClassName"] = priority_class
    if priority is not None:
        pod["spec"]["priority"] = priority
    machine.write(f"{MANIFESTS}/{name}.yaml", specs.text(pod))
    wait_running(machine, name)


def wait_running(machine, name):
    machine.wait(f"mainstay get pods -A | grep -E ' {name}-machine +1/1 +Running|^{name}-machine +1/1 +Running'",
                 f"pod {name} runs")


def notes(machine):
    """(pod, what, when), in the order in which they were written."""
    lines = machine.run(f"cat {NOTES}/list").splitlines()
    return [(name, what, float(when)) for name, what, when in (line.split() for line in lines)]


def test_a_poweroff_stops_pods_by_priority_each_within_its_time(machine):
    machine.write("/etc/mainstay/config.yaml",
                  "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"
                  "shutdownGracePeriod: 12s\nshutdownGracePeriodCriticalPods: 4s\n")
    machine.run("systemctl restart mainstay")
    launch(machine, "critical", priority_class="system-node-critical")
    launch(machine, "plain")
    launch(machine, "slow", seconds=100)
    machine.power_off()
    machine.boot()
    told = notes(machine)
    order = [(name, what) for name, what, _ in told]
    assert order.index(("plain", "ended")) < order.index(("critical", "asked")), order
    assert order.index(("slow", "asked")) < order.index(("critical", "asked")), order
    assert ("critical", "ended") in order and ("slow", "ended") not in order, order
    when = {(name, what): moment for name, what, moment in told}
    assert when["critical", "asked"] - when["slow", "asked"] <= 30


def test_what_a_shutdown_stopped_runs_after_the_next_boot(machine):
    for name in "critical", "plain", "slow":
        wait_running(machine, name)
    assert "stopping all pods within 12s" in machine.run("journalctl -b -1 -u mainstay --no-pager -o cat")


def test_a_restart_of_the_service_stops_no_pod(machine):
    machine.run(f"rm {NOTES}/list; systemctl restart mainstay")
    wait_running(machine, "plain")
    assert machine.ask(f"test -e {NOTES}/list")[0] != 0
