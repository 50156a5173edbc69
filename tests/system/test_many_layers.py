# SPDX-License-Identifier: Apache-2.0
"""Images of as many layers as Docker makes: as root filesystems, as volumes, in user namespaces, below a deep state
directory, after deltas; on kernels that accept one layer at a time, and on those that accept all of them in one
page."""

import os

import deltas
import layered_image
import pytest
import specs
import world
from failing import FailingNetworkNode, FailingNode
from registry import Blobs
from test_deltas import World

COUNT = 127
NAME = "docker.io/library/layered:1"
WAYS = {"one-by-one": {}, "short-names": {"mainstay-shim:overlay.layers": "return(EIO)"}}
SCRIPT = "ls /layers | wc -l; cat /last; " + specs.IDLE
DEEP = "/".join("deep" * 15 for _ in range(5))


def layers(count):
    """The layers: each has its own file, and one that all of them have."""
    return [{f"layers/{i}": b"", "last": f"{i}\n".encode()} for i in range(1, count)]


@pytest.fixture(scope="module", name="archives")
def fixture_archives(tmp_path_factory):
    directory = tmp_path_factory.mktemp("layered")

    def archive(count):
        path = str(directory / f"{count}.tar")
        if os.path.exists(path):
            return path
        tars = [layered_image.busybox_layer(), *map(layered_image.tar, layers(count))]
        return layered_image.save(path, NAME, tars, {"Cmd": ["/bin/sh"]})
    return archive


@pytest.fixture(name="make")
def fixture_make():
    nodes = []

    def make(kind, way="one-by-one", prepare=lambda node: None, **options):
        node = kind(None, start=False, **options)
        nodes.append(node)
        prepare(node)
        node.arm(WAYS[way])
        node.start()
        return node
    yield make
    for node in nodes:
        node.finish()


def move_state_deep(node):
    node.state = os.path.join(node.state, DEEP)
    os.makedirs(node.state)


def root(name, **fields):
    return specs.pod(name, specs.container(image=NAME, script=SCRIPT), **fields)


def volume(name, reference=NAME, **fields):
    return specs.pod(name, specs.container(volumeMounts=[specs.mount("model", "/model")]),
                     volumes=[{"name": "model", "image": {"reference": reference, "pullPolicy": "Never"}}], **fields)


def expect_layers(node, name):
    world.wait(lambda: node.logged(name) == [str(COUNT - 1)] * 2,
               lambda: f"it sees all layers: {node.log_lines(name)}")


@pytest.mark.parametrize("way", WAYS)
def test_a_container_has_all_127_layers(make, archives, way):
    node = make(FailingNode, way)
    node.preload(archives(COUNT))
    node.launch(root("many"))
    expect_layers(node, "many")
    if way != "one-by-one":
        assert node.hits()["mainstay-shim:overlay.layers"] > 0
    world.kill_all([node.init("many")])
    node.wait_restarts("many", 1)


@pytest.mark.parametrize("way", WAYS)
def test_a_container_with_own_users_has_all_127_layers(make, archives, way):
    node = make(FailingNetworkNode, way)
    node.preload(archives(COUNT))
    node.launch(root("many", hostNetwork=False, hostUsers=False))
    expect_layers(node, "many")
    assert os.stat(f"/proc/{node.init('many')}/root/last").st_uid > 0


@pytest.mark.parametrize("own_users", [False, True], ids=["node", "own"])
@pytest.mark.parametrize("way", WAYS)
def test_127_layers_run_below_a_deep_state_directory(make, archives, way, own_users):
    node = make(FailingNetworkNode, way, move_state_deep)
    node.preload(archives(COUNT))
    node.launch(root("many", **({"hostNetwork": False, "hostUsers": False} if own_users else {})))
    expect_layers(node, "many")


@pytest.mark.parametrize("own_users", [False, True], ids=["node", "own"])
@pytest.mark.parametrize("deep", [False, True], ids=["usual", "deep"])
@pytest.mark.parametrize("way", WAYS)
def test_an_image_volume_has_all_127_layers(make, archive, archives, way, deep, own_users):
    node = make(FailingNetworkNode, way, move_state_deep if deep else lambda node: None)
    node.preload(archive)
    node.preload(archives(COUNT))
    node.launch(volume("reader", **({"hostNetwork": False, "hostUsers": False} if own_users else {})))
    model = f"/proc/{node.init('reader')}/root/model"
    assert len(os.listdir(f"{model}/layers")) == COUNT - 1
    assert world.read(f"{model}/last") == f"{COUNT - 1}\n"
    assert {"ro", "noexec", "nosuid", "nodev"} <= set(world.mount_at(node.init("reader"), "/model")["options"])


def test_an_image_of_127_layers_runs_after_a_delta(make, archive, tmp_path, serve):
    old, new = layers(COUNT), [*layers(COUNT)[:-1], {"layers/new": b"", "last": b"new\n"}]
    pulls = World(tmp_path, serve, Blobs(old), Blobs(new))
    pulls.pull_old().offer({pulls.new.layers[-1]: deltas.tar_diff(old[-1], Blobs.tar(new[-1]))})
    status, said, _ = pulls.pull_new()
    assert status == 0 and '"info":"pulling a delta' in said, said
    node = make(FailingNode, store=pulls.store)
    node.preload(archive)
    node.launch(volume("reader", pulls.name("new")))
    model = f"/proc/{node.init('reader')}/root/model"
    assert len(os.listdir(f"{model}/layers")) == COUNT - 1
    assert world.read(f"{model}/last") == "new\n"


def test_more_layers_than_possible_are_refused_with_their_number(node, archives):
    node.preload(archives(257))
    node.drop(root("many"))
    assert "257.tar: configuration: it has more than 256 layers" in node.wait_waiting("many", "ImagePullBackOff")
