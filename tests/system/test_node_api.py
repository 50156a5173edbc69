# SPDX-License-Identifier: Apache-2.0
"""mainstay-api: the kubelet's API over TLS. Permissions, replies, sessions over SPDY and WebSocket."""

import base64
import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import termios
import threading

import api_certs
import harness
import node_api
import pytest
import specs
import world
from world import wait

pytestmark = pytest.mark.xdist_group("node_api")

TALK = "while read line; do echo got-$line; done; " + specs.IDLE
ECHO = "nc -ll -p {port} -e cat"
LONG_LINES = 5000
LONG = f"i=0; while [ $((i += 1)) -le {LONG_LINES} ]; do echo {100 * 'x'}; done; "


class World:
    """A node with a pod, mainstay-api, and a certificate authority of clients."""

    def __init__(self, archive, **settings):
        self.directory = tempfile.mkdtemp(prefix="mainstay-node-api-")
        self.authority = api_certs.Authority(self.directory)
        self.admin, _ = self.authority.issue("admin", "/O=system:masters/CN=admin")
        self.port = world.free_port()
        self.node = harness.Node(archive, config={
            "authentication": {"x509": {"clientCAFile": self.authority.cert}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, **settings})
        self.api = node_api.NodeApi(self.node)
        self.node.launch(specs.pod("web", specs.container(script="echo one; echo two; " + specs.IDLE),
                                   specs.container("binary", script="printf 'a\\000b\\n'; " + specs.IDLE),
                                   specs.container("echo", script=ECHO.format(port=self.port)),
                                   specs.container("long", script=LONG + specs.IDLE),
                                   specs.container("talker", script=TALK, stdin=True)))
        self.pod = self.node.pod("web")["metadata"]["name"]
        wait(lambda: len(self.node.log_lines("web")) == 2 and self.node.log_lines("web", "binary"), "their output is in their logs")
        wait(lambda: world.is_listening(self.port), "the echo's port answers")
        wait(lambda: len(self.node.log_lines("web", "long")) == LONG_LINES, "all long lines are in the log")

    def write_system_log(self):
        with open(os.path.join(self.node.log, "messages"), "w", encoding="utf-8") as file:
            file.write("one\ntwo\n")

    def get(self, path, **options):
        return self.api.request(path, certificate=self.admin, **options)

    def exec_path(self, *command, container="main", **streams):
        words = "&".join([f"command={word}" for word in command] + [f"{name}=1" for name, on in streams.items() if on])
        return f"/exec/default/{self.pod}/{container}?{words}"

    def upgrade(self, path, headers, **options):
        return self.api.upgrade(path, headers, certificate=self.admin, **options)

    def spdy_session(self, *command, streams=("stdout",), tty=False, version="v4.channel.k8s.io", path=None):
        names = {"stdin": "input", "stdout": "output", "stderr": "error"}
        path = path or self.exec_path(*command, tty=tty, **{names[name]: True for name in streams if name in names})
        stream, head = self.upgrade(path, node_api.spdy_headers(version), method="POST")
        assert f"X-Stream-Protocol-Version: {version}" in head
        return node_api.SpdySession(stream, streams)

    def connections(self):
        """Sockets of mainstay-api in addition to the listening ones, and the one to its signer."""
        directory = f"/proc/{self.api.process.pid}/fd"

        def is_socket(fd):
            try:
                return os.readlink(f"{directory}/{fd}").startswith("socket:")
            except FileNotFoundError:
                return False
        return sum(is_socket(fd) for fd in os.listdir(directory)) - 2

    def finish(self):
        try:
            self.api.stop()
        finally:
            self.node.finish()
            shutil.rmtree(self.directory)


@pytest.fixture(scope="module", name="served")
def fixture_served(archive):
    found = World(archive)
    yield found
    found.finish()


# Permissions

def test_a_client_without_certificate_is_unauthorized(served):
    assert served.api.request("/pods") == (401, "Unauthorized")


def test_a_certificate_of_another_authority_is_unauthorized(served):
    other = api_certs.Authority(served.directory, "other")
    stranger, _ = other.issue("stranger", "/CN=stranger")
    assert served.api.request("/pods", certificate=stranger) == (401, "Unauthorized")


@pytest.mark.parametrize("kind,start,end", [("server", -3600, 3600), ("client", -7200, -3600), ("client", 3600, 7200)])
def test_a_certificate_of_another_purpose_or_period_is_unauthorized(served, kind, start, end):
    invalid, _ = served.authority.issue("invalid", "/CN=jane", kind, start, end)
    assert served.api.request("/pods", certificate=invalid) == (401, "Unauthorized")


def test_a_token_without_reviews_is_unauthorized(served):
    assert served.api.request("/pods", headers={"Authorization": "Bearer abc"}) == (401, "Unauthorized")


# Limits

def test_a_single_address_cannot_use_all_connections(served):
    address = ("127.0.0.1", served.api.port)
    served.api.connect(served.admin).close()
    wait(lambda: served.connections() == 0, "no connection is left")
    clients = [socket.create_connection(address, source_address=("127.0.0.2", 0)) for _ in range(192)]
    with socket.create_connection(address, source_address=("127.0.0.2", 0)) as refused:
        refused.settimeout(world.DEADLINE)
        assert refused.recv(1) == b""
    assert served.get("/healthz") == (200, "ok"), "other clients are served"
    for client in clients:
        client.close()
    wait(lambda: served.connections() == 0, "no connection is left")


# Its responses

@pytest.mark.parametrize("path,status,said", [
    ("/healthz", 200, "ok"),
    ("/healthz/ping", 200, "ok"),
    ("/healthz/other", 404, ""),
    ("/nothing", 404, ""),
    ("/nodeapi/settings", 404, ""),
    ("/secrets", 404, ""),
    ("/pods/x", 404, ""),
    ("/metrics", 200, "kubelet_running_pods"),
    ("/containerLogs/default/web", 404, ""),
    ("/containerLogs/default/none/main", 404, "not found"),
    ("/containerLogs/default/web-node1/main?tailLines=x", 400, "Unable to decode query."),
    ("/containerLogs/default/web-node1/main?tailLines=-1", 422, "Invalid request."),
    ("/containerLogs/default/web-node1/main?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z", 422, "Invalid request."),
    ("/exec/default/web-node1/main?command=id&output=1", 500, "Upgrade request required"),
    ("/exec/default/web-node1/main?command=id", 400, "you must specify at least 1 of stdin, stdout, stderr"),
    ("/exec/default/web-node1/other?command=id&output=1", 404, 'container not found ("other")'),
    ("/portForward/default/web-node1", 500, "Upgrade request required"),
    ("/portForward/default/none", 404, "not found"),
])
def test_paths_return_the_statuses_of_the_kubelet(served, path, status, said):
    answer = served.get(path)
    assert answer[0] == status and said in answer[1], answer


@pytest.mark.parametrize("method,path,status", [
    ("POST", "/pods", 405), ("DELETE", "/pods", 405), ("POST", "/checkpoint/default/web/main", 404),
    ("PUT", "/exec/default/web-node1/main?command=id&output=1", 405)])
def test_other_methods_are_refused(served, method, path, status):
    assert served.get(path, method=method)[0] == status


def test_pods_are_listed(served):
    status, body = served.get("/pods")
    assert status == 200
    assert [pod["metadata"]["name"] for pod in json.loads(body)["items"]] == [served.pod]


def test_logs_are_read(served):
    assert served.get(f"/containerLogs/default/{served.pod}/main") == (200, "one\ntwo\n")
    assert served.get(f"/containerLogs/default/{served.pod}/main?tailLines=1") == (200, "two\n")
    assert served.get(f"/containerLogs/default/{served.pod}/main?tail=1&timestamps=false") == (200, "two\n")
    assert "Z one\n" in served.get(f"/containerLogs/default/{served.pod}/main?timestamps")[1]


def test_bytes_of_a_log_are_not_changed(served):
    assert served.get(f"/containerLogs/default/{served.pod}/binary") == (200, "a\0b\n")


def test_a_followed_log_arrives_before_its_end(served):
    stream = served.api.connect(served.admin)
    stream.sendall(f"GET /containerLogs/default/{served.pod}/main?follow=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    text = b""
    while b"two\n" not in text:
        text += stream.recv(4096)
    stream.close()
    wait(lambda: served.connections() == 0, "the connection to the agent has ended")
    assert served.get("/healthz") == (200, "ok")


def test_an_empty_reply_of_http_1_0_leaves_no_connection(served):
    stream = served.api.connect(served.admin)
    stream.sendall(f"GET /containerLogs/default/{served.pod}/main?tailLines=0 HTTP/1.0\r\n\r\n".encode())
    reply = b""
    while piece := stream.recv(4096):
        reply += piece
    stream.close()
    assert reply.startswith(b"HTTP/1.1 200 OK\r\n") and reply.endswith(b"\r\n\r\n"), reply
    wait(lambda: served.connections() == 0, "no connection is left")


def tls_records(stream, path):
    """The content of the TLS records of a chunked reply. OpenSSL returns one record at a time."""
    stream.sendall(f"GET {path} HTTP/1.1\r\nHost: node\r\n\r\n".encode())
    records = []
    while not b"".join(records[-2:]).endswith(b"\r\n0\r\n\r\n"):
        records.append(stream.recv(65536))
        assert records[-1], records
    assert b"Transfer-Encoding: chunked" in records[0], records
    return records


@pytest.mark.parametrize("path", ["/containerLogs/default/{pod}/main", "/containerLogs/default/{pod}/main?tailLines=1",
                                  "/containerLogs/default/{pod}/main?limitBytes=2", "/logs/messages?",
                                  "/containerLogs/default/{pod}/long", "/api/v1/pods?watch=1&timeoutSeconds=1"])
def test_streamed_body_ends_in_a_separate_tls_record(served, path):
    """The API server's WebSockets drop bytes that they receive together with the end of a body."""
    path = path.format(pod=served.pod)
    served.write_system_log()
    with contextlib.closing(served.api.connect(served.admin)) as stream:
        for _ in range(1 if "watch" in path else 30):
            assert tls_records(stream, path)[-1] == b"0\r\n\r\n"


def test_streamed_body_ends_in_a_separate_tls_record_for_a_slow_client(served):
    """When the end is read, more data waits in the program's sockets than it encrypts at once."""
    with contextlib.closing(served.api.connect(served.admin)) as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        records = tls_records(stream, f"/containerLogs/default/{served.pod}/long")
        assert records[-1] == b"0\r\n\r\n" and sum(map(len, records)) > LONG_LINES * 100


def test_a_connection_serves_several_requests(served):
    connection = http.client.HTTPConnection("127.0.0.1")
    connection.sock = stream = served.api.connect(served.admin)
    for _ in range(3):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok"
        assert connection.sock is stream
    connection.close()


# Usage

def summary_of_pod(served, query=""):
    """The summary, and its part about the pod."""
    status, body = served.get("/stats/summary" + query)
    assert status == 200
    summary = json.loads(body)
    return summary, next(pod for pod in summary["pods"] if pod["podRef"]["name"] == served.pod)


def test_running_pods_are_listed(served):
    status, body = served.get("/runningpods/")
    found = json.loads(body)
    assert (status, found["kind"]) == (200, "PodList")
    metadata, spec = found["items"][0]["metadata"], found["items"][0]["spec"]
    assert (metadata["namespace"], metadata["name"]) == ("default", served.pod)
    assert metadata["uid"] == served.node.pod("web")["metadata"]["uid"]
    assert {container["name"] for container in spec["containers"]} == {"main", "binary", "echo", "long", "talker"}
    assert all(container["image"] for container in spec["containers"])


def test_the_summary_has_cpu_and_memory_of_node_pods_and_containers(served):
    summary, pod = summary_of_pod(served)
    assert summary["node"]["nodeName"] == harness.NODE_NAME
    for part in (summary["node"], pod, *pod["containers"]):
        assert part["startTime"] <= part["cpu"]["time"]
        assert part["cpu"]["usageCoreNanoSeconds"] > 0 and part["cpu"]["usageNanoCores"] >= 0
        assert part["memory"]["usageBytes"] >= part["memory"]["workingSetBytes"] > 0
        assert part["memory"]["rssBytes"] > 0 and part["memory"]["pageFaults"] > 0
    assert {container["name"] for container in pod["containers"]} == {"main", "binary", "echo", "long", "talker"}


def test_the_summary_has_the_nodes_disks_and_processes(served):
    node = summary_of_pod(served)[0]["node"]
    for disk in (node["fs"], node["runtime"]["imageFs"], node["runtime"]["containerFs"]):
        assert 0 < disk["availableBytes"] < disk["capacityBytes"] and disk["usedBytes"] > 0
    assert 0 < node["rlimit"]["curproc"] < node["rlimit"]["maxpid"]
    for part in (node["cpu"], node["memory"], node.get("io", {})):
        assert ("psi" in part) == os.path.exists("/proc/pressure/cpu")


def test_the_summary_has_the_measured_disk_usage_of_containers(served):
    """Nothing is measured before a client requests it; a later request gets the numbers."""
    def measured():
        found = summary_of_pod(served)[1]
        return found if "usedBytes" in found["ephemeral-storage"] else None
    pod = wait(measured, "the disk usage was measured")
    main = next(container for container in pod["containers"] if container["name"] == "main")
    assert 0 < main["logs"]["usedBytes"] < main["logs"]["capacityBytes"]
    assert main["rootfs"]["usedBytes"] >= 0
    total = sum(container[part]["usedBytes"] for container in pod["containers"] for part in ("logs", "rootfs"))
    etc = os.path.join(served.node.state, "pods", pod["podRef"]["uid"], "etc")
    total += sum(entry.stat().st_blocks * 512 for entry in os.scandir(etc)) + os.stat(etc).st_blocks * 512
    assert pod["ephemeral-storage"]["usedBytes"] == total


def test_the_summary_may_be_of_cpu_and_memory_alone(served):
    summary, pod = summary_of_pod(served, "?only_cpu_and_memory=true")
    assert "memory" in pod and "cpu" in pod["containers"][0]
    for part in (summary["node"], pod, *pod["containers"]):
        assert not {"fs", "network", "rootfs", "logs", "ephemeral-storage", "rlimit"} & set(part)


def test_cadvisors_metrics_have_its_labels(served):
    status, text = served.get("/metrics/cadvisor")
    assert status == 200
    uid = served.node.pod("web")["metadata"]["uid"]
    labels = rf'container="main",id="[^"]*{uid}[^"]*",image="[^"]+",name="[0-9a-f]{{64}}",namespace="default",pod="{served.pod}"'
    cpu = re.search(rf'^container_cpu_usage_seconds_total{{{labels},cpu="total"}} (\S+) \d+$', text, re.MULTILINE)
    assert cpu and float(cpu[1]) > 0, text
    memory = re.search(rf"^container_memory_working_set_bytes{{{labels}}} (\S+) \d+$", text, re.MULTILINE)
    assert memory and float(memory[1]) > 0
    assert re.search(r'^container_memory_rss{container="",id="/",image="",name="",namespace="",pod=""} ', text, re.MULTILINE)
    assert f"\nmachine_cpu_cores {os.cpu_count()}\n" in text
    waiting = re.search(r'^container_pressure_cpu_waiting_seconds_total{container="",id="/",.*} \S+ \d+$', text, re.MULTILINE)
    assert bool(waiting) == os.path.exists("/proc/pressure/cpu")
    assert "# TYPE container_fs_writes_bytes_total counter" in text
    used = re.search(r'^container_fs_usage_bytes{container="",id="/",.*,device=".*"} (\S+) \d+$', text, re.MULTILINE)
    assert used and float(used[1]) > 0


def test_the_configuration_is_shown_without_the_section_of_this_program(served):
    status, body = served.get("/configz")
    config = json.loads(body)["kubeletconfig"]
    assert (status, config["kind"]) == (200, "KubeletConfiguration")
    assert config["authorization"]["mode"] == "AlwaysAllow"
    assert config["authentication"]["x509"]["clientCAFile"] == served.authority.cert
    assert "mainstay" not in config


# Sessions

@pytest.mark.parametrize("code", [0, 3])
def test_exit_code_and_both_outputs_pass_over_spdy(served, code):
    session = served.spdy_session("sh", "-c", f"echo%20out;echo%20err%20%3E%262;exit%20{code}", streams=("stdout", "stderr"))
    result = session.result()
    assert (session.text("stdout"), session.text("stderr")) == ("out\n", "err\n")
    if code:
        assert result["reason"] == "NonZeroExitCode"
        assert result["details"]["causes"] == [{"reason": "ExitCode", "message": str(code)}]
    else:
        assert result["status"] == "Success"
    session.client.until(lambda: session.client.is_over)


def test_stdin_passes_over_spdy_and_its_end_reaches_the_process(served):
    data = os.urandom(3 * 1024 * 1024)
    session = served.spdy_session("sha256sum", streams=("stdin", "stdout"))
    session.client.until(lambda: session.ids["stdin"] in session.client.replied)
    for at in range(0, len(data), 32768):
        session.client.send(session.ids["stdin"], data[at:at + 32768])
    session.client.send(session.ids["stdin"], b"", last=True)
    assert session.result()["status"] == "Success"
    assert session.text("stdout").split()[0] == hashlib.sha256(data).hexdigest()


class Recorder:
    """Keeps the data that a client sends before it is connected."""

    sent = b""

    def sendall(self, data):
        self.sent += data


def test_data_that_arrives_with_the_request_reaches_the_session(served):
    recorder, data = Recorder(), os.urandom(48 * 1024)
    session = node_api.SpdySession(recorder, ["stdin", "stdout"])
    session.client.send(session.ids["stdin"], data, last=True)
    path = served.exec_path("sha256sum", input=True, output=True)
    session.client.stream, _ = served.upgrade(path, node_api.spdy_headers("v4.channel.k8s.io"), method="POST", early=recorder.sent)
    assert session.result()["status"] == "Success"
    assert session.text("stdout").split()[0] == hashlib.sha256(data).hexdigest()


def test_large_output_for_a_slow_reader_is_complete_and_stalls_no_other_client(served):
    session = served.spdy_session("sh", "-c", "head%20-c%205000000%20/dev/zero")
    session.client.until(lambda: session.client.data[session.ids["stdout"]])
    assert served.get("/healthz") == (200, "ok"), "other clients are served"
    assert session.result()["status"] == "Success"
    assert len(session.text("stdout")) == 5000000


def test_a_terminal_has_the_size_that_the_client_sends(served):
    session = served.spdy_session("sh", "-c", "read%20x;stty%20size", streams=("stdin", "stdout", "resize"), tty=True)
    session.client.until(lambda: session.ids["stdin"] in session.client.replied)
    session.client.send(session.ids["resize"], b'{"Width":77,"Height":33}\n')
    session.client.send(session.ids["stdin"], b"\n")
    assert session.result()["status"] == "Success"
    assert "33 77" in session.text("stdout")


def sleepers(served, seconds):
    return [pid for pid in world.pids_of_root(served.node.cgroup_root) if world.cmdline(pid) == ["sleep", seconds]]


def test_a_command_ends_when_its_client_disconnects(served):
    session = served.spdy_session("sleep", "4711")
    wait(lambda: sleepers(served, "4711"), "the command runs")
    session.client.stream.close()
    wait(lambda: not sleepers(served, "4711"), "the command has ended")


def test_a_session_without_a_byte_ends_after_the_idle_timeout(archive):
    served = World(archive, streamingConnectionIdleTimeout="20s")  # longer than a busy machine takes to start a command
    busy = served.spdy_session("sh", "-c", "while%20sleep%201;%20do%20echo;%20ls%20/mark;%20done")
    idle = served.spdy_session("sleep", "4715")
    wait(lambda: sleepers(served, "4715"), "the command runs")
    stream, _ = served.upgrade(f"/portForward/default/{served.pod}", node_api.spdy_headers("portforward.k8s.io"))
    ports = node_api.SpdyClient(stream)
    _, data = forward(ports, served.port, 0)
    ports.until(lambda: ports.data[data] == b"hello")
    while not ports.is_over:
        ports.step()
    wait(lambda: not sleepers(served, "4715"), "the idle command has ended")
    idle.client.stream.close()
    assert served.get(f"/run/default/{served.pod}/main?cmd=touch+/mark", method="POST")[0] == 200
    busy.client.until(lambda: "/mark" in busy.text("stdout"))  # later output arrives, too
    busy.client.stream.close()
    served.finish()


def test_pings_are_answered_during_a_session(served):
    session = served.spdy_session("sleep", "4712")
    session.client.control(node_api.PING_FRAME, b"\0\0\0\1")
    session.client.until(lambda: session.client.pings == [1])
    session.client.stream.close()


def test_unknown_versions_are_refused_with_a_list(served):
    path = served.exec_path("id", output=True)
    status, body = served.upgrade(path, node_api.spdy_headers("v9.channel.k8s.io"), method="POST")
    assert status == 403 and "unable to negotiate protocol" in body
    assert served.upgrade(path, ["Upgrade: SPDY/3.1"], method="POST")[0] == 400
    assert served.upgrade(path, node_api.websocket_headers("v9.channel.k8s.io"))[0] == 403


def test_exec_passes_over_websocket(served):
    path = served.exec_path("sh", "-c", "cat;echo%20err%20%3E%262;exit%204", input=True, output=True, error=True)
    stream, head = served.upgrade(path, node_api.websocket_headers("v5.channel.k8s.io", "v4.channel.k8s.io"))
    assert "Sec-WebSocket-Protocol: v5.channel.k8s.io" in head
    assert "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
    client = node_api.WebSocketClient(stream)
    client.send(node_api.BINARY, b"\0hello")
    client.send(node_api.PING, b"ping")
    client.send(node_api.BINARY, b"\xff\0")
    client.until_closed()
    assert client.messages[0] == b"\1"
    assert (client.channel(1), client.channel(2), client.pongs) == (b"hello", b"err\n", [b"ping"])
    assert json.loads(client.channel(3))["details"]["causes"][0]["message"] == "4"
    assert client.close_code == 1000


def test_exec_passes_over_websocket_with_base64(served):
    path = served.exec_path("echo", "hello", output=True)
    stream, _ = served.upgrade(path, node_api.websocket_headers("v4.base64.channel.k8s.io"))
    client = node_api.WebSocketClient(stream)
    client.until_closed()
    assert client.channel_base64(1) == b"hello\n"
    assert json.loads(client.channel_base64(3))["status"] == "Success"


def test_a_command_runs_without_streams(served):
    path = f"/run/default/{served.pod}/main?cmd="
    assert served.get(path + "echo+hello+world", method="POST") == (200, "hello world\n")
    assert served.get(path + "false", method="POST") == (500, "command terminated with exit code 1")
    assert served.get(path + "/no/such", method="POST")[0] == 500
    assert served.get("/run/default/none/main?cmd=id", method="POST")[0] == 404
    assert served.get(path + "echo", method="GET")[0] == 405


def test_a_path_may_name_the_instance_of_the_pod(served):
    uid = served.node.pod("web")["metadata"]["uid"]
    for instance, status in ((uid, 200), ("other", 404)):
        assert served.get(f"/run/default/{served.pod}/{instance}/main?cmd=id", method="POST")[0] == status
    path = f"/exec/default/{served.pod}/other/main?command=id&output=1"
    assert served.upgrade(path, node_api.spdy_headers("v4.channel.k8s.io")) == (404, "pod not found")
    assert served.get(f"/portForward/default/{served.pod}/other") == (404, "pod not found")


def test_a_client_attaches_to_a_container_over_spdy(served):
    path = f"/attach/default/{served.pod}/talker?input=1&output=1"
    session = served.spdy_session(path=path, streams=("stdin", "stdout"))
    session.client.until(lambda: session.ids["stdin"] in session.client.replied)
    session.client.send(session.ids["stdin"], b"one\n")
    session.client.until(lambda: "got-one\n" in session.text("stdout"))
    session.client.stream.close()
    wait(lambda: served.connections() == 0, "the connections have ended")
    assert "got-one\n" in served.get(f"/containerLogs/default/{served.pod}/talker")[1], "the container keeps running"


def test_a_client_attaches_to_a_container_over_websocket(served):
    stream, _ = served.upgrade(f"/attach/default/{served.pod}/talker?input=1&output=1",
                               node_api.websocket_headers("v5.channel.k8s.io"))
    client = node_api.WebSocketClient(stream)
    client.send(node_api.BINARY, b"\0two\n")
    while b"got-two\n" not in client.channel(1):
        client.step()
    stream.close()


def test_attaching_to_a_container_that_does_not_exist_is_refused(served):
    path = f"/attach/default/{served.pod}/none?output=1"
    assert served.upgrade(path, node_api.spdy_headers("v4.channel.k8s.io"), method="POST")[0] == 404


# Ports

def forward(client, port, request_id, data=b"hello"):
    headers = {"port": str(port), "requestid": str(request_id)}
    error = client.open(streamtype="error", **headers)
    client.send(error, b"", last=True)
    stream = client.open(streamtype="data", **headers)
    client.until(lambda: stream in client.replied)
    client.send(stream, data)
    return error, stream


@pytest.mark.parametrize("is_tunnel", [False, True])
def test_ports_are_forwarded(served, is_tunnel):
    path = f"/portForward/default/{served.pod}"
    if is_tunnel:
        stream, _ = served.upgrade(path, node_api.websocket_headers("SPDY/3.1+portforward.k8s.io"))
        stream = node_api.TunnelStream(stream)
    else:
        stream, _ = served.upgrade(path, node_api.spdy_headers("portforward.k8s.io"), method="POST")
    client = node_api.SpdyClient(stream)
    for number in range(2):
        error, data = forward(client, served.port, number)
        client.until(lambda stream=data: client.data[stream] == b"hello")
        client.send(data, b"", last=True)
        client.until(lambda stream=data: stream in client.ended)
        client.until(lambda stream=error: stream in client.ended)
        assert client.data[error] == b""


def test_data_of_a_forwarded_port_does_not_pass_through_the_agent(served):
    """The agent may be stopped in the meantime."""
    stream, _ = served.upgrade(f"/portForward/default/{served.pod}", node_api.spdy_headers("portforward.k8s.io"))
    client = node_api.SpdyClient(stream)
    _, data = forward(client, served.port, 0)
    client.until(lambda: client.data[data] == b"hello")
    os.kill(served.node.agent.pid, signal.SIGSTOP)
    try:
        client.send(data, b" again")
        client.until(lambda: client.data[data] == b"hello again")
    finally:
        os.kill(served.node.agent.pid, signal.SIGCONT)
    stream.close()


@pytest.mark.parametrize("protocol", [None, "v4.channel.k8s.io", "v4.base64.channel.k8s.io"])
def test_ports_are_forwarded_over_the_channels_of_a_websocket(served, protocol):
    path = f"/portForward/default/{served.pod}?port={served.port},1&port={served.port}"
    protocols = [protocol] if protocol else []
    stream, head = served.upgrade(path, node_api.websocket_headers(*protocols))
    assert f"Sec-WebSocket-Protocol: {protocol}" in head or not protocol
    is_base64 = protocol == "v4.base64.channel.k8s.io"
    client = node_api.WebSocketClient(stream)
    channel = client.channel_base64 if is_base64 else client.channel
    port = struct.pack("<H", served.port)
    for number, text in ((0, b"one"), (4, b"two")):
        client.send(node_api.TEXT if is_base64 else node_api.BINARY,
                    b"%d%s" % (number, base64.b64encode(text)) if is_base64 else bytes([number]) + text)
    while channel(0) != port + b"one" or channel(4) != port + b"two" or b"refused" not in channel(3):
        client.step()
    assert channel(1) == channel(5) == port and channel(2) == b"\1\0"
    assert channel(3).startswith(b"\1\0error forwarding port 1 to pod")
    stream.close()


def test_the_websocket_is_closed_when_all_its_ports_have_ended(served):
    path = f"/portForward/default/{served.pod}"
    client = node_api.WebSocketClient(served.upgrade(f"{path}?port=1", node_api.websocket_headers("v4.channel.k8s.io"))[0])
    client.until_closed()
    assert client.close_code == 1000 and b"refused" in client.channel(1)
    client.stream.close()
    stream, _ = served.upgrade(f"{path}?port={served.port}", node_api.websocket_headers("v4.channel.k8s.io"))
    client = node_api.WebSocketClient(stream)
    client.send(node_api.CLOSE, struct.pack(">H", 1000))
    client.until_closed()
    stream.close()
    wait(lambda: served.connections() == 0, "the connections have ended")


@pytest.mark.parametrize("query,protocol,status,said", [
    ("", "v4.channel.k8s.io", 400, 'query parameter "port" is required'),
    ("?port=0", "v4.channel.k8s.io", 400, "must be ports from 1 to 65535"),
    ("?port=80,", "v4.channel.k8s.io", 400, "must be ports from 1 to 65535"),
    ("?port=" + ",".join(["80"] * 33), "v4.channel.k8s.io", 400, "more than 32 ports"),
    ("?port=80", "v5.channel.k8s.io", 403, "")])
def test_channels_need_ports_and_a_known_protocol(served, query, protocol, status, said):
    answer = served.upgrade(f"/portForward/default/{served.pod}{query}", node_api.websocket_headers(protocol))
    assert answer[0] == status and said in answer[1]


def test_a_port_without_a_listener_fails_separately(served):
    stream, _ = served.upgrade(f"/portForward/default/{served.pod}", node_api.spdy_headers("portforward.k8s.io"))
    client = node_api.SpdyClient(stream)
    error, data = forward(client, 1, 0)
    client.until(lambda: data in client.reset and error in client.ended)
    assert b"error forwarding port 1 to pod" in client.data[error]
    assert b"refused" in client.data[error]
    _, data = forward(client, served.port, 1)
    client.until(lambda: client.data[data] == b"hello")


def test_the_number_of_forwarded_connections_of_a_client_is_limited(served):
    """Each connection would wait for its second stream."""
    stream, _ = served.upgrade(f"/portForward/default/{served.pod}", node_api.spdy_headers("portforward.k8s.io"))
    client = node_api.SpdyClient(stream)
    opened = [client.open(streamtype="data", port=str(served.port), requestid=str(number)) for number in range(257)]
    client.until(lambda: client.replied | client.reset == set(opened))
    assert client.reset == {opened[-1]}
    error = client.open(streamtype="error", port=str(served.port), requestid="0")
    client.until(lambda: error in client.replied)
    client.send(opened[0], b"hello")
    client.until(lambda: client.data[opened[0]] == b"hello")
    stream.close()


def test_the_number_of_forwarded_connections_of_all_clients_is_limited(served):
    clients = []
    for _ in range(9):
        stream, _ = served.upgrade(f"/portForward/default/{served.pod}", node_api.spdy_headers("portforward.k8s.io"))
        clients.append(node_api.SpdyClient(stream))
    for client in clients[:-1]:
        opened = [client.open(streamtype="data", port=str(served.port), requestid=str(number)) for number in range(256)]
        client.until(lambda client=client, opened=opened: client.replied == set(opened))
    last = clients[-1]
    refused = last.open(streamtype="data", port=str(served.port), requestid="0")
    last.until(lambda: refused in last.reset)
    for client in clients[:-1]:
        client.stream.close()

    def is_permitted():
        opened = last.open(streamtype="data", port=str(served.port), requestid="1")
        last.until(lambda: opened in last.reset or opened in last.replied)
        return opened in last.replied
    wait(is_permitted, "their connections are gone")
    last.stream.close()


def test_a_stalled_port_stalls_no_other_client(served):
    stream, _ = served.upgrade(f"/portForward/default/{served.pod}", node_api.spdy_headers("portforward.k8s.io"))
    client = node_api.SpdyClient(stream)
    _, data = forward(client, served.port, 0, b"x" * 32768)
    stalled = threading.Event()
    stream.settimeout(2)

    def fill():
        """Sends, and does not read the responses."""
        try:
            while True:
                client.send(data, b"x" * 32768)
        except (TimeoutError, OSError):
            stalled.set()

    thread = threading.Thread(target=fill)
    thread.start()
    assert stalled.wait(world.DEADLINE), "nothing is read that cannot be passed on"
    thread.join()
    assert served.get("/healthz") == (200, "ok")
    stream.close()


class AbruptServer:
    """A port that accepts one connection and does not read from it."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.stream = None

    def accept(self):
        self.stream, _ = self.listener.accept()
        self.listener.close()

    def say_and_close(self, data):
        """Sends data, all of which is acknowledged, and closes; the connection ends with a reset, because some input is
        unread."""
        self.stream.sendall(data)
        wait(lambda: fcntl.ioctl(self.stream, termios.TIOCOUTQ, b"\0" * 4) == b"\0" * 4, "all data has arrived at the other side")
        self.stream.close()


def test_data_of_a_port_arrives_though_nothing_can_be_sent_to_it(served):
    """A server behaves like this if it answers before it has read the whole request."""
    server, answer = AbruptServer(), os.urandom(100000)
    stream, _ = served.upgrade(f"/portForward/default/{served.pod}", node_api.spdy_headers("portforward.k8s.io"), method="POST")
    client = node_api.SpdyClient(stream)
    error, data = forward(client, server.port, 0)
    server.accept()
    stream.settimeout(2)
    try:
        while True:
            client.send(data, b"x" * 32768)
    except TimeoutError:
        stream.settimeout(world.DEADLINE)  # all buffers are full: the port's socket will be written to as soon as that is possible
    pid = served.api.process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        server.say_and_close(answer)
    finally:
        os.kill(pid, signal.SIGCONT)
    client.until(lambda: error in client.ended)
    client.until(lambda: data in client.reset | client.ended)
    assert hashlib.sha256(client.data[data]).digest() == hashlib.sha256(answer).digest(), len(client.data[data])
    assert client.data[error] == b""
    stream.close()


# The process

def test_the_program_exits_when_idle(served):
    short = node_api.NodeApi(served.node, idle=1)
    assert short.process.wait(world.DEADLINE) == 0, short.said()


def test_bytes_that_are_not_tls_affect_no_other_client(served):
    for junk in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + os.urandom(100), b""):
        with socket.create_connection(("127.0.0.1", served.api.port)) as stream:
            stream.sendall(junk)
    assert served.get("/healthz") == (200, "ok")


def test_the_program_runs_without_privileges(served):
    status = world.read(f"/proc/{served.api.process.pid}/status")
    assert "CapEff:\t0000000000000000" in status
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status


def test_the_program_waits_for_an_agent(served):
    moved = served.node.socket + ".moved"
    os.rename(served.node.socket, moved)
    lonely, late = node_api.NodeApi(served.node), node_api.NodeApi(served.node)
    for one in (lonely, late):
        wait(lambda one=one: "Cannot request the settings" in one.said(), "it tries to reach the agent")
    os.rename(moved, served.node.socket)
    assert late.request("/healthz", certificate=served.admin) == (200, "ok")
    late.stop()
    lonely.stop()


def test_the_program_reports_missing_sockets():
    answer = subprocess.run([harness.program("mainstay-api")], capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert "systemd passed no socket, and --listen is not given" in answer.stderr
