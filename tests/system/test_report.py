# SPDX-License-Identifier: Apache-2.0
"""mainstay.report: statuses and events are sent to a URL as lines of JSON; unsent lines wait on the disk, within
bounds."""

import http.server
import json
import os
import ssl
import threading
import time

import failing
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
    return node.node_condition("mainstay.io/ReportFailed")


def wait_failed(node, words):
    wait(lambda: condition(node)["status"] == "True" and words in condition(node)["message"],
         lambda: f"the condition contains '{words}': {condition(node)}\n{node.said()[-3000:]}")


def is_running(line):
    return line is not None and line.get("status", {}).get("phase") == "Running" and \
        all(one["ready"] for one in line["status"]["containerStatuses"])


def wait_running(receiver, name):
    wait(lambda: is_running(receiver.latest(name)), lambda: f"{name} is reported: {receiver.requests}")


def queued(node):
    """The contents of the queued files, which appear and disappear."""
    directory = os.path.join(node.state, "report")
    texts = {name: world.read(os.path.join(directory, name)) for name in os.listdir(directory) if name[0] != "."}
    return {name: text for name, text in texts.items() if text is not None}


def test_statuses_and_events_are_reported_without_secrets(make_reporting, receiver):
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


def test_one_request_is_sent_per_interval(make_reporting, receiver):
    start = time.monotonic()
    node = make_reporting(receiver, interval="5s")
    for i in range(3):
        node.drop(specs.pod(f"web-{i}"), "web.yaml")
        wait_running(receiver, f"web-{i}")
    times = [request["time"] for request in receiver.requests]
    assert len(times) > 1
    # The time between two requests may be shorter if the first of them was slow to arrive.
    assert all(at - start >= 5 * i for i, at in enumerate(times)), times


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fail", "cut", "hang"])
def test_lines_that_a_bad_server_refuses_arrive_later(make_reporting, receiver, how):
    receiver.answer = getattr(receiver, how)
    node = make_reporting(receiver)
    node.drop(specs.pod("web"), "web.yaml")
    wait(lambda: receiver.requests, "a request arrives")
    node.wait_running("web")
    if how != "hang":
        wait_failed(node, {"fail": "the server answered with status 500", "cut": "The TLS connection was non-properly terminated"}[how])
        assert "ReportFailed" in node.cli("get", "nodes").stdout
        assert "ReportFailed" in node.cli("source", "status").stdout
        wait(lambda: len(receiver.requests) > 2, "it is queried again")
        assert node.cli("get", "events").stdout.count("ReportFailed") == 1
    receiver.answer = receiver.take
    receiver.ended.set()
    wait_running(receiver, "web")
    wait(lambda: condition(node)["status"] == "False", "the report has recovered")


@pytest.mark.slow
def test_queued_lines_survive_kills_of_the_agent_while_the_link_is_down(make_reporting, receiver):
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


def test_queue_is_limited_and_dropped_lines_are_counted_without_a_link(make_reporting, receiver):
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
    assert "mainstay.report.url: must start with https:// or file:///" in node.said()
    node.write_config()
    node.start()


# ---- a stick ----


def path_of(stick, *names):
    return os.path.join(stick.directory, "reports", *names)


def files_of(stick):
    return sorted(os.listdir(path_of(stick)))


@pytest.fixture(name="make_report_stick")
def fixture_make_report_stick(make_stick):
    """Sticks with the directory for reports."""

    def make(*mount):
        stick = make_stick(*mount)
        os.mkdir(path_of(stick))
        return stick

    return make


def report_of(node, stick):
    """The lines of the report, which are complete at any time."""
    text = world.read(path_of(stick, f"{node_name(node)}.ndjson"))
    if text is None:
        return None
    assert text.endswith("\n")
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0]["kind"] == "Report" and lines[0]["metadata"]["name"] == node_name(node)
    return lines


def node_name(node):
    return node.node_object()["metadata"]["name"]


def of_pod(lines, name, kind="Pod"):
    return [line for line in lines or [] if line["kind"] == kind and line["metadata"].get("name") == f"{name}-node1"]


@pytest.fixture(name="make_stick_node")
def fixture_make_stick_node(make_node, tmp_path):
    def make(**report):
        return make_node(config={"mainstay": {"report": {"url": f"file://{tmp_path}/media/reports", "interval": "1s", "jitter": "1ms",
                                                         **report}}})

    return make


def wait_written(node, stick, name):
    wait(lambda: any(is_running(line) for line in of_pod(report_of(node, stick), name)),
         lambda: f"{name} is in the report: {report_of(node, stick)} {condition(node)}\n{node.said()[-3000:]}")


def wait_told(node, words):
    wait(lambda: words in condition(node)["message"], lambda: f"'{words}': {condition(node)}\n{node.said()[-3000:]}")


@pytest.mark.slow
def test_each_inserted_stick_gets_the_complete_report(make_stick_node, make_report_stick, make_stick):
    node = make_stick_node()
    node.drop(specs.pod("web", specs.container(env=[{"name": "PASSWORD", "value": "very-hidden"}])), "web.yaml")
    node.wait_running("web")
    wait_told(node, "to be written when the directory is there")
    assert condition(node)["status"] == "False"
    sticks = [make_report_stick(), make_stick(), make_report_stick()]
    for stick in sticks[0], sticks[2]:
        stick.plug()
        wait_written(node, stick, "web")
        wait_told(node, "all written")
        lines = report_of(node, stick)
        assert {"Started", "Pulled"} & {line.get("reason") for line in lines if line["kind"] == "Event"}
        assert [line["kind"] for line in lines].count("Node") == 1
        assert files_of(stick) == [f"{node_name(node)}.ndjson"]
        assert "very-hidden" not in json.dumps(lines)
        stick.pull()
    # A stick without the directory is not written to; the node notices when the directory is created.
    sticks[1].plug()
    wait_told(node, "when the directory is there")
    assert os.listdir(sticks[1].directory) == []
    os.mkdir(os.path.join(sticks[1].place, "reports"))
    wait_written(node, sticks[1], "web")
    # Later changes are written while the stick is mounted, also after a restart of the agent, and a removed pod stays
    # in the report.
    node.remove("web.yaml")
    node.drop(specs.pod("next"))
    wait_written(node, sticks[1], "next")
    node.restart()
    wait(lambda: of_pod(report_of(node, sticks[1]), "web") and of_pod(report_of(node, sticks[1]), "web")[-1]["metadata"].get(
        "deletionGracePeriodSeconds") == 0, "the pod that is gone is still reported")


@pytest.mark.slow
def test_last_lines_of_pods_that_are_not_ready_are_written_without_secrets(make_stick_node, make_report_stick):
    node, stick = make_stick_node(logLines=3), make_report_stick()
    node.drop(specs.pod("good", specs.container(command=["sh", "-c", "echo fine; exec sleep inf"])))
    node.drop(specs.pod("bad", specs.container(command=["sh", "-c", "for i in 1 2 3 4; do echo line $i; done; echo DB_PASSWORD=very-hidden; "
                                                                     "printf 'last \\377\\033[1m\\n'; exit 3"]),
                       restartPolicy="Never"))
    node.wait_running("good")
    stick.plug()
    wait(lambda: len((of_pod(report_of(node, stick), "bad", "ContainerLog") or [{"lines": []}])[0]["lines"]) == 3,
         lambda: f"the log is in the report: {of_pod(report_of(node, stick), 'bad', 'ContainerLog')}")
    lines = report_of(node, stick)
    log = of_pod(lines, "bad", "ContainerLog")[0]
    assert log["container"] == "main" and [line.split(" ", 3)[3] for line in log["lines"]][-2:] == ["DB_PASSWORD=<masked>", "last ??[1m"]
    assert of_pod(lines, "good", "ContainerLog") == [] and "very-hidden" not in json.dumps(lines)
    read = node.cli("source", "report", path_of(stick, f"{node_name(node)}.ndjson")).stdout
    rows = [line.split() for line in read.splitlines()]
    assert ["node1", "default", "good-node1", "1/1", "Running", "0"] in rows, read
    assert any(row[2:4] == ["bad-node1", "0/1"] for row in rows) and "node1: default/bad-node1, container main:" in read, read
    assert "stdout F DB_PASSWORD=<masked>" in read


def test_damaged_or_hostile_report_is_an_error_or_printed_safely(node, tmp_path):
    path = tmp_path / "x.ndjson"
    for content, words in (("{}\nnothing\n", ":2: is not an object in JSON"), ("[1]\n", ":1: is not an object"), ("\0\n", ""),
                           (None, "No such file or directory")):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
        found = node.cli("source", "report", str(path))
        assert words in found.stderr and found.returncode == (1 if words else 0), found
    path.write_text(json.dumps({"kind": "Report", "metadata": {"name": "\033[31mred"}}) + "\n" +
                    json.dumps({"kind": "Pod", "metadata": {"name": "a\tb\033[1m"}, "status": {"phase": 7}, "spec": []}) + "\n" +
                    json.dumps({"kind": "ContainerLog", "metadata": [], "lines": ["\033]0;x", 5, None]}) + "\n")
    found = node.cli("source", "report", str(path))
    assert found.returncode == 0 and "\033" not in found.stdout, found
    assert node.cli("source", "report").returncode == 2


def _link_of_directory(stick, name, victim):
    os.rmdir(path_of(stick))
    os.symlink(os.path.dirname(victim), path_of(stick))


def _link_above(stick, name, victim):
    os.rmdir(path_of(stick))
    os.symlink("/", os.path.join(stick.directory, "root"))
    os.symlink("root" + os.path.dirname(victim), path_of(stick))


def _link_of_file(stick, name, victim):
    os.symlink(victim, path_of(stick, name))


def _link_of_new_file(stick, name, victim):
    os.symlink(victim, path_of(stick, f".{name}.new"))


def _hard_link(stick, name, victim):
    own = os.path.join(stick.directory, "own")
    with open(own, "w", encoding="utf-8") as file:
        file.write("untouched")
    os.link(own, path_of(stick, f".{name}.new"))


def _fifo(stick, name, victim):
    os.mkfifo(path_of(stick, name))
    os.mkfifo(path_of(stick, f".{name}.new"))


def _directory(stick, name, victim):
    os.mkdir(path_of(stick, name))


def _directory_of_new_file(stick, name, victim):
    os.mkdir(path_of(stick, f".{name}.new"))


def _file_in_its_place(stick, name, victim):
    os.rmdir(path_of(stick))
    with open(path_of(stick), "w", encoding="utf-8"):
        pass


# Files that a stranger's stick has in place of the report, and the text of the error; None if the report is written.
HOSTILE = {"link of the directory": (_link_of_directory, "symbolic link, which is not followed"),
           "link to a link": (_link_above, "symbolic link, which is not followed"),
           "link of the file": (_link_of_file, None), "link of the new file": (_link_of_new_file, None),
           "hard link": (_hard_link, None), "FIFOs": (_fifo, None),
           "directory": (_directory, "Is a directory"), "directory of the new file": (_directory_of_new_file, "Is a directory"),
           "file in place of the directory": (_file_in_its_place, "Not a directory")}


def test_nothing_outside_of_the_directory_is_written_for_a_hostile_stick(make_stick_node, make_report_stick, tmp_path):
    node = make_stick_node()
    node.drop(specs.pod("web"))
    node.wait_running("web")
    victims = tmp_path / "victims"
    victims.mkdir()
    victim = victims / "victim"
    for kind, (make_hostile, words) in HOSTILE.items():
        victim.write_text("untouched")
        stick = make_report_stick()
        make_hostile(stick, f"{node_name(node)}.ndjson", str(victim))
        stick.plug()
        if words:
            wait_failed(node, words)
        else:
            wait(lambda: os.path.isfile(path_of(stick, f"{node_name(node)}.ndjson")), lambda: f"{kind}: {condition(node)}")  # pylint: disable=cell-var-from-loop
            wait(lambda: not os.path.islink(path_of(stick, f"{node_name(node)}.ndjson")), kind)  # pylint: disable=cell-var-from-loop
            wait_written(node, stick, "web")
        stick.pull()
        assert victim.read_text() == "untouched" and os.listdir(victims) == ["victim"], kind
        own = os.path.join(stick.directory, "own")
        assert not os.path.exists(own) or world.read(own) == "untouched", kind
        wait_told(node, "when the directory is there")


def test_stick_that_cannot_be_written_keeps_the_earlier_report(make_stick_node, make_report_stick):
    node = make_stick_node()
    node.drop(specs.pod("web"))
    node.wait_running("web")
    stick = make_report_stick("-t", "tmpfs", "-o", "size=256k", "stick")
    stick.plug()
    wait_written(node, stick, "web")
    stick.pull()
    before = report_of(node, stick)
    stick.plug("ro")
    wait_failed(node, "Read-only file system; a file system that was mounted before the agent started")
    stick.pull()
    with pytest.raises(OSError), open(os.path.join(stick.directory, "full"), "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    stick.plug()
    wait_failed(node, "No space left on device; remove files there")
    assert report_of(node, stick) == before and files_of(stick) == [f"{node_name(node)}.ndjson"]
    os.unlink(os.path.join(stick.directory, "full"))
    stick.pull()
    node.drop(specs.pod("next"))
    node.wait_running("next")
    stick.plug()
    wait_written(node, stick, "next")
    wait(lambda: condition(node)["status"] == "False", "the report has recovered")


def test_writer_that_dies_leaves_the_earlier_report(make_failing, make_report_stick, tmp_path):
    settings = {"url": f"file://{tmp_path}/media/reports", "interval": "1s", "jitter": "1ms"}
    node, stick = make_failing(failing.FailingNode, config={"mainstay": {"report": settings}}), make_report_stick()
    stick.plug()
    node.drop(specs.pod("web"))
    wait_written(node, stick, "web")
    node.arm({"mainstay-image:report.written": "1*panic"})
    node.drop(specs.pod("next"))
    wait(lambda: node.hits().get("mainstay-image:report.written"), "the writer has died")
    assert of_pod(report_of(node, stick), "web")
    wait_written(node, stick, "next")
    assert files_of(stick) == [f"{node_name(node)}.ndjson"]


def test_report_in_a_directory_is_limited_and_has_the_status_of_each_pod(make_stick_node, make_report_stick):
    node, stick = make_stick_node(queueSize="8Ki"), make_report_stick()
    for i in range(5):
        node.drop(specs.pod(f"p{i}"))
        node.wait_running(f"p{i}")
    stick.plug()
    wait(lambda: report_of(node, stick), "it is written")
    wait(lambda: report_of(node, stick)[0]["dropped"] > 0, lambda: f"older lines are dropped: {report_of(node, stick)}")
    assert os.path.getsize(path_of(stick, f"{node_name(node)}.ndjson")) < 10 * 1024


def test_report_settings_that_have_no_effect_are_errors(make_node):
    for report, words in (({"url": "file:///media/reports", "headers": {"A": ["b"]}}, "report.headers: must not be set if url is a directory"),
                          ({"url": "https://127.0.0.1/", "logLines": 5}, "report.logLines: needs a url of a directory"),
                          ({"url": "file:///media/reports/"}, "must be the unescaped path of a directory after file://")):
        node = make_node(start=False, config={"mainstay": {"report": report}})
        node.agent = node.spawn()
        assert node.agent.wait(world.DEADLINE) == 1
        assert words in node.said()
        node.write_config()
        node.start()
