# SPDX-License-Identifier: Apache-2.0
"""Images that a signed index names: nodes fetch all of them from the place of the index before it is used, and contact no registry."""

import http.client
import json
import os
import random
import shutil
import time

import deltas
import failing
import pytest
import specs
import world
from index_source import Index, Key, Nginx, Runnable, settings
from world import wait

NAME = "registry.invalid/team/app:1"
NUMBERED = "exec tail -f /version"


def image(version, *more):
    return Runnable({"version": f"{version}\n".encode()}, *more)


def app(name="app", reference=NAME, script=NUMBERED, **fields):
    return specs.pod(name, {**specs.container(script=script), "image": reference}, **fields)


def failing_app():
    return specs.pod("app", {**specs.failing_container(), "image": NAME})


@pytest.fixture(name="key")
def fixture_key(tmp_path):
    return Key(str(tmp_path), "one")


@pytest.fixture(name="index")
def fixture_index(tmp_path, key):
    os.mkdir(tmp_path / "root")
    return Index(str(tmp_path / "root"), key)


@pytest.fixture(name="make_empty")
def fixture_make_empty(make_node, key):
    """Nodes with an empty store and a source; at the end the source is removed from all of them, so that their pods
    stop."""
    nodes = []

    def make(url, mainstay=None, **source):
        node = make_node(archive=None, config={"mainstay": {"source": settings(url, [key], **source), **(mainstay or {})}})
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.write_config()
        node.restart()
        for pod in node.pods():
            node.wait_gone(pod["metadata"]["name"])


@pytest.fixture(name="nginx")
def fixture_nginx(index, tmp_path):
    server = Nginx(str(tmp_path / "nginx"), index.directory)
    yield server
    server.stop()


def condition(node):
    """The condition of the source; None while the agent does not answer because it has died."""
    try:
        return node.node_condition("mainstay.io/SourceFailed")
    except (AssertionError, OSError, http.client.HTTPException):
        return {"status": "", "message": ""}


def wait_failed(node, words, deadline=world.DEADLINE):
    wait(lambda: condition(node)["status"] == "True" and words in condition(node)["message"],
         lambda: f"the condition contains '{words}': {condition(node)}\n{node.said()[-3000:]}", deadline)


def wait_in_use(node, number, deadline=world.DEADLINE):
    wait(lambda: condition(node)["status"] == "False" and f"index {number} of" in condition(node)["message"],
         lambda: f"index {number} is in use: {condition(node)}\n{node.said()[-3000:]}", deadline)


def wait_says(node, name, words):
    wait(lambda: words in node.cli("logs", name).stdout, lambda: f"{name} prints {words}: {node.cli('logs', name)} {node.said()[-2000:]}")


def names(node):
    return sorted(pod["metadata"]["name"] for pod in node.pods())


def asked(nginx):
    return [line[1].rsplit("/", 1)[1] for line in nginx.asked() if "/blobs/" in line[1]]


def test_node_with_an_empty_store_runs_an_index_from_a_usb_stick(make_empty, index):
    one = image("one")
    index.write({"app.yaml": app()}, images=[index.add_image(one, NAME)])
    node = make_empty("file://" + index.path)
    node.wait_running("app")
    wait_says(node, "app", "one")
    wait_in_use(node, 1)
    assert node.status("app")["imageID"].endswith(one.digest)
    assert NAME in node.cli("images").stdout
    node.restart()
    listed = node.cli("images").stdout
    assert NAME in listed and "index:" not in listed
    assert "Pulling" not in node.cli("get", "events").stdout, "the image was present before the pod"


def test_node_fetches_only_images_that_its_pods_need(make_empty, index, nginx):
    mine, other = image("mine"), image("other")
    elsewhere = specs.daemonset("elsewhere", nodeSelector={"shop/till": "yes"})
    elsewhere["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.invalid/other:1"
    index.write({"app.yaml": app(), "elsewhere.yaml": elsewhere},
                images=[index.add_image(mine, NAME), index.add_image(other, "registry.invalid/other:1")])
    node = make_empty(nginx.url(), caFile=nginx.certificate)
    node.wait_running("app")
    wait_in_use(node, 1)
    fetched = asked(nginx)
    wanted = {mine.digest[7:], *(row["digest"][7:] for row in mine.blob_rows())}
    assert sorted(fetched) == sorted(wanted), "each blob of its image was fetched once, and nothing else"


def test_index_waits_until_all_its_images_are_present(make_empty, index, nginx):
    index.write({"app.yaml": app()}, images=[index.add_image(image("one"), NAME)])
    node = make_empty(nginx.url(), caFile=nginx.certificate)
    node.wait_running("app")
    init = node.init("app")
    two, second = image("two"), image("second")
    entries = [index.add_image(two, NAME), index.add_image(second, "registry.invalid/team/second:1")]
    missing = index.image_blob(second.layers[1])
    os.rename(missing, missing + ".away")
    index.write({"app.yaml": app(metadata={"labels": {"edit": "2"}}, script="exec tail -f /version # again"),
                 "second.yaml": app("second", "registry.invalid/team/second:1")}, images=entries)
    wait_failed(node, "registry.invalid/team/second:1")
    message = condition(node)["message"]
    assert "404" in message and "1 of the 2 images that this node needs are present" in message, message
    assert names(node) == ["app-node1"] and node.init("app") == init, "the previous index stays in use"
    os.rename(missing + ".away", missing)
    wait_in_use(node, 2)
    node.wait_running("second")
    wait_says(node, "app", "two")


def test_tag_refers_to_the_image_of_the_index_in_use(make_empty, index):
    one, two = image("one"), image("two")
    index.write({"app.yaml": app()}, images=[index.add_image(one, NAME)])
    node = make_empty("file://" + index.path)
    node.wait_running("app")
    wait_says(node, "app", "one")
    index.write({"app.yaml": app(script="exec tail -f /version # 2")}, images=[index.add_image(two, NAME)])
    wait_says(node, "app", "two")
    assert node.status("app")["imageID"].endswith(two.digest)


def test_image_of_an_index_is_available_only_to_its_pods(make_empty, index):
    one = image("one")
    index.write({"app.yaml": app()}, images=[index.add_image(one, NAME)])
    node = make_empty("file://" + index.path)
    node.wait_running("app")
    for name, reference in ("by-name", NAME), ("by-digest", f"registry.invalid/team/app@{one.digest}"):
        node.drop(app(name, reference))
        wait(lambda pod=name: "ImagePull" in json.dumps(node.pod(pod)), lambda pod=name: f"{pod} has no image: {node.pod(pod)}")
        node.remove(name)
        node.wait_gone(name)


@pytest.mark.parametrize("deadline", [{}, {"progressDeadlineSeconds": 5}])
def test_pods_restart_without_their_source(make_empty, index, deadline):
    index.write({"app.yaml": app()}, images=[index.add_image(image("one"), NAME)], **deadline)
    node = make_empty("file://" + index.path)
    node.wait_running("app")
    os.rename(index.directory, index.directory + ".away")
    os.kill(node.init("app"), 9)
    node.wait_restarts("app", 1)
    node.restart()
    node.wait_running("app")
    os.rename(index.directory + ".away", index.directory)


def test_rollback_keeps_the_images_of_the_previous_index(make_empty, index):
    one, bad = image("one"), image("bad")
    index.write({"app.yaml": app()}, images=[index.add_image(one, NAME)])
    node = make_empty("file://" + index.path)
    node.wait_running("app")
    for path in [index.image_blob(one.layers[1])]:
        os.unlink(path)
    index.write({"app.yaml": failing_app()}, images=[index.add_image(bad, NAME)], progressDeadlineSeconds=4)
    node.cli("images", "prune")
    wait_failed(node, "rolled back")
    node.wait_running("app")
    wait_says(node, "app", "one")


def test_update_of_a_big_image_fetches_a_delta(make_empty, index, nginx):
    big = random.Random(1).randbytes(400_000)
    old = Runnable({"version": b"old\n", "big": big})
    new = Runnable({"version": b"new\n", "big": big[:1000] + b"123" + big[1003:]})
    parts = {new.layers[1]: deltas.tar_diff({"version": b"old\n", "big": big}, layer_tar(new, 1))}
    index.write({"app.yaml": app()}, images=[index.add_image(old, NAME)])
    node = make_empty(nginx.url(), caFile=nginx.certificate)
    node.wait_running("app")
    delta = deltas.artifact(old, new, parts)
    before = len(nginx.asked())
    index.write({"app.yaml": app(script=NUMBERED + " # 2")}, images=[index.add_image(new, NAME, [(old, delta)])])
    wait_in_use(node, 2)
    wait_says(node, "app", "new")
    sent = sum(int(line[4]) for line in nginx.asked()[before:] if "/blobs/" in line[1])
    assert sent < 20_000, f"the delta was fetched, and not the layer: {nginx.asked()[before:]}"


def layer_tar(blobs, i):
    import gzip  # pylint: disable=import-outside-toplevel
    return gzip.decompress(blobs.blobs[blobs.layers[i]])


def test_wrong_delta_wastes_no_more_bytes_than_the_image_has(make_empty, index, nginx):
    old, new = image("old"), image("new")
    index.write({"app.yaml": app()}, images=[index.add_image(old, NAME)])
    node = make_empty(nginx.url(), caFile=nginx.certificate)
    node.wait_running("app")
    parts = {new.layers[1]: deltas.pack(deltas.operation(deltas.DATA, b"other"))}
    delta = deltas.artifact(old, new, parts)
    index.write({"app.yaml": app(script=NUMBERED + " # 2")}, images=[index.add_image(new, NAME, [(old, delta)])])
    wait_in_use(node, 2)
    wait_says(node, "app", "new")
    assert "the delta cannot be used" in node.said()


def test_interrupted_download_is_resumed(make_empty, index, nginx):
    big = Runnable({"big": random.Random(2).randbytes(300_000)})
    entry = index.add_image(big, NAME)
    path = index.image_blob(big.layers[1])
    whole = open(path, "rb").read()
    with open(path, "wb") as file:
        file.write(whole[:100_000])
    index.write({"app.yaml": app(script=specs.IDLE)}, images=[entry])
    node = make_empty(nginx.url(), caFile=nginx.certificate)
    wait_failed(node, "bytes")
    with open(path, "wb") as file:
        file.write(whole)
    node.wait_running("app")
    ranges = [line[5] for line in nginx.asked() if line[1].endswith(big.layers[1][7:]) and line[5] != "-"]
    assert any(one.startswith("bytes=100000-") for one in ranges), ranges


def test_missing_platform_of_the_index_is_reported(make_empty, index):
    foreign = Runnable({"version": b"far\n"}, architecture="s390x")
    entry = index.add_image(foreign, NAME)
    entry["platforms"] = [foreign.row("linux/s390x")]
    index.write({"app.yaml": app()}, images=[entry])
    node = make_empty("file://" + index.path)
    wait_failed(node, "for other platforms only")
    assert not names(node)


def test_index_accepted_by_an_earlier_version_gets_its_images(make_empty, index):
    one = image("one")
    index.write({"app.yaml": app()}, images=[index.add_image(one, NAME)])
    node = make_empty("file://" + index.path)
    node.wait_running("app")
    node.stop()
    current = os.path.join(node.state, "sources", "source", "current")
    state = json.loads(world.read(os.path.join(current, "source.json")))
    del state["images"]
    with open(os.path.join(current, "source.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(state))
    os.unlink(os.path.join(current, "images.json"))
    node.start()
    wait(lambda: os.path.exists(os.path.join(current, "images.json")), lambda: f"the images are read: {node.said()[-2000:]}")
    wait_in_use(node, 1)


POLICY = {"default": [{"type": "reject"}], "transports": {"docker": {"registry.invalid/team": [{"type": "sourceSigned", "fleet": "shops"}]}}}


@pytest.mark.parametrize("policy,words", [
    (POLICY, None),
    ({"default": [{"type": "sourceSigned"}]}, None),
    ({"default": [{"type": "insecureAcceptAnything"}]}, None),
    ({"default": [{"type": "reject"}]}, "reject"),
    ({"default": [{"type": "sourceSigned", "fleet": "other"}]}, "of the fleet 'shops', not 'other'"),
])
def test_signature_policy_can_accept_the_signature_of_the_index_or_demand_more(make_empty, index, tmp_path, policy, words):
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(policy))
    index.write({"app.yaml": app()}, images=[index.add_image(image("one"), NAME)])
    node = make_empty("file://" + index.path, mainstay={"signaturePolicyFile": str(path)})
    if words:
        wait_failed(node, words)
        assert not names(node)
        return
    node.wait_running("app")
    node.drop(app("mine", NAME))
    wait(lambda: "ImagePull" in json.dumps(node.pod("mine")), "a pod of a file does not get it")
    node.remove("mine")
    node.wait_gone("mine")


DEATHS = ["mainstayd:source.prepared", "mainstay-image:store.commit-blob", "mainstay-image:store.synced",
          "mainstay-image:store.publish-file", "mainstay-image:unpack.layer", "mainstay-image:source.trust"]


@pytest.mark.parametrize("point", DEATHS)
def test_index_is_used_completely_after_a_death_at_any_point(make_failing, index, key, point):
    """The pod of the old index runs until that of the new one and its image are available."""
    config = {"mainstay": {"source": settings("file://" + index.path, [key])}}
    node = make_failing(failing.FailingNode, config=config)
    index.write({"app.yaml": app()}, images=[index.add_image(image("one"), NAME)])
    node.wait_running("app")
    node.arm({point: "1*panic"})
    index.write({"app.yaml": app(script=NUMBERED + " # 2")}, images=[index.add_image(image("two"), NAME)])
    if point.startswith("mainstayd:"):
        wait(lambda: node.is_ready() and node.n_deaths == 1, "the agent has died, and another one runs")
    wait_in_use(node, 2)
    wait_says(node, "app", "two")
    assert node.hits()[point] >= 1 and "ErrImagePull" not in node.cli("get", "events").stdout
    node.arm({})
    index.write({})
    wait(lambda: not node.pods(), "the pod is gone")


def test_stick_is_noticed_on_insertion_and_its_highest_index_is_used_once(make_empty, make_stick, key):
    """The interval is an hour: a change that is not noticed would never be fetched."""
    seventh, eighth = make_stick(), make_stick()
    for number, stick in (7, seventh), (8, eighth):
        Index(stick.directory, key).write({"app.yaml": app(script=f"{NUMBERED} # {number}")}, number=number,
                                          images=[Index(stick.directory, key).add_image(image(f"v{number}"), NAME)])
    node = make_empty(f"file://{seventh.place}/index.json", interval="1h")
    wait_failed(node, "No such file or directory")
    seventh.plug()
    node.wait_running("app")
    wait_says(node, "app", "v7")
    seventh.pull()
    wait_failed(node, "No such file or directory")
    eighth.plug()
    wait_in_use(node, 8)
    wait_says(node, "app", "v8")
    eighth.pull()
    seventh.plug()
    wait_failed(node, "has the number 7, and an index with the number 8 was verified before")
    seventh.pull()
    wait_says(node, "app", "v8")


def test_inserted_stick_wakes_up_an_idle_agent(make_empty, make_stick, key):
    """Nothing else wakes it up: its next request is due in a day."""
    stick = make_stick()
    index = Index(stick.directory, key)
    index.write({"app.yaml": app()}, images=[index.add_image(image("one"), NAME)])
    node = make_empty(f"file://{stick.place}/index.json", interval="24h")
    wait_failed(node, "No such file or directory")
    world.wait_settled(node.agent.pid, 3)
    stick.plug()
    # A request to the agent would wake it up.
    wait(lambda: world.cgroup_pids(f"{node.cgroup_root}/kubepods"), "the pod runs")
    wait_says(node, "app", "one")
    stick.pull()


def test_import_from_a_stick_resumes_after_the_stick_was_removed(make_empty, make_stick, key):
    stick = make_stick()
    index, big = Index(stick.directory, key), Runnable({"version": b"big\n", "big": random.Random(9).randbytes(3_000_000)})
    entry = index.add_image(big, NAME)
    last = index.image_blob(big.layers[1])
    os.rename(last, last + ".away")
    index.write({"app.yaml": app()}, images=[entry])
    node = make_empty(f"file://{stick.place}/index.json", interval="1h")
    stick.plug()
    wait_failed(node, NAME)
    stick.pull()
    os.rename(last + ".away", last)
    stick.plug()
    node.wait_running("app")
    wait_says(node, "app", "big")
    stick.pull()


def test_blob_that_changes_while_it_is_read_is_detected(make_empty, index, nginx):
    """Nothing is read twice: the hash is that of the copied data. The data begins with a part of another file, which a
    resume continues."""
    good = Runnable({"version": b"good\n", "big": random.Random(3).randbytes(200_000)})
    index.write({"app.yaml": app()}, images=[index.add_image(good, NAME)])
    path = index.image_blob(good.layers[1])
    whole = open(path, "rb").read()
    with open(path, "wb") as file:
        file.write(b"evil" * 20_000)
    node = make_empty("file://" + index.path)
    wait_failed(node, NAME)
    with open(path, "wb") as file:
        file.write(whole)
    node.wait_running("app")
    wait_says(node, "app", "good")


ROUNDS = int(os.environ.get("MAINSTAY_SOURCE_CUTS", "100"))
MEGABYTES = int(os.environ.get("MAINSTAY_CUT_MEGABYTES", "0"))
PATIENCE = world.DEADLINE + 2 * MEGABYTES  # seconds
CUT_AT = [name for name in failing.names() if name.startswith(("mainstayd:source.", "mainstay-image:source.", "mainstay-image:store.",
                                                               "mainstay-image:unpack."))]


class Big(Runnable):
    """An image of this number of megabytes that cannot be compressed."""

    level = 0

    def __init__(self, text):
        super().__init__({"version": f"{text}\n".encode()}, *([{"big": random.Random(text).randbytes(MEGABYTES * 1_000_000)}] if MEGABYTES else []))


class Cuts:
    """One node and one stick. In each round an index is taken, or taken and rolled back, while something is killed at a
    failpoint, and the stick may be pulled out; then the whole index is either the new one or the previous one."""

    def __init__(self, node, index, stick, seed):
        self.node, self.index, self.stick, self.random = node, index, stick, random.Random(seed)
        self.text = self.next = "start"
        self.n_deaths, self.n_pulls, self.rollbacks = 0, 0, 0

    def offer(self, text, is_bad):
        pod = failing_app() if is_bad else app(script=f"{NUMBERED} # {text}")
        deadline = {"progressDeadlineSeconds": 4} if is_bad else {}
        shutil.rmtree(os.path.join(self.index.directory, "images"), ignore_errors=True)  # the stick has room for one
        return self.index.write({"app.yaml": pod}, images=[self.index.add_image(Big(text), NAME)], **deadline)["number"]

    def check_images(self):
        """At any moment each pod of the index has the image that the index lists under the image's name."""
        assert "ErrImagePull" not in self.node.cli("get", "events").stdout
        said = {line for line in self.node.cli("logs", "app").stdout.split() if line.startswith("version-")}
        assert said <= {self.text, self.next}, (said, self.text, self.next)

    def run(self, number):
        node, point = self.node, self.random.choice(CUT_AT)
        is_bad, self.next = self.random.random() < 0.25, f"version-{number}"
        node.arm({point: f"{self.random.choice(('', '1*off->', '2*off->'))}1*panic"})
        offered = self.offer(self.next, is_bad)
        if self.random.random() < 0.5:
            time.sleep(self.random.random() * (1 + MEGABYTES / 20) / 2)
            self.stick.pull()
            self.n_pulls += 1
            self.check_images()
            self.stick.plug()
        if is_bad:
            wait_failed(node, f"rolled back index {offered}", PATIENCE)
            self.rollbacks += 1
        else:
            wait_in_use(node, offered, PATIENCE)
            self.text = self.next
        wait_says(node, "app", self.text)
        node.wait_running("app")
        self.check_images()
        self.n_deaths += sum(node.hits().values()) > 0
        node.arm({})
        if MEGABYTES:
            node.cli("images", "prune")


def run_cuts(make_failing, make_stick, key, rounds, seed):
    stick = make_stick()
    index = Index(stick.directory, key)
    node = make_failing(failing.FailingNode, config={"mainstay": {"source": settings(
        f"file://{stick.place}/index.json", [key], interval="1s", jitter="1ms")}})
    cuts = Cuts(node, index, stick, seed)
    cuts.offer("start", False)
    stick.plug()
    node.wait_running("app")
    for number in range(rounds):
        print(f"round {number} of seed {seed}")
        cuts.run(number)
    print(f"{rounds} rounds: {cuts.n_deaths} with a death, {cuts.n_pulls} with a stick that was pulled out, {cuts.rollbacks} rolled back")
    index.write({})
    wait(lambda: not node.pods(), "the pod is gone")


@pytest.mark.slow
def test_index_is_complete_after_some_interruptions(make_failing, make_stick, key):
    run_cuts(make_failing, make_stick, key, 4, int(os.environ.get("MAINSTAY_SEED", "4")))


@pytest.mark.long
def test_index_is_complete_after_many_interruptions(make_failing, make_stick, key):
    run_cuts(make_failing, make_stick, key, ROUNDS, int(os.environ.get("MAINSTAY_SEED", random.randrange(1 << 30))))
