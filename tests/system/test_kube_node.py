# SPDX-License-Identifier: Apache-2.0
"""The Node, its Lease and its events against an API server that accepts everything, and one that does not, with a small
program that does nothing else ('kube-node'); test_apiserver_node.py tests the same with the whole agent."""

import json
import os
import subprocess
import threading
import time

import harness
import pytest
from api_faults import Relay
from world import DEADLINE, wait

NODE = "node1"


class Program:
    """kube-node, its lines as they arrive, and a way to send lines to it."""

    def __init__(self, api, directory, port=None, name=NODE):
        path = api.kubeconfig(os.path.join(directory, "kubeconfig-" + name), node=name, port=port)
        self.process = subprocess.Popen([os.path.join(harness.BUILD, "tests", "kube-node"), path, name], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.lines = []
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.append(line.strip())

    def send_line(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def lines_with(self, part):
        return [line for line in self.lines if part in line]

    def stop(self):
        """Stops the program, which must exit without a report of a sanitizer."""
        self.send_line("quit")
        assert self.process.wait(DEADLINE) == 0, self.process.stderr.read()


@pytest.fixture(name="run")
def fixture_run(api, tmp_path):
    programs = []

    def run(**options):
        programs.append(Program(api, str(tmp_path), **options))
        return programs[-1]

    yield run
    for program in programs:
        if program.process.poll() is None:
            program.stop()


def node_of(api, name=NODE):
    return api.get("nodes", None, name)


def lease_of(api, name=NODE):
    return api.get("leases", "kube-node-lease", name)


def ready(api):
    """The Node and its Lease, once they exist."""
    wait(lambda: node_of(api) and lease_of(api), lambda: f"a Node and a Lease exist: {api.requests}")
    return node_of(api), lease_of(api)


def condition(node, kind):
    return next(item for item in node["status"]["conditions"] if item["type"] == kind)


def test_node_and_lease_are_created(api, run):
    run()
    node, lease = ready(api)
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == NODE
    assert [item["type"] for item in node["status"]["conditions"]][-1] == "Ready"
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert lease["spec"]["holderIdentity"] == NODE and lease["spec"]["leaseDurationSeconds"] == 40
    assert lease["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": NODE, "uid": node["metadata"]["uid"]}]


def test_lease_is_renewed_periodically(api, run):
    run()
    _, lease = ready(api)
    wait(lambda: lease_of(api)["spec"]["renewTime"] > lease["spec"]["renewTime"], "a renewal")


@pytest.mark.slow
def test_idle_node_sends_few_requests(api, run):
    run()
    ready(api)
    wait(lambda: api.watches == 1, "a watch")
    # Occasionally a list that is older than the Node is returned after it; then the list is requested once more.
    wait(lambda: api.asked("update", "leases"), "the Lease is renewed, long after the first requests")
    settled = len(api.requests)
    wait(lambda: len(api.asked("update", "leases")) >= 3, "two renewals")
    assert all(one.kind.plural == "leases" for one in api.requests[settled:]), api.requests[settled:]


def test_only_a_changed_status_is_sent(api, run):
    program = run()
    ready(api)
    wait(lambda: api.watches == 1, "a watch")
    before = len(api.asked("patch", "nodes"))
    program.send_line("touch")
    program.send_line("pressure")
    wait(lambda: condition(node_of(api), "DiskPressure")["status"] == "True", "the condition")
    node = node_of(api)
    assert condition(node, "DiskPressure")["reason"] == "KubeletHasDiskPressure"
    assert condition(node, "Ready")["status"] == "True"
    assert len(api.asked("patch", "nodes")) <= before + 1
    patch = api.asked("patch", "nodes")[-1].body["status"]
    assert set(patch) == {"$setElementOrder/conditions", "conditions"}
    program.send_line("memory")
    wait(lambda: node_of(api)["status"]["capacity"]["memory"] == "2Mi", "the capacity")


def test_deleted_node_is_registered_again(api, run):
    program = run()
    node, _ = ready(api)
    wait(lambda: api.watches == 1, "a watch")
    api.delete("nodes", None, NODE)
    api.delete("leases", "kube-node-lease", NODE)
    wait(lambda: node_of(api), "another Node")
    assert node_of(api)["metadata"]["uid"] != node["metadata"]["uid"]
    wait(lambda: lease_of(api) and lease_of(api)["metadata"]["ownerReferences"][0]["uid"] ==
         node_of(api)["metadata"]["uid"], "its Lease")
    wait(lambda: program.lines_with("node gone"), lambda: program.lines)


def test_existing_node_is_kept(api, run):
    first = run()
    ready(api)
    first.stop()
    uid = node_of(api)["metadata"]["uid"]
    api.patch("nodes", None, NODE, {"metadata": {"labels": {"disk": "ssd", "kubernetes.io/arch": "other"}},
                                    "spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
    program = run()
    wait(lambda: node_of(api)["metadata"]["labels"]["kubernetes.io/arch"] == "amd64", "the label")
    node = node_of(api)
    assert node["metadata"]["uid"] == uid and node["metadata"]["labels"]["disk"] == "ssd"
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["k"]
    wait(lambda: program.lines_with("taints=1"), lambda: program.lines)


def test_external_labels_are_reported(api, run):
    program = run()
    ready(api)
    wait(lambda: api.watches == 1, "a watch")
    api.patch("nodes", None, NODE, {"metadata": {"labels": {"disk": "ssd"}}})
    wait(lambda: program.lines_with("labels=1"), lambda: program.lines)
    api.patch("nodes", None, NODE, {"metadata": {"labels": {"kubernetes.io/os": None}}})
    wait(lambda: node_of(api)["metadata"]["labels"].get("kubernetes.io/os") == "linux", "the label is restored")


def test_external_labels_are_reported_despite_a_late_response(api, run):
    program = run()
    ready(api)
    wait(lambda: api.watches == 1, "a watch")
    late = api.misbehave(verb="patch", plural="nodes", delay=2, times=1)
    program.send_line("pressure")
    wait(lambda: condition(node_of(api), "DiskPressure")["status"] == "True", "the condition")
    api.patch("nodes", None, NODE, {"metadata": {"labels": {"disk": "ssd"}}})
    wait(lambda: program.lines_with("labels=1"), lambda: program.lines)
    wait(lambda: late.struck, "the answer is late")
    program.send_line("memory")  # it is sent when the answer has arrived
    wait(lambda: node_of(api)["status"]["capacity"]["memory"] == "2Mi", "the capacity")
    reported = [line.partition("labels=")[2][0] for line in program.lines_with("labels=")]
    assert "0" not in reported[reported.index("1"):], program.lines


def test_external_labels_are_reported_despite_late_watch_events(api, run):
    api.misbehave(verb="watch", plural="nodes", rate=1500)
    program = run()
    ready(api)
    wait(lambda: api.watches == 1, "a watch")
    for label, memory in (("ssd", "2Mi"), (None, "4Mi")):
        api.patch("nodes", None, NODE, {"metadata": {"labels": {"disk": label}}})
        program.send_line("memory")  # its answer contains the label before the watch reports it
        wait(lambda expected=memory: node_of(api)["status"]["capacity"]["memory"] == expected, "the capacity")
    api.patch("nodes", None, NODE, {"metadata": {"labels": {"disk": "ssd", "rack": "r1"}}})
    wait(lambda: program.lines_with("labels=2"), lambda: program.lines)
    reported = "".join(line.partition("labels=")[2][0] for line in program.lines_with("labels="))
    assert "01" not in reported.lstrip("0"), program.lines


def test_label_changed_during_another_patch_is_restored(api, run):
    """The answer to the patch has the change, and the watch reports it after that."""
    api.misbehave(verb="watch", plural="nodes", rate=1500, piece=100)
    program = run()
    ready(api)
    wait(lambda: api.watches == 1, "a watch")
    api.patch("nodes", None, NODE, {"metadata": {"labels": {"kubernetes.io/os": "plan9"}}})
    program.send_line("memory")
    wait(lambda: node_of(api)["status"]["capacity"]["memory"] == "2Mi", "the capacity")
    wait(lambda: node_of(api)["metadata"]["labels"]["kubernetes.io/os"] == "linux", "the label is restored")


def test_label_changed_before_the_first_list_is_restored(api, run):
    """The answer to the patch has the change, the list has nothing newer, and no event follows."""
    api.misbehave(verb="list", plural="nodes", latency=8)
    program = run()
    ready(api)
    assert api.watches == 0, "the list is in transit"
    api.patch("nodes", None, NODE, {"metadata": {"labels": {"kubernetes.io/os": "plan9"}}})
    program.send_line("memory")
    wait(lambda: node_of(api)["status"]["capacity"]["memory"] == "2Mi", "the capacity")
    wait(lambda: node_of(api)["metadata"]["labels"]["kubernetes.io/os"] == "linux", "the label is restored")


def test_lease_written_by_another_client_is_read_again(api, run):
    run()
    _, lease = ready(api)
    lease["spec"]["renewTime"] = "2099-01-01T00:00:00.000000Z"
    api.replace("leases", lease)
    wait(lambda: lease_of(api)["spec"]["renewTime"] > "2099-01-01T00:00:00.000000Z", "the Lease is renewed with a later time")
    assert any(one.code == 409 for one in api.asked("update", "leases"))


@pytest.mark.parametrize("how", [
    {"status": 500}, {"status": 503, "retry_after": 1}, {"status": 429, "retry_after": 2}, {"reset": True},
    {"body": b"{"}, {"body": b"[]"}, {"cut": 40}, {"status": 409}, {"status": 401}, {"status": 403}])
def test_failed_requests_are_retried_with_back_off(api, run, how):
    fault = api.misbehave(**how)
    start = time.monotonic()
    program = run()
    wait(lambda: fault.struck >= 6, lambda: api.requests)
    passed, asked = time.monotonic() - start, len(api.requests)
    api.behave()
    assert asked <= 12 + 3 * passed, f"{asked} requests in {passed:.0f} s: {api.requests}"
    wait(lambda: node_of(api) and lease_of(api), lambda: f"{program.lines} {api.requests[-9:]}")


def test_restarted_server_gets_the_changes(api, run):
    program = run()
    ready(api)
    api.stop()
    program.send_line("pressure")
    wait(lambda: program.lines_with("error 0"), lambda: program.lines)
    api.start()
    wait(lambda: condition(node_of(api), "DiskPressure")["status"] == "True", "the condition")


@pytest.mark.slow
def test_silent_partition_is_detected(api, run):
    relay = Relay(api.port)
    program = run(port=relay.port)
    _, lease = ready(api)
    relay.freeze()
    program.send_line("pressure")
    wait(lambda: program.lines_with("error 0"), lambda: program.lines)
    relay.cut()
    relay.thaw()
    wait(lambda: condition(node_of(api), "DiskPressure")["status"] == "True", "the condition")
    wait(lambda: lease_of(api)["spec"]["renewTime"] > lease["spec"]["renewTime"], "the Lease")
    program.stop()
    relay.stop()


@pytest.mark.slow
def test_restored_backup_gets_everything_again(api, run):
    backup = api.store.dump()
    program = run()
    ready(api)
    wait(lambda: api.watches == 1, "a watch")
    for i in range(20):  # so that the restored state is older than the last message
        api.create("configmaps", {"metadata": {"name": f"filler-{i}"}})
    wait(lambda: len(api.asked("update", "leases")) >= 1, "a renewal")
    api.store.restore(backup)
    wait(lambda: node_of(api) and lease_of(api), lambda: f"{program.lines} {api.requests[-9:]}")


def test_nodes_reconnect_at_different_times(api, run):
    names = [f"herd{i}" for i in range(10)]
    programs = [run(name=name) for name in names]
    wait(lambda: all(lease_of(api, name) for name in names), "all nodes")
    wait(lambda: api.watches == len(names), "all watches")
    api.stop()
    wait(lambda: all(program.lines_with("error 0") for program in programs), "all have noticed the failure")
    start = time.monotonic()
    api.start()

    def first_request_times():
        first = {}
        for one in list(api.requests):
            if one.at > start:
                first.setdefault(one.user.name, one.at - start)
        return first if len(first) == len(names) else None
    times = sorted(wait(first_request_times, "all have sent a request").values())
    assert times[-1] - times[0] > 0.2 * times[-1], times
    assert len(set(round(at, 1) for at in times)) >= 3, times


def event(name, count, message="m", uid="u-1"):
    return json.dumps({
        "kind": "Event", "apiVersion": "v1", "metadata": {"name": name, "namespace": "default"}, "reason": "BackOff",
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web", "uid": uid, "apiVersion": "v1"},
        "message": message, "source": {"component": "mainstay", "host": NODE}, "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": f"2026-01-01T00:00:{count:02}Z", "count": count, "type": "Warning", "eventTime": None,
        "reportingComponent": "mainstay", "reportingInstance": NODE})


def test_event_is_created_and_counted(api, run):
    program = run()
    ready(api)
    program.send_line(event("web.01", 1))
    wait(lambda: api.get("events", "default", "web.01"), "the event")
    program.send_line(event("web.01", 2))
    wait(lambda: api.get("events", "default", "web.01")["count"] == 2, "the count")
    assert api.get("events", "default", "web.01")["lastTimestamp"] == "2026-01-01T00:00:02Z"
    assert [one.verb for one in api.asked(plural="events")] == ["create", "patch"]


def test_expired_event_is_created_again(api, run):
    program = run()
    ready(api)
    program.send_line(event("web.01", 7))
    wait(lambda: api.get("events", "default", "web.01"), "the event")
    assert api.get("events", "default", "web.01")["count"] == 7
    assert [one.verb for one in api.asked(plural="events")] == ["patch", "create"]


def test_events_of_a_pod_are_rate_limited(api, run):
    program = run()
    ready(api)
    for i in range(40):
        program.send_line(event(f"web.{i:02}", 1))
    program.send_line(event("other.01", 1, uid="u-2"))
    wait(lambda: api.get("events", "default", "other.01"), "the event of another pod")
    # Requests run in parallel: the last one need not be answered last.
    wait(lambda: len(api.asked("create", "events")) >= 26, lambda: api.requests[-9:])
    assert len(api.asked("create", "events")) == 26
    wait(lambda: len(program.lines_with("event -")) >= 15, lambda: program.lines)
    assert len(program.lines_with("event -")) == 15


def test_events_wait_for_an_unreachable_server(api, run):
    program = run()
    ready(api)
    api.stop()
    program.send_line(event("web.01", 1))
    program.send_line(event("web.01", 3))
    wait(lambda: len(program.lines_with("event 0")) == 2, lambda: program.lines)
    api.start()
    wait(lambda: api.get("events", "default", "web.01"), "the event")
    assert api.get("events", "default", "web.01")["count"] == 3


def test_refused_event_is_dropped(api, run):
    program = run()
    ready(api)
    fault = api.misbehave(verb="create", plural="events", status=403)
    program.send_line(event("web.01", 1))
    wait(lambda: program.lines_with("error 403"), lambda: program.lines)
    api.behave()
    program.send_line(event("web.02", 1))
    wait(lambda: api.get("events", "default", "web.02"), "the next event")
    assert fault.struck == 1 and api.get("events", "default", "web.01") is None
