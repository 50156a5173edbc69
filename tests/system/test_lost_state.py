# SPDX-License-Identifier: Apache-2.0
"""The state directory is removed as a whole: running pods stay, and necessary files are created again."""

import os
import shutil

import pytest
import specs
import world


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "dead"])
def test_pods_keep_running_without_the_state_directory_which_is_created_again(node, archive, is_running):
    for name in ("web", "gone"):
        node.launch(specs.pod(name))
    pid = node.init("web")
    if not is_running:
        node.kill9()
    os.rename(node.state, f"{node.directory}/lost")
    shutil.rmtree(f"{node.directory}/lost")
    if is_running:
        node.remove("gone")
        node.wait_gone("gone")
        node.kill9()
    node.start()
    node.preload(archive)
    node.launch(specs.pod("new"))
    if not is_running:
        node.remove("gone")
        node.wait_gone("gone")
    node.restart()
    node.wait_running("web")
    node.wait_running("new")
    assert node.init("web") == pid
    assert [node.status(name)["restartCount"] for name in ("web", "new")] == [0, 0]
    assert node.pod("web")["metadata"]["uid"] in os.listdir(f"{node.state}/pods")


@pytest.mark.parametrize("part", ["", "layers", "records"])
def test_new_pods_have_their_image_again_when_the_image_store_was_removed(node, part):
    node.launch(specs.pod("web"))
    pid = node.init("web")
    shutil.rmtree(os.path.join(node.state, "images", part))
    node.launch(specs.pod("new"))
    assert node.status("new")["restartCount"] == 0
    node.launch(specs.pod("user", securityContext={"runAsUser": 1000}))
    assert world.status(node.init("user"), "Uid").split()[0] == "1000"
    assert node.init("web") == pid
    node.restart()
    node.launch(specs.pod("later"))
