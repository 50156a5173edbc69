# SPDX-License-Identifier: Apache-2.0
"""An API server of another cluster: the cache of the previous one is dropped. The same cluster may change its address and its authority."""

import os
import shutil
import tempfile

import apiserver
import pytest
import specs
import world
from harness import NODE_NAME
from test_apiserver_objects import inside
from world import wait

SECRET = {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "word"}}}


@pytest.fixture(name="other")
def fixture_other():
    directory = tempfile.mkdtemp(prefix="mainstay-api-")
    server = apiserver.make(directory)
    yield server
    server.stop()
    shutil.rmtree(directory)


def container(node):
    """A container that records the word of the Secret at each of its starts."""
    return specs.container(script=f"echo $WORD >>/v/words; {specs.IDLE}", env=[SECRET], volumeMounts=[specs.mount("v", "/v")])


def words(node):
    return world.read(os.path.join(node.data, "words")).split()


def fill(api, word, readable):
    api.create("secrets", {"metadata": {"name": "login"}, "stringData": {"word": word}})
    if readable:
        api.api.grant("system:nodes", "namespaces", "list", "watch")


def bind(member, api, name="web"):
    pod = specs.pod(name, container(member), volumes=[specs.host_path("v", member.data)])
    return api.pod(name, NODE_NAME, specs.IMAGE, **{key: value for key, value in pod["spec"].items() if key != "nodeName"})


def run_first(make_member, readable):
    member = make_member(start=False)
    fill(member.api, "one", readable)
    bind(member, member.api)
    member.start()
    member.wait_reported_phase("web", "Running")
    wait(lambda: words(member) == ["one"], lambda: f"the pod has the expected word: {words(member)}")
    wait(lambda: len(identity(member)) == 3 and bool(identity(member)[2]) == readable, lambda: f"the cluster is known: {identity(member)}")
    return member


def identity(member):
    """The address, the authority and the UID of the cluster."""
    return (world.read(f"{member.state}/cluster/identity") or "").split("\n")[:3]


@pytest.mark.parametrize("readable", [True, False], ids=["readable", "unreadable"])
def test_cache_of_another_cluster_is_not_used(make_member, other, readable):
    member = run_first(make_member, readable)
    pid = member.init("web")
    member.stop()
    fill(other, "two", readable)
    other.kubeconfig(member.kubeconfig, node=NODE_NAME)
    bind(member, other, "later")
    member.start()
    wait(lambda: (other.get("pods", "default", "later") or {}).get("status", {}).get("phase") == "Running",
         lambda: f"the other cluster's pod runs: {member.said()[-3000:]}")
    wait(lambda: words(member) == ["one", "two"], lambda: f"it has its own cluster's Secret: {words(member)}")
    wait(lambda: not world.is_alive(pid), "the pod of the first cluster is stopped")
    assert "to another cluster than before" in member.said()
    other.delete("pods", "default", "later", grace=1)
    member.wait_gone("later")


def wait_for_its_own(member, pid, before):
    wait(lambda: words(member) == ["one", "two"], lambda: f"its pod has its own Secret: {words(member)}\n{member.said()[-3000:]}")
    wait(lambda: not world.is_alive(pid), "the pod of the previous cluster is stopped")
    wait(lambda: identity(member)[2] not in ("", before[2]), lambda: f"the cluster is known: {identity(member)}")
    assert identity(member)[:2] == before[:2]
    assert "to another cluster than before" in member.said()


@pytest.mark.parametrize("name", ["web", "later"])
def test_recreated_cluster_at_the_same_address_is_a_different_cluster(make_member, name):
    """The new cluster has the certificates and the node's name of the previous one, and perhaps a pod of the same
    name."""
    member = run_first(make_member, True)
    pid, before = member.init("web"), identity(member)
    member.stop()
    member.api.recreate()
    fill(member.api, "two", True)
    bind(member, member.api, name)
    member.start()
    wait_for_its_own(member, pid, before)
    member.api.delete("pods", "default", name, grace=1)
    member.wait_gone(name)


@pytest.mark.parametrize("name", ["web", "later"])
def test_cluster_recreated_while_the_agent_runs_is_a_different_cluster(make_member, name):
    member = run_first(make_member, True)
    pid, before = member.init("web"), identity(member)

    def refill():
        fill(member.api, "two", True)
        bind(member, member.api, name)
    member.api.recreate(refill)
    wait_for_its_own(member, pid, before)
    member.api.delete("pods", "default", name, grace=1)
    member.wait_gone(name)


def test_nothing_is_sent_to_a_cluster_before_it_has_answered(make_member):
    """Not even the status of a pod of the previous cluster or a request for its token is sent."""
    member = run_first(make_member, True)
    member.stop()
    member.api.recreate()
    member.api.api.grant("system:nodes", "namespaces", "list", "watch")
    fault = member.api.misbehave(plural="namespaces", status=503)
    del member.api.requests[:]
    member.start()
    wait(lambda: len([one for one in list(member.api.requests) if one.fault]) > 2, "it has sent several requests")
    sent = [(one.verb, one.kind and one.kind.plural) for one in list(member.api.requests) if one.user.name == f"system:node:{NODE_NAME}"]
    assert {plural for _, plural in sent} == {"namespaces"}, sent
    member.api.faults.remove(fault)
    wait(lambda: "to another cluster than before" in member.said(), "it has noticed")


def test_cached_pods_start_at_once_without_a_server_that_answers(make_member):
    member = run_first(make_member, True)
    before, pid = identity(member), member.init("web")
    member.stop()
    member.api.stop()
    os.kill(pid, 9)
    member.start()
    wait(lambda: words(member) == ["one", "one"], lambda: f"it starts with what is cached: {words(member)}")
    member.api.start()
    member.wait_reported_phase("web", "Running")
    assert identity(member) == before and "to another cluster" not in member.said()


@pytest.mark.parametrize("answer", [b"", b"{", b"[]", b'{"kind": "Status"}'])
def test_invalid_list_of_namespaces_does_not_identify_a_cluster(make_member, answer):
    member = run_first(make_member, True)
    pid, before = member.init("web"), identity(member)
    member.stop()
    member.api.misbehave(plural="namespaces", change=lambda _: answer)
    member.start()
    wait(lambda: [request for request in member.api.requests if request.fault], "it has requested the namespace")
    assert member.init("web") == pid and identity(member) == before
    member.api.behave()
    wait(lambda: member.reported("web")["status"]["phase"] == "Running", "the same cluster is used")
    assert member.init("web") == pid and "to another cluster" not in member.said()


def change_both(member, api):
    """Changes to another address and another bundle that contains the same authority."""
    bundle, changed = os.path.join(member.directory, "renewed.pem"), os.path.join(member.directory, "changed")
    with open(bundle, "w", encoding="utf-8") as file:
        file.write(world.read(api.authority.cert) + "\n")
    api.kubeconfig(changed, node=NODE_NAME, host="localhost")
    text = world.read(changed).replace(api.authority.cert, bundle)
    with open(changed, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(changed, member.kubeconfig)


@pytest.mark.parametrize("readable", [True, False], ids=["readable", "unreadable"])
@pytest.mark.parametrize("running", [True, False], ids=["running", "restarted"])
def test_same_cluster_with_another_address_and_authority_keeps_its_pods(make_member, readable, running):
    member = run_first(make_member, readable)
    pid, before = member.init("web"), identity(member)
    if not running:
        member.stop()
    change_both(member, member.api)
    if not running:
        member.start()
    if running and not readable:
        wait(lambda: "belongs to another cluster now; the last one stays in use" in member.said(), "it is reported")
        assert identity(member) == before
    else:
        wait(lambda: identity(member)[0] != before[0] and identity(member)[1] != before[1], lambda: f"it is used: {identity(member)}")
        assert identity(member)[2] == before[2]
    assert member.init("web") == pid and words(member) == ["one"]
    assert "are stopped" not in member.said()


def test_unreachable_server_of_another_address_stops_no_pod(make_member, other):
    member = run_first(make_member, True)
    pid = member.init("web")
    member.stop()
    other.kubeconfig(member.kubeconfig, node=NODE_NAME)
    other.stop()
    member.start()
    wait(lambda: "Cannot reach the API server" in member.said(), lambda: f"it is reported: {member.said()[-3000:]}")
    assert member.init("web") == pid
    os.kill(pid, 9)
    wait(lambda: words(member) == ["one", "one"], lambda: f"it starts again with what is cached: {words(member)}")
    member.stop()
    member.api.kubeconfig(member.kubeconfig, node=NODE_NAME)
    member.start()
    member.wait_reported_phase("web", "Running")
    assert words(member) == ["one", "one"] and inside(member, "web", "/v/words")


def test_running_agent_does_not_change_to_another_cluster(make_member, other):
    member = run_first(make_member, True)
    pid = member.init("web")
    fill(other, "two", True)
    bind(member, other)
    other.kubeconfig(member.kubeconfig, node=NODE_NAME)
    wait(lambda: "belongs to another cluster now; the last one stays in use until mainstayd is restarted" in member.said(), "it is reported")
    assert member.init("web") == pid and words(member) == ["one"]
    member.restart()
    wait(lambda: words(member) == ["one", "two"], lambda: f"the other cluster's pod has its Secret: {words(member)}\n{member.said()[-3000:]}")
    assert not world.is_alive(pid)
    other.delete("pods", "default", "web", grace=1)
    member.wait_gone("web")
