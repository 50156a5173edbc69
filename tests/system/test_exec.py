# SPDX-License-Identifier: Apache-2.0
"""mainstay exec: a command in a container, with a terminal or with pipes."""

import fcntl
import hashlib
import os
import pty
import signal
import socket
import struct
import subprocess
import termios

import harness
import pytest
import specs
import world
from world import wait


@pytest.fixture(scope="module", name="busy")
def fixture_busy(shared_node):
    shared_node.launch(specs.pod("web", specs.container(
        env=[{"name": "GREETING", "value": "hello"}], workingDir="/tmp",
        securityContext={"runAsUser": 1234, "runAsGroup": 2345}), specs.container("side")))
    return shared_node


def spawn(node, *words, **streams):
    return subprocess.Popen([harness.program("mainstay"), "--socket", node.socket, "exec", *words],
                            env=node.environment(), **streams)


def sleepers(node, marker):
    """The processes "sleep MARKER" in the node's containers. The command line of the runtime that starts one has these
    words, too."""
    return [pid for pid in world.pids_of_root(node.cgroup_root) if world.cmdline(pid) == ["sleep", marker]]


def runtimes(node):
    """The processes of the runtime that start a command of this node."""
    words = {pid: world.cmdline(pid) for pid in world.pids()}
    return [pid for pid, found in words.items() if "exec" in found and any(word.startswith(f"--root={node.run}/") for word in found)]


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exec_returns_the_exit_code_of_the_command(busy, code):
    answer = busy.cli("exec", "web", "-c", "side", "--", "sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert (answer.returncode, answer.stdout) == (code, "out\n")
    assert answer.stderr == "err\n" + (f"command terminated with exit code {code}\n" if code else "")


@pytest.mark.parametrize("kilobytes", [32, 120])
def test_a_command_that_is_too_long_is_an_error(busy, kilobytes):
    answer = busy.cli("exec", "web", "-c", "side", "--", "echo", "x" * kilobytes * 1024)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == "error: the arguments are too long for the agent\n"


def test_a_command_that_is_killed_ends_with_its_signal(busy):
    assert busy.cli("exec", "web", "-c", "side", "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_a_command_runs_with_user_environment_and_cgroup_of_the_container(busy):
    answer = busy.cli("exec", "web", "-c", "main", "--", "sh", "-c", "echo $GREETING; id -u; id -g; pwd; cat /proc/self/cgroup")
    lines = answer.stdout.splitlines()
    assert lines[:4] == ["hello", "1234", "2345", "/tmp"], answer.stderr
    assert any(busy.container_id("web", "main") in line for line in lines[4:])


def test_the_first_container_is_the_default_and_is_printed(busy):
    answer = busy.cli("exec", "web", "--", "sh", "-c", "echo $GREETING")
    assert (answer.stdout, answer.stderr) == ("hello\n", 'Defaulted container "main" out of: main, side\n')


def test_end_of_stdin_reaches_the_command(busy):
    assert busy.cli("exec", "-i", "web", "-c", "side", "--", "wc", "-c", input="12345").stdout.strip() == "5"
    assert busy.cli("exec", "web", "-c", "side", "--", "wc", "-c").stdout.strip() == "0", "without -i, there is no input"


def test_ten_mebibytes_pass_through_exec_unchanged(busy, tmp_path):
    data = os.urandom(10 * 1024 * 1024)
    path = tmp_path / "data"
    path.write_bytes(data)
    with open(path, "rb") as source, spawn(busy, "-i", "web", "-c", "side", "--", "cat", stdin=source,
                                           stdout=subprocess.PIPE) as session:
        out, _ = session.communicate(timeout=world.DEADLINE)
    assert session.returncode == 0
    assert hashlib.sha256(out).hexdigest() == hashlib.sha256(data).hexdigest()


def test_no_output_is_lost_if_the_client_reads_slowly(busy):
    with spawn(busy, "web", "-c", "side", "--", "sh", "-c", "head -c 3000000 /dev/zero; echo end",
               stdout=subprocess.PIPE) as session:
        first = session.stdout.read(1)
        signal.sigtimedwait([], 1)  # the command has ended long ago, or waits until its output is read
        rest = session.stdout.read()
    assert len(first + rest) == 3000004
    assert rest.endswith(b"end\n")


def is_the_nodes(path):
    found, own = os.stat(path), os.stat("/dev/null")
    return (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)


@pytest.mark.parametrize("streams", ["output=1", "input=1", "error=1", "output=1&tty=1"])
def test_exec_gives_access_to_no_device_of_the_node(busy, streams):
    marker = f"43{len(streams)}{ord(streams[0])}"
    pod = busy.pod("web")["metadata"]["name"]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(busy.socket)
        client.sendall(f"GET /exec/default/{pod}/side?command=sleep&command={marker}&{streams} HTTP/1.1\r\nHost: x\r\n"
                       "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                       "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n".encode())
        pid = wait(lambda: sleepers(busy, marker), "a command that runs")[0]
        assert not any(is_the_nodes(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd"))


def test_a_missing_program_is_one_error_message(busy):
    answer = busy.cli("exec", "web", "-c", "side", "--", "/no/such/program")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert "/no/such/program" in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize("words,status,said", [
    (["web"], 2, "are required"),
    (["missing", "--", "id"], 1, 'pods "missing" not found'),
    (["web", "-c", "other", "--", "id"], 1, 'container not found ("other")'),
])
def test_invalid_exec_requests_are_reported(busy, words, status, said):
    answer = busy.cli("exec", *words)
    assert (answer.returncode, answer.stdout) == (status, "")
    assert said in answer.stderr


def test_a_container_that_is_not_running_refuses_sessions(node):
    node.drop(specs.script_pod("done", "exit 0", restartPolicy="Never"))
    node.wait_phase("done", "Succeeded")
    answer = node.cli("exec", "done", "--", "id")
    assert answer.returncode == 1
    assert 'container "main" in pod "done-node1" is not running' in answer.stderr


class Terminal:
    """mainstay exec -it in a pseudo-terminal."""

    def __init__(self, node, *words, rows=33, columns=77):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = spawn(node, "-it", *words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                             preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = b""
        os.set_blocking(self.master, False)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type_text(self, text):
        os.write(self.master, text.encode())

    def read_screen(self):
        try:
            self.seen += os.read(self.master, 65536)
        except BlockingIOError:
            pass
        return self.seen.decode(errors="replace")

    def wait_for_text(self, text):
        wait(lambda: text in self.read_screen(), lambda: f"the terminal shows {text!r}; it shows {self.seen!r}")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def test_a_terminal_has_its_size_and_ends_with_the_session(busy):
    terminal = Terminal(busy, "web", "-c", "side", "--", "sh")
    try:
        terminal.type_text("tty; echo $TERM; stty size\n")
        terminal.wait_for_text("/dev/pts/")
        terminal.wait_for_text("xterm")
        terminal.wait_for_text("33 77")
        terminal.resize(40, 100)
        terminal.type_text("while [ \"$(stty size)\" != '40 100' ]; do :; done; echo grown\n")
        terminal.wait_for_text("\ngrown")
        terminal.type_text("sleep 4000\n")
        wait(lambda: terminal.read_screen() and sleepers(busy, "4000"), "the terminal's command runs")
        terminal.type_text("\x03")
        terminal.type_text("echo status $?\n")
        terminal.wait_for_text("status 130")
        terminal.type_text("exit 7\n")
        assert terminal.process.wait(world.DEADLINE) == 7
        assert termios.tcgetattr(terminal.slave) == terminal.before, "the terminal is restored"
    finally:
        terminal.close()


def test_a_terminated_client_restores_the_terminal(busy):
    terminal = Terminal(busy, "web", "-c", "side", "--", "sleep", "5000")
    try:
        wait(lambda: sleepers(busy, "5000"), "the command runs")
        wait(lambda: termios.tcgetattr(terminal.slave) != terminal.before, "the terminal is raw")
        terminal.process.terminate()
        assert terminal.process.wait(world.DEADLINE) != 0
        assert termios.tcgetattr(terminal.slave) == terminal.before
        wait(lambda: not sleepers(busy, "5000"), "the command is gone")
    finally:
        terminal.close()


def test_exec_without_a_local_terminal_allocates_none(busy):
    answer = busy.cli("exec", "-it", "web", "-c", "side", "--", "sh", "-c", "tty; cat", input="hello\n")
    assert answer.stdout == "not a tty\nhello\n"
    assert "Unable to use a TTY" in answer.stderr


@pytest.mark.parametrize("options", [[], ["-i"]])
def test_the_command_is_killed_when_its_client_disappears(busy, options):
    marker = f"1000{len(options)}"
    with spawn(busy, *options, "web", "-c", "side", "--", "sleep", marker, stdin=subprocess.PIPE) as session:
        wait(lambda: sleepers(busy, marker), "the command runs")
        session.kill()
    wait(lambda: not sleepers(busy, marker), "the command is gone")


def test_all_output_arrives_after_a_stalled_session_continues(node):
    """The session stalls for longer than it waits for output after the command's end; output that had arrived by
    then is not lost."""
    node.launch(specs.pod("web"))
    shim = str(node.shims()[0])
    words = ["strace", "-f", "-q", "-o", "/dev/null", "-e", "trace=wait4", "-e", "inject=wait4:delay_exit=700000", "-p", shim]
    with subprocess.Popen(words) as tracer:
        try:
            wait(lambda: world.status(shim, "TracerPid") == str(tracer.pid), "it is traced")
            answer = node.cli("exec", "web", "--", "head", "-c", "60000", "/dev/zero")
            assert (answer.returncode, len(answer.stdout)) == (0, 60000), answer.stderr
        finally:
            tracer.terminate()


def test_the_end_of_the_container_is_reported_to_the_session(node):
    node.launch(specs.pod("web"))
    with spawn(node, "web", "--", "sleep", "2000") as session:
        wait(lambda: sleepers(node, "2000") and not runtimes(node), "the command runs, and the runtime has seen that")
        node.remove("web")
        assert session.wait(world.DEADLINE) == 137


def test_an_exec_session_outlives_the_agent(node):
    node.launch(specs.pod("web"))
    with spawn(node, "-i", "web", "--", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        session.stdin.write(b"before\n")
        session.stdin.flush()
        assert session.stdout.readline() == b"before\n"
        node.restart()
        session.stdin.write(b"after\n")
        session.stdin.flush()
        assert session.stdout.readline() == b"after\n"
        session.stdin.close()
        assert session.wait(world.DEADLINE) == 0


def test_orphans_of_a_command_do_not_delay_its_session(busy):
    answer = busy.cli("exec", "web", "-c", "side", "--", "sh", "-c", "sleep 3000 & echo started")
    assert (answer.returncode, answer.stdout) == (0, "started\n")
    world.kill_all(wait(lambda: sleepers(busy, "3000"), "the orphan runs"))


def test_exec_sessions_leave_no_files_behind(busy):
    busy.cli("exec", "web", "-c", "side", "--", "true")
    directory = f"{busy.run}/pods/{busy.pod('web')['metadata']['uid']}"
    wait(lambda: not [name for name in os.listdir(directory) if name.startswith("exec")], "no file of a session is left")


def test_only_root_may_exec_into_a_container(node):
    node.launch(specs.pod("web"))
    os.chmod(node.directory, 0o755)
    os.chmod(node.run, 0o755)
    os.chown(node.socket, -1, 65534)
    asker = ("import http.client, socket, sys\n"
             "c = http.client.HTTPConnection('x'); c.sock = socket.socket(socket.AF_UNIX); c.sock.connect(sys.argv[1])\n"
             "c.request('GET', '/exec/default/web-node1/main?command=id&output=1', headers={'Upgrade': 'websocket',\n"
             "  'Connection': 'Upgrade', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'x' * 24,\n"
             "  'Sec-WebSocket-Protocol': 'v5.channel.k8s.io'}); print(c.getresponse().status)\n")
    answer = subprocess.run(["/usr/bin/python3", "-c", asker, node.socket], check=True, text=True, timeout=world.DEADLINE,
                            stdout=subprocess.PIPE, user=65534, group=65534, extra_groups=[])
    assert answer.stdout == "403\n"


def test_exit_code_arrives_while_input_is_still_being_sent(node):
    node.launch(specs.pod("web"))
    with open("/dev/zero", "rb") as zeros:
        for _ in range(10):
            result = node.cli("exec", "-i", "web", "--", "/bin/sh", "-c", "exit 7", stdin=zeros)
            assert result.returncode == 7, result.stderr
