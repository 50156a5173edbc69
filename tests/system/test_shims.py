# SPDX-License-Identifier: Apache-2.0
"""Shims that die at bad moments, hang, or can no longer be found: every pod recovers."""

import os
import shutil
import signal

import pytest
import specs
import world
from harness import is_running, program
from test_survival import starter, starts


def test_images_that_appear_while_shims_die_are_used_by_the_next_shim(make_node, archive):
    node = make_node(archive=None, config={"crashLoopBackOff": {"maxContainerRestartPeriod": "300s"}})
    names = [f"p{i}" for i in range(6)]
    for name in names:
        node.drop(specs.pod(name))
    for name in names:
        node.wait_waiting(name, "ImagePullBackOff")
    for i in range(4):
        world.kill_all(node.shims())
        node.preload(archive, f"archive{i}.tar")
        signal.sigtimedwait([], 0.05)
    for name in names:
        node.wait_running(name)


def test_a_shim_that_does_not_start_is_reported_and_retried(make_node, tmp_path):
    node = make_node()
    node.launch(specs.pod("good"))
    for name in ("mainstayd", "mainstay-image"):
        shutil.copy(program(name), tmp_path)
    with open(tmp_path / "mainstay-shim", "w", encoding="utf-8") as shim:
        shim.write(f'#!/bin/sh\n[ "$1" = sandbox ] && exit 1\nexec {program("mainstay-shim")} "$@"\n')
    os.chmod(tmp_path / "mainstay-shim", 0o755)
    node.kill9()
    command = node.command
    node.command = lambda: [str(tmp_path / "mainstayd"), *command()[1:]]
    node.start()
    node.drop(specs.pod("bad"))
    assert "shim exited" in node.wait_pod(
        "bad", lambda pod: "message" in pod["status"]["containerStatuses"][0]["state"]["waiting"],
        "reports the reason")["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    before = world.cpu_ticks(node.agent.pid)
    signal.sigtimedwait([], 1)
    assert world.cpu_ticks(node.agent.pid) - before < 30
    assert is_running(node.pod("good"))
    node.kill9()
    node.command = command
    node.start()
    node.wait_running("bad")


def test_a_completed_pod_is_not_run_again_when_shim_and_agent_die(node):
    node.drop(starter(node, "once", "exit 0", restartPolicy="Never"))
    node.wait_phase("once", "Succeeded")
    world.kill_all(node.shims())
    world.wait(lambda: not node.shims(), "its shim is gone")
    assert node.pod("once")["status"]["phase"] == "Succeeded"
    node.restart()
    ended = node.wait_phase("once", "Succeeded")["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    world.wait(lambda: not node.shims(), "the leftovers of the dead shim are removed, and no other one is started")
    assert starts(node) == ["once"]


def test_a_hanging_shim_does_not_delay_readiness_of_the_agent(node):
    node.launch(specs.pod("hung"))
    node.launch(specs.pod("well"))
    shim = node.shim("hung")
    os.kill(shim, signal.SIGSTOP)
    try:
        node.restart()
        node.wait_running("well")
        world.wait(lambda: "hung" in node.said() and "does not answer" in node.said(), "it is named")
    finally:
        os.kill(shim, signal.SIGCONT)
    node.wait_running("hung")
    assert node.status("hung")["restartCount"] == 0


def test_shims_whose_directory_was_removed_are_replaced_and_killed(node):
    for name in ("a", "b"):
        node.launch(specs.pod(name))
    shutil.rmtree(f"{node.run}/pods")
    node.restart()
    for name in ("a", "b"):
        assert node.wait_restarts(name, 1)["restartCount"] == 1
    world.wait(lambda: len(node.shims()) == 2, lambda: f"two shims run: {node.shims()}")


def test_a_pod_whose_directory_was_removed_gets_a_new_shim(node):
    node.launch(specs.pod("web"))
    pid = node.init("web")
    shutil.rmtree(f"{node.run}/pods")
    world.kill_all([pid])
    node.wait_restarts("web", 1)
    assert "run-time directory" in node.said()
    world.wait(lambda: len(node.shims()) == 1, lambda: f"one shim runs: {node.shims()}")


def test_the_last_two_logs_are_kept_however_shims_and_agents_die(node):
    node.launch(specs.pod("web"))
    for i in range(3):
        world.kill_all([node.shim("web")])
        node.wait_restarts("web", 2 * i + 1)
        shim = node.shim("web")
        node.kill9()
        world.kill_all([shim])
        node.start()
        node.wait_restarts("web", 2 * i + 2)
    directory = f"{node.log_directory('web')}/main"
    world.wait(lambda: sorted(os.listdir(directory)) == ["5.log", "6.log"], lambda: f"{os.listdir(directory)}")
    world.wait(lambda: len(os.listdir(f"{node.log}/containers")) == 2, lambda: f"{os.listdir(f'{node.log}/containers')}")


def test_the_last_two_logs_are_kept_while_shims_die_and_the_agent_does_not(node):
    node.launch(specs.pod("web"))
    for i in range(4):
        world.kill_all([node.shim("web")])
        node.wait_restarts("web", i + 1)
    directory = f"{node.log_directory('web')}/main"
    world.wait(lambda: sorted(os.listdir(directory)) == ["3.log", "4.log"], lambda: f"{os.listdir(directory)}")
    world.wait(lambda: len(os.listdir(f"{node.log}/containers")) == 2, lambda: f"{os.listdir(f'{node.log}/containers')}")


def hold_runtime(node, word, when):
    """Makes the next call of the runtime with that verb hang before or after its work; returns the file that reports
    it."""
    held, path = f"{node.directory}/{word}.{when}", f"{node.directory}/runtime"
    runtime = shutil.which("runc", path="/usr/sbin:/usr/bin")
    work = "" if when == "before" else f'{runtime} "$@"; '
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\ncase " $* " in *" {word} "*) if ! [ -e {held} ]; then {work}: >{held}; '
                   f'exec sleep 1000; fi;; esac\nexec {runtime} "$@"\n')
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)
    return held


def first_processes(node):
    return [pid for pid in world.pids_of_root(node.cgroup_root) if world.is_alive(pid) and world.is_container_init(pid)]


@pytest.mark.parametrize("victims", ["shim", "shim-agent", "agent-shim"])
@pytest.mark.parametrize("word", ["run", "delete"])
def test_one_container_runs_whichever_process_dies_around_a_runtime_call(make_node, word, victims):
    node = make_node(start=False)
    node.write_config(mainstay={"runtime": f"{node.directory}/runtime"})
    node.start()
    for when in ("before", "after"):
        held = hold_runtime(node, word, when)
        node.drop(specs.pod("web"))
        if word == "delete":
            node.wait_running("web")
            world.kill_all([node.init("web")])  # the next attempt starts, and the old one is deleted
        world.wait(lambda: os.path.exists(held), f"the runtime hangs {when} its work")
        shim = node.shim("web")
        for name in victims.split("-"):
            if name == "agent":
                node.kill9()
            else:
                world.kill_all([shim])
        if "agent" in victims:
            node.start()
        world.wait(lambda: node.shims() and shim not in node.shims(), "there is a new shim")
        world.wait(lambda: is_running(node.pod("web")) and first_processes(node) == [node.find_init("web")],
                   lambda: f"one container runs: {[world.cmdline(pid) for pid in first_processes(node)]}")
        node.remove("web")
        node.wait_gone("web")
        # The agent may still remove unused images.
        world.wait(lambda: not node.leftovers(), lambda: f"nothing is left: {node.leftovers()}")


def test_a_pod_with_only_a_damaged_record_leaves_nothing_behind(node):
    node.launch(specs.pod("lost"))
    uid = node.pod("lost")["metadata"]["uid"]
    node.kill9()
    with open(f"{node.state}/pods/{uid}/record", "w", encoding="utf-8") as record:
        record.write("no record")
    node.remove("lost")
    node.start()
    world.wait(lambda: not node.leftovers(), lambda: "\n".join(node.leftovers()))


def test_a_shim_without_a_record_that_does_not_answer_is_killed(make_node):
    node = make_node()
    node.launch(specs.pod("web"))
    shim, pid, uid = node.shim("web"), node.init("web"), node.pod("web")["metadata"]["uid"]
    node.kill9()
    node.remove("web")
    os.unlink(os.path.join(node.state, "pods", uid, "record"))
    os.kill(shim, signal.SIGSTOP)
    node.start()
    world.wait(lambda: not world.is_alive(shim) and not world.is_alive(pid), lambda: f"both are killed; the log of the agent:\n{node.said()}")
    world.wait(lambda: not os.path.exists(os.path.join(node.run, "pods", uid)), "its directory is removed")
