# SPDX-License-Identifier: Apache-2.0
"""Volumes that are images: of one layer and of several, read-only, waited for, with parts of them."""

import os

import layered_image
import pytest
import specs
import world

MODEL = "example.com/model:1"


def model(node, *layers):
    return layered_image.save(f"{node.data}/model.tar", MODEL, [layered_image.tar(layer) for layer in layers])


def image_pod(name, script=specs.IDLE, reference=MODEL, policy="IfNotPresent", **mount):
    return specs.pod(name, specs.container(script=script, volumeMounts=[specs.mount("model", "/model", **mount)]),
                     volumes=[{"name": "model", "image": {"reference": reference, "pullPolicy": policy}}])


@pytest.mark.parametrize("layers", [({"weights": b"one", "dir/file": b"two"},),
                                    ({"weights": b"old", "dir/file": b"two"}, {"weights": b"one"})])
def test_the_files_of_an_image_volume_are_read_only(node, layers):
    node.preload(model(node, *layers))
    node.launch(image_pod("reader"))
    root = f"/proc/{node.init('reader')}/root/model"
    assert (world.read(f"{root}/weights"), world.read(f"{root}/dir/file")) == ("one", "two")
    assert {"ro", "noexec", "nosuid", "nodev"} <= set(world.mount_at(node.init("reader"), "/model")["options"])
    with pytest.raises(OSError):
        with open(f"{root}/weights", "w", encoding="ascii"):
            pass


def test_programs_of_an_image_volume_cannot_be_executed(node):
    with open("/bin/busybox", "rb") as file:
        node.preload(model(node, {"busybox": file.read()}))
    node.launch(image_pod("runner", "/model/busybox true; echo $?; " + specs.IDLE))
    world.wait(lambda: "126" in node.logged("runner"),
               lambda: f"it was refused: {node.log_lines('runner')}")


def test_a_pod_waits_for_the_image_of_a_volume_and_reports_it(node):
    node.drop(image_pod("waits"))
    message = node.wait_waiting("waits", "ImagePullBackOff")
    assert message.startswith(f'volume "model": Back-off pulling image "{MODEL}": ')
    node.preload(model(node, {"weights": b"late"}))
    node.wait_running("waits")
    assert world.read(f"/proc/{node.init('waits')}/root/model/weights") == "late"


def test_pull_policy_never_applies_to_image_volumes(node):
    node.drop(image_pod("never", policy="Never"))
    assert "pull policy of Never" in node.wait_waiting("never", "ErrImageNeverPull")


def test_a_sub_path_of_an_image_is_mounted_alone(node):
    node.preload(model(node, {"dir/file": b"part", "other": b"x"}, {"dir/more": b"y"}))
    node.launch(image_pod("part", subPath="dir"))
    init = node.init("part")
    assert sorted(os.listdir(f"/proc/{init}/root/model")) == ["file", "more"]
    assert {"ro", "noexec"} <= set(world.mount_at(init, "/model")["options"])


def test_a_sub_path_missing_in_the_image_is_an_error_of_the_container(node):
    node.preload(model(node, {"dir/file": b"part"}))
    node.drop(image_pod("missing", subPath="nothing"))
    assert "nothing" in node.wait_waiting("missing", "CreateContainerError")


def test_an_image_volume_is_mounted_again_for_each_attempt(node):
    node.preload(model(node, {"weights": b"one"}))
    node.launch(image_pod("again"))
    world.kill_all([node.init("again")])
    node.wait_restarts("again", 1)
    assert world.read(f"/proc/{node.init('again')}/root/model/weights") == "one"


def test_image_volumes_have_the_events_of_container_images(node, archive):
    node.drop(image_pod("waits", reference="127.0.0.1:1/none:1"))
    node.wait_waiting("waits", "ImagePullBackOff")

    def events():
        return node.cli("get", "events").stdout
    for words in ('Pulling image "127.0.0.1:1/none:1"', 'Failed to pull image "127.0.0.1:1/none:1"',
                  'Back-off pulling image "127.0.0.1:1/none:1"'):
        world.wait(lambda words=words: words in events(), f"'{words}' is reported")
    node.preload(model(node, {"weights": b"x"}))
    node.launch(image_pod("reader"))
    assert f'Container image "{MODEL}" already present' in events()
