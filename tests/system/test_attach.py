# SPDX-License-Identifier: Apache-2.0
"""mainstay attach: the streams of a container itself, for several clients at once, and the effects of a bad client."""

import fcntl
import os
import pty
import signal
import socket
import struct
import subprocess
import termios
import threading

import harness
import log_copier
import pytest
import specs
import world
from world import wait

ECHO = "echo started; while read line; do echo got-$line; done; echo end-of-input; " + specs.IDLE


def spawn(node, *words, **streams):
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "attach", *words],
                            env=node.environment(), **streams)


class Client:
    """A mainstay attach with pipes; its output is collected as it arrives."""

    def __init__(self, node, *words, reads=True):
        self.node = node
        before = set(sessions(node))
        self.process = spawn(node, *words, stdin=subprocess.PIPE)
        self.out, self.err = b"", b""
        wait(lambda: set(sessions(node)) - before, lambda: f"it is attached; its status is {self.process.poll()}")
        if reads:
            for name in ("out", "err"):
                threading.Thread(target=self.collect, args=(name,), daemon=True).start()

    def collect(self, name):
        stream = getattr(self.process, f"std{name}")
        while chunk := os.read(stream.fileno(), 65536):
            setattr(self, name, getattr(self, name) + chunk)

    def say(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def expect(self, text, name="out"):
        wait(lambda: text.encode() in getattr(self, name),
             lambda: f"{text!r} arrives; there is {self.out[-500:]!r}, {self.err[-500:]!r}")

    def end(self):
        self.process.kill()
        self.process.wait()


def sessions(node):
    """A session is a child of its shim that is a shim itself; unlike the log copier it leads a process group, and
    unlike other tasks of a shim it is confined."""
    shims = node.shim_processes()
    return [pid for pid in shims if int(world.status(pid, "PPid") or 0) in shims and world.is_alive(pid) and
            log_copier.is_confined(pid) and log_copier.leads_group(pid)]


def attached(node):
    return len(sessions(node))


@pytest.fixture(name="clients")
def fixture_clients():
    clients = []
    yield clients
    for client in clients:
        client.end()


def attach(clients, node, *words, **options):
    client = Client(node, *words, **options)
    clients.append(client)
    return client


def test_output_from_the_moment_of_attach_reaches_all_clients_and_the_log(node, clients):
    node.launch(specs.pod("web", specs.container(script=ECHO, stdin=True)))
    wait(lambda: node.logged("web") == ["started"], "it runs")
    first = attach(clients, node, "-i", "web")
    second = attach(clients, node, "web")
    first.say("one\n")
    for client in (first, second):
        client.expect("got-one\n")
        assert client.out == b"got-one\n", "no earlier output is sent"
    third = attach(clients, node, "-i", "web")
    third.say("two\n")
    for client in (first, second, third):
        client.expect("got-two\n")
    assert third.out == b"got-two\n"
    assert node.logged("web") == ["started", "got-one", "got-two"]


def test_standard_error_is_a_separate_stream(node, clients):
    node.launch(specs.pod("web", specs.container(
        script="while read line; do echo out-$line; echo err-$line >&2; done", stdin=True)))
    client = attach(clients, node, "-i", "web")
    client.say("x\n")
    client.expect("out-x\n")
    client.expect("err-x\n", "err")
    assert (client.out, client.err) == (b"out-x\n", b"err-x\n")


def test_detaching_leaves_the_container_and_its_input_open(node, clients):
    node.launch(specs.pod("web", specs.container(script=ECHO, stdin=True)))
    first = attach(clients, node, "-i", "web")
    first.say("one\n")
    first.process.stdin.close()
    first.expect("got-one\n")
    assert first.process.poll() is None, "its output continues"
    first.end()
    wait(lambda: attached(node) == 0, "the session is gone")
    second = attach(clients, node, "-i", "web")
    second.say("two\n")
    second.expect("got-two\n")
    assert "end-of-input" not in node.logged("web")


@pytest.mark.parametrize("vanishes", [False, True])
def test_stdin_once_closes_the_input_when_the_first_client_disconnects(node, clients, vanishes):
    node.launch(specs.pod("web", specs.container(script=ECHO, stdin=True, stdinOnce=True)))
    first = attach(clients, node, "-i", "web")
    second = attach(clients, node, "-i", "web")
    second.say("ignored\n")
    first.say("one\n")
    first.expect("got-one\n")
    if vanishes:
        first.end()
    else:
        first.process.stdin.close()
        first.expect("end-of-input\n")
    second.expect("end-of-input\n")
    assert node.logged("web") == ["started", "got-one", "end-of-input"]


def test_attach_without_stdin_refuses_input_and_returns_output(node, clients):
    node.launch(specs.pod("web", specs.container(script="trap 'exit 0' TERM; while :; do echo tick; sleep 0.1; done")))
    client = attach(clients, node, "-i", "web")
    client.expect("Unable to pass standard input", "err")
    client.say("x\n")
    client.expect("tick\ntick\n")


def test_the_end_of_the_container_ends_the_session_after_all_output(node, clients):
    node.drop(specs.pod("web", specs.container(script="read line; seq 1 20000; exit 3", stdin=True), restartPolicy="Never"))
    node.wait_running("web")
    client = attach(clients, node, "-i", "web")
    client.say("\n")
    assert client.process.wait(world.DEADLINE) == 0
    expected = "".join(f"{i}\n" for i in range(1, 20001)).encode()
    wait(lambda: client.out == expected, lambda: f"all output has arrived; {len(client.out)} of {len(expected)} bytes")


def test_an_attach_session_outlives_the_agent_and_ends_with_the_attempt(node, clients):
    node.launch(specs.pod("web", specs.container(script=ECHO, stdin=True)))
    client = attach(clients, node, "-i", "web")
    node.restart()
    client.say("after\n")
    client.expect("got-after\n")
    os.kill(node.init("web"), signal.SIGKILL)
    assert client.process.wait(world.DEADLINE) == 0
    node.wait_restarts("web", 1)
    again = attach(clients, node, "-i", "web")
    again.say("again\n")
    again.expect("got-again\n")


def test_a_stalled_client_delays_nothing_and_is_dropped(node, clients):
    node.launch(specs.pod("web", specs.container(script="read line; head -c 3000000 /dev/zero | tr '\\0' x | fold -w 100; "
                                                 "echo; echo done; " + specs.IDLE, stdin=True)))
    stalled = attach(clients, node, "-i", "web", reads=False)
    stalled.say("\n")
    wait(lambda: "done" in node.logged("web"), "the container has written everything, and the log has it")
    written = b""
    while chunk := os.read(stalled.process.stdout.fileno(), 1 << 20):
        written += chunk
    assert len(written) < 3000000
    assert stalled.process.wait(world.DEADLINE) == 1
    assert b"the client did not read the output fast enough" in stalled.process.stderr.read()
    wait(lambda: attached(node) == 0, "the session is gone")
    assert world.is_alive(node.init("web"))


def test_a_client_that_vanishes_leaves_no_resources(node, clients):
    node.launch(specs.pod("web", specs.container(script=ECHO, stdin=True)))
    shim = node.shim("web")
    before = len(os.listdir(f"/proc/{shim}/fd"))
    for _ in range(3):
        attach(clients, node, "-i", "web")
    for client in clients:
        client.end()
    wait(lambda: attached(node) == 0, "no session is left")
    # A descriptor from the start of the container may still have been open.
    wait(lambda: len(os.listdir(f"/proc/{shim}/fd")) <= before, lambda: f"{before} descriptors are open, as before; "
         f"{[os.readlink(f'/proc/{shim}/fd/{fd}') for fd in os.listdir(f'/proc/{shim}/fd')]}")
    client = attach(clients, node, "-i", "web")
    client.say("still\n")
    client.expect("got-still\n")


def test_a_session_does_not_inherit_descriptors_of_the_shim(node, clients):
    node.launch(specs.pod("web", specs.container(script=ECHO, stdin=True), specs.container("side")))
    attach(clients, node, "-i", "web", "-c", "main")

    def kinds():
        return [sorted(target.split(":")[0] for fd, target in world.descriptors(pid).items() if fd > 2) for pid in sessions(node)]
    # At first the session has all descriptors of the shim, and it opens some of its own.
    wait(lambda: kinds() == [["anon_inode"] * 3 + ["pipe", "pipe", "pipe", "socket"]], kinds)


class Terminal:
    """mainstay attach -it in a pseudo-terminal."""

    def __init__(self, node, *words, rows=33, columns=77):
        self.master, slave = pty.openpty()
        self.slave = slave
        self.resize(rows, columns)
        before = set(sessions(node))
        self.process = spawn(node, "-it", *words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = b""
        os.set_blocking(self.master, False)
        wait(lambda: set(sessions(node)) - before, "it is attached")

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def say(self, text):
        os.write(self.master, text.encode())

    def expect(self, text):
        def look():
            try:
                while chunk := os.read(self.master, 65536):
                    self.seen += chunk
            except OSError:  # nothing is attached now
                pass
            return text.encode() in self.seen
        wait(look, lambda: f"the terminal shows {text!r}; it shows {self.seen[-1000:]!r}")

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def test_a_terminal_is_attached_with_its_size_and_can_be_attached_again(node, clients):
    node.launch(specs.pod("shell", specs.container(tty=True, stdin=True, stdinOnce=True, script="exec sh")))
    terminal = Terminal(node, "shell")
    clients.append(terminal)
    terminal.expect("If you don't see a command prompt, try pressing enter.")
    terminal.say("stty size; tty\n")
    terminal.expect("33 77")
    terminal.expect("/dev/pts/0")
    terminal.resize(40, 100)
    terminal.say("while [ \"$(stty size)\" != '40 100' ]; do :; done; echo gro''wn\n")
    terminal.expect("grown")
    terminal.process.kill()
    wait(lambda: attached(node) == 0, "the session is gone")
    again = Terminal(node, "shell")
    clients.append(again)
    again.say("echo ag''ain\n")
    again.expect("again")
    assert b"grown" not in again.seen, "only new output is sent"


def test_a_stalled_terminal_skips_output_and_continues(node, clients):
    node.launch(specs.pod("shell", specs.container(tty=True, stdin=True, script="exec sh")))
    terminal = Terminal(node, "shell")
    clients.append(terminal)
    terminal.say("stty -echo; head -c 8000000 /dev/zero | tr '\\0' x | fold -w 100; touch /tmp/written\n")
    init = node.init("shell")
    wait(lambda: os.path.exists(f"/proc/{init}/root/tmp/written"), "the container has written everything")
    terminal.expect("bytes were not read in time]")
    terminal.say("echo ali''ve\n")
    terminal.expect("alive")


def test_tty_is_refused_if_the_container_has_no_terminal(node, clients):
    node.drop(specs.pod("web", specs.container(script="until [ -e /v/go ]; do sleep 0.1; done; echo words",
                                               volumeMounts=[specs.mount("v", "/v")]),
                        volumes=[specs.host_path("v", node.data)], restartPolicy="Never"))
    node.wait_running("web")
    client = attach(clients, node, "-t", "web")
    client.expect("container main did not allocate one", "err")
    world.run("touch", f"{node.data}/go")
    assert client.process.wait(world.DEADLINE) == 0
    wait(lambda: client.out == b"words\n", lambda: f"all output has arrived: {client.out}")


@pytest.mark.parametrize("words,status,said", [
    ([], 2, "one pod is required"),
    (["missing"], 1, 'pods "missing" not found'),
    (["web", "-c", "other"], 1, "container other not found in pod web-node1"),
])
def test_invalid_attach_requests_are_reported(shared_node, words, status, said):
    if not shared_node.pod("web"):
        shared_node.launch(specs.pod("web"))
    answer = shared_node.cli("attach", *words)
    assert (answer.returncode, answer.stdout) == (status, "")
    assert said in answer.stderr


def test_a_container_that_does_not_run_cannot_be_attached_to(node):
    node.drop(specs.script_pod("done", "exit 0", restartPolicy="Never"))
    node.wait_phase("done", "Succeeded")
    answer = node.cli("attach", "done")
    assert answer.returncode == 1
    assert 'container "main" in pod "done-node1" is not running' in answer.stderr


def test_a_client_that_breaks_the_protocol_affects_no_other(node, clients):
    node.launch(specs.pod("web", specs.container(script=ECHO, stdin=True)))
    good = attach(clients, node, "-i", "web")
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(node.socket)
        client.sendall(b"GET /attach/default/web-node1/main?stdin=1&stdout=1 HTTP/1.1\r\nHost: x\r\n"
                       b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                       b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n")
        assert b"101 Switching Protocols" in client.recv(4096)
        wait(lambda: attached(node) == 2, "it is attached")
        client.sendall(os.urandom(4096))
        wait(lambda: attached(node) == 1, "its session is gone")
    good.say("fine\n")
    good.expect("got-fine\n")


def test_the_default_container_of_a_pod_cannot_write_to_the_terminal(node):
    document = specs.pod("evil", specs.container("one"), specs.container("two"))
    document["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "\x1b]0;owned\x07two"}
    node.launch(document)
    answer = node.cli("attach", "-it", "evil")
    assert answer.returncode != 0 and "did not allocate one" in answer.stderr and "owned" in answer.stderr
    assert not {"\x1b", "\x07"} & set(answer.stdout + answer.stderr)
