# SPDX-License-Identifier: Apache-2.0
"""Connections to the API server: HTTP/2 multiplexing, GOAWAY, a restarted front, packet loss, a silent connection. A watch
continues from its resourceVersion in every case."""

import subprocess
import time

import pytest
import specs
import world
from api_faults import Relay
from api_front import Front, Wire
from harness import NODE_NAME
from test_apiserver_faults import assert_untouched, behind, lists, run_bound_pods
from world import wait

TOKEN = "n0de-t0ken-of-the-test"


@pytest.fixture(name="front")
def fixture_front(api, request):
    """Starts the front; the test may pass options."""
    front = Front(api, *getattr(request, "param", ()))
    yield front
    front.stop()


@pytest.fixture(name="relay")
def fixture_relay(api):
    relay = Relay(api.port)
    yield relay
    relay.stop()


@pytest.fixture(name="wire")
def fixture_wire(api):
    wire = Wire(api.port)
    yield wire
    wire.stop()


def through(port, make_member):
    """A node that authenticates by a token and reaches the server at another port."""
    member = make_member(start=False)
    member.api.node_token(TOKEN, NODE_NAME)
    member.api.kubeconfig(member.kubeconfig, token=TOKEN, port=port)
    member.start()
    return member


def connections(member, host, port):
    """The agent's connections to that port: the local port of each."""
    reported = subprocess.run(["ss", "-tnpH", "state", "established", "dst", f"{host}:{port}"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    return {line.split()[2].rpartition(":")[2] for line in reported.splitlines() if f"pid={member.agent.pid}," in line}


def watches(member):
    return member.api.watches


# HTTP/2

def test_http_2_uses_one_connection(front, make_member):
    member = through(front.port, make_member)
    names = [f"settings-{i}" for i in range(60)]
    for name in names:
        member.api.create("configmaps", {"metadata": {"name": name}, "data": {name: "1"}})
    member.bind("web", specs.container(volumeMounts=[specs.mount("v", "/settings")]), volumes=[
        {"name": "v", "projected": {"sources": [{"configMap": {"name": name}} for name in names]}}])
    inits = run_bound_pods(member, "other")
    member.wait_reported_phase("web", "Running")
    inits["web"] = member.init("web")
    root = f"/proc/{inits['web']}/root"
    wait(lambda: watches(member) > len(names), lambda: f"{watches(member)} watches")
    assert world.read(f"{root}/settings/settings-59") == "1"
    assert world.read(f"{root}/var/run/secrets/kubernetes.io/serviceaccount/token")
    wait(lambda: len(connections(member, "127.0.0.1", front.port)) == 1, lambda: connections(member, "127.0.0.1", front.port))
    for name in names[::7]:
        member.api.patch("configmaps", "default", name, {"data": {name: "2"}})
    wait(lambda: all(world.read(f"{root}/settings/{name}") == "2" for name in names[::7]), "the volume follows")
    member.launch(specs.pod("own"))
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    member.api.delete("pods", "default", "other", grace=1)
    member.wait_reported_gone("other")
    assert_untouched(member, {"web": inits["web"]})
    assert {(protocol, status) for _, protocol, status in front.asked() if status == "200"} == {("h2", "200")}


@pytest.mark.parametrize("front", [["--frontend-http2-max-concurrent-streams=100"]], indirect=True)
def test_excess_watches_share_a_few_connections(front, make_member):
    member = through(front.port, make_member)
    names = [f"settings-{i}" for i in range(230)]
    for name in names:
        member.api.create("configmaps", {"metadata": {"name": name}, "data": {name: "1"}})
    member.bind("web", specs.container(volumeMounts=[specs.mount("v", "/settings")]), volumes=[
        {"name": "v", "projected": {"sources": [{"configMap": {"name": name}} for name in names]}}])
    member.wait_reported_phase("web", "Running")
    wait(lambda: watches(member) > len(names), lambda: f"{watches(member)} watches")
    assert len(connections(member, "127.0.0.1", front.port)) <= 5
    run_bound_pods(member, "late")


def test_no_request_is_sent_after_goaway(front, make_member):
    member = through(front.port, make_member)
    inits = run_bound_pods(member, "web")
    before = connections(member, "127.0.0.1", front.port)
    since = time.monotonic()
    old = front.replace()
    inits.update(run_bound_pods(member, "late"))
    wait(lambda: connections(member, "127.0.0.1", front.port) - before, "another connection is opened")
    world.kill_all(old)
    inits.update(run_bound_pods(member, "later"))
    assert_untouched(member, inits)
    assert not lists(member, since=since), lists(member, since=since)


def assert_each_event_arrives(member):
    """Asserts that no single event, regardless of its size, waits for the next data of the server, which is the
    response to the Lease seconds later."""
    member.api.create("configmaps", {"metadata": {"name": "settings"}, "data": {"text": "0"}})
    member.bind("web", specs.container(volumeMounts=[specs.mount("v", "/settings")]), volumes=[
        {"name": "v", "configMap": {"name": "settings"}}])
    member.wait_reported_phase("web", "Running")
    path = f"/proc/{member.init('web')}/root/settings/text"

    def renewals():
        return len([one for one in member.api.asked("update", "leases") if one.code])

    def is_alone(size, number):
        """Whether an event arrives long before the next renewal of the Lease, which comes thirteen seconds after the last one."""
        text, start = f"{size} {number} ".ljust(size, "x"), time.monotonic()
        member.api.patch("configmaps", "default", "settings", {"data": {"text": text}})
        wait(lambda: world.read(path) == text, f"the volume follows an event of {size} bytes")
        return time.monotonic() - start < 8

    def is_alone_after_a_renewal(size, number):
        before = renewals()
        wait(lambda: renewals() > before, "the Lease is renewed")
        return is_alone(size, number)
    for size in (512, 1000, 1500, 2500, 4096, 8192, 16384, 32768, 65536):
        # A single delay may be due to a busy machine, but events that wait for the renewal are late each time.
        assert is_alone(size, 0) or any(is_alone_after_a_renewal(size, number) for number in range(1, 6)), size


def test_each_event_arrives_before_the_next_one(front, make_member):
    assert_each_event_arrives(through(front.port, make_member))
    assert {protocol for _, protocol, _ in front.asked()} <= {"h2"}


def test_each_event_arrives_before_the_next_one_over_http_1(make_member):
    assert_each_event_arrives(make_member())


def test_few_idle_connections_are_kept_open_over_http_1(make_member):
    member = make_member()
    names = [f"web{i}" for i in range(20)]
    for name in names:
        member.bind(name, specs.container())
    for name in names:
        member.wait_reported_phase(name, "Running")
    # Each response, such as that to the renewal of the Lease, closes one connection if there are more than two in
    # addition to its own.
    wait(lambda: len(connections(member, "127.0.0.1", member.api.port)) <= watches(member) + 3,
         lambda: f"{connections(member, '127.0.0.1', member.api.port)} for {watches(member)} watches", 400)


def test_reset_streams_are_resumed(front, make_member):
    member = through(front.port, make_member)
    inits = run_bound_pods(member, "web")
    before = connections(member, "127.0.0.1", front.port)
    since = time.monotonic()
    for i in range(4):
        member.api.drop_connections()  # the front resets their streams
        inits.update(run_bound_pods(member, f"late-{i}"))
    assert_untouched(member, inits)
    assert connections(member, "127.0.0.1", front.port) == before, "the connection is kept"
    assert not lists(member, since=since), lists(member, since=since)


def test_restarted_front_causes_one_list(front, make_member):
    """The server behind the front may have an older state, because the front did not forward requests for some time."""
    member = through(front.port, make_member)
    inits = run_bound_pods(member, "web", "goes")
    since = time.monotonic()
    front.kill()
    member.api.delete("pods", "default", "goes", grace=1)
    member.launch(specs.pod("own"))
    front.start()
    member.wait_reported_gone("goes")
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    inits.pop("goes")
    assert_untouched(member, inits)
    assert len(lists(member, since=since)) <= 1, lists(member, since=since)


def test_bad_gateway_is_reported_and_stops_no_pod(front, make_member):
    member = through(front.port, make_member)
    inits = run_bound_pods(member, "web")
    member.api.stop()  # the front answers with 502
    wait(lambda: "502" in [status for _, _, status in front.asked()], "the front refuses a request")
    member.launch(specs.pod("own"))
    member.api.start()
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    assert_untouched(member, inits)


# Silent connections

def assert_left_when_stranded(member, relay):
    inits = run_bound_pods(member, "web", "goes")
    since = time.monotonic()
    relay.strand()
    member.api.delete("pods", "default", "goes", grace=1)
    member.bind("late")
    member.wait_reported_gone("goes")
    member.wait_reported_phase("late", "Running")
    inits.pop("goes")
    assert_untouched(member, inits)
    assert not lists(member, since=since), lists(member, since=since)


@pytest.mark.slow
def test_silent_connection_is_abandoned_with_all_its_watches(front, relay, make_member):
    relay.target = front.port
    member = through(relay.port, make_member)
    assert_left_when_stranded(member, relay)


@pytest.mark.slow
def test_silent_http_1_connections_are_abandoned(relay, make_member):
    member = behind(relay, make_member)
    assert_left_when_stranded(member, relay)


@pytest.mark.slow
def test_connection_that_falls_silent_during_a_request_is_abandoned_with_all_its_watches(front, relay, make_member):
    """An event arrived after the request was sent, so the timeout of the request alone does not show that the
    connection is silent."""
    relay.target = front.port
    member = through(relay.port, make_member)
    inits = run_bound_pods(member, "web", "goes")
    since = time.monotonic()
    fault = member.api.misbehave(verb="update", plural="leases", latency=3600, times=1)
    wait(lambda: fault.struck == 1, "a renewal of the Lease is not answered")
    member.api.patch("pods", "default", "web", {"metadata": {"labels": {"seen": "true"}}})
    wait(lambda: "seen" in member.pod("web")["metadata"].get("labels", {}), "the event arrives")
    relay.strand()
    member.api.delete("pods", "default", "goes", grace=1)
    member.wait_reported_gone("goes")
    inits.pop("goes")
    assert_untouched(member, inits)
    assert not lists(member, since=since), lists(member, since=since)


# Packets get lost

def test_packet_loss_stops_no_pod_and_status_converges(wire, make_member):
    member = make_member(start=False)
    member.api.kubeconfig(member.kubeconfig, node=NODE_NAME, port=wire.port, host=wire.host, name="kubernetes")
    member.start()
    inits = run_bound_pods(member, "web", "goes")
    before, since = connections(member, wire.host, wire.port), time.monotonic()
    assert before
    wire.drop()
    member.api.delete("pods", "default", "goes", grace=1)
    member.launch(specs.pod("own"))
    wait(lambda: not connections(member, wire.host, wire.port) & before, "all old connections are closed")
    wire.heal()
    member.wait_reported_gone("goes")
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    inits.pop("goes")
    assert_untouched(member, inits)
    assert not lists(member, since=since), lists(member, since=since)
