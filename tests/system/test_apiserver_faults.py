# SPDX-License-Identifier: Apache-2.0
"""Faults of the API server: none of them stops a pod."""

import json
import os
import time

import many
import pytest
import specs
import world
from api_certs import Authority
from api_faults import Relay
from harness import NODE_NAME
from test_apiserver_daemonsets import daemonset, may_place, wait_pod_of
from world import wait

NODE = f"system:node:{NODE_NAME}"


@pytest.fixture(name="relay")
def fixture_relay(api):
    relay = Relay(api.port)
    yield relay
    relay.stop()


def behind(relay, make_member, **options):
    """A node that reaches the server through the relay."""
    member = make_member(start=False, **options)
    member.api.kubeconfig(member.kubeconfig, node=NODE_NAME, port=relay.port)
    member.start()
    return member


def run_bound_pods(member, *names):
    """Bound pods that run, and the first process of each."""
    for name in names:
        member.bind(name)
    for name in names:
        member.wait_reported_phase(name, "Running")  # failed requests are repeated slowly
    return {name: member.init(name) for name in names}


def assert_untouched(member, inits):
    for name, pid in inits.items():
        assert world.is_alive(pid) and member.init(name) == pid, f"{name} was restarted; {member.said()[-3000:]}"


def lists(member, plural="pods", since=0):
    return [one for one in member.api.asked("list", plural) if one.at >= since]


# A1

def test_closed_watches_neither_lose_nor_repeat_events(make_member):
    member = make_member()
    inits = run_bound_pods(member, "first")
    member.api.misbehave(verb="watch", watch_seconds=1)
    member.api.drop_connections()
    since = time.monotonic()
    for i in range(4):
        name = f"pod-{i}"
        inits.update(run_bound_pods(member, name))
        if i % 2:
            member.api.delete("pods", "default", name)
            member.wait_reported_gone(name)
            wait(lambda pid=inits.pop(name): not world.is_alive(pid), "its process has ended")
    wait(lambda: len([one for one in member.api.asked("watch", "pods") if one.at > since]) >= 8, "many watches")
    assert_untouched(member, inits)
    assert len(lists(member, since=since)) <= 1, lists(member)


@pytest.mark.long
def test_an_hour_of_closed_watches_neither_loses_nor_repeats_events(make_member):
    """Pods come and go, and the label of one that stays changes, while each watch is closed after a second."""
    member = make_member()
    inits = run_bound_pods(member, "stays")
    member.api.misbehave(verb="watch", watch_seconds=1)
    member.api.drop_connections()
    since, seconds, rounds = time.monotonic(), many.scaled(3600, 10), 0
    note = {"volumeMounts": [specs.mount("v", "/v")]}
    while time.monotonic() < since + seconds:
        rounds += 1
        name = f"pod-{rounds}"
        member.bind(name, specs.container(script=f"echo {name} >>/v/starts; {specs.IDLE}", **note),
                    volumes=[specs.host_path("v", member.data)])
        member.wait_reported_phase(name, "Running")
        member.api.patch("pods", "default", "stays", {"metadata": {"labels": {"round": str(rounds)}}})
        wait(lambda: member.pod("stays")["metadata"].get("labels", {}).get("round") == str(rounds), "the label is known")
        member.api.delete("pods", "default", name, 1)
        member.wait_reported_gone(name)
    assert world.read(f"{member.data}/starts").split() == [f"pod-{i + 1}" for i in range(rounds)]
    assert_untouched(member, inits)
    watches = len([one for one in member.api.asked("watch", "pods") if one.at > since])
    print(f"{seconds} s, {watches} watches, {rounds} pods, {len(lists(member, since=since))} lists")
    assert watches > seconds / 4 and len(lists(member, since=since)) <= 1


# A2

@pytest.mark.parametrize("how", ["event", "http"])
def test_expired_watch_lists_again_and_stops_no_pod(make_member, how):
    member = make_member()
    inits = run_bound_pods(member, "web")
    fault = member.api.misbehave(verb="watch", plural="pods", expire=how, times=2)
    member.api.drop_connections()
    wait(lambda: fault.struck == 2, "two watches that have expired")
    inits.update(run_bound_pods(member, "late"))
    assert_untouched(member, inits)
    # A connection that is dropped during its handshake causes one more list, because the server then counts as down.
    first = next(one for one in member.api.asked("watch", "pods") if one.fault is fault)
    assert len(lists(member, since=first.at)) <= 2, f"one list, and at most one more: {lists(member, since=first.at)}"


def test_compacted_history_causes_no_error(make_member):
    member = make_member()
    inits = run_bound_pods(member, "web")
    member.api.stop()
    member.api.store.compact()
    member.api.start()
    inits.update(run_bound_pods(member, "late"))
    assert_untouched(member, inits)


def test_restored_backup_stops_no_pod_that_it_contains(make_member):
    member = make_member()
    inits = run_bound_pods(member, "web", "other")
    backup = member.api.store.dump()
    for i in range(30):
        member.api.create("configmaps", {"metadata": {"name": f"later-{i}"}})
    member.api.stop()
    member.api.store.restore(backup)
    member.api.start()
    inits.update(run_bound_pods(member, "late"))
    assert_untouched(member, inits)


def test_restored_backup_with_higher_versions_is_listed_again(make_member):
    """No version decreases, and a resumed watch would show no event for objects that are not in the backup."""
    member = make_member()
    inits = run_bound_pods(member, "web", "other")
    backup = member.api.store.dump()
    gone = run_bound_pods(member, "gone")
    member.api.stop()
    member.api.store.restore(backup)
    for i in range(100):
        member.api.create("configmaps", {"metadata": {"name": f"later-{i}"}})
    wait(lambda: "Cannot reach the API server" in member.said(), member.said)
    since = time.monotonic()
    member.api.start()
    wait(lambda: not world.is_alive(gone["gone"]),
         lambda: f"the pod that is not in the backup ends: {lists(member, since=since)}\n{member.said()[-3000:]}")
    inits.update(run_bound_pods(member, "late"))
    assert_untouched(member, inits)
    wait(lambda: {one.kind.plural for one in member.api.asked("list") if one.at >= since} >= {"pods", "services", "nodes"},
         lambda: f"all watched resources are listed: {member.api.asked('list')}")


# A3

@pytest.mark.slow
@pytest.mark.parametrize("how", [
    {"status": 500}, pytest.param({"status": 502}, marks=pytest.mark.long), {"status": 503, "retry_after": 1},
    pytest.param({"status": 504}, marks=pytest.mark.long), {"status": 429, "retry_after": 2},
    {"status": 401}, {"status": 403}, {"status": 404}, {"status": 409}, {"status": 422}, {"reset": True},
    {"status": 500, "after": True}], ids=lambda how: "-".join(str(value) for value in how.values()))
def test_refusing_server_stops_no_pod(make_member, how):
    member = make_member()
    inits = run_bound_pods(member, "web")
    member.launch(specs.pod("own"))
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    inits["own"] = member.init("own")
    start, before = time.monotonic(), len(member.api.requests)
    fault = member.api.misbehave(who_is=NODE, **how)
    member.api.drop_connections()
    member.launch(specs.pod("during"))
    member.wait_running("during")
    wait(lambda: fault.struck >= 4 and time.monotonic() - start > 10, lambda: member.api.requests[-9:])
    passed, asked = time.monotonic() - start, len(member.api.requests) - before
    member.api.behave()
    assert asked <= 25 + 2 * passed, f"{asked} requests in {passed:.0f} s: {member.api.requests[before:]}"
    assert_untouched(member, inits)
    member.wait_reported_phase(f"during-{NODE_NAME}", "Running")
    run_bound_pods(member, "after")
    assert_untouched(member, inits)


@pytest.mark.parametrize("status", [403, 409, 422, 500])
def test_refused_status_is_reported_once_it_is_accepted(make_member, status):
    member = make_member()
    fault = member.api.misbehave(verb="patch", plural="pods", subresource="status", status=status)
    member.bind("web")
    member.wait_running("web")
    wait(lambda: fault.struck >= 2, "two attempts")
    member.api.behave()
    member.wait_reported_phase("web", "Running")  # refused requests are repeated slowly


# A4

def test_network_partition_stops_no_pod_and_status_converges(relay, make_member):
    member = behind(relay, make_member)
    inits = run_bound_pods(member, "web")
    member.bind("job", specs.container(script="until [ -e /v/end ]; do sleep 0.1; done; exit 5", volumeMounts=[specs.mount("v", "/v")]),
                restartPolicy="Never", volumes=[specs.host_path("v", member.data)])
    member.wait_reported_phase("job", "Running")
    before = relay.n_accepted
    relay.freeze()
    world.run("touch", f"{member.data}/end")
    member.wait_phase("job", "Failed")
    member.launch(specs.pod("own"))
    member.wait_running("own")
    wait(lambda: relay.n_accepted > before, "the silence is noticed, and another connection is opened")
    relay.cut()
    relay.thaw()
    member.wait_reported_phase("job", "Failed")
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    assert_untouched(member, inits)


def test_pod_deleted_during_a_partition_stops_after_it(relay, make_member):
    member = behind(relay, make_member)
    inits = run_bound_pods(member, "goes", "stays")
    relay.freeze()
    member.api.delete("pods", "default", "goes", grace=1)
    relay.cut()
    relay.thaw()
    member.wait_reported_gone("goes")
    wait(lambda: not world.is_alive(inits["goes"]), "its process has ended")
    assert_untouched(member, {"stays": inits["stays"]})


# A5

def test_slow_server_delays_no_pod(make_member):
    member = make_member()
    inits = run_bound_pods(member, "web")
    member.api.misbehave(verb="patch", plural="pods", latency=60)
    member.bind("crash", specs.container(script="sleep 1; exit 1"))
    member.wait_restarts("crash", 2)
    member.launch(specs.pod("own"))
    member.wait_running("own")
    assert_untouched(member, inits)


@pytest.mark.parametrize("what", [{"verb": "patch", "subresource": "status"}, {"verb": "list"}, {"verb": "watch"}],
                         ids=["status", "list", "watch"])
def test_unanswered_request_is_retried(make_clocked_member, what):
    """The request is sent again after a minute; other requests do not wait for it."""
    member = make_clocked_member()
    inits = run_bound_pods(member, "web")
    fault = member.api.misbehave(plural="pods", latency=3600, times=1, **what)
    member.api.expire_watches()
    member.bind("late")
    wait(lambda: fault.struck == 1, "it is asked")
    member.launch(specs.pod("own"))
    member.let_pass(61)
    member.wait_reported_phase("late", "Running")
    assert_untouched(member, inits)


def test_slow_list_stops_no_pod(make_member):
    member = make_member()
    inits = run_bound_pods(member, "web")
    for i in range(50):
        member.api.pod(f"other-{i}", "another", specs.IMAGE)
    fault = member.api.misbehave(verb="list", plural="pods", rate=1)
    member.api.expire_watches()
    wait(lambda: fault.struck >= 1, "a list")
    member.launch(specs.pod("own"))
    member.wait_running("own")
    assert_untouched(member, inits)
    member.api.behave()
    member.api.drop_connections()


# A6

BODIES = {
    "truncated": b'{"kind":"PodList","items":[{"metadata":{"name":"x"',
    "no-json": b"<html>502 Bad Gateway</html>",
    "nothing": b"",
    "number": b"7",
    "null-items": b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9999"},"items":null}',
    "wrong-types": b'{"kind":"PodList","metadata":{"resourceVersion":9},"items":[7,"x",null,[],{"metadata":[]}]}',
    "deep": b'{"items":' + b"[" * 10000 + b"]" * 10000 + b"}",
    "surrogate": b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"\\ud800"}}]}',
    "huge-numbers": b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a",'
                    b'"namespace":"default","uid":"u","resourceVersion":"1","deletionGracePeriodSeconds":1e999},'
                    b'"spec":{"terminationGracePeriodSeconds":99999999999999999999}}]}',
    "duplicates": b'{"kind":"PodList","metadata":{"resourceVersion":"7"},"metadata":{"resourceVersion":"9"},"items":[],'
                  b'"items":[{"metadata":{"name":"a","name":"b","uid":"u","uid":"v"},"spec":{},"spec":7}]}',
    "utf-8": b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"\xff\xfe","uid":"\xc3"}}]}',
    "deep-item": b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a","uid":"u",'
                 b'"annotations":' + b'{"a":' * 64 + b"1" + b"}" * 64 + b"}}]}",
    "nuls": b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a\x00b","uid":"u"}}]}',
    "long-string": b'{"kind":"' + b"x" * 5_000_000 + b'","metadata":{"resourceVersion":"9"},"items":[]}',
    "long-item": b'{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"' + b"x" * 9_000_000 + b'"}}]}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_invalid_list_stops_no_pod(make_member, body):
    member = make_member()
    inits = run_bound_pods(member, "web")
    # A second list without pods, ten seconds later, would be accepted.
    fault = member.api.misbehave(verb="list", plural="pods", body=body, times=1 if body == BODIES["null-items"] else 2)
    member.api.expire_watches()
    wait(lambda: fault.struck >= 1, "a list")
    member.launch(specs.pod("own"))
    member.wait_running("own")
    assert_untouched(member, inits)
    member.api.behave()
    run_bound_pods(member, "after")
    assert_untouched(member, inits)


@pytest.mark.parametrize("more", [b'"x": "\\ud800"', b'"x": "\xff"', b'"x": 1e999', b'"x": ' + b"9" * 400, b'"uid": "another"', b'"uid": 7',
                                  b'"name": "other", "name": null'],
                         ids=["surrogate", "utf-8", "huge-number", "huge-integer", "second-uid", "uid-of-wrong-type", "names"])
def test_unreadable_pod_in_a_list_is_not_stopped(make_member, more):
    member = make_member()
    inits = run_bound_pods(member, "web", "other", "third")
    fault = member.api.misbehave(verb="list", plural="pods",
                                 change=lambda data: data.replace(b'"name": "web"', b'"name": "web", ' + more, 1))
    member.api.expire_watches()
    wait(lambda: fault.struck >= 1, "a list")
    inits.update(run_bound_pods(member, "late"))
    assert_untouched(member, inits)
    member.api.behave()


@pytest.mark.slow
@pytest.mark.parametrize("more", [b'"x": "\\ud800"', b'"x": "\xff"', b'"x": 1e999', b'"uid": "another"', b'"labels": 7', b'"x": ' + b"[" * 5000],
                         ids=["surrogate", "utf-8", "huge-number", "second-uid", "wrong-type", "deep"])
def test_unreadable_watch_event_changes_nothing(make_member, more):
    member = make_member()
    inits = run_bound_pods(member, "web", "other")
    fault = member.api.misbehave(verb="watch", plural="pods",
                                 change=lambda data: data.replace(b'"name":"web"', b'"name":"web",' + more, 1))
    member.api.drop_connections()
    wait(lambda: fault.struck >= 1, "a watch")
    member.api.patch("pods", "default", "web", {"metadata": {"labels": {"color": "blue"}}})
    inits.update(run_bound_pods(member, "late"))
    assert_untouched(member, inits)
    member.api.behave()


def test_watch_event_may_arrive_byte_by_byte(make_member):
    member = make_member()
    member.api.misbehave(verb="watch", piece=1)
    member.api.drop_connections()
    run_bound_pods(member, "web")


def test_invalid_object_does_not_affect_others(make_member):
    member = make_member()
    bad = member.api.pod("bad", NODE_NAME, specs.IMAGE, hostNetwork=True)
    broken = {**bad, "spec": {**bad["spec"], "containers": [{"name": "c", "image": 7}], "tolerations": "x"}}
    with member.api.store.lock:
        member.api.store.objects["pods"][("default", "bad")] = broken
    member.api.expire_watches()
    inits = run_bound_pods(member, "web")
    assert_untouched(member, inits)


def test_list_of_200_megabytes_needs_little_memory(make_member):
    member = make_member()
    inits = run_bound_pods(member, "web")
    fault = member.api.misbehave(verb="list", plural="pods", size=200 * 1024 * 1024, times=1)
    member.api.expire_watches()
    wait(lambda: fault.struck == 1 and fault_is_over(member), lambda: member.said()[-3000:], 300)
    peak = int(world.status(member.agent.pid, "VmHWM").split()[0])
    assert peak < 400 * 1024, f"a peak of {peak} KiB"  # including the shadow memory of a sanitizer
    assert_untouched(member, inits)


def fault_is_over(member):
    """Whether a watch is open again."""
    return member.api.asked("watch", "pods")[-1].at > member.api.asked("list", "pods")[-1].at or \
        len(lists(member)) > 2


@pytest.mark.parametrize("size", [1_048_576, 1_500_000])
def test_configmap_is_mounted_up_to_the_size_limit(make_member, size):
    member = make_member()
    member.api.create("configmaps", {"metadata": {"name": "big"}, "data": {"text": "x" * size}})
    member.bind("reads", specs.container(script="wc -c < /data/text; " + specs.IDLE,
                                         volumeMounts=[specs.mount("v", "/data")]),
                volumes=[{"name": "v", "configMap": {"name": "big"}}])
    if size == 1_048_576:
        member.wait_reported_phase("reads", "Running")
        wait(lambda: str(size) in "".join(member.log_lines("reads")), lambda: member.log_lines("reads"))
    else:
        wait(lambda: "1 MiB" in member.said(), lambda: member.said()[-2000:])
    run_bound_pods(member, "web")


# A7

def test_single_empty_list_stops_no_pod(make_member):
    member = make_member()
    inits = run_bound_pods(member, "one", "two", "three")
    member.launch(specs.pod("own"))
    member.wait_running("own")
    inits["own"] = member.init("own")
    fault = member.api.misbehave(verb="list", plural="pods", empty=True, times=1)
    member.api.expire_watches()
    wait(lambda: fault.struck == 1, "an empty list")
    wait(lambda: len(lists(member, since=fault_time(member))) >= 1, lambda: f"another list: {lists(member)}")
    run_bound_pods(member, "after")
    assert_untouched(member, inits)


def fault_time(member):
    return next(one.at for one in member.api.asked("list", "pods") if one.fault) + 0.001


def test_pods_missing_in_two_lists_stop_but_static_pods_do_not(make_member):
    member = make_member()
    inits = run_bound_pods(member, "one", "two")
    member.launch(specs.pod("own"))
    member.wait_running("own")
    own = member.init("own")
    member.api.stop()
    with member.api.store.lock:
        member.api.store.objects["pods"].clear()
    member.api.store.compact()
    start = time.monotonic()
    member.api.start()
    wait(lambda: not any(world.is_alive(pid) for pid in inits.values()), "both have ended")
    assert time.monotonic() - start >= 9, "the server was queried too early"
    assert world.is_alive(own) and member.init("own") == own


# A8

def test_server_with_a_foreign_certificate_is_rejected(make_member, tmp_path):
    member = make_member()
    inits = run_bound_pods(member, "web")
    os.makedirs(tmp_path / "other", exist_ok=True)
    right, other = member.api.context, Authority(str(tmp_path / "other"))
    member.api.use_certificate(*other.server())
    member.api.drop_connections()
    failed = member.api.n_speechless
    wait(lambda: member.api.n_speechless > failed, "a connection without a request")
    before = len(member.api.requests)
    member.launch(specs.pod("own"))
    member.wait_running("own")
    assert len(member.api.requests) == before
    assert_untouched(member, inits)
    member.api.context = right
    run_bound_pods(member, "after")
    assert_untouched(member, inits)


def test_expired_client_certificate_is_replaced_by_its_file(make_member):
    member = make_member()
    inits = run_bound_pods(member, "web")
    old = member.api.authority.issue("old", f"/O=system:nodes/CN={NODE}", start=-7200, end=-60)
    member.api.kubeconfig(member.kubeconfig, node=NODE_NAME, cert=old[0], key=old[1])
    member.api.drop_connections()
    member.launch(specs.pod("own"))
    member.wait_running("own")
    new = member.api.authority.node(NODE_NAME)
    member.api.kubeconfig(member.kubeconfig, node=NODE_NAME, cert=new[0], key=new[1])
    inits.update(run_bound_pods(member, "after"))
    assert_untouched(member, inits)


# A9

SECRET = "s3cret-token-of-the-test"


def test_rotated_token_file_is_read_again_and_never_shown(make_member):
    member = make_member(start=False)
    path = os.path.join(member.directory, "token")
    write(path, SECRET + "-1")
    member.api.node_token(SECRET + "-1", NODE_NAME)
    member.api.kubeconfig(member.kubeconfig, tokenFile=path)
    member.start()
    inits = run_bound_pods(member, "web")
    for text in ("", "x" * 1_000_000, SECRET + "-wrong"):
        write(path, text)
        member.api.drop_connections()
    member.api.tokens.pop(SECRET + "-1")
    write(path, SECRET + "-2")
    member.api.node_token(SECRET + "-2", NODE_NAME)
    inits.update(run_bound_pods(member, "after"))
    assert_untouched(member, inits)
    assert SECRET not in member.said()


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as file:
        os.chmod(path + ".new", 0o600)
        file.write(text)
    os.rename(path + ".new", path)


# A10

def test_recreated_pod_starts_after_the_old_one_has_stopped(make_member):
    member = make_member()
    volume = {"volumes": [specs.host_path("v", member.data)], "terminationGracePeriodSeconds": 20}
    guard = ("if ! mkdir /data/lock; then echo both >> /data/overlap; fi; trap 'sleep 2; rmdir /data/lock; exit 0' TERM; "
             "while :; do sleep 0.1; done")
    container = specs.container(script=guard, volumeMounts=[specs.mount("v", "/data")])
    first = member.bind("same", container, **volume)
    member.wait_reported_phase("same", "Running")
    member.wait_trap("same")
    pid = member.init("same")
    member.api.stop()
    with member.api.store.lock:
        member.api.store.objects["pods"].pop(("default", "same"))
    member.api.store.compact()
    second = member.bind("same", container, **volume)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    member.api.start()
    wait(lambda: not world.is_alive(pid), "the old pod has ended")
    member.wait_reported("same", lambda pod: pod["metadata"]["uid"] == second["metadata"]["uid"] and
                     pod["status"].get("phase") == "Running", "is the other pod, and runs")
    member.wait_trap("same")  # its script has checked the lock
    assert not os.path.exists(os.path.join(member.data, "overlap"))


# A11

def test_shortened_grace_period_stops_the_pod_at_once(make_member):
    member = make_member()
    member.bind("slow", specs.container(script="trap '' TERM; while :; do sleep 1; done"), terminationGracePeriodSeconds=600)
    member.wait_reported_phase("slow", "Running")
    pid = member.init("slow")
    member.api.delete("pods", "default", "slow")
    wait(lambda: "Killing" in [event["reason"] for event in member.api.all("events")], "it is being stopped")
    assert world.is_alive(pid)
    member.api.delete("pods", "default", "slow", grace=0)
    wait(lambda: not world.is_alive(pid), "the process has ended")


def test_pod_with_a_finalizer_stops_although_its_object_stays(make_member):
    member = make_member()
    pod = member.bind("final")
    member.wait_reported_phase("final", "Running")
    pid = member.init("final")
    member.api.patch("pods", "default", "final", {"metadata": {"finalizers": ["test/one"]}}, strategy=False)
    member.api.delete("pods", "default", "final", grace=1)
    wait(lambda: not world.is_alive(pid), "the process has ended")
    wait(lambda: (member.reported("final") or pod)["status"].get("phase") in ("Failed", "Succeeded"), "its end is reported")
    member.api.patch("pods", "default", "final", {"metadata": {"finalizers": None}}, strategy=False)
    member.wait_reported_gone("final")


def test_pod_with_an_expired_deletion_is_removed_at_once(make_member):
    member = make_member()
    run_bound_pods(member, "late")
    pid = member.init("late")
    member.api.stop()
    member.api.delete("pods", "default", "late", grace=1)
    member.kill9()
    member.api.patch("pods", "default", "late", {"metadata": {"labels": {"a": "b"}}})
    member.start()
    member.api.start()
    member.wait_reported_gone("late")
    assert not world.is_alive(pid)


# A12

def test_mirror_pod_waits_for_its_namespace(make_member):
    member = make_member()
    member.drop(specs.pod("own", metadata={"namespace": "later"}))
    wait(lambda: [one for one in member.api.asked("create", "pods") if one.code == 404], lambda: member.api.requests[-9:])
    member.api.create("namespaces", {"metadata": {"name": "later"}})
    member.wait_reported(f"own-{NODE_NAME}", lambda pod: pod["status"].get("phase") == "Running", "is Running", namespace="later")


def test_refused_mirror_pod_does_not_affect_the_static_pod(make_member):
    member = make_member()
    fault = member.api.misbehave(verb="create", plural="pods", status=403)
    member.launch(specs.pod("own"))
    member.wait_running("own")
    wait(lambda: fault.struck >= 1, "a refusal")
    pid = member.init("own")
    member.api.behave()
    member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    assert member.init("own") == pid


def test_mirror_pod_omits_fields_that_a_node_may_not_set(make_member):
    member = make_member()
    member.drop({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}})
    member.launch(specs.pod("own", specs.container(volumeMounts=[specs.mount("v", "/s")]),
                            volumes=[{"name": "v", "secret": {"secretName": "s"}}]))
    reported = member.wait_reported_phase(f"own-{NODE_NAME}", "Running")
    assert "secret" not in json.dumps(reported["spec"].get("volumes", []))


LARGEST = "\x01" * 1_400_000  # the maximum that a server stores; in JSON it is six times as long


def test_largest_possible_pod_does_not_keep_other_pods_from_running(make_member):
    member = make_member()
    member.bind("large", specs.container(args=[LARGEST]))
    member.bind("later")
    member.wait_reported_phase("later", "Running")
    pid = member.init("later")
    member.restart()
    member.bind("last")
    member.wait_reported_phase("last", "Running")
    assert member.init("later") == pid
    member.api.delete("pods", "default", "later")
    member.wait_reported_gone("later")
    member.api.delete("pods", "default", "large", grace=0)


def test_largest_possible_daemonset_does_not_keep_others_from_running(make_member):
    member = make_member(start=False, daemonSets="node")
    may_place(member.api)
    member.api.create("daemonsets", daemonset("large", specs.container(args=[LARGEST])))
    member.api.create("daemonsets", daemonset("logd"))
    member.start()
    wait_pod_of(member, "logd")
    for name in ("large", "logd"):
        member.api.delete("daemonsets", "default", name)
    wait(lambda: not member.pods(), lambda: f"the pods are gone: {member.said()[-3000:]}")
