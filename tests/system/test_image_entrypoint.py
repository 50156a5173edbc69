# SPDX-License-Identifier: Apache-2.0
"""Entrypoints and commands of images that are empty, and their effect on a pod."""

import layered_image
import pytest
import specs
import world

NAME = "docker.io/library/empty:1"
LONG = ["sleep", "100000"]


def drop(node, config, **fields):
    path = layered_image.save(f"{node.data}/empty.tar", NAME, [layered_image.busybox_layer()],
                              {"Env": ["PATH=/bin"], **config})
    node.preload(path)
    node.drop(specs.pod("web", {"name": "main", "image": NAME, **fields}, terminationGracePeriodSeconds=1))


@pytest.mark.parametrize("config,fields", [
    ({"Entrypoint": [""], "Cmd": LONG}, {}),
    ({"Entrypoint": [""]}, {"args": LONG}),
    ({"Entrypoint": [""], "Cmd": ["false"]}, {"args": LONG}),
    ({"Entrypoint": [""], "Cmd": [""]}, {"command": LONG}),
    ({"Entrypoint": None, "Cmd": LONG}, {}),
    ({"Entrypoint": [], "Cmd": LONG}, {"command": [], "args": []}),
    ({"Entrypoint": ["sleep"], "Cmd": None}, {"args": LONG[1:]}),
    ({"Entrypoint": [None], "Cmd": LONG}, {}),
], ids=str)
def test_an_entrypoint_of_an_empty_string_is_ignored(node, config, fields):
    drop(node, config, **fields)
    node.wait_running("web")
    world.wait(lambda: world.cmdline(node.init("web")) == LONG, "it runs the expected command")


@pytest.mark.parametrize("config", [{}, {"Entrypoint": [""]}, {"Entrypoint": [""], "Cmd": None}, {"Cmd": []}], ids=str)
def test_a_container_without_any_command_is_not_created(node, config):
    drop(node, config)
    assert "no command specified" in node.wait_waiting("web", "CreateContainerError")


@pytest.mark.parametrize("config,fields", [
    ({"Cmd": [""]}, {}),
    ({"Entrypoint": [""], "Cmd": [""]}, {}),
    ({"Entrypoint": ["", "sleep"]}, {}),
    ({"Entrypoint": LONG}, {"command": [""]}),
    ({}, {"args": [""]}),
], ids=str)
def test_an_empty_string_as_the_program_is_an_error(node, config, fields):
    drop(node, config, **fields)

    def has_failed(pod):
        last = pod["status"]["containerStatuses"][0].get("lastState", {}).get("terminated", {})
        return last.get("reason") == "StartError" and '""' in last.get("message", "")
    node.wait_pod("web", has_failed, "it fails to start")
