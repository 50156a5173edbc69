# SPDX-License-Identifier: Apache-2.0
"""kubectl accesses the pods of a node through the API server, over each protocol that these three use."""

import contextlib
import fcntl
import hashlib
import json
import os
import pty
import re
import select
import socket
import ssl
import struct
import subprocess
import termios
import threading
import time

import pytest
import specs
import world
from client import connect_inside
from control_plane import ADDRESS, with_parent
from node import ClusterNode
from node_api import ActivatingNode, WebSocketClient, receive, websocket_headers
from trial import state
from world import wait

MIB = 1 << 20
PORT = 10250
OLD_PORT = 444  # options of an API server that itself translates WebSockets to SPDY, like all before 1.36
ECHO_PORT, FILE_PORT = 8000, 8001
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
MODES = ["websocket", "translated", "spdy"]
KINDS = ["deployment", "daemonset", "static"]

TALK = "while read line; do echo got-$line; done; " + specs.IDLE
# Reads nothing, and ends once the peer has received everything: closing a connection with unread data resets it, which
# would discard the data that has not been sent.
FILE = (f"cat /bin/busybox; while grep -qE '^ *[0-9]+: [0-9A-F]+:{FILE_PORT:04X} [^ ]+ 0[18] 0*[1-9A-F]' /proc/net/tcp /proc/net/tcp6; "
        "do sleep 0.02; done")
# The lines start when a file exists.
LINES, COUNT = "echo ready; until [ -e /tmp/go ]; do sleep 0.1; done; seq 1 {count}; echo end; " + specs.IDLE, 60000


class ReachedNode(ActivatingNode, ClusterNode):
    """A node that listens at port 10250, and has a pod of each kind of owner."""

    port = PORT

    def __init__(self, plane, archive):
        self.make_mounts()
        super().__init__(plane, archive=archive, start=False)
        self.write_config(enableServer=True, port=PORT, containerLogMaxSize="512Ki",
                          authentication={"x509": {"clientCAFile": plane.authority.cert}})
        self.add_user()
        self.start()
        self.wait_node_ready()
        for kind, name in (("Deployment", "web"), ("DaemonSet", "logd")):
            self.workload(kind, name, *containers())
        self.drop(self.static("own", *containers(), hostNetwork=False))
        static = f"own-{self.node_name}"
        self.wait_api_running(static)
        self.names = {"deployment": self.wait_pods("web", 1)[0]["metadata"]["name"],
                      "daemonset": self.wait_pods("logd", 1)[0]["metadata"]["name"], "static": static}


def containers():
    return [specs.container(), specs.container("echo", f"exec nc -ll -p {ECHO_PORT} -e cat"),
            specs.container("file", f'exec nc -ll -p {FILE_PORT} -e sh -c "{FILE}"'),
            specs.container("talker", TALK, stdin=True), specs.container("terminal", "while read line; do echo got-$line; done",
                                                                         stdin=True, tty=True)]


class Kubectl:
    """Runs kubectl in the network namespace of the control plane."""

    def __init__(self, plane, node, mode):
        self.plane, self.node, self.names = plane, node, node.names
        self.words = [os.path.join(plane.bin, "kubectl"), f"--kubeconfig={plane.path('admin.kubeconfig')}",
                      f"--cache-dir={plane.path('kubectl-cache')}", "-n", node.namespace]
        if mode == "translated":
            self.words.append(f"--server=https://{ADDRESS}:{OLD_PORT}")
        self.environment = {**os.environ, **(SPDY if mode == "spdy" else {})}

    def command(self, *words):
        return with_parent("nsenter", f"--net={self.plane.net}", *self.words, *words)

    def run(self, *words, data=None, code=0):
        """Returns its standard output."""
        done = subprocess.run(self.command(*words), input=data, check=False, capture_output=True, timeout=240,
                              stdin=subprocess.DEVNULL if data is None else None, env=self.environment)
        assert done.returncode == code, f"{words}: {done.returncode} {done.stdout[-2000:]} {done.stderr[-2000:]}\n{self.node.said()[-3000:]}"
        self.stderr = done.stderr.decode()
        return done.stdout

    @contextlib.contextmanager
    def started(self, *words, stdin=subprocess.DEVNULL):
        process = subprocess.Popen(self.command(*words), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    @contextlib.contextmanager
    def terminal(self, *words, rows=24, columns=80):
        """Runs kubectl in a terminal of this size."""
        own, its = pty.openpty()
        resize(own, rows, columns)
        process = subprocess.Popen(self.command(*words), stdin=its, stdout=its, stderr=its, env=self.environment,
                                   start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(its)
        try:
            yield Terminal(own, process)
        finally:
            process.kill()
            process.wait()
            os.close(own)


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Terminal:
    def __init__(self, fd, process):
        self.fd, self.process, self.text = fd, process, ""

    def write(self, text):
        os.write(self.fd, text.encode())

    def read(self):
        """The current text."""
        while select.select([self.fd], [], [], 0)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:  # its other side is closed
                break
            if not data:
                break
            self.text += data.decode(errors="replace")
        return self.text

    def expect(self, pattern):
        wait(lambda: re.search(pattern, self.read()), lambda: f"{pattern!r} in {self.text!r}")

    def expect_line(self, command, pattern):
        """Waits until a typed command prints this; earlier output does not count."""
        self.read()
        self.text = ""
        self.write(command + "\n")
        self.expect(pattern)


@pytest.fixture(scope="module", name="old_server")
def fixture_old_server(plane):
    """An API server of the same cluster, without ExtendWebSocketsToKubelet."""
    words = [word for word in plane.commands()["kube-apiserver"] if not word.startswith("--secure-port")]
    log = plane.path(f"kube-apiserver-{OLD_PORT}.log")
    with open(log, "a", encoding="utf-8") as out:
        process = subprocess.Popen(
            with_parent("nsenter", f"--net={plane.net}", os.path.join(plane.bin, "kube-apiserver"), *words,
                        f"--secure-port={OLD_PORT}", "--endpoint-reconciler-type=none",
                        "--feature-gates=ExtendWebSocketsToKubelet=false"),
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=plane.directory, start_new_session=True)
    try:
        wait(lambda: plane.kubectl(f"--server=https://{ADDRESS}:{OLD_PORT}", "get", "--raw=/readyz", check=False) == "ok",
             lambda: f"it is ready; its log:\n{(world.read(log) or '')[-4000:]}", 120)
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module", name="module_node")
def fixture_module_node(shared, plane, old_server):  # pylint: disable=unused-argument
    node = ReachedNode(plane, shared["archive"])
    yield node
    node.finish()


@pytest.fixture(params=MODES, name="kubectl")
def fixture_kubectl(plane, module_node, request):
    return Kubectl(plane, module_node, request.param)


@pytest.fixture(params=KINDS, name="pod")
def fixture_pod(module_node, request):
    return module_node.names[request.param]


# The protocol in use

def streams(plane, kind):
    """The number of WebSockets that both API servers have accepted, by result."""
    found = {}
    for port in (443, OLD_PORT):
        text = plane.kubectl(f"--server=https://{ADDRESS}:{port}", "get", "--raw=/metrics")
        for labels, count in re.findall(r"^apiserver_websocket_streaming_requests_total\{(.*)\} (\d+)$", text, re.M):
            if f'"{kind}"' in labels:
                found[port, re.search(r'"(\w+_\w+_\w+)"', labels)[1]] = int(count)
    return found


def test_api_server_proxies_websockets_to_the_node(plane, module_node):
    Kubectl(plane, module_node, "websocket").run("exec", module_node.names["static"], "--", "true")
    Kubectl(plane, module_node, "translated").run("exec", module_node.names["static"], "--", "true")
    counts = streams(plane, "exec")
    assert counts.get((443, "proxied_to_kubelet")), counts
    assert counts.get((OLD_PORT, "translated_at_apiserver")), counts


# exec

@pytest.mark.parametrize("code", [0, 7])
def test_exec_returns_output_and_exit_code(kubectl, pod, code):
    out = kubectl.run("exec", pod, "-c", "main", "--", "sh", "-c", f"echo out; echo err >&2; exit {code}", code=code)
    assert out == b"out\n" and kubectl.stderr.startswith("err\n")
    assert ("command terminated with exit code 7" in kubectl.stderr) == (code == 7)


def test_exec_returns_large_input_unchanged(kubectl):
    block = os.urandom(MIB)
    data = b"".join(struct.pack(">I", number) + block[4:] for number in range(100))
    out = kubectl.run("exec", "-i", kubectl.names["deployment"], "-c", "main", "--", "cat", data=data)
    assert len(out) == len(data) and hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


def test_exec_terminal_has_the_size_of_the_terminal_of_kubectl(kubectl, pod):
    with kubectl.terminal("exec", "-it", pod, "-c", "main", "--", "sh", rows=31, columns=97) as terminal:
        terminal.expect("# ")
        terminal.expect_line("stty size", r"\r?\n31 97\r?\n")
        resize(terminal.fd, 40, 120)
        wait(lambda: terminal.expect_line("stty size", r"\r?\n\d+ \d+\r?\n") or "40 120" in terminal.text, "the new size")
        terminal.write("exit 5\n")
        assert terminal.process.wait(60) == 5


def test_exec_succeeds_while_the_agent_restarts(kubectl):
    """The command is executed as soon as the agent listens; without systemd nobody listens in between."""
    name, node, found = kubectl.names["deployment"], kubectl.node, []

    def listens():
        try:
            connect_inside(kubectl.plane.net, node.address_of_node, PORT, 60).close()
        except OSError:
            return False
        return True

    def execute():
        wait(listens, "the agent listens")
        found.append(kubectl.run("exec", name, "-c", "main", "--", "echo", "hello"))

    kubectl.run("exec", name, "-c", "main", "--", "true")
    node.kill9()
    thread = threading.Thread(target=execute)
    try:
        wait(lambda: not listens(), "the program of the agent that was killed listens no more")
        thread.start()
    finally:
        node.start()
    thread.join(120)
    assert found == [b"hello\n"]


# attach

def test_several_clients_attach_to_a_container(kubectl, pod):
    word = os.urandom(4).hex()
    with kubectl.started("attach", pod, "-c", "talker") as silent, \
         kubectl.started("attach", "-i", pod, "-c", "talker", stdin=subprocess.PIPE) as first, \
         kubectl.started("attach", "-i", pod, "-c", "talker", stdin=subprocess.PIPE) as second:
        clients, text = (silent, first, second), [b"", b"", b""]

        def is_told(number, line):
            """Whether all clients get the container's response to one of them."""
            for i, client in enumerate(clients):
                while select.select([client.stdout], [], [], 0)[0]:
                    data = os.read(client.stdout.fileno(), 65536)
                    assert data, client.stderr.read()
                    text[i] += data
            return [line in one for one in text] if number is None else line in text[number]

        for number, client in ((1, first), (2, second)):
            def say(client=client, number=number):
                client.stdin.write(f"{word}-{number}\n".encode())
                client.stdin.flush()
                time.sleep(0.5)
                return all(is_told(None, f"got-{word}-{number}\n".encode()))
            # A client that is not attached yet does not get earlier output.
            wait(say, lambda: f"all of them are attached: {text}")


def test_client_attaches_to_the_terminal_of_a_container(kubectl, pod):
    word = os.urandom(4).hex()
    with kubectl.terminal("attach", "-it", pod, "-c", "terminal") as terminal:
        wait(lambda: terminal.write(f"{word}\n") or time.sleep(0.5) or f"got-{word}" in terminal.read(), lambda: terminal.text)


# debug

@pytest.mark.parametrize("kind", ["deployment", "daemonset"])
def test_debug_container_shares_the_pid_namespace_of_its_target(kubectl, kind):
    name, debugger = kubectl.names[kind], f"debugger-{os.urandom(3).hex()}"
    before = kubectl.node.init(name)
    with kubectl.terminal("debug", "-it", name, f"--image={specs.IMAGE}", "--image-pull-policy=IfNotPresent", "--target=main",
                          f"--container={debugger}", "--", "sh") as terminal:
        # The prompt may have come before kubectl was attached.
        wait(lambda: terminal.write("\n") or time.sleep(0.5) or "# " in terminal.read(), lambda: f"a prompt: {terminal.text}", 90)
        terminal.expect_line("tr '\\0' ' ' < /proc/1/cmdline; echo", re.escape("sleep 100000 & wait"))
        terminal.write("exit 3\n")
        terminal.process.wait(60)
    pod = kubectl.node.wait_api(name, lambda pod: "terminated" in state(pod, debugger), "has ended")
    assert state(pod, debugger)["terminated"]["exitCode"] == 3
    assert kubectl.node.init(name) == before


# port-forward

@contextlib.contextmanager
def forwarded(kubectl, name, port):
    """Forwards a port; yields a function that connects."""
    with kubectl.started("port-forward", name, f":{port}") as process:
        line = process.stdout.readline().decode()
        local = int(re.fullmatch(rf"Forwarding from 127\.0\.0\.1:(\d+) -> {port}\n", line)[1])
        try:
            yield lambda: connect_inside(kubectl.plane.net, "127.0.0.1", local, 120)
        except OSError as error:
            process.terminate()
            raise AssertionError(f"{error}; kubectl said {process.stderr.read()}\n{kubectl.node.said()[-3000:]}") from error
        assert process.poll() is None, process.stderr.read()


def read_all(stream):
    parts = []
    while data := stream.recv(65536):
        parts.append(data)
    return b"".join(parts)


def test_forwarded_port_carries_data_in_both_directions(kubectl, pod):
    data = os.urandom(8 * MIB)
    with forwarded(kubectl, pod, ECHO_PORT) as connect:
        for _ in range(2):
            with connect() as stream:
                def send(stream=stream):
                    stream.sendall(data)
                    stream.shutdown(socket.SHUT_WR)
                thread = threading.Thread(target=send)
                thread.start()
                out = b""
                while len(out) < len(data):
                    piece = stream.recv(65536)
                    assert piece, len(out)
                    out += piece
                thread.join()
                assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()


def test_forwarded_port_delivers_all_data_when_the_pod_closes_it(kubectl):
    name = kubectl.names["deployment"]
    wanted = kubectl.run("exec", name, "-c", "main", "--", "cat", "/bin/busybox")
    with forwarded(kubectl, name, FILE_PORT) as connect:
        for _ in range(10):
            with connect() as stream:
                stream.sendall(b"unread")
                found = read_all(stream)
                assert (len(found), hashlib.sha256(found).digest()) == (len(wanted), hashlib.sha256(wanted).digest())


# cp

def test_cp_copies_files_in_both_directions(kubectl, pod, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(os.urandom(5 * MIB))
    kubectl.run("cp", "-c", "main", str(there), f"{pod}:/tmp/copy")
    kubectl.run("cp", "-c", "main", f"{pod}:/tmp/copy", str(back))
    assert back.read_bytes() == there.read_bytes()


# logs

@pytest.mark.parametrize("mode", ["websocket", "translated"])
def test_followed_log_loses_nothing_when_it_is_rotated(plane, module_node, mode):
    kubectl, name = Kubectl(plane, module_node, mode), f"lines-{mode}"
    module_node.bind(name, specs.container(script=LINES.format(count=COUNT)))
    module_node.wait_api_running(name)
    with kubectl.started("logs", "-f", name) as process:
        assert process.stdout.readline() == b"ready\n"
        kubectl.run("exec", name, "--", "touch", "/tmp/go")
        lines = []
        while (line := process.stdout.readline()) != b"end\n":
            assert line, process.stderr.read()
            lines.append(int(line))
    assert lines == list(range(1, COUNT + 1))
    files = os.listdir(os.path.join(module_node.log_directory(name), "main"))
    assert len(files) > 1, f"it was rotated: {files}"


def test_logs_can_be_limited_by_lines_and_bytes(plane, module_node, pod):
    kubectl = Kubectl(plane, module_node, "websocket")
    word = os.urandom(4).hex()
    for i in range(3):
        kubectl.run("exec", pod, "-c", "main", "--", "sh", "-c", f"echo {word}-{i} > /proc/1/fd/1")
    assert kubectl.run("logs", pod, "-c", "main", "--tail=2").decode() == f"{word}-1\n{word}-2\n"
    assert kubectl.run("logs", pod, "-c", "main", "--tail=2", "--limit-bytes=4").decode() == word[:4]


def log_over_websocket(plane, namespace, name):
    """Like browsers and Kubernetes' own tests: the API server converts the node's data to messages."""
    context = ssl.create_default_context(cafile=plane.authority.cert)
    context.load_cert_chain(plane.path("admin.crt"), plane.path("admin.key"))
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/log?container=main"
    lines = [f"GET {path} HTTP/1.1", f"Host: {ADDRESS}", "Connection: Upgrade", *websocket_headers("binary.k8s.io")]
    with context.wrap_socket(connect_inside(plane.net, ADDRESS, 443, 60), server_hostname=ADDRESS) as stream:
        stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += receive(stream, 1)
        assert head.startswith(b"HTTP/1.1 101 "), head
        client = WebSocketClient(stream)
        with contextlib.suppress(EOFError):
            client.until_closed()
        return b"".join(client.messages)


@pytest.mark.parametrize("count", [3, 20000])
def test_log_over_websocket_is_complete(plane, module_node, count):
    name = f"log-{count}"
    module_node.bind(name, specs.container(script=f"seq 1 {count}; {specs.IDLE}"))
    module_node.wait_api_running(name)
    wanted = "".join(f"{number}\n" for number in range(1, count + 1)).encode()
    wait(lambda: Kubectl(plane, module_node, "websocket").run("logs", name) == wanted, "kubectl reads the whole log")
    found = [log_over_websocket(plane, module_node.namespace, name) for _ in range(100 if count == 3 else 20)]
    assert [len(text) for text in found if text != wanted] == []


# top: data for metrics-server and others

def test_metrics_are_read_through_the_proxy_of_the_server(plane, module_node):
    kubectl, path = Kubectl(plane, module_node, "websocket"), f"/api/v1/nodes/{module_node.node_name}/proxy"

    def samples():
        text = kubectl.run("get", f"--raw={path}/metrics/resource").decode()
        return [line for line in text.splitlines() if all(f'pod="{name}"' in text for name in module_node.names.values()) and
                re.match(r"(node|container)_(cpu_usage_seconds_total|memory_working_set_bytes)", line)]

    found = wait(samples, "all pods are measured")
    # metrics-server computes a rate, for which it needs the time of each sample.
    assert found and all(re.search(r" [\d.e+-]+ \d{13}$", line) for line in found), found[:10]
    summary = json.loads(kubectl.run("get", f"--raw={path}/stats/summary"))
    measured = {pod["podRef"]["name"]: pod for pod in summary["pods"]}
    assert summary["node"]["nodeName"] == module_node.node_name and summary["node"]["cpu"]["usageCoreNanoSeconds"] > 0
    for name in module_node.names.values():
        assert {one["name"] for one in measured[name]["containers"]} >= {"main", "echo", "talker"}
        assert measured[name]["memory"]["workingSetBytes"] > 0


def test_metrics_are_readable_with_the_token_of_an_authorized_account(plane, module_node):
    """The metrics are read from the node itself, as metrics-server does."""
    kubectl, account = Kubectl(plane, module_node, "websocket"), f"{module_node.namespace}:scraper"
    kubectl.run("create", "serviceaccount", "scraper")
    token = kubectl.run("create", "token", "scraper").decode().strip()

    def ask():
        return kubectl.plane.inside("curl", "-sk", "-w", "\n%{http_code}", "-H", f"Authorization: Bearer {token}",
                                    f"https://{module_node.address_of_node}:{PORT}/metrics/resource").rpartition("\n")[::2]
    text, code = ask()
    assert (text, code) == (f"Forbidden (user=system:serviceaccount:{account}, verb=get, resource=nodes, subresource(s)=[metrics])", "403")
    name = f"scraper-{module_node.namespace}"
    kubectl.run("create", "clusterrole", name, "--verb=get", "--resource=nodes/metrics")
    kubectl.run("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={account}")
    try:
        text, code = wait(lambda: (found := ask())[1] == "200" and found, lambda: f"it is allowed once the refusal is forgotten: {ask()}", 90)
        assert "node_cpu_usage_seconds_total" in text
    finally:
        for kind in ("clusterrole", "clusterrolebinding"):
            kubectl.run("delete", kind, name)
