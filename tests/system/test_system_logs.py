# SPDX-License-Identifier: Apache-2.0
"""/logs/ of mainstay-api: files below /var/log, and the query of services."""

import http.client
import os
import shutil
import tempfile
from urllib.parse import quote, urlencode

import api_certs
import harness
import node_api
import pytest
import world
from world import wait

JOURNAL = """#!/bin/sh
case "$*" in
*--field=_SYSTEMD_UNIT*) echo init.scope; echo kubelet.service; echo stuck.service;;
*--unit=stuck*) echo stuck; exec sleep 4713;;
*) echo "asked: $*";;
esac
"""


class World:
    """A node with its own /var/log and a journal that prints its arguments."""

    def __init__(self, archive):
        self.directory = tempfile.mkdtemp(prefix="mainstay-logs-")
        self.authority = api_certs.Authority(self.directory)
        self.admin, _ = self.authority.issue("admin", "/O=system:masters/CN=admin")
        self.node = harness.Node(archive, start=False)
        plain = self.node.environment
        self.node.environment = lambda: {**plain(), "PATH": f"{self.directory}:{plain()['PATH']}"}
        self.write("../journalctl", "", JOURNAL)
        self.configure(enableSystemLogQuery=True)
        self.node.start()
        self.api = node_api.NodeApi(self.node)
        for name, text in (("messages", "one\ntwo\n"), ("nginx/access.log", "GET /\n"), ("only.log", "only\n"),
                           ("deep/deep.log", "deep\n"), ("odd <&> name", "odd\n")):
            self.write(name, text)
        with open(os.path.join(self.node.log, "binary"), "wb") as file:
            file.write(b"\0\1" * 100000)
        os.symlink("/etc/passwd", os.path.join(self.node.log, "away"))
        os.symlink("nginx", os.path.join(self.node.log, "link"))
        os.mkfifo(os.path.join(self.node.log, "fifo"))

    def configure(self, **fields):
        self.node.write_config(authentication={"x509": {"clientCAFile": self.authority.cert}, "webhook": {"enabled": False}},
                               authorization={"mode": "AlwaysAllow"}, **fields)

    def write(self, name, text, program=None):
        path = os.path.join(self.directory, "journalctl") if program else os.path.join(self.node.log, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(program or text)
        if program:
            os.chmod(path, 0o755)

    def get(self, path):
        """Sends a request; returns status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1")
        connection.sock = self.api.connect(self.admin)
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, response.headers, body

    def query(self, **words):
        status, _, body = self.get("/logs/?" + urlencode(words, doseq=True))
        return status, body.decode()

    def finish(self):
        try:
            self.api.stop()
        finally:
            self.node.finish()
            shutil.rmtree(self.directory)


@pytest.fixture(scope="module", name="logged")
def fixture_logged(archive):
    found = World(archive)
    yield found
    found.finish()


# Files

def test_a_log_file_is_served_completely(logged):
    status, headers, body = logged.get("/logs/messages")
    assert (status, headers["Content-Type"], body) == (200, "text/plain; charset=utf-8", b"one\ntwo\n")
    assert logged.get("/logs/nginx/access.log")[2] == b"GET /\n"
    status, headers, body = logged.get("/logs/binary")
    assert (status, headers["Content-Type"], body) == (200, "application/octet-stream", b"\0\1" * 100000)


def test_a_directory_is_a_list_in_html(logged):
    status, headers, body = logged.get("/logs/")
    text = body.decode()
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert '<pre>\n' in text and '<a href="messages">messages</a>\n' in text
    assert '<a href="nginx/">nginx/</a>\n' in text
    assert '<a href="odd%20%3C%26%3E%20name">odd &lt;&amp;&gt; name</a>' in text
    assert text.index('"messages"') < text.index('"nginx/"'), "they are sorted"
    assert logged.get("/logs/" + quote("odd <&> name"))[2] == b"odd\n"


def test_a_directory_without_its_slash_is_a_redirection(logged):
    for path, target in (("/logs", "logs/"), ("/logs/nginx", "nginx/")):
        status, headers, _ = logged.get(path)
        assert (status, headers["Location"]) == (301, target)
    assert b"access.log" in logged.get("/logs/nginx/")[2]


@pytest.mark.parametrize("path", ["none", "away", "link/access.log", "fifo", "../data", "..%2f..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd",
                                  "nginx/../../config.yaml", "messages/"])
def test_a_path_outside_of_the_log_directory_is_not_found(logged, path):
    status, _, body = logged.get("/logs/" + path)
    assert (status, body) == (404, b"404 page not found")


# Services

def test_a_query_for_a_service_without_a_unit_reads_its_log_file(logged):
    assert logged.query(query="messages") == (200, "one\ntwo\n")
    assert logged.query(query=["only", "deep"]) == (200, "only\ndeep\n")
    assert logged.query(query="unknown") == (200, "\nlog not found for unknown\n")
    assert logged.query(query="away") == (200, "\nlog not found for away\n")
    assert logged.query(query="/messages") == (200, "one\ntwo\n")
    assert logged.query(query="/nginx/access.log") == (200, "GET /\n")


def test_a_query_for_a_unit_passes_all_options_to_journalctl(logged):
    status, text = logged.query(query="kubelet", sinceTime="2026-01-02T03:04:05Z", untilTime="2026-01-02T05:04:05+01:00",
                                tailLines=7, pattern="a b|-c", boot=-1)
    assert status == 200
    assert text == "asked: --utc --no-pager --output=short-precise --since=@1767323045 --until=@1767326645 --lines=7 " \
                   "--grep=a b|-c --boot=-1 --unit=kubelet\n"


def test_a_query_for_a_file_with_options_is_refused_in_the_response_text(logged):
    status, text = logged.query(query="messages", tailLines=1)
    assert status == 200 and "options present and query resolved to log files for [messages]" in text


@pytest.mark.parametrize("status,words", [
    (400, {"query": ""}), (400, {"query": "kubelet", "sinceTime": "yesterday"}), (400, {"query": "kubelet", "tailLines": "x"}),
    (400, {"query": "kubelet", "boot": "1.5"}), (406, {"tailLines": 5}), (406, {"query": ["kubelet", "/messages"]}),
    (406, {"query": ["/messages", "/only.log"]}), (406, {"query": "/messages", "tailLines": 5}),
    (406, {"query": "kubelet", "tailLines": -1}), (406, {"query": "kubelet", "tailLines": 100001}),
    (406, {"query": "kubelet", "boot": 1}), (406, {"query": list("abcde")}), (406, {"query": "a;b"}), (406, {"query": "..", "boot": 0}),
    (406, {"query": "kubelet", "sinceTime": "2026-01-02T03:04:05Z", "untilTime": "2026-01-02T03:04:04Z"})])
def test_a_query_is_validated_like_by_the_kubelet(logged, status, words):
    assert logged.query(**words)[0] == status


def test_a_path_and_a_query_exclude_each_other(logged):
    assert logged.get("/logs/messages?query=kubelet")[0] == 406


def test_a_query_ends_when_its_client_disconnects(logged):
    def sleepers():
        return [pid for pid in world.pids() if world.cmdline(pid) == ["sleep", "4713"]]

    stream = logged.api.connect(logged.admin)
    stream.sendall(b"GET /logs/?query=stuck HTTP/1.1\r\nHost: node\r\n\r\n")
    head = b""
    while b"stuck\n" not in head:
        piece = stream.recv(4096)
        assert piece, head
        head += piece
    wait(sleepers, "the journal follows")
    stream.close()
    wait(lambda: not sleepers(), "the journal has ended")


# The configuration

def test_logs_are_off_if_the_configuration_disables_them(logged):
    logged.configure(enableSystemLogHandler=False)
    logged.node.restart()
    wait(lambda: logged.get("/logs/messages")[0] == 405, "the handler is disabled")
    assert logged.get("/logs/?query=kubelet")[::2] == (405, b"logs endpoint is disabled.")
    logged.configure()
    logged.node.restart()
    wait(lambda: logged.get("/logs/messages")[0] == 200, "the handler is enabled by default")
    wait(lambda: b"<pre>" in logged.get("/logs/?query=kubelet")[2], "the query is disabled by default")
    logged.configure(enableSystemLogQuery=True)
    logged.node.restart()
    wait(lambda: logged.query(query="kubelet")[1].startswith("asked:"), "the query is enabled")
