# SPDX-License-Identifier: Apache-2.0
"""Objects have a source: files, a URL, a signed index or an API server. A pod only sees objects of its own source."""

import base64
import json
import os

import pytest
import specs
import world
from harness import NODE_NAME
from index_source import Index, Key, settings
from manifest_server import ManifestServer
from test_apiserver_daemonsets import daemonset, may_place, wait_pod_of
from test_apiserver_objects import inside
from test_ephemeral import add_ephemeral, ephemeral, post
from test_squatters import DEVICES, source_of, squat, with_device, with_port
from world import wait

SOURCES = ("file", "url", "index", "api")
NOWHERE = "127.0.0.1:1/none"  # an image for which only Secrets are looked up


def config_map(name, word):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"word": word}}


def secret(name, word):
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"},
            "data": {"word": base64.b64encode(word.encode()).decode()}}


def login(name):
    auths = json.dumps({"auths": {"registry.example": {"username": "a", "password": "b"}}})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"},
            "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": base64.b64encode(auths.encode()).decode()}}


def runtime_class(name):
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "runc"}


def priority_class(name, value, **fields):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value, **fields}


PLURALS = {"ConfigMap": "configmaps", "Secret": "secrets", "RuntimeClass": "runtimeclasses"}


class Sources:
    """A node with all four sources, and the objects of each."""

    def __init__(self, make_member, directory):
        self.server = ManifestServer()
        self.key = Key(directory, "one")
        self.index = Index(os.path.join(directory, "index"), self.key)
        os.mkdir(self.index.directory)
        self.objects = {source: [] for source in SOURCES}
        self.make_member, self.node = make_member, None

    def put(self, source, *objects):
        """Adds these objects to a source; 'default' is the namespace of all."""
        if source == "api":
            for one in objects:
                self.node.api.create(PLURALS[one["kind"]], {key: value for key, value in one.items() if key not in ("kind", "apiVersion")})
            return
        self.objects[source] += objects
        self.write(source)

    def write(self, source):
        """Writes a pod, whose manifest has no namespace, so that it is in 'default'."""
        objects = self.objects[source]
        if source == "file" and objects:
            self.node.drop(specs.text(*objects), "all.yaml")
        if source == "file" and not objects and os.path.exists(self.node.path("all.yaml")):
            self.node.remove("all")
        if source == "url":
            self.server.serve(specs.text(*objects) if objects else "{apiVersion: v1, kind: List, items: []}")
        if source == "index":
            self.index.write({"all.yaml": specs.text(*objects).encode()} if objects else {})

    def run(self, source, name, *containers, **spec):
        """Starts a pod of this source."""
        if source == "api":
            self.node.bind(name, *containers, **spec)
        else:
            self.put(source, specs.pod(name, *containers, **spec))

    def make_node(self, **mainstay):
        """A node that has not been started."""
        self.node = self.make_member(start=False, config={"staticPodURL": self.server.url(), "httpCheckFrequency": "1s"},
                                     source=settings("file://" + self.index.path, [self.key]), **mainstay)
        for source in SOURCES[:3]:
            self.write(source)
        return self.node

    def end(self):
        """Removes URL and index, so that their pods stop."""
        if self.node and self.node.agent and self.node.agent.poll() is None:
            self.node.write_config(mainstay={"kubeconfig": self.node.kubeconfig})
            self.node.restart()
        self.server.stop()


@pytest.fixture(name="sources")
def fixture_sources(make_member, tmp_path):
    sources = Sources(make_member, str(tmp_path))
    yield sources
    sources.end()


def optional(kind, name):
    """A volume source, or a projected one."""
    return {"configMap": {"name": name, "optional": True}} if kind == "ConfigMap" else \
        {"secret": {"secretName" if kind == "Secret" else "name": name, "optional": True}}


def variable(kind, name):
    return {"configMapKeyRef" if kind == "ConfigMap" else "secretKeyRef": {"name": name, "key": "word", "optional": True}}


def reader(names, **container):
    """A container and volumes that refer to all of these ConfigMaps and Secrets in every possible way."""
    kinds = [(kind, name) for kind in ("ConfigMap", "Secret") for name in names]
    slug = {one: f"{one[0].lower()}-{one[1]}" for one in kinds}
    env = [{"name": "KEY_" + slug[one], "valueFrom": variable(*one)} for one in kinds]
    whole = [{"prefix": f"ALL_{slug[one]}_", ("configMapRef" if one[0] == "ConfigMap" else "secretRef"): {"name": one[1], "optional": True}}
             for one in kinds]
    volumes = [{"name": slug[one], **optional(*one)} for one in kinds]
    projected = [{"name": "p-" + slug[one], "projected": {"sources": [
        {("configMap" if one[0] == "ConfigMap" else "secret"): {"name": one[1], "optional": True}}]}} for one in kinds]
    mounts = [specs.mount(one["name"], f"/v/{one['name']}") for one in volumes + projected]
    return specs.container(env=env, envFrom=whole, volumeMounts=mounts, **container), volumes + projected


def seen(node, name, names):
    """The values that the pod sees from each source: {"configmap-a": {"file", "projected", "key", "all"}}, and the words."""
    environ = world.environ(node.init(name))
    found, words = {}, set()
    for slug in [f"{kind}-{one}" for kind in ("configmap", "secret") for one in names]:
        ways = {"file": inside(node, name, f"/v/{slug}/word"), "projected": inside(node, name, f"/v/p-{slug}/word"),
                "key": environ.get("KEY_" + slug), "all": environ.get(f"ALL_{slug}_word")}
        words |= {word for word in ways.values() if word}
        found[slug] = {way for way, word in ways.items() if word}
    return found, words


ALL_WAYS = {"file", "projected", "key", "all"}


def expect_own(node, source, name="reader"):
    names = [f"of-{one}" for one in SOURCES] + ["same"]
    found, words = seen(node, f"{name}-{source}", names)
    assert words == {source}, f"a pod of {source} has the words of {words}"
    assert found == {f"{kind}-{one}": ALL_WAYS if one in (f"of-{source}", "same") else set() for kind in ("configmap", "secret")
                     for one in names}


def put_all(sources):
    for source in SOURCES:
        sources.put(source, config_map(f"of-{source}", source), secret(f"of-{source}", source), config_map("same", source),
                    secret("same", source))


def run_reader(sources, source, name="reader"):
    container, volumes = reader([f"of-{one}" for one in SOURCES] + ["same"])
    sources.run(source, f"{name}-{source}", container, volumes=volumes)


def test_a_pod_sees_config_maps_and_secrets_only_of_its_own_source(sources):
    node = sources.make_node()
    put_all(sources)
    for source in SOURCES:
        run_reader(sources, source)
    node.start()
    for source in SOURCES:
        node.wait_running(f"reader-{source}")
        expect_own(node, source)
    # The objects come from the caches on disk, after a restart of the agent without an API server.
    node.api.stop()
    node.restart()
    run_reader(sources, "file", "later")
    node.wait_running("later-file")
    expect_own(node, "file", "later")
    expect_own(node, "api")
    node.api.start()


@pytest.mark.parametrize("owner", SOURCES)
def test_a_pod_waits_for_an_object_that_only_another_source_has(sources, owner):
    node = sources.make_node()
    sources.put(owner, config_map("words", "theirs"))
    others = [source for source in SOURCES if source != owner]
    for source in others:
        sources.run(source, f"waits-{source}", specs.container(envFrom=[{"configMapRef": {"name": "words"}}]))
    node.start()
    for source in others:
        node.wait_waiting(f"waits-{source}", "CreateContainerConfigError", says='configmap "words" not found')
    for source in others:
        sources.put(source, config_map("words", source))
        node.wait_running(f"waits-{source}")
        assert world.environ(node.init(f"waits-{source}"))["word"] == source


def test_object_missing_during_an_edit_is_not_replaced_by_that_of_another_source(sources):
    node = sources.make_node()
    for source in ("file", "api"):
        sources.put(source, config_map("script", source), secret("script", source))
    container, volumes = reader(["script"])
    sources.run("file", "web", container, volumes=volumes)
    sources.run("api", "bound", container, volumes=volumes)
    node.start()
    node.wait_running("web")
    node.wait_running("bound")
    sources.objects["file"] = sources.objects["file"][2:]  # only the pod is left
    sources.write("file")
    wait(lambda: "script" not in node.cli("get", "configmaps").stdout, "the file's objects are gone")
    sources.put("file", specs.pod("later", specs.container(env=[{"name": "W", "valueFrom": variable("Secret", "script")}])))
    node.wait_running("later")
    assert "W" not in world.environ(node.init("later"))
    assert seen(node, "web", ["script"])[1] == {"file"} and seen(node, "bound", ["script"])[1] == {"api"}
    node.api.delete("configmaps", "default", "script")
    sources.put("file", config_map("script", "again"))
    wait(lambda: inside(node, "web", "/v/configmap-script/word") == "again", "the volume follows the file")
    assert inside(node, "bound", "/v/configmap-script/word") in ("api", None)


def test_image_pull_secrets_are_those_of_the_pods_source(sources):
    node = sources.make_node()
    for source in SOURCES:
        sources.put(source, login(f"of-{source}"))
    for source in SOURCES:
        sources.run(source, f"pulls-{source}", specs.container(image=NOWHERE, imagePullPolicy="Always"),
                    imagePullSecrets=[{"name": f"of-{one}"} for one in SOURCES])
    node.start()
    for source in SOURCES:
        def missing(source=source):
            said = [event["message"] for event in json.loads(node.cli("get", "events", "-o", "json").stdout)["items"]
                    if event["reason"] == "FailedToRetrieveImagePullSecret" and f"pulls-{source}" in event["involvedObject"]["name"]]
            return said and {one for one in SOURCES if f"of-{one}" in said[-1]}
        wait(lambda: missing() == set(SOURCES) - {source}, lambda: f"a pod of {source} waits for {missing()}")


def test_classes_are_those_of_the_pods_source(sources):
    node = sources.make_node()
    for source in SOURCES:
        sources.put(source, runtime_class(f"of-{source}"))
    for number, source in enumerate(SOURCES[:3]):
        sources.put(source, priority_class(f"rank-{source}", 100 + number), priority_class("rank", 10 + number, globalDefault=True))
    for source in SOURCES:
        for other in SOURCES:
            sources.run(source, f"{source}-as-{other}", specs.container(), runtimeClassName=f"of-{other}")
    for source in SOURCES[:3]:
        sources.run(source, f"rank-{source}", specs.container(), priorityClassName=f"rank-{source}")
        sources.run(source, f"low-{source}", specs.container(), priorityClassName=f"rank-{SOURCES[(SOURCES.index(source) + 1) % 3]}")
    node.start()
    for number, source in enumerate(SOURCES):
        pod = node.wait_running(f"{source}-as-{source}")
        if source != "api":
            assert pod["spec"]["priorityClassName"] == "rank" and pod["spec"]["priority"] == 10 + number
            assert node.wait_running(f"rank-{source}")["spec"]["priority"] == 100 + number
            node.wait_waiting(f"low-{source}", "ContainerCreating", says="no PriorityClass with name rank-")
        else:
            assert "priorityClassName" not in pod["spec"] and not pod["spec"].get("priority")
    for source in SOURCES:
        for other in SOURCES:
            if other != source:
                node.wait_waiting(f"{source}-as-{other}", "ContainerCreating", says=f'RuntimeClass "of-{other}" not found')


def test_services_and_tokens_of_the_api_server_are_available_only_to_its_pods(sources):
    node = sources.make_node()
    node.api.create("services", {"metadata": {"name": "my-db", "namespace": "default"}, "spec": {
        "clusterIP": "10.0.0.7", "ports": [{"port": 5432, "protocol": "TCP"}]}}, "default")
    for source in SOURCES:
        sources.run(source, f"web-{source}")
    node.start()
    wait(lambda: '"my-db"' in (world.read(os.path.join(node.state, "cluster", "services")) or ""), "the node has stored the services")
    for source in SOURCES:
        node.wait_running(f"web-{source}")
        assert ("MY_DB_SERVICE_HOST" in world.environ(node.init(f"web-{source}"))) == (source == "api")
        assert os.path.exists(f"/proc/{node.init(f'web-{source}')}/root/var/run/secrets/kubernetes.io/serviceaccount/token") == \
            (source == "api")


def test_an_ephemeral_container_sees_what_its_pod_sees(sources):
    node = sources.make_node()
    for source in SOURCES:
        sources.put(source, config_map(f"of-{source}", source), config_map("same", source))
    container, volumes = reader([f"of-{one}" for one in SOURCES] + ["same"])
    sources.run("api", "bound", container, volumes=volumes)  # the server of the tests permits the objects to which containers refer
    sources.run("file", "web")
    node.start()
    node.wait_running("bound")
    node.wait_running("web")
    added = {"env": container["env"], "envFrom": container["envFrom"]}
    add_ephemeral(node, "bound", ephemeral(**added))
    status, said = post(node, {"name": "dbg", "image": specs.IMAGE, "command": ["sleep", "100000"], **added})
    assert status == 200, said
    for source, name in (("api", "bound"), ("file", "web")):
        pid = wait(lambda name=name: node.find_init(name, "dbg"), lambda name=name: f"it runs in {name}: {node.pod(name)}")
        environ = world.environ(pid)
        for one in SOURCES:
            assert environ.get(f"KEY_configmap-of-{one}") == (one if one == source else None)
        assert environ["KEY_configmap-same"] == source and environ["ALL_configmap-same_word"] == source


@pytest.mark.parametrize("come, go", [(a, b) for a in SOURCES for b in SOURCES if a != b])
def test_object_is_shared_between_sources_if_configured(sources, come, go):
    shared = [{"kind": kind, "namespace": "default", "name": "same", "from": come, "to": go} for kind in ("ConfigMap", "Secret")]
    node = sources.make_node(sharedObjects=shared)
    put_all(sources)
    run_reader(sources, come)
    node.start()
    node.wait_running(f"reader-{come}")  # the objects of that source have arrived
    run_reader(sources, go)
    node.wait_running(f"reader-{go}")
    expect_own(node, come)
    names = [f"of-{one}" for one in SOURCES] + ["same"]
    found, words = seen(node, f"reader-{go}", names)
    assert words == {come, go}
    assert {slug for slug, ways in found.items() if ways == ALL_WAYS} == {f"{kind}-{one}" for kind in ("configmap", "secret")
                                                                         for one in (f"of-{go}", "same")}
    assert inside(node, f"reader-{go}", "/v/secret-same/word") == come


OUTRANKED = {"file": {"url", "index", "api"}, "url": {"api"}, "index": {"api"}, "api": set()}


def own_name(source, name):
    """The final name of the pod: the node's name is appended to that of a static pod."""
    return f"{name}-{NODE_NAME}" if source != "api" else name


@pytest.mark.parametrize("holder, comer", [(a, b) for a in SOURCES for b in SOURCES if a != b])
def test_port_and_device_go_to_the_source_of_higher_trust(sources, holder, comer):
    node = sources.make_node(devices=DEVICES)
    port = world.free_port()
    held = {f"port-of-{holder}": with_port(port), f"device-of-{holder}": with_device()}
    for name, container in held.items():
        sources.run(holder, name, container)
    node.start()
    for name in held:
        node.wait_running(own_name(holder, name))
    pids = [node.init(own_name(holder, name)) for name in held]
    wanted = {f"port-of-{comer}": with_port(port), f"device-of-{comer}": with_device()}
    for name, container in wanted.items():
        sources.run(comer, name, container)
    if holder in OUTRANKED[comer]:
        for name in wanted:
            node.wait_running(own_name(comer, name))
        assert not any(map(world.is_alive, pids))
        return
    for name, reason in zip(wanted, ("NodePorts", "UnexpectedAdmissionError")):
        node.wait_pod(own_name(comer, name), lambda pod, reason=reason: pod["status"].get("reason") == reason, f"is refused: {reason}")
    assert all(map(world.is_alive, pids))


def test_a_pod_that_moves_to_another_source_sees_its_objects(sources):
    node = sources.make_node()
    for source in ("file", "url"):
        sources.put(source, config_map("same", source))
    container, volumes = reader(["same"])
    sources.run("url", "web", container, volumes=volumes)
    node.start()
    node.wait_running("web")
    pid = node.init("web")
    assert seen(node, "web", ["same"])[1] == {"url"}
    sources.run("file", "web", container, volumes=volumes)
    wait(lambda: node.find_init("web") not in (None, pid), "it starts again, with the objects of the file")
    node.wait_running("web")
    assert seen(node, "web", ["same"])[1] == {"file"}


def test_an_api_server_daemonset_pod_sees_only_api_server_objects(sources):
    """The pod belongs to a set that the node evaluates: the node may read objects to which a bound pod refers."""
    node = sources.make_node(daemonSets="node")
    may_place(node.api)
    put_all(sources)
    container, volumes = reader([f"of-{one}" for one in SOURCES] + ["same"])
    run_reader(sources, "api")
    node.api.create("daemonsets", daemonset("daemon", container, volumes=volumes))
    node.start()
    node.wait_running("reader-api")
    name = wait_pod_of(node, "daemon")["metadata"]["name"]
    assert source_of(node.pod(name)) == "evaluated (api)"
    found, words = seen(node, name, [f"of-{one}" for one in SOURCES] + ["same"])
    assert words == {"api"}
    assert {slug for slug, ways in found.items() if ways} == {f"{kind}-{one}" for kind in ("configmap", "secret") for one in ("of-api", "same")}
    node.api.delete("daemonsets", "default", "daemon")
    node.wait_gone(name)


@pytest.mark.parametrize("source", ["url", "index"])
def test_a_pod_of_a_url_or_an_index_takes_its_name_from_an_api_server_pod(sources, source):
    node = sources.make_node()
    node.start()
    pid = squat(node)
    sources.put(source, specs.pod("web"))
    pod = node.wait_pod("web", lambda pod: source_of(pod) != "api" and pod["status"].get("phase") == "Running", "is the pod of the source")
    assert source_of(pod).startswith(source)
    assert not world.is_alive(pid)
    reported = node.wait_reported(f"web-{NODE_NAME}", lambda pod: pod["status"].get("phase") == "Failed", "has failed")
    assert reported["status"]["reason"] == "NameConflict"
    node.api.delete("pods", "default", f"web-{NODE_NAME}")
