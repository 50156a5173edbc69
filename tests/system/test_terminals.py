# SPDX-License-Identifier: Apache-2.0
"""stdin, stdinOnce and tty: the container's descriptors, and its output to them."""

import os
import stat

import specs
import world


def descriptor(pid, number):
    return os.stat(f"/proc/{pid}/fd/{number}")


def test_a_container_without_stdin_reads_end_of_file(node):
    node.launch(specs.pod("none", specs.container(script="read line; echo read-$?; " + specs.IDLE)))
    world.wait(lambda: node.logged("none") == ["read-1"], "the end of the file was read")
    assert descriptor(node.init("none"), 0).st_rdev == os.makedev(1, 3), "/dev/null"


def test_a_volume_at_dev_does_not_give_the_device_of_the_node(node):
    node.launch(specs.pod(
        "dev", specs.container(script="read line; echo read-$?; " + specs.IDLE, volumeMounts=[specs.mount("d", "/dev")]),
        volumes=[{"name": "d", "emptyDir": {}}],
        initContainers=[specs.container("prepare", "touch /d/null", volumeMounts=[specs.mount("d", "/d")])]))
    world.wait(lambda: node.logged("dev") == ["read-1"], "the end of the file was read")
    own = os.stat("/dev/null")
    for number in range(3):
        found = descriptor(node.init("dev"), number)
        assert (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino), number
    assert descriptor(node.init("dev"), 0).st_rdev == os.makedev(1, 3), "stdin is the container's own null device"
    node.cli("exec", "dev", "--", "chmod", "600", "/proc/1/fd/0")
    assert os.stat("/dev/null").st_mode == own.st_mode


def test_a_container_with_stdin_keeps_its_input_open_across_a_restart_of_the_agent(node):
    node.launch(specs.pod("open", specs.container(
        script="echo before; read line; echo after", stdin=True, stdinOnce=True)))
    world.wait(lambda: node.logged("open") == ["before"], "it runs")
    assert stat.S_ISFIFO(descriptor(node.init("open"), 0).st_mode)
    node.restart()
    node.wait_running("open")
    assert node.logged("open") == ["before"], "its stdin is still open"


def test_a_tty_is_a_pseudo_terminal_on_all_descriptors(node):
    node.launch(specs.pod("tty", specs.container(
        script="tty; echo to-stderr >&2; echo term $TERM; stty -a 2>/dev/null | grep -q 'icanon' && echo canonical; " + specs.IDLE,
        tty=True, stdin=True)))
    expected = ["/dev/pts/0", "to-stderr", "term xterm", "canonical"]
    world.wait(lambda: [line.rstrip("\r") for line in node.logged("tty")] == expected,
               lambda: f"the log is as expected; it is {node.log_lines('tty')}")
    assert {line.split()[1] for line in node.log_lines("tty")} == {"stdout"}
    init = node.init("tty")
    assert len({descriptor(init, number).st_rdev for number in range(3)}) == 1
    assert os.major(descriptor(init, 0).st_rdev) == 136, "stdin is a pseudo terminal"
    assert world.mount_at(init, "/dev/console")["type"] == "devpts"
    assert not [name for name in os.listdir(f"{node.run}/pods/{node.pod('tty')['metadata']['uid']}")
                if name.startswith("tty")], "the socket is gone"


def test_the_last_output_on_a_terminal_is_not_lost(node):
    node.drop(specs.pod("brief", specs.container(script="seq 1 5000", tty=True), restartPolicy="Never"))
    node.wait_phase("brief", "Succeeded")
    assert [line.rstrip("\r") for line in node.logged("brief")] == [str(i) for i in range(1, 5001)]


def test_a_terminal_survives_the_agent_and_each_restart_gets_a_new_one(node):
    node.launch(specs.pod("again", specs.container(
        script="trap 'exit 1' TERM; tty; while sleep 0.1; do echo tick; done", tty=True)))
    node.restart()
    node.wait_running("again")
    before = len(node.logged("again"))
    world.wait(lambda: len(node.logged("again")) > before, "it keeps writing")
    os.kill(node.init("again"), 15)
    node.wait_restarts("again", 1)
    world.wait(lambda: node.logged("again", attempt=1)[:1] in (["/dev/pts/0\r"], ["/dev/pts/0"]), "it has a terminal again")


def test_a_tty_start_error_is_reported(node):
    node.drop(specs.pod("wrong", specs.container(tty=True, command=["/no/such/program"])))
    message = node.wait_waiting("wrong", "RunContainerError")
    assert "/no/such/program" in message
