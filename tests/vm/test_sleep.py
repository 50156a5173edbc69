# SPDX-License-Identifier: Apache-2.0
"""A machine that sleeps for hours (suspend to RAM) while probes, commands, hooks and grace periods are under way. Waits
for a process do not count the sleep, during which no process ran; waits for a time do."""

import os
import subprocess

from conftest import machine_of
from pods import MANIFESTS, SCRIPT, container, get, identities, process, wait_running, write
import pytest
import specs

pytestmark = pytest.mark.long

NOTES = "/var/tmp/notes"
HOURS = 3600
# Longer than an emulated machine on a busy host takes, shorter than the sleep.
LIMIT = 1500
# Waits as long as the test requires it; prints a line each time.
HOLD = "if [ -e /notes/hold ]; then echo held >>/notes/{name}; while [ -e /notes/hold ]; do sleep 0.2; done; fi"
PAGE = ("mkdir -p /tmp/www/cgi-bin && {{ echo '#!/bin/sh'; echo '{hold}'; echo 'echo; echo well'; }} >/tmp/www/cgi-bin/page && "
        "chmod +x /tmp/www/cgi-bin/page && exec httpd -f -p 18090 -h /tmp/www").format(hold=HOLD.format(name="http"))
STOP = "trap 'echo stopping >>/notes/{name}; while [ -e /notes/hold ]; do sleep 0.2; done; echo ended >>/notes/{name}; exit 0' TERM; " \
       "while :; do sleep 0.2; done"
LASTING = ["stays", "exec", "http", "delayed", "limited"]


def shell(script):
    return {"exec": {"command": ["/bin/sh", "-c", script]}}


def probe(handler, **fields):
    return {**handler, "periodSeconds": 1, "timeoutSeconds": LIMIT, "failureThreshold": 1, **fields}


def noted(name, script=SCRIPT, **fields):
    """A pod that shares a directory with the test."""
    spec = {key: fields.pop(key) for key in ("terminationGracePeriodSeconds", "activeDeadlineSeconds") if key in fields}
    return specs.pod(name, {**specs.container(script=script, **fields), "volumeMounts": [specs.mount("notes", "/notes")]},
                     volumes=[specs.host_path("notes", NOTES, type="DirectoryOrCreate")], **spec)


def documents():
    yield noted("stays")
    yield noted("exec", livenessProbe=probe(shell(HOLD.format(name="exec"))), readinessProbe=probe(shell("true")))
    # The hook ends when the server listens, so that no probe comes earlier.
    yield noted("http", PAGE, livenessProbe=probe({"httpGet": {"path": "/cgi-bin/page", "port": 18090}}), lifecycle={"postStart": shell(
        "until wget -q -O /dev/null http://127.0.0.1:18090/cgi-bin/page; do sleep 0.2; done")})
    yield noted("limited", activeDeadlineSeconds=100 * HOURS)
    yield noted("expires", activeDeadlineSeconds=2 * HOURS)
    yield noted("stopped", STOP.format(name="stopped"), terminationGracePeriodSeconds=LIMIT)
    yield noted("hooked", specs.IDLE, terminationGracePeriodSeconds=LIMIT, lifecycle={"preStop": shell(
        HOLD.format(name="hooked") + "; echo ended >>/notes/hooked")})
    yield specs.script_pod("crash", "exit 1")


def wait_line(machine, name, line, count=1):
    machine.wait(f"[ $(grep -cx {line} {NOTES}/{name}) -ge {count} ]", f"{name} has written '{line}'")


@pytest.fixture(scope="module", name="clock")
def _clock(tmp_path_factory):
    """The library that sets how many seconds the machine's real-time clock is ahead, and the file with that number."""
    directory = tmp_path_factory.mktemp("clock")
    library, file = str(directory / "shift-rtc.so"), str(directory / "seconds")
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shift-rtc.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    return library, file


def let_pass(clock, seconds):
    _, file = clock
    with open(file, "w", encoding="utf-8") as out:
        out.write(str(seconds))


@pytest.fixture(scope="module", name="machine")
def _machine(disk, installed, clock):
    with machine_of(disk) as machine:
        let_pass(clock, 0)
        machine.environment = dict(zip(("LD_PRELOAD", "MAINSTAY_TEST_RTC"), clock))
        machine.resume(installed)
        yield machine


@pytest.fixture(scope="module", name="before")
def _before(machine, clock):
    """The state before the machine slept for six hours; every operation was in progress then. The machine is awake
    again."""
    for document in documents():
        write(machine, document)
    for document in documents():
        if document["metadata"]["name"] != "crash":
            wait_running(machine, document["metadata"]["name"])
    machine.wait("mainstay get pod crash-machine -o json | grep -qE 'back-off (1m20s|2m40s|5m)'", "the container that crashes waits long")
    write(machine, noted("delayed", livenessProbe=probe(shell("test -e /notes/grown"), initialDelaySeconds=LIMIT)))
    wait_running(machine, "delayed")
    machine.run(f"touch {NOTES}/hold; systemd-run --quiet --unit=session bash -c 'mainstay exec stays-machine -- "
                f"sh -c \"{HOLD.format(name='session')}; echo finished\" >{NOTES}/finished'; "
                f"rm {MANIFESTS}/stopped.yaml {MANIFESTS}/hooked.yaml")
    for name, line in ("exec", "held"), ("http", "held"), ("session", "held"), ("hooked", "held"), ("stopped", "stopping"):
        wait_line(machine, name, line)
    found = {"pods": identities(machine, LASTING), "agent": machine.run("systemctl show -P MainPID mainstay"),
             "restarts": container(machine, "crash")["restartCount"], "uptime": float(machine.run("cat /proc/uptime").split()[0]),
             "ending": {name: process(machine, name) for name in ("stopped", "hooked")}}
    machine.sleep(lambda: let_pass(clock, 6 * HOURS))
    # Everything that is due at once has been done when this pod runs.
    write(machine, noted("later"))
    wait_running(machine, "later")
    return found


def test_uptime_shows_that_the_machine_slept_for_hours(machine, before):
    assert float(machine.run("cat /proc/uptime").split()[0]) - before["uptime"] > 6 * HOURS


def test_no_container_was_restarted_and_no_probe_has_failed(machine, before):
    assert identities(machine, LASTING) == before["pods"]
    assert machine.run("systemctl show -P MainPID mainstay") == before["agent"]
    events = machine.run("mainstay get events --no-headers")
    assert "Unhealthy" not in events, events


def test_operations_in_progress_end_as_if_there_had_been_no_sleep(machine, before):
    assert machine.run(f"ls {NOTES}").split().count("hold") == 1 and "ended" not in machine.run(f"cat {NOTES}/stopped {NOTES}/hooked")
    for name, pid in before["ending"].items():
        assert process(machine, name) == pid, f"the grace period of {name} has been cut short"
    machine.run(f"rm {NOTES}/hold; touch {NOTES}/grown")
    for name in "stopped", "hooked":
        wait_line(machine, name, "ended")
        machine.wait(f"! mainstay get pods | grep -E '^{name}-machine '", f"pod {name} is removed")
    machine.wait(f"grep -x finished {NOTES}/finished", "the session ends with its output")
    log = machine.run("journalctl -u mainstay --no-pager -o cat")
    assert "in time" not in log, log


def test_probes_continue_and_failing_ones_fail(machine, before):
    machine.run(f"touch {NOTES}/hold")
    for name in "exec", "http":
        wait_line(machine, name, "held", 2)
    machine.run(f"rm {NOTES}/hold")
    assert identities(machine, LASTING) == before["pods"]
    write(machine, noted("fails", livenessProbe=probe(shell("false"))))
    machine.wait("mainstay get events --no-headers | grep Unhealthy | grep -q fails", "a probe that fails is known")


def test_deadlines_and_back_offs_have_passed_after_the_sleep(machine, before):
    """The deadlines of pods and the back-offs have passed."""
    machine.wait("mainstay get pod expires-machine -o json | grep -q DeadlineExceeded", "activeDeadlineSeconds have passed")
    assert get(machine, "limited")["status"]["phase"] == "Running"
    assert container(machine, "crash")["restartCount"] > before["restarts"], "the crashed container is started again"
