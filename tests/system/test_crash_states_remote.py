# SPDX-License-Identifier: Apache-2.0
"""A power cut between any two writes of an agent whose pods come from elsewhere, in any order that the disk may choose:
from every such state a new agent runs the pods that it certainly had, before it reaches its source or its API server,
and the pods of these afterwards."""

import glob
import os
import shutil

import apiserver
import crash_states
import harness
import member
import pytest
import specs
import world
from index_source import Index, Key, settings
from sampling import some
from test_index_source import labelled, wait_failed, wait_in_use

PARTS = some(range(8), 8)


@pytest.fixture(scope="module", name="record")
def fixture_record(archive, tmp_path_factory):
    made = {}

    def record(run, make):
        if run not in made:
            made[run] = crash_states.Recorded(run, archive, str(tmp_path_factory.mktemp("recorded")), make)
        return made[run]
    return record


# ---- an index of manifests ----

class SourcedNode(harness.Node):
    """A node with a source. At the end it has no source, so that its pods stop."""

    def finish(self):
        self.write_config()
        if self.agent.poll() is None:
            self.kill9()
        self.start()
        super().finish()


class Stick:
    """The directory of an index that is plugged in, and its previous contents."""

    def __init__(self, recorded):
        self.place, self.kept = f"{recorded.shared}/stick", f"{recorded.shared}/index"
        os.mkdir(f"{recorded.shared}/work")
        self.index = Index(f"{recorded.shared}/work", Key(recorded.shared, "one"))

    def write(self, manifests, **changes):
        number = self.index.write(manifests, **changes)["number"]
        shutil.copytree(self.index.directory, f"{self.kept}-{number}")

    def plug(self, number):
        self.pull()
        shutil.copytree(f"{self.kept}-{number}", self.place + ".new")
        os.rename(self.place + ".new", self.place)

    def pull(self):
        shutil.rmtree(self.place, ignore_errors=True)

    def make(self, archive, **options):
        config = {"mainstay": {"source": settings(f"file://{self.place}/index.json", [self.index.key])}}
        return SourcedNode(archive, config=config, start=False, **options)


def make_sourced(recorded):
    recorded.stick = Stick(recorded)
    return recorded.stick.make(recorded.archive)


def update_to(number):
    """Updates to an index, which has a pod that all indexes have and one that only it has; {} before the first."""
    names = ("web", f"own{number}") if number else ()
    return {name: labelled(name, str(number)) for name in names}


def run_updates(recorded):
    for number in (1, 2, 3):
        recorded.stick.write({f"{name}.yaml": pod for name, pod in update_to(number).items()})
        recorded.mark(number, synced=number - 1)
        recorded.stick.plug(number)
        recorded.node.wait_running(f"own{number}")
        wait_in_use(recorded.node, number)
        recorded.wait_synced("source", "current")
        recorded.mark(number, synced=number)


def edits(node):
    return {pod["metadata"]["name"].removesuffix("-node1"): pod["metadata"]["labels"]["edit"] for pod in node.pods()}


def expect_updates(recorded, node, offered, synced):
    def wanted(number):
        return {name: str(number) for name in update_to(number)}
    # Without any index, pods that have a record run: nothing shows that they were removed.
    allowed = [wanted(number) for number in range(synced, offered + 1)]
    if synced:
        world.wait(lambda: edits(node) in allowed, lambda: f"the pods have only possible states: {edits(node)}, not {allowed}")
        for name in edits(node):
            node.wait_running(name)
        assert edits(node) in allowed
    recorded.stick.plug(offered)
    world.wait(lambda: edits(node) == wanted(offered), lambda: f"it has the offered state: {edits(node)}\n{node.said()[-3000:]}")
    for name in wanted(offered):
        node.wait_running(name)
    wait_in_use(node, offered)


def run_index_rollback(recorded):
    """A second index whose pod does not become ready in time."""
    recorded.stick.write({"web.yaml": labelled("web", "1")}, progressDeadlineSeconds=3)
    recorded.stick.write({"web.yaml": specs.pod("web", specs.container(script="echo bad; exit 1"),
                                                metadata={"labels": {"edit": "2"}})}, progressDeadlineSeconds=3)
    recorded.mark(1, synced=0)
    recorded.stick.plug(1)
    recorded.node.wait_running("web")
    wait_in_use(recorded.node, 1)
    recorded.wait_synced("source", "current")
    recorded.mark(2, synced=1)
    recorded.stick.plug(2)
    wait_failed(recorded.node, "rolled back index 2")
    recorded.wait_synced("source", "rolled-back")
    recorded.wait_synced("source", "current")
    recorded.mark(2, synced=2)


def wait_first(node):
    node.wait_pod("web", lambda pod: pod["metadata"]["labels"]["edit"] == "1" and harness.is_running(pod), "is the first one")


def expect_index_rollback(recorded, node, offered, synced):
    if synced:
        wait_first(node)
    recorded.stick.plug(offered)
    if offered == 2 and synced:
        wait_failed(node, "rolled back index 2")
    wait_first(node)
    logs = [world.read(path) for path in glob.glob(f"{node.log}/pods/*/main/*.log")]
    assert synced < 2 or not any("bad" in text for text in logs), "the rejected index was tried again"


def boot_sourced(expect):
    def boot(recorded, tree, offered, synced):
        recorded.stick.pull()
        node = recorded.stick.make(recorded.archive, store=recorded.images)
        try:
            crash_states.write(tree, node.state)
            node.start()
            expect(recorded, node, *offered, synced)
        finally:
            node.finish()
    return boot


@pytest.mark.parametrize("part", PARTS)
def test_index_is_completely_old_or_new_after_a_power_cut(record, part):
    record(run_updates, make_sourced).try_states(1, part, boot_sourced(expect_updates), first=3)


@pytest.mark.parametrize("part", PARTS)
def test_a_power_cut_neither_prevents_nor_repeats_a_rollback_of_an_index(record, part):
    record(run_index_rollback, make_sourced).try_states(1, part, boot_sourced(expect_index_rollback), 30, first=3)


# ---- pods of an API server ----

def make_member(recorded):
    recorded.api = apiserver.make(recorded.shared)
    return member.Member(recorded.api, recorded.archive, start=False)


def bind_web(node):
    node.bind("web", specs.container(
        env=[{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "word"}}}],
        volumeMounts=[specs.mount("s", "/settings")]), volumes=[{"name": "s", "configMap": {"name": "settings"}}])


def color(node):
    return world.read(f"/proc/{node.init('web')}/root/settings/color")


def run_cluster(recorded):
    """A pod with a Secret and a ConfigMap, a job, an edit of the ConfigMap, and the end of the pod."""
    node, api = recorded.node, recorded.api

    def change(synced, *words):
        """Performs the action at the server, and marks the objects that it has from then on."""
        line = crash_states.count_lines(recorded.trace)
        words[0](*words[1:])
        recorded.mark(api.store.dump(), synced=synced, line=line)
    api.create("configmaps", {"metadata": {"name": "settings"}, "data": {"color": "red"}})
    api.create("secrets", {"metadata": {"name": "login"}, "data": {"word": "aGVsbG8="}})
    change((), bind_web, node)
    node.wait_reported_phase("web", "Running")
    uid = node.reported("web")["metadata"]["uid"]
    for where, name in (("objects", "secret_default_login"), ("objects", "configmap_default_settings"), ("cluster", "services"),
                        ("objects", "configmap_default_kube-root-ca.crt"), (uid, "record")):
        recorded.wait_synced(where, name)
    # Not the file with the same name in the directory of this boot.
    recorded.wait_synced("state/cluster/tokens", rf'(?<=/state/cluster/tokens>, "){uid}_\w+')
    recorded.mark(api.store.dump(), synced=("web",))
    change(("web",), lambda: node.bind(
        "job", specs.container(script="echo once >>/shared/runs", volumeMounts=[specs.mount("shared", "/shared")]),
        volumes=[specs.host_path("shared", recorded.shared)], restartPolicy="Never"))
    node.wait_reported_phase("job", "Succeeded")
    recorded.wait_synced("pods", "ends")
    recorded.mark(api.store.dump(), synced=("web", "job"))
    change(("web", "job"), api.patch, "configmaps", "default", "settings", {"data": {"color": "blue"}})
    world.wait(lambda: color(node) == "blue", "the pod has the new ConfigMap")
    recorded.wait_synced("objects", "configmap_default_settings")
    recorded.mark(api.store.dump(), synced=("web", "job", "blue"))
    change(("job",), api.delete, "pods", "default", "web", 1)
    node.wait_reported_gone("web")
    recorded.mark(api.store.dump(), synced=("job",))


def expect_cluster(recorded, node, synced, runs):
    names = {pod["metadata"]["name"] for pod in recorded.api.store.objects["pods"].values()
             if "deletionTimestamp" not in pod["metadata"]}
    if "web" in synced:
        node.wait_running("web")
        assert color(node) == "blue" if "blue" in synced else color(node) in ("red", "blue")
        assert world.environ(node.init("web"))["WORD"] == "hello"
    init = node.find_init("web") if "web" in synced else None
    recorded.api.start()
    if "web" in names:
        node.wait_reported_phase("web", "Running")
        node.wait_running("web")
        now = recorded.api.get("configmaps", "default", "settings")["data"]["color"]
        world.wait(lambda: color(node) == now, lambda: f"the pod has the ConfigMap of the server: {color(node)}")
        assert init in (None, node.init("web")), "the server's return restarted the pod"
    if "job" in names:
        node.wait_reported_phase("job", "Succeeded")
        assert "job" not in synced or world.read(runs) == "", "a job that had ended ran again"
    # A pod that had ended before the boot is not listed: it is reported again from its record.
    world.wait(lambda: {pod["metadata"]["name"] for pod in node.pods()} - {"job"} == names - {"job"},
               lambda: f"the pods are those of the server: {node.pods()}")


def boot_member(recorded, tree, dumped, synced):
    runs = os.path.join(recorded.shared, "runs")
    with open(runs, "w", encoding="utf-8"):
        pass
    recorded.api.stop()
    recorded.api.store.restore(*dumped)
    node = member.Member(recorded.api, recorded.archive, start=False, store=recorded.images)
    try:
        crash_states.write(tree, node.state)
        node.start()
        expect_cluster(recorded, node, synced, runs)
    finally:
        node.finish()


@pytest.mark.parametrize("part", PARTS)
def test_pods_of_an_api_server_run_without_it_after_a_power_cut(record, part):
    record(run_cluster, make_member).try_states(1, part, boot_member, first=3)
