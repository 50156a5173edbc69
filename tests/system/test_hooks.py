# SPDX-License-Identifier: Apache-2.0
"""Lifecycle hooks (postStart, preStop), the stop signal and the grace period."""

import os
import re
import time

import pytest
import specs
import world

SAYS = "trap 'echo $(date +%s) term >> /v/story; exit 0' TERM; echo started >> /v/story; while :; do sleep 0.05; done"


def hooked(node, name, script=SAYS, grace=30, lifecycle=None, **fields):
    container = specs.container(script=script, volumeMounts=[specs.mount("v", "/v")], lifecycle=lifecycle, **fields)
    return specs.pod(name, container, volumes=[specs.host_path("v", node.data)],
                     terminationGracePeriodSeconds=grace)


def shell(script):
    return {"exec": {"command": ["/bin/sh", "-c", script]}}


def hook_records(node):
    """The output of the container and its hooks, without the times."""
    return [line.split()[-1] for line in (world.read(os.path.join(node.data, "story")) or "").splitlines()]


def release(node):
    with open(os.path.join(node.data, "go"), "w", encoding="ascii"):
        pass


AWAIT_START = "until grep -qs started /v/story; do sleep 0.05; done; "
AWAIT = "while [ ! -e /v/go ]; do sleep 0.05; done; "


@pytest.mark.quick
def test_a_container_is_not_running_before_its_post_start_hook_completes(node):
    node.drop(hooked(node, "slow", lifecycle={"postStart": shell("echo hook >> /v/story; " + AWAIT)}))
    world.wait(lambda: sorted(hook_records(node)) == ["hook", "started"], lambda: f"both have started: {hook_records(node)}")
    status = node.status("slow")
    assert status["state"]["waiting"]["reason"] == "ContainerCreating"
    assert not status["ready"] and not status["started"]
    assert node.pod("slow")["status"]["phase"] == "Pending"
    release(node)
    node.wait_running("slow")
    assert node.status("slow")["ready"]
    assert sorted(hook_records(node)) == ["hook", "started"]


def test_containers_after_one_with_a_post_start_hook_wait_for_its_end(node):
    pod = hooked(node, "slow", lifecycle={"postStart": shell(AWAIT_START + AWAIT + "echo hook >> /v/story")})
    pod["spec"]["containers"].append(specs.container(
        "next", f"echo next >> /v/story; {specs.IDLE}", volumeMounts=[specs.mount("v", "/v")]))
    node.drop(pod)
    world.wait(lambda: hook_records(node) == ["started"], lambda: f"the first has started: {hook_records(node)}")
    node.restart()
    node.wait_waiting("slow", "ContainerCreating", "next")
    release(node)
    node.wait_running("slow")
    # At least once: the hook that the killed agent started may end, too.
    world.wait(lambda: list(dict.fromkeys(hook_records(node))) == ["started", "hook", "next"],
               lambda: f"the hooks run in order: {hook_records(node)}")


def test_a_failed_post_start_hook_kills_the_container_with_its_message(node):
    node.drop(hooked(node, "fails", lifecycle={"postStart": shell(AWAIT_START + "echo no way; exit 3")}))
    message = node.wait_waiting("fails", "PostStartHookError")
    assert re.match(r"PostStart hook failed: command '/bin/sh' exited with 3: no way", message)
    assert "term" in hook_records(node), "it got SIGTERM first"
    node.wait_pod("fails", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] >= 1, "is restarted")


def test_an_invalid_hook_fails(node):
    # The hook fails before the shell has set its trap: PID 1 ignores the signal then.
    node.drop(hooked(node, "socket", lifecycle={"postStart": {"tcpSocket": {"port": 80}}}, grace=2))
    assert "invalid handler" in node.wait_waiting("socket", "PostStartHookError")


def test_the_stop_signal_follows_the_pre_stop_hook(node):
    node.launch(hooked(node, "polite", lifecycle={"preStop": shell(AWAIT + "echo hook >> /v/story")}))
    world.wait(lambda: hook_records(node) == ["started"], "it has started")
    pid = node.init("polite")
    node.remove("polite")
    node.wait_pod("polite", lambda pod: pod["metadata"].get("deletionTimestamp"), "is being stopped")
    assert world.is_alive(pid)
    release(node)
    node.wait_gone("polite")
    assert hook_records(node) == ["started", "hook", "term"]


def test_a_pre_stop_hook_is_limited_by_the_grace_period(node):
    node.launch(hooked(node, "endless", grace=5, lifecycle={"preStop": shell("echo hook >> /v/story; sleep 1000")}))
    world.wait(lambda: hook_records(node) == ["started"], "it has started")
    node.remove("endless")
    node.wait_gone("endless")
    assert hook_records(node) == ["started", "hook", "term"]
    assert "FailedPreStopHook" in node.cli("get", "events").stdout


def test_a_restarted_container_runs_its_hooks(node):
    node.launch(hooked(node, "again", lifecycle={"preStop": shell("echo hook >> /v/story")},
                       livenessProbe={**shell("[ ! -e /v/sick ]"), "periodSeconds": 1, "timeoutSeconds": 60,
                                      "failureThreshold": 1}))
    world.wait(lambda: hook_records(node) == ["started"], "it has started")
    sick = os.path.join(node.data, "sick")
    with open(sick, "w", encoding="ascii"):
        pass
    world.wait(lambda: "term" in hook_records(node), lambda: f"it is stopped: {hook_records(node)}")
    os.unlink(sick)
    node.wait_restarts("again", 1)
    assert hook_records(node)[:3] == ["started", "hook", "term"]


def test_pod_termination_shortens_the_pre_stop_hook_of_a_kill(node):
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1,
             "terminationGracePeriodSeconds": 600}
    node.launch(hooked(node, "killed", livenessProbe=probe, grace=1,
                       lifecycle={"preStop": shell(AWAIT_START + "echo hook >> /v/story; sleep 1000")}))
    world.wait(lambda: hook_records(node) == ["started", "hook"], "its hook runs, which may take ten minutes")
    node.remove("killed")
    node.wait_gone("killed")
    assert "Stopping container main" in node.cli("get", "events").stdout
    assert hook_records(node) == ["started", "hook", "term"]


def test_the_shim_stops_a_container_without_an_agent(node):
    """The hook hangs and the agent dies; the shim ends the grace period."""
    node.launch(hooked(node, "orphan", grace=5, lifecycle={"preStop": shell("echo hook >> /v/story; sleep 1000")}))
    world.wait(lambda: hook_records(node) == ["started"], "it has started")
    pid = node.init("orphan")
    node.remove("orphan")
    world.wait(lambda: "hook" in hook_records(node), "the hook has started")
    node.kill9()
    world.wait(lambda: not world.is_alive(pid), "the container is stopped")
    assert hook_records(node) == ["started", "hook", "term"]
    node.start()
    node.wait_gone("orphan")


def test_a_restarted_agent_does_not_repeat_a_completed_hook(node):
    node.launch(hooked(node, "once", lifecycle={"postStart": shell("echo hook >> /v/story")}))
    world.wait(lambda: sorted(hook_records(node)) == ["hook", "started"], "both have run")
    node.restart()
    node.wait_running("once")
    node.restart()
    node.wait_running("once")
    assert sorted(hook_records(node)) == ["hook", "started"]


def test_a_restarted_agent_repeats_an_interrupted_hook(node):
    node.drop(hooked(node, "twice", lifecycle={"postStart": shell("echo hook >> /v/story; " + AWAIT)}))
    world.wait(lambda: "hook" in hook_records(node), "the hook has started")
    node.restart()
    world.wait(lambda: hook_records(node).count("hook") == 2, "the hook is run again")
    release(node)
    node.wait_running("twice")
    assert node.status("twice")["restartCount"] == 0


def test_a_hook_sleeps(node):
    node.launch(hooked(node, "sleeper", lifecycle={"preStop": {"sleep": {"seconds": 1}}}))
    world.wait(lambda: hook_records(node) == ["started"], "it has started")
    before = int(time.time())
    node.remove("sleeper")
    node.wait_gone("sleeper")
    term = int((world.read(os.path.join(node.data, "story")) or "").splitlines()[1].split()[0])
    assert term >= before + 1


def test_any_http_status_passes_a_hook(node):
    """The server has no such page, and its status passes the hook."""
    serve = "trap 'exit 0' TERM; mkdir /tmp/www; httpd -f -p 18241 -h /tmp/www & while :; do sleep 0.05; done"
    container = specs.container(script=serve, lifecycle={"preStop": {"httpGet": {"port": 18241, "path": "/bye"}}})
    node.launch(specs.pod("asked", container, terminationGracePeriodSeconds=30))
    world.wait(lambda: world.is_listening(18241), "the server listens")
    node.remove("asked")
    node.wait_gone("asked")
    assert "hook failed" not in node.said()


@pytest.mark.parametrize("name,number", [("SIGUSR1", 10), ("SIGRTMIN+3", 37)])
def test_the_stop_signal_of_the_spec_is_sent(node, name, number):
    script = (f"trap 'echo user >> /v/story; exit 0' {number}; trap '' TERM; echo started >> /v/story; "
              "while :; do sleep 0.05; done")
    pod = hooked(node, "chooser", script, lifecycle={"stopSignal": name})
    pod["spec"]["os"] = {"name": "linux"}
    node.launch(pod)
    world.wait(lambda: hook_records(node) == ["started"], "it has started")
    node.remove("chooser")
    node.wait_gone("chooser")
    assert hook_records(node) == ["started", "user"]
