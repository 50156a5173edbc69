# SPDX-License-Identifier: Apache-2.0
"""mainstay.report: statuses and events are sent to a URL as lines of JSON; unsent lines wait on the disk, within
bounds."""

import http.server
import json
import os
import ssl
import threading
import time

import pytest
import registry
import specs
import world
from world import wait


class Receiver:
    """A receiver of reports over HTTPS, which keeps the lines that it accepted, and misbehaves as the test
    specifies."""

    def __init__(self, certificate, port=0):
        self.requests, self.answer = [], self.take
        self.ended = threading.Event()
        self.certificate = certificate
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                owner.requests.append({"time": time.monotonic(), "headers": dict(self.headers), "taken": False,
                                       "lines": [json.loads(line) for line in body.splitlines()]})
                owner.answer(self, owner.requests[-1])

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *args: None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.certificate)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @staticmethod
    def take(handler, request):
        request["taken"] = True
        handler.send_response(204)
        handler.end_headers()

    @staticmethod
    def fail(handler, _request):
        handler.send_response(500)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    @staticmethod
    def cut(handler, _request):
        handler.close_connection = True

    def hang(self, _handler, _request):
        self.ended.wait(120)

    def lines(self, kind):
        """The lines that it accepted."""
        return [line for request in self.requests if request["taken"] for line in request["lines"] if line["kind"] == kind]

    def latest(self, name):
        found = [line for line in self.lines("Pod") if line["metadata"]["name"] == f"{name}-node1"]
        return found[-1] if found else None

    def reasons(self):
        return {line["reason"] for line in self.lines("Event")}

    def stop(self):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(name="receiver")
def fixture_receiver(tmp_path):
    server = Receiver(registry.certificate(str(tmp_path)))
    yield server
    server.stop()


@pytest.fixture(name="make_reporting")
def fixture_make_reporting(make_node):
    def make(receiver, **report):
        settings = {"url": f"https://127.0.0.1:{receiver.port}/report", "caFile": receiver.certificate[0],
                    "interval": "1s", "jitter": "1ms", **report}
        return make_node(config={"mainstay": {"report": settings}})

    return make


def condition(node):
    found = json.loads(node.cli("get", "node", "-o", "json").stdout)["items"][0]["status"]["conditions"]
    return next(one for one in found if one["type"] == "mainstay.io/ReportFailed")


def wait_failed(node, words):
    wait(lambda: condition(node)["status"] == "True" and words in condition(node)["message"],
         lambda: f"the condition says '{words}': {condition(node)}\n{node.said()[-3000:]}")


def is_running(line):
    return line is not None and line.get("status", {}).get("phase") == "Running" and \
        all(one["ready"] for one in line["status"]["containerStatuses"])


def wait_running(receiver, name):
    wait(lambda: is_running(receiver.latest(name)), lambda: f"{name} is reported: {receiver.requests}")


def queued(node):
    """The texts of the files, which come and go."""
    directory = os.path.join(node.state, "report")
    texts = {name: world.read(os.path.join(directory, name)) for name in os.listdir(directory) if name[0] != "."}
    return {name: text for name, text in texts.items() if text is not None}


def test_statuses_and_events_arrive_and_no_secret_does(make_reporting, receiver):
    node = make_reporting(receiver, headers={"Authorization": ["Bearer word"]})
    node.drop(specs.pod("web", specs.container(env=[{"name": "PASSWORD", "value": "very-hidden"}]),
                        metadata={"labels": {"app": "web"}}), "web.yaml")
    wait_running(receiver, "web")
    line = receiver.latest("web")
    assert line["metadata"]["labels"] == {"app": "web"} and line["spec"]["nodeName"]
    assert line["status"]["containerStatuses"][0]["imageID"]
    wait(lambda: "Started" in receiver.reasons(), "the events are reported")
    assert receiver.lines("Node")
    assert "very-hidden" not in json.dumps(receiver.requests)
    headers = receiver.requests[0]["headers"]
    assert headers["Authorization"] == "Bearer word" and headers["Mainstay-Node"] == line["spec"]["nodeName"]
    assert headers["Content-Type"] == "application/x-ndjson" and headers["Mainstay-Dropped"] == "0"
    node.remove("web.yaml")
    wait(lambda: receiver.latest("web")["metadata"].get("deletionGracePeriodSeconds") == 0, "the end is reported")


def test_nothing_is_sent_while_nothing_changes(make_reporting, receiver):
    node = make_reporting(receiver)
    node.drop(specs.pod("web"), "web.yaml")
    wait_running(receiver, "web")
    wait(lambda: time.monotonic() - receiver.requests[-1]["time"] > 6, "requests end")
    before = len(receiver.requests)
    time.sleep(5)
    assert len(receiver.requests) == before
    assert queued(node) == {}


def test_there_is_one_request_an_interval(make_reporting, receiver):
    start = time.monotonic()
    node = make_reporting(receiver, interval="5s")
    for i in range(3):
        node.drop(specs.pod(f"web-{i}"), "web.yaml")
        wait_running(receiver, f"web-{i}")
    times = [request["time"] for request in receiver.requests]
    assert len(times) > 1
    # The time between two may be shorter, if the first of them was slow to arrive.
    assert all(at - start >= 5 * i for i, at in enumerate(times)), times


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fail", "cut", "hang"])
def test_lines_that_a_bad_server_refuses_arrive_later(make_reporting, receiver, how):
    receiver.answer = getattr(receiver, how)
    node = make_reporting(receiver)
    node.drop(specs.pod("web"), "web.yaml")
    wait(lambda: receiver.requests, "it is asked")
    node.wait_running("web")
    if how != "hang":
        wait_failed(node, {"fail": "the server answered with status 500", "cut": "The TLS connection was non-properly terminated"}[how])
        assert "ReportFailed" in node.cli("get", "nodes").stdout
        assert "ReportFailed" in node.cli("source", "status").stdout
        wait(lambda: len(receiver.requests) > 2, "it is asked again")
        assert node.cli("get", "events").stdout.count("ReportFailed") == 1
    receiver.answer = receiver.take
    receiver.ended.set()
    wait_running(receiver, "web")
    wait(lambda: condition(node)["status"] == "False", "the report has recovered")


@pytest.mark.slow
def test_waiting_lines_survive_kills_while_the_link_is_down(make_reporting, receiver):
    receiver.answer = receiver.fail
    node = make_reporting(receiver)
    node.drop(specs.pod("gone"))
    node.wait_running("gone")
    node.remove("gone.yaml")
    node.wait_gone("gone")
    wait(lambda: any('"deletionGracePeriodSeconds":0' in text and '"Started"' in text for text in queued(node).values()),
         lambda: f"the queue is on the disk: {queued(node)}")
    node.restart()
    receiver.answer = receiver.take
    wait(lambda: receiver.latest("gone"), "the pod of the earlier agent is reported")
    assert receiver.latest("gone")["metadata"]["deletionGracePeriodSeconds"] == 0
    assert "Started" in receiver.reasons()
    wait(lambda: queued(node) == {}, "nothing waits on the disk")


def test_without_a_link_the_queue_is_bounded_and_the_oldest_are_counted(make_reporting, receiver):
    receiver.answer = receiver.fail
    node = make_reporting(receiver, queueSize="8Ki")
    for i in range(6):
        node.drop(specs.pod(f"p{i}"))
        node.wait_running(f"p{i}")
    wait(lambda: " 0 were dropped" not in condition(node)["message"], lambda: f"some are dropped: {condition(node)}")
    wait(lambda: queued(node), "the queue is on the disk")
    assert sum(map(len, queued(node).values())) < 16 * 1024
    receiver.answer = receiver.take
    wait(lambda: any(request["taken"] and int(request["headers"]["Mainstay-Dropped"]) > 0 for request in receiver.requests),
         "the count is sent")


def test_a_server_of_another_authority_gets_nothing(make_reporting, receiver, tmp_path_factory):
    other = registry.certificate(str(tmp_path_factory.mktemp("other")))
    node = make_reporting(receiver, caFile=other[0])
    node.drop(specs.pod("web"), "web.yaml")
    node.wait_running("web")
    wait_failed(node, "server certificate verification failed")
    assert receiver.requests == []


def test_a_report_is_not_sent_in_plain_text(make_node):
    node = make_node(start=False, config={"mainstay": {"report": {"url": "http://127.0.0.1/report"}}})
    node.agent = node.spawn()
    assert node.agent.wait(world.DEADLINE) == 1
    assert "mainstay.report.url: must start with https://" in node.said()
    node.write_config()
    node.start()
