# SPDX-License-Identifier: Apache-2.0
"""An allocation of a shim fails: running containers continue, and the failed operation is done when it is repeated."""

import failing
import pytest
import specs
import world

PARTS = 24


def busy_pod(name):
    """A pod with many kinds of containers, with output, a probe that executes a command, and volumes."""
    probe = {"exec": {"command": ["echo", "well"]}, "periodSeconds": 1}
    main = {**specs.container("main", f"echo started; {specs.IDLE}", volumeMounts=[specs.mount("v", "/v")]),
            "readinessProbe": probe}
    return specs.pod(name, main, initContainers=[specs.container("first", "echo first"),
                                                 {**specs.container("side", specs.IDLE), "restartPolicy": "Always"}],
                     hostNetwork=False, terminationGracePeriodSeconds=1,
                     volumes=[{"name": "v", "emptyDir": {}}])


def execute(node, name):
    """Executes a command; returns its output, or the reason why there is none."""
    done = node.cli("exec", name, "-c", "main", "--", "echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n") or done.returncode and done.stderr.strip(), done
    return done


def live(node, name):
    """Starts a container, executes commands in it, kills it, waits until it is started again, and removes it."""
    node.drop(busy_pod(name))
    node.wait_running(name)
    pid, shim, restarts = node.init(name), node.shim(name), node.status(name)["restartCount"]
    execute(node, name)
    execute(node, name)
    assert (node.init(name), node.shim(name)) == (pid, shim), "running pods continue"
    world.kill_all([pid])
    after = node.wait_restarts(name, restarts + 1, deadline=120)
    assert after["lastState"]["terminated"]["exitCode"] in (137, 128), after
    assert node.shim(name) == shim
    node.remove(name)
    node.wait_gone(name)


def check_passes(node, first, step):
    """Checks the pod while its shim reaches that allocation, in any of its processes."""
    node.launch(specs.pod("other"))
    before, n, hits = (node.init("other"), node.shim("other")), first, first + 1
    while hits > n:
        node.arm({"mainstay-shim:alloc": f"{n}*off->1*return(ENOMEM)"})
        live(node, f"passing-{n}")
        hits = node.hits()["mainstay-shim:alloc"]
        node.arm({})
        assert (node.init("other"), node.shim("other"), node.status("other")["restartCount"]) == (*before, 0), n
        n += step
    assert node.agent.poll() is None
    return n


def live_simply(node, name):
    node.drop(specs.pod(name, terminationGracePeriodSeconds=1))
    node.wait_running(name)
    node.remove(name)
    node.wait_gone(name)


@pytest.mark.parametrize("point", ["shim.encode-event", "shim.decode-request"])
def test_reports_of_a_shim_without_memory_are_repeated(make_failing, point):
    node = make_failing(failing.FailingNetworkNode, plugins=())
    node.launch(specs.pod("other"))
    before = node.init("other"), node.shim("other")
    for n in range(8):
        node.arm({f"mainstay-shim:{point}": f"{n}*off->1*return(ENOMEM)"})
        live_simply(node, f"passing-{n}")
        hits = node.hits()[f"mainstay-shim:{point}"]
        node.arm({})
        assert (node.init("other"), node.shim("other"), node.status("other")["restartCount"]) == (*before, 0), n
        if hits <= n:
            break
    assert n >= 3, "a pod has a setup, a start, an exit, a deletion"


def test_a_shim_without_memory_for_its_state_is_not_considered_exited(make_failing):
    node = make_failing(failing.FailingNetworkNode, plugins=())
    node.launch(specs.pod("web"))
    before = node.init("web"), node.shim("web")
    for n in range(2):  # the report about the container, and the one that ends the state
        node.arm({"mainstay-shim:shim.encode-event": f"{n}*off->1*return(ENOMEM)"})
        node.restart()
        world.wait(lambda n=n: node.hits()["mainstay-shim:shim.encode-event"] > n, "the shim has tried to report its state")
        node.arm({})
        node.wait_running("web")
        assert (node.init("web"), node.shim("web"), node.status("web")["restartCount"]) == (*before, 0), n


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_a_shim_survives_each_failed_allocation(make_failing, part):
    assert check_passes(make_failing(failing.FailingNetworkNode, plugins=()), part, PARTS) > 400
