# SPDX-License-Identifier: Apache-2.0
"""Init containers and sidecars: start and stop order, failures, restarts of the agent; restart rules; activeDeadlineSeconds."""

import os
import time

import many
import pytest
import specs
import world
from harness import condition
from world import wait

# Records in the pod's list of events: "NAME start", and on SIGTERM "NAME end".
RECORD = """
trap 'record $NAME end; exit ${CODE:-0}' TERM
record() { echo "$1 $2" >> /v/events; }
"""


def recorder(name, script="", code=0, **fields):
    """A container that records its start, runs the script, and keeps running."""
    return specs.container(name, RECORD + f"record {name} start\n{script}\nsleep 100000 & wait",
                           env=[{"name": "NAME", "value": name}, {"name": "CODE", "value": str(code)}],
                           volumeMounts=[specs.mount("v", "/v")], **fields)


def after(*records):
    """A script that waits for records of other containers. A running sidecar may not have recorded its start yet."""
    return "".join(f'until grep -qs "{record}" /v/events; do sleep 0.02; done\n' for record in records)


def step(name, script="exit 0", before="", **fields):
    """A container that records its start and exits."""
    return specs.container(name, f"{before}echo {name} start >> /v/events\n{script}",
                           volumeMounts=[specs.mount("v", "/v")], **fields)


def sidecar(name, script="", **fields):
    return recorder(name, script, restartPolicy="Always", **fields)


def init_pod(node, name, init, *main, **spec):
    """A pod whose containers have time to record their end."""
    return specs.pod(name, *(main or [recorder("main")]), initContainers=init,
                     volumes=[specs.host_path("v", node.data)], **{"terminationGracePeriodSeconds": 30, **spec})


def events(node):
    return (world.read(os.path.join(node.data, "events")) or "").splitlines()


def wait_events(node, expected, deadline=world.DEADLINE):
    wait(lambda: events(node)[:len(expected)] == expected,
         lambda: f"{expected}; it is {events(node)}; the log of the agent:\n{node.said()[-4000:]}", deadline)


def row(node, name):
    """READY and STATUS of the pod, as the command line shows them."""
    for line in node.cli("get", "pods").stdout.splitlines():
        if line.startswith(name):
            return line.split()[1:3]
    return None


def touch(node, name):
    with open(os.path.join(node.data, name), "w", encoding="utf-8"):
        pass


WAIT_FOR_GATE = "while [ ! -e /v/gate ]; do sleep 0.02; done"


@pytest.mark.quick
def test_init_containers_run_one_after_another_and_before_the_others(node):
    node.launch(init_pod(node, "ordered", [step("one", "sleep 0.2; echo one end >> /v/events"),
                                           step("two", "sleep 0.1; echo two end >> /v/events")]))
    wait_events(node, ["one start", "one end", "two start", "two end", "main start"])
    pod = node.pod("ordered")
    statuses = pod["status"]["initContainerStatuses"]
    assert [status["name"] for status in statuses] == ["one", "two"]
    assert all(status["ready"] and status["state"]["terminated"]["reason"] == "Completed" for status in statuses)
    assert statuses[0]["state"]["terminated"]["finishedAt"] <= statuses[1]["state"]["terminated"]["startedAt"]
    assert condition(pod, "Initialized")["status"] == "True"
    assert row(node, "ordered") == ["1/1", "Running"]


def test_an_uninitialized_pod_reports_the_containers_it_waits_for(node):
    node.drop(init_pod(node, "gated", [step("one", WAIT_FOR_GATE), step("two")]))
    wait_events(node, ["one start"])
    pod = node.wait_pod("gated", lambda p: "running" in p["status"]["initContainerStatuses"][0]["state"], "is started")
    assert pod["status"]["phase"] == "Pending"
    assert condition(pod, "Initialized")["reason"] == "ContainersNotInitialized"
    assert condition(pod, "Initialized")["message"] == "containers with incomplete status: [one two]"
    assert pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "PodInitializing"
    assert row(node, "gated") == ["0/1", "Init:0/2"]
    assert 'container "main" in pod "gated-node1" is waiting to start: PodInitializing' in \
        node.cli("logs", "gated", "-c", "main").stderr
    touch(node, "gate")
    node.wait_running("gated")
    assert condition(node.pod("gated"), "Initialized")["status"] == "True"


def test_logs_and_describe_show_init_containers(node):
    node.launch(init_pod(node, "logged", [step("one", "echo ready to start")]))
    assert node.cli("logs", "logged", "-c", "one").stdout == "ready to start\n"
    said = node.cli("describe", "pod", "logged").stdout
    assert said.index("Init Containers:") < said.index("  one:") < said.index("Containers:\n  main:")


@pytest.mark.parametrize("policy", ["Always", "OnFailure"])
def test_a_failed_init_container_restarts(node, policy):
    node.drop(init_pod(node, "again", [step("one", "[ -e /v/tried ] || { touch /v/tried; exit 3; }")],
                       restartPolicy=policy))
    node.wait_running("again")
    wait_events(node, ["one start", "one start", "main start"])
    status = node.status("again", "one")
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 3


def test_an_init_container_that_always_fails_is_in_back_off(node):
    node.drop(init_pod(node, "fails", [step("one", "exit 3")]))
    wait(lambda: row(node, "fails") == ["0/1", "Init:CrashLoopBackOff"], lambda: f"backs off: {row(node, 'fails')}")
    assert node.pod("fails")["status"]["phase"] == "Pending"
    assert events(node).count("main start") == 0


@pytest.mark.parametrize("spec,own", [({"restartPolicy": "Never"}, {}), ({}, {"restartPolicy": "Never"})])
def test_a_failed_init_container_with_policy_never_fails_the_pod(node, spec, own):
    node.drop(init_pod(node, "failed", [sidecar("side"), step("one", "exit 3", after("side start"), **own)],
                       **spec))
    node.wait_phase("failed", "Failed")
    wait_events(node, ["side start", "one start", "side end"])
    wait(lambda: row(node, "failed") == ["0/2", "Init:Error"], lambda: f"its row shows it: {row(node, 'failed')}")
    assert condition(node.pod("failed"), "Initialized")["status"] == "False"
    node.restart()
    node.wait_phase("failed", "Failed")
    assert events(node) == ["side start", "one start", "side end"]


@pytest.mark.quick
def test_a_sidecar_runs_next_to_the_later_containers_and_counts_as_ready(node):
    node.launch(init_pod(node, "beside", [sidecar("side"), step("one", before=after("side start"))]))
    wait_events(node, ["side start", "one start", "main start"])
    assert world.is_alive(node.init("beside", "side"))
    wait(lambda: row(node, "beside") == ["2/2", "Running"], lambda: f"both are ready: {row(node, 'beside')}")


def test_a_sidecar_restarts_whatever_the_policy_of_the_pod(node):
    node.launch(init_pod(node, "watched", [sidecar("side")], restartPolicy="Never"))
    main = node.init("watched")
    world.kill_all([node.init("watched", "side")])
    node.wait_pod("watched", lambda pod: pod["status"]["initContainerStatuses"][0]["restartCount"] == 1 and
                  "running" in pod["status"]["initContainerStatuses"][0]["state"], "has its sidecar again")
    assert node.init("watched") == main
    assert node.pod("watched")["status"]["phase"] == "Running"


def test_sidecars_stop_in_reverse_order_after_all_others(node):
    last = f"trap '{after('other end')}record main end; exit 0' TERM; record main ready"
    node.launch(init_pod(node, "orderly", [sidecar("first"), sidecar("second")], recorder("main", last), recorder("other"),
                         terminationGracePeriodSeconds=30))
    ready = {"first start", "second start", "main ready", "other start"}
    wait(lambda: ready <= set(events(node)), lambda: f"all are ready: {events(node)}")
    node.remove("orderly")
    node.wait_gone("orderly")
    ends = [event for event in events(node) if event.endswith(" end")]
    assert ends == ["other end", "main end", "second end", "first end"]


def pre_stop(script):
    return {"lifecycle": {"preStop": {"exec": {"command": ["/bin/sh", "-c", script]}}}}


def ends_of(node):
    return [event for event in events(node) if event.endswith((" end", " hook"))]


def test_sidecar_pre_stop_hooks_start_with_the_termination_and_signals_wait_for_the_others(node):
    hooks = after("first hook", "second hook", "main hook")
    main = f"trap '{hooks}record main end; exit 0' TERM; record main ready"
    # The hook of the first sidecar runs longer than the main container.
    node.launch(init_pod(node, "hooked", [sidecar("first", **pre_stop(f"echo first hook >> /v/events; {after('main end')}")),
                                          sidecar("second", **pre_stop("echo second hook >> /v/events"))],
                         recorder("main", main, **pre_stop("echo main hook >> /v/events"))))
    ready = {"first start", "second start", "main ready"}
    wait(lambda: ready <= set(events(node)), lambda: f"all are ready: {events(node)}")
    node.remove("hooked")
    node.wait_gone("hooked")
    ends = ends_of(node)
    assert sorted(ends[:3]) == ["first hook", "main hook", "second hook"]
    assert ends[3:] == ["main end", "second end", "first end"]
    assert node.cli("get", "events").stdout.count("Stopping container") == 3, "each stop has one event"


def test_pre_stop_hooks_of_sidecars_start_together_when_the_pod_completes(node):
    node.drop(init_pod(node, "job", [sidecar("first", **pre_stop("echo first hook >> /v/events")),
                                     sidecar("second", **pre_stop(f"{after('first hook')}echo second hook >> /v/events"))],
                       step("main", before=after("first start", "second start")), restartPolicy="Never"))
    node.wait_phase("job", "Succeeded")
    wait(lambda: "first end" in events(node), lambda: f"the sidecars end: {events(node)}")
    assert ends_of(node) == ["first hook", "second hook", "second end", "first end"]


def test_a_sidecar_does_not_wait_for_an_init_container_that_still_runs(node):
    deaf = f"trap '' TERM; echo one start >> /v/events; {after('side end')}exit 0"
    node.drop(init_pod(node, "early", [sidecar("side"), step("one", deaf, after("side start"))], terminationGracePeriodSeconds=600))
    wait_events(node, ["side start", "one start"])
    node.remove("early")
    node.wait_gone("early")
    assert "side end" in events(node)


@pytest.mark.parametrize("with_hook", [True, False], ids=["hook", "no-hook"])
def test_the_shim_stops_a_sidecar_that_awaits_its_turn_without_an_agent(node, with_hook):
    hook = pre_stop("echo first hook >> /v/events") if with_hook else {}
    node.launch(init_pod(node, "alone", [sidecar("first", **hook)], recorder("main", "trap '' TERM; record main ready"),
                         terminationGracePeriodSeconds=5))
    wait(lambda: {"first start", "main ready"} <= set(events(node)), lambda: f"all are ready: {events(node)}")
    pids = [node.init("alone", "first"), node.init("alone")]
    node.remove("alone")
    if with_hook:
        wait(lambda: "first hook" in events(node), lambda: f"its hook has run: {events(node)}")
    else:
        node.wait_pod("alone", lambda pod: pod["metadata"].get("deletionTimestamp"), "is being stopped")
    node.kill9()
    wait(lambda: not any(world.is_alive(pid) for pid in pids), "both are stopped")
    assert "first end" in events(node), "it got its stop signal"
    node.start()
    node.wait_gone("alone")


def test_a_shortened_grace_period_does_not_signal_a_sidecar_before_its_turn(node):
    main = f"trap '{after('gate')}record main end; exit 0' TERM; record main ready"
    node.launch(init_pod(node, "hurried", [sidecar("side")], recorder("main", main), terminationGracePeriodSeconds=1200))
    wait(lambda: {"side start", "main ready"} <= set(events(node)), lambda: f"all are ready: {events(node)}")
    side = node.init("hurried", "side")
    for words in ((), ("--grace-period=600",)):
        answer = node.cli("delete", "pod", "hurried", *words)
        assert answer.returncode == 0, answer.stderr
    with open(os.path.join(node.data, "events"), "a", encoding="utf-8") as file:
        file.write("gate\n")
    wait(lambda: not world.is_alive(side), "the sidecar is stopped")
    assert [event for event in events(node) if event.endswith(" end")] == ["main end", "side end"]
    # Its file is still there. A shell that has no handler yet would ignore SIGTERM, and the pod would stay.
    wait(lambda: events(node).count("main ready") == 2, lambda: f"it starts again: {events(node)}")


def test_sidecars_stop_when_the_pod_completes_and_their_exit_codes_do_not_count(node):
    node.drop(init_pod(node, "job", [sidecar("first", code=7), sidecar("second")], step("main", after("first start", "second start")),
                       restartPolicy="Never", terminationGracePeriodSeconds=30))
    node.wait_phase("job", "Succeeded")
    wait(lambda: "first end" in events(node), lambda: f"the sidecars end: {events(node)}")
    assert events(node)[-2:] == ["second end", "first end"]
    wait(lambda: row(node, "job") == ["0/3", "Completed"], lambda: f"it has completed: {row(node, 'job')}")
    before = events(node)
    node.restart()
    assert node.pod("job")["status"]["phase"] == "Succeeded"
    assert events(node) == before, "a new agent starts no completed pod"


def test_sidecars_have_the_rest_of_the_grace_period(node):
    """No container handles SIGTERM: the pod takes its grace period of two seconds and two more for the last container,
    not three times two."""
    deaf = "trap '' TERM; record $NAME deaf"
    node.launch(init_pod(node, "deaf", [sidecar("first", deaf), sidecar("second", deaf)], recorder("main", deaf),
                         terminationGracePeriodSeconds=2))
    wait(lambda: len([event for event in events(node) if event.endswith(" deaf")]) == 3, lambda: f"all ignore the signal: {events(node)}")
    start = time.monotonic()
    node.remove("deaf")
    node.wait_gone("deaf")
    assert time.monotonic() - start > 2
    assert not [event for event in events(node) if event.endswith(" end")]


def test_a_restarted_agent_continues_in_the_middle_of_init(node):
    node.drop(init_pod(node, "midway", [step("one"), sidecar("side"), step("two", WAIT_FOR_GATE, after("side start")),
                                        step("three")]))
    wait_events(node, ["one start", "side start", "two start"])
    side = node.init("midway", "side")
    for _ in range(3):
        node.restart()
    node.kill9()
    touch(node, "gate")
    node.start()
    node.wait_running("midway")
    wait_events(node, ["one start", "side start", "two start", "three start", "main start"])
    assert node.init("midway", "side") == side
    node.restart()
    node.wait_running("midway")
    assert len(events(node)) == 5
    assert condition(node.pod("midway"), "Initialized")["status"] == "True"


def test_a_pod_that_lost_its_sandbox_runs_init_containers_again(node):
    node.launch(init_pod(node, "lost", [step("one"), step("two")]))
    wait_events(node, ["one start", "two start", "main start"])
    world.kill_all([node.shim("lost")])
    wait_events(node, ["one start", "two start", "main start"] * 2)
    node.wait_running("lost")
    assert node.status("lost", "one")["restartCount"] == 1
    assert node.status("lost")["restartCount"] == 1


def test_pod_limits_are_the_larger_of_init_and_main_containers(node):
    def limits(cpu, memory):
        return {"resources": {"limits": {"cpu": cpu, "memory": memory}}}
    node.launch(init_pod(node, "sized", [step("one", **limits("400m", "96Mi")),
                                         sidecar("side", **limits("100m", "16Mi"))],
                         recorder("main", **limits("200m", "32Mi"))))
    group = node.pod_cgroup("sized")
    assert node.pod("sized")["status"]["qosClass"] == "Guaranteed"
    if world.cgroup_version() == 2:
        assert world.cgroup_value(group, "memory", "memory.max") == str(96 << 20)
        assert world.cgroup_value(group, "cpu", "cpu.max") == "40000 100000"
    else:
        assert world.cgroup_value(group, "memory", "memory.limit_in_bytes") == str(96 << 20)
        assert world.cgroup_value(group, "cpu", "cpu.cfs_quota_us") == "40000"
        assert world.cgroup_value(group, "cpu", "cpu.shares") == "409"


def test_a_sidecar_is_not_oom_killed_before_the_main_container(node):
    node.launch(init_pod(node, "spared", [sidecar("side"), step("one")],
                         recorder("main", resources={"requests": {"memory": "4Gi"}})))
    scores = [int(world.read(f"/proc/{pid}/oom_score_adj"))
              for pid in (node.init("spared", "side"), node.init("spared"))]
    assert scores[0] == scores[1] < 999


def test_resource_field_references_include_init_containers(node):
    pod = init_pod(node, "refers", [step("one", "echo $LIMIT", resources={"limits": {"memory": "64Mi"}}, env=[
        {"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"containerName": "one", "resource": "limits.memory",
                                                            "divisor": "1Mi"}}}])])
    node.launch(pod)
    assert node.cli("logs", "refers", "-c", "one").stdout == "64\n"


def test_a_pod_removed_in_the_middle_of_init_starts_no_container(node):
    node.drop(init_pod(node, "aborted", [sidecar("side"), step("one", WAIT_FOR_GATE, "trap 'exit 0' TERM\n" + after("side start")),
                                         step("two")]))
    wait_events(node, ["side start", "one start"])
    node.remove("aborted")
    node.wait_gone("aborted")
    assert events(node) == ["side start", "one start", "side end"]


def test_a_sidecar_delays_the_next_containers_until_its_startup_probe_has_passed(node):
    node.drop(init_pod(node, "probed", [sidecar("side", startupProbe={
        "exec": {"command": ["test", "-e", "/v/gate"]}, "periodSeconds": 1, "failureThreshold": 1000}), step("one")]))
    wait_events(node, ["side start"])
    node.wait_pod("probed", lambda pod: "running" in pod["status"]["initContainerStatuses"][0]["state"], "is started")
    assert node.pod("probed")["status"]["initContainerStatuses"][0]["started"] is False
    node.restart()
    assert events(node) == ["side start"]
    touch(node, "gate")
    wait_events(node, ["side start", "one start", "main start"])
    node.wait_running("probed")


def test_a_sidecar_that_fails_its_startup_probe_restarts_and_stops_with_its_pod(node):
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1, "terminationGracePeriodSeconds": 1}
    node.drop(specs.pod("held", initContainers=[specs.container("side", restartPolicy="Always", startupProbe=probe)]))
    pod = node.wait_pod("held", lambda pod: node.status("held", "side").get("restartCount", 0) >= 1, "is restarted")
    assert pod["status"]["phase"] == "Pending"
    assert not node.status("held", "side")["started"]
    assert node.status("held")["state"]["waiting"]["reason"] == "PodInitializing"
    assert "failed startup probe" in node.status("held", "side")["lastState"]["terminated"]["message"]
    node.remove("held")
    node.wait_gone("held")
    node.launch(specs.pod("held"))
    assert node.status("held")["restartCount"] == 0


def test_agent_kills_at_random_moments_run_each_init_container_once(node):
    dice = many.make_random()
    names = [f"step{i}" for i in range(8)]
    node.drop(init_pod(node, "chain", [sidecar("side"), *[step(name, "sleep 0.3") for name in names]]))
    for _ in range(8):
        end = time.monotonic() + dice.uniform(0, 0.6)
        wait(lambda end=end: time.monotonic() > end, "the delay is over")
        node.restart(ready=False)
    wait(node.is_ready, "the agent is ready")
    node.wait_running("chain")
    wait(lambda: {"side start", "main start"} <= set(events(node)), lambda: f"all have started: {events(node)}")
    assert [event for event in events(node) if event != "side start"] == [
        *[f"{name} start" for name in names], "main start"]
    assert events(node).count("side start") == 1


# Restart rules

def restarts_on(code, action="Restart"):
    return {"restartPolicy": "Never", "restartPolicyRules": [
        {"action": action, "exitCodes": {"operator": "In", "values": [code]}}]}


def test_a_restart_rule_overrides_the_policy(node):
    node.drop(init_pod(node, "ruled", [], step("main", "[ -e /v/tried ] && exit 0; touch /v/tried; exit 42",
                                               **restarts_on(42)), restartPolicy="Never"))
    node.wait_phase("ruled", "Succeeded")
    assert node.status("ruled")["restartCount"] == 1
    assert node.status("ruled")["lastState"]["terminated"]["exitCode"] == 42


def test_without_a_matching_restart_rule_the_policy_applies(node):
    node.drop(init_pod(node, "unruled", [], step("main", "exit 41", **restarts_on(42)), restartPolicy="Always"))
    node.wait_phase("unruled", "Failed")
    assert node.status("unruled")["restartCount"] == 0


def test_a_rule_restarts_all_containers_including_init(node):
    node.drop(init_pod(node, "all", [step("one"), sidecar("side")], recorder("main"),
                       recorder("judge", f"[ -e /v/tried ] || {{ touch /v/tried; {after('main start', 'side start')} exit 88; }}",
                              **restarts_on(88, "RestartAllContainers")), restartPolicy="Never"))
    wait(lambda: events(node).count("one start") == 2, lambda: f"init runs again: {events(node)}")
    node.wait_running("all")
    recorded = events(node)
    second = recorded.index("one start", 1)
    assert sorted(recorded[:second]) == sorted(["one start", "side start", "main start", "judge start", "main end",
                                               "side end"])
    wait(lambda: sorted(events(node)[second:]) == sorted(["one start", "side start", "main start", "judge start"]),
         lambda: f"each runs once more: {events(node)}")
    pod = node.pod("all")
    assert {status["name"]: status["restartCount"] for status in
            pod["status"]["containerStatuses"] + pod["status"]["initContainerStatuses"]} == {
                "one": 1, "side": 1, "main": 1, "judge": 1}
    assert condition(pod, "AllContainersRestarting")["status"] == "False"
    recorded = events(node)
    for _ in range(2):
        node.restart()
    assert events(node) == recorded, "a new agent does not restart them again"


def test_repeated_restarts_of_all_containers_have_back_off(node):
    node.drop(init_pod(node, "loops", [], step("main", "exit 88", **restarts_on(88, "RestartAllContainers"))))
    wait(lambda: row(node, "loops") == ["0/1", "RestartingAllContainers"], lambda: f"holds: {row(node, 'loops')}")
    # The state lasts for a second at most, but repeatedly.
    pod = node.wait_pod("loops", lambda pod: any(
        (one["type"], one["status"]) == ("AllContainersRestarting", "True") for one in pod["status"]["conditions"]), "is restarting")
    assert pod["status"]["phase"] == "Running"
    count = node.status("loops")["restartCount"]
    node.restart()
    node.wait_pod("loops", lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] > count, "is restarted again")


def test_a_killed_agent_restarts_all_containers_only_once(node):
    deaf = "trap 'until [ -e /v/end ]; do sleep 0.02; done; exit 0' TERM; record main deaf"
    node.launch(init_pod(node, "cut", [step("one")], recorder("main", deaf),
                         recorder("judge", f"[ -e /v/tried ] || {{ touch /v/tried; {WAIT_FOR_GATE}; exit 88; }}",
                                **restarts_on(88, "RestartAllContainers")), restartPolicy="Never"))
    wait(lambda: "main deaf" in events(node), "the main container ignores the signal")
    touch(node, "gate")
    node.wait_pod("cut", lambda pod: condition(pod, "AllContainersRestarting")["status"] == "True", "is restarting")
    node.restart()
    touch(node, "end")
    wait(lambda: events(node).count("main start") == 2, lambda: f"all start again: {events(node)}")
    node.wait_running("cut")
    assert events(node).count("one start") == 2
    assert node.status("cut", "one")["restartCount"] == 1


def test_a_restart_of_all_containers_skips_pre_stop_hooks(node):
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo main hook >> /v/events"]}}}
    node.drop(init_pod(node, "quick", [], recorder("main", lifecycle=hook),
                       recorder("judge", f"[ -e /v/tried ] || {{ touch /v/tried; {after('main start')} exit 88; }}",
                              **restarts_on(88, "RestartAllContainers")), terminationGracePeriodSeconds=30))
    wait(lambda: events(node).count("main start") == 2, lambda: f"all are restarted: {events(node)}")
    assert "main hook" not in events(node)
    node.wait_running("quick")
    node.remove("quick")
    node.wait_gone("quick")
    assert [event for event in events(node) if event.startswith("main")][-2:] == ["main hook", "main end"]


# Deadlines

def test_active_deadline_survives_a_restart_of_the_agent(clocked):
    node = clocked
    node.launch(init_pod(node, "late", [sidecar("side"), step("one", before=after("side start"))], recorder("main"),
                         activeDeadlineSeconds=600))
    node.restart()
    node.let_pass(600)
    pod = node.wait_phase("late", "Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"
    assert pod["status"]["message"] == "Pod was active on the node longer than the specified deadline"
    wait_events(node, ["side start", "one start", "main start", "main end", "side end"])
    wait(lambda: not [pid for pid in world.cgroup_pids(node.pod_cgroup("late")) if world.is_alive(pid)],
         lambda: "no process is left")
    node.restart()
    pod = node.pod("late")
    assert pod["status"]["phase"] == "Failed" and pod["status"]["reason"] == "DeadlineExceeded"
    assert len(events(node)) == 5, "nothing is started again"


def test_an_active_deadline_that_passes_without_an_agent_applies(clocked):
    node = clocked
    node.launch(init_pod(node, "unseen", [], recorder("main"), activeDeadlineSeconds=600))
    start = node.pod("unseen")["status"]["startTime"]
    node.kill9()
    node.write_clock(600, 600)
    assert events(node) == ["main start"]
    node.start()
    node.wait_phase("unseen", "Failed")
    wait_events(node, ["main start", "main end"])
    assert node.pod("unseen")["status"]["startTime"] == start


def test_a_pod_that_completed_in_time_does_not_exceed_its_active_deadline(clocked):
    node = clocked
    node.drop(init_pod(node, "early", [], step("main"), activeDeadlineSeconds=600, restartPolicy="Never"))
    node.wait_phase("early", "Succeeded")
    node.let_pass(600)
    node.restart()
    status = node.pod("early")["status"]
    assert status["phase"] == "Succeeded" and "reason" not in status


def test_a_pod_that_never_started_fails_at_its_active_deadline(node):
    node.drop(init_pod(node, "never", [], {**recorder("main"), "image": "docker.io/library/none:1",
                                           "imagePullPolicy": "Never"}, activeDeadlineSeconds=2))
    pod = node.wait_phase("never", "Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"
    lines = [line for line in node.cli("get", "events").stdout.splitlines() if "DeadlineExceeded" in line]
    assert len(lines) == 1 and "Normal" in lines[0], "it is recorded once"


def test_a_longer_active_deadline_starts_the_pod_again(clocked):
    node = clocked
    node.launch(init_pod(node, "late", [], recorder("main"), activeDeadlineSeconds=600))
    node.let_pass(600)
    node.wait_phase("late", "Failed")
    node.drop(init_pod(node, "late", [], recorder("main"), activeDeadlineSeconds=6000))
    node.wait_running("late")
    wait_events(node, ["main start", "main end", "main start"])


def test_the_command_line_names_all_containers(node):
    node.launch(init_pod(node, "named", [step("one", "echo of one")],
                         specs.container("main", "echo of main\n" + specs.IDLE)))
    wait(lambda: node.logged("named"), lambda: "the main container has written")
    answer = node.cli("logs", "named")
    assert (answer.stdout, answer.stderr) == ("of main\n", 'Defaulted container "main" out of: main, one (init)\n')
    assert node.cli("logs", "named", "--all-containers").stdout == "of one\nof main\n"
