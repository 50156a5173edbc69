# SPDX-License-Identifier: Apache-2.0
"""Images in the layouts that real tools write run, or fail with the error that containerd reports (tool_images.py)."""

import inspect
import os

import pytest
import specs
import tool_images
import world


def preload(node, name, directory):
    build = tool_images.IMAGES[name].build
    words = [str(directory)] if "directory" in inspect.signature(build).parameters else []
    path = os.path.join(str(directory), name + ".image.tar")
    with open(path, "wb") as file:
        file.write(build(tool_images.reference(name), *words))
    node.preload(path)


@pytest.mark.parametrize("name", tool_images.IMAGES)
def test_images_of_build_tools_run_or_are_refused_like_by_containerd(shared_node, tmp_path, name):
    node, image = shared_node, tool_images.IMAGES[name]
    pod = name.replace("_", "-")
    preload(node, name, tmp_path)
    node.drop(specs.pod(pod, {"name": "main", "image": tool_images.reference(name), "imagePullPolicy": "Never"}, restartPolicy="Never"))
    if image.refused:
        world.wait(lambda: image.refused in node.complaints(), lambda: f"'{image.refused}' is reported: {node.describe_pod(pod, 'waits')}")
    else:
        node.wait_phase(pod, "Succeeded")
        assert " ".join(node.logged(pod)) == image.says
    node.remove(pod)
    node.wait_gone(pod)


def test_there_are_more_than_sixty_examples():
    assert len(tool_images.IMAGES) >= 60


def test_image_that_containerd_runs_and_mainstay_refuses_is_a_documented_difference():
    refused = {name: image.containerd for name, image in tool_images.IMAGES.items() if image.refused}
    assert all(refused.values())
    assert {name for name, verdict in refused.items() if verdict == tool_images.RUNS} == {
        "index_too_deep", "windows_image", "layers_with_names_that_leave"}
