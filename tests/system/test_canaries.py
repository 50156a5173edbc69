# SPDX-License-Identifier: Apache-2.0
"""Values of Secrets of all sources are only in the memory of the machine: in no encoding are they in the state
directory, logs, dumps, bundles or reports."""

import base64
import json
import os
import uuid

import pytest
import specs
import world
from canaries import encodings, files_with
from index_source import Index, Key, settings
from registry import DockerRegistry, certificate
from test_apiserver_offline import TOKENS, reboot, wait_kept
from test_debug_bundle import bundle, with_journal
from test_report import Receiver
from test_secrets import age, recipient, secret
from world import wait

EACH = 167  # words of each kind: 1,002 in total
COMMON = "canary-of-mainstay-"
KINDS = ("file", "age", "index", "api", "environment", "pull")


class Canaries:
    """Words by their kind."""

    def __init__(self):
        self.of = {kind: [f"{COMMON}{kind}-{uuid.uuid4().hex}" for _ in range(EACH)] for kind in KINDS}
        self.more = []  # words without this start

    def encodings(self):
        """The encodings; those of the common prefix represent those of all words that begin with it."""
        return {found for word in (COMMON, *self.more) for found in encodings(word)}

    def values(self, kind):
        return {f"key{i}": word for i, word in enumerate(self.of[kind])}

    def encrypted(self, name, kind, mine):
        values = {key: age(word, mine).decode() for key, word in self.values(kind).items()}
        return secret(name, ", ".join(values), **values)

    def in_base64(self, kind):
        return {key: base64.b64encode(word.encode()).decode() for key, word in self.values(kind).items()}


def user(name, of):
    """A pod that has the Secret as files and as variables, and writes none of it to its log."""
    return specs.pod(name, specs.container(script="echo it runs; exec sleep inf", envFrom=[{"secretRef": {"name": of}}],
                                           volumeMounts=[specs.mount("s", "/secret")]),
                     volumes=[{"name": "s", "secret": {"secretName": of}}])


@pytest.fixture(name="receiver")
def fixture_receiver(tmp_path):
    server = Receiver(certificate(str(tmp_path), "report"))
    yield server
    server.stop()


@pytest.fixture(name="locked")
def fixture_locked(tmp_path, archive, canaries):
    (tmp_path / "registry").mkdir()
    registry = DockerRegistry(str(tmp_path / "registry"), "joe", canaries.of["pull"][0])
    registry.push(f"docker-archive:{archive}", "team/busybox:1")
    yield registry
    registry.stop()


@pytest.fixture(name="canaries")
def fixture_canaries():
    return Canaries()


@pytest.fixture(name="member")
def fixture_member(make_member, receiver, locked, tmp_path):
    """A node that reports, and that uses an index once it exists."""
    key = Key(str(tmp_path), "index")
    (tmp_path / "root").mkdir()
    index = Index(str(tmp_path / "root"), key)
    report = {"url": f"https://127.0.0.1:{receiver.port}/report", "caFile": receiver.certificate[0], "interval": "1s", "jitter": "1ms"}
    member = make_member(start=False, insecureRegistries=[locked.host], report=report)
    with_journal(member, tmp_path, "nothing of interest\n")
    member.start()

    def take_index(manifests):
        index.write(manifests)
        member.write_config(mainstay={"kubeconfig": member.kubeconfig, "insecureRegistries": [locked.host], "report": report,
                                      "source": settings(f"file://{index.directory}/index.json", [key])})
        member.restart()
        assert member.cli("debug", "log-level", "debug").returncode == 0
    member.take_index = take_index
    yield member
    member.write_config(mainstay={"kubeconfig": member.kubeconfig})
    member.restart()


def fill(member, canaries, locked):
    """Creates a Secret and a pod of each kind; waits until all pods run."""
    mine = recipient(member)
    clear = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "file"}, "stringData": canaries.values("file")}
    member.drop(specs.text(clear, user("file", "file")), "file.yaml")
    member.drop(specs.text(canaries.encrypted("age", "age", mine), user("age", "age")), "age.yaml")
    member.take_index({"all.yaml": specs.text(canaries.encrypted("index", "index", mine), user("index", "index")).encode()})
    member.api.create("secrets", {"metadata": {"name": "api"}, "data": canaries.in_base64("api")})
    member.api.create("secrets", {"metadata": {"name": "environment"}, "data": canaries.in_base64("environment")})
    auths = {f"{i}.example.com": {"auth": base64.b64encode(f"joe:{word}".encode()).decode()} for i, word in enumerate(canaries.of["pull"])}
    auths[locked.host] = {"username": "joe", "password": canaries.of["pull"][0]}
    document = json.dumps({"auths": auths}).encode()
    member.api.create("secrets", {"metadata": {"name": "pull"}, "type": "kubernetes.io/dockerconfigjson",
                                  "data": {".dockerconfigjson": base64.b64encode(document).decode()}})
    member.bind("api", specs.container(volumeMounts=[specs.mount("s", "/secret")]), volumes=[{"name": "s", "secret": {"secretName": "api"}}])
    member.bind("environment", specs.container(env=[{"name": f"WORD{i}", "valueFrom": {"secretKeyRef": {"name": "environment", "key": f"key{i}"}}}
                                                    for i in range(EACH)]))
    member.bind("pull", specs.container(image=f"{locked.host}/team/busybox:1", imagePullPolicy="Always"), imagePullSecrets=[{"name": "pull"}])
    wait_all_run(member)


def wait_all_run(member):
    for kind in KINDS:
        member.wait_running(kind)


def assert_used(member, canaries):
    """Asserts that each word has arrived in its pod, so that the search is for words that exist."""
    for kind in KINDS[:-1]:
        root = f"/proc/{member.init(kind)}"
        found = world.environ(member.init(kind)).values() if kind != "api" else [world.read(f"{root}/root/secret/key{i}") for i in range(EACH)]
        assert set(canaries.of[kind]) <= set(found), kind
    token = world.read(f"/proc/{member.init('api')}/root{TOKENS}/token")
    assert token
    canaries.more.append(token)


def says(member):
    """Everything that the node publishes."""
    for words in (("debug", "dump"), *(("get", what, "-A", "-o", "json") for what in ("pods", "events", "secrets", "nodes", "images")),
                  ("describe", "node"), *(("describe", "pod", kind) for kind in KINDS), *(("logs", kind) for kind in KINDS), ("source", "status")):
        ran = member.cli(*words)
        yield words, ran.stdout + ran.stderr
    yield "the log", member.said()


def assert_nowhere(member, canaries, receiver, name):
    words = canaries.encodings()
    assert not files_with(words, member.state, member.log)
    for what, text in says(member):
        assert not [word for word in words if word in text.encode()], what
    found, ran = bundle(member, name)
    for what, data in [*found.items(), ("its output", (ran.stdout + ran.stderr).encode())]:
        assert not [word for word in words if word in data], what
    assert "logs/default_file-node1/main.log" in found and b"it runs" in found["logs/default_file-node1/main.log"]
    assert receiver.lines("Pod") and not [word for word in words if word in json.dumps(receiver.requests).encode()]


@pytest.mark.slow
def test_secret_canaries_appear_in_no_file_or_message(member, canaries, receiver, locked):
    fill(member, canaries, locked)
    assert_used(member, canaries)
    wait_kept(member, "api", "secret_default_api", "secret_default_environment", "secret_default_pull")
    assert_nowhere(member, canaries, receiver, "first.tar.gz")
    member.kill9()
    member.start()
    for kind in ("file", "api"):
        os.kill(member.init(kind), 9)
        member.wait_restarts(kind, 1)
    wait_all_run(member)
    assert_nowhere(member, canaries, receiver, "second.tar.gz")
    member.api.stop()
    reboot(member)
    member.start()
    for kind in KINDS[:-1]:
        member.wait_running(kind)
    assert_used(member, canaries)
    assert_nowhere(member, canaries, receiver, "third.tar.gz")


def test_secret_canaries_do_not_appear_in_messages_about_invalid_manifests(node, tmp_path):
    """The message about a Secret that is refused because of its key, its type or its form does not contain its
    values."""
    word = f"canary-error-{uuid.uuid4().hex}"
    with_journal(node, tmp_path, "nothing\n")
    wrong = [{"stringData": {"a key": word}}, {"data": {"key": word}}, {"stringData": {"key": [word]}}, {"data": word},
             {"stringData": {"key": word}, "metadata": {"name": "x", "annotations": {"mainstay.dev/encrypted-keys": "key"}}}, {"stringdata": {"key": word}}]
    for i, fields in enumerate(wrong):
        document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"wrong{i}"}, **fields}
        node.drop(specs.text(document), f"wrong{i}.yaml")
    wait(lambda: all(f"wrong{i}.yaml" in node.said() for i in range(len(wrong) - 1)), lambda: f"all are reported: {node.said()}")
    found, _ = bundle(node)
    words = encodings(word)
    for what, data in [*found.items(), ("the log", node.said().encode())]:
        assert not [one for one in words if one in data], what
    assert not files_with(words, node.state, node.log)
