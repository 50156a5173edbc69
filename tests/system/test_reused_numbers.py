# SPDX-License-Identifier: Apache-2.0
"""The PID of a shim or of a container's process is reused by an unrelated process, to which no signal is sent."""

import os
import signal

import pytest
import specs
import world
from test_survival import starter, wait_starts
from world import wait


# These tests set the PID of the machine's next process.
pytestmark = pytest.mark.xdist_group("reused_numbers")


def take_number(number):
    """Starts a process that sleeps and that any signal kills; returns whether it has this number."""
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:
        file.write(str(number - 1))
    # A fork of this large process would copy its memory first, and other processes would take the number.
    pid = os.posix_spawn("/bin/sleep", ["sleep", "100000"], {})
    if pid == number:
        return True
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


@pytest.fixture(name="strangers")
def fixture_strangers():
    """Assigns the PIDs of ended processes to processes to which no signal may be sent."""
    taken = []

    def take(numbers):
        for number in numbers:
            wait(lambda number=number: world.start_time(number) != number.started, f"process {number} is gone")
        # All processes of the machine get the numbers that follow the one that was taken last.
        for number in sorted(numbers, reverse=True):
            wait(lambda number=number: take_number(number), f"a process has the number {number}")
            taken.append(number)
        return taken
    yield take
    for number in taken:
        assert os.waitpid(number, os.WNOHANG) == (0, 0), f"process {number} got a signal"
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


def check_strangers(taken):
    """Checks that they run and were not even moved to another control group."""
    own = world.read("/proc/self/cgroup")
    for number in taken:
        assert os.waitpid(number, os.WNOHANG) == (0, 0), f"process {number} got a signal"
        assert world.read(f"/proc/{number}/cgroup") == own


def launch(node, *names):
    """Launches pods; returns the processes of the shim and of the container of each."""
    for name in names:
        node.launch(starter(node, name))
    wait_starts(node, *names)
    return {name: (node.shim(name), node.init(name)) for name in names}


def test_no_unrelated_process_is_killed_if_shim_and_container_ended_while_the_agent_was_dead(node, strangers):
    found = launch(node, "web", "gone")
    node.kill9()
    for shim, init in found.values():
        world.kill_all([shim, init])
    node.remove("gone")
    taken = strangers([number for numbers in found.values() for number in numbers])
    node.start()
    node.wait_gone("gone")
    node.wait_restarts("web", 1)
    check_strangers(taken)
    node.remove("web")
    node.wait_gone("web")
    check_strangers(taken)


def test_no_unrelated_process_is_killed_if_a_shim_ends_while_the_agent_is_frozen(node, strangers):
    found = launch(node, "web", "gone")
    node.agent.send_signal(signal.SIGSTOP)
    for shim, init in found.values():
        world.kill_all([shim, init])
    node.remove("gone")
    numbers = [init for _, init in found.values()]
    wait(lambda: not any(world.is_alive(shim) for shim, _ in found.values()), "the shims have ended")
    taken = strangers(numbers)
    node.agent.send_signal(signal.SIGCONT)
    node.wait_gone("gone")
    node.wait_restarts("web", 1)
    check_strangers(taken)


@pytest.mark.parametrize("policy", ["Always", "Never"])
def test_no_unrelated_process_is_killed_for_a_container_whose_exit_is_known(node, strangers, policy):
    node.launch(specs.pod("web", specs.container(), specs.container("other"), restartPolicy=policy))
    init, other = node.init("web"), node.init("web", "other")
    node.kill9()
    world.kill_all([init])
    taken = strangers([init])
    node.start()
    node.wait_pod("web", lambda pod: "137" in str(pod["status"]["containerStatuses"]), "the exit is known")
    check_strangers(taken)
    assert world.is_alive(other)
    node.remove("web")
    node.wait_gone("web")
    check_strangers(taken)
