# SPDX-License-Identifier: Apache-2.0
"""Records that a later version has written."""

import hashlib
import json
import re

import pytest
import specs
import world


def edit_record(node, uid, edit):
    """Changes a record; the result is a complete file with a valid checksum."""
    path = f"{node.state}/pods/{uid}/record"
    text = edit(world.read(path)[:-65])
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{text}{hashlib.sha256(text.encode()).hexdigest()}\n")


def with_header_of_tomorrow(text):
    lines = text.split("\n")
    assert lines[0] == "mainstay-record 2"
    return "\n".join(["mainstay-record 3", *lines[1:]])


def with_unknown_fields(text):
    lines = text.split("\n")
    pod = json.loads(lines[1])
    pod["spec"]["fieldOfTomorrow"] = {"a": [1]}
    pod["spec"]["containers"][0]["fieldOfTomorrow"] = "x"
    return "\n".join([lines[0], json.dumps(pod), *lines[2:]])


@pytest.mark.parametrize("edit", [with_header_of_tomorrow, with_unknown_fields], ids=["header", "field"])
def test_the_pod_of_a_record_of_a_later_version_keeps_running(node, edit):
    """The pod also keeps running if its manifest cannot show that it is desired."""
    for name in ("web", "torn"):
        node.launch(specs.pod(name))
    before = {name: node.init(name) for name in ("web", "torn")}
    uids = {name: node.pod(name)["metadata"]["uid"] for name in before}
    node.kill9()
    for uid in uids.values():
        edit_record(node, uid, edit)
    record = world.read(f"{node.state}/pods/{uids['torn']}/record")
    node.write("{", "torn.yaml")
    node.start()
    node.wait_running("web")
    assert re.search(f"Cannot restore pod {uids['torn']} from its record: .* version; leaving it as it is", node.said())
    node.launch(specs.pod("other"))
    assert world.is_alive(before["torn"])
    assert world.read(f"{node.state}/pods/{uids['torn']}/record") == record, "a later version finds the record again"
    node.drop(specs.pod("torn"))
    node.wait_running("torn")
    assert {name: node.init(name) for name in before} == before
    assert [node.status(name)["restartCount"] for name in before] == [0, 0]


def test_record_of_a_version_that_only_noted_block_devices_is_restored(make_member):
    """Version 0.3.0 recorded that a container has volumeDevices, but not which ones."""
    member = make_member()
    member.bind("web")
    member.wait_reported_phase("web", "Running")
    before, uid = member.init("web"), member.reported("web")["metadata"]["uid"]
    member.kill9()
    edit_record(member, uid, with_noted_block_devices)
    member.start()
    member.wait_running("web")
    assert member.init("web") == before and "Cannot restore" not in member.said()


def with_noted_block_devices(text):
    lines = text.split("\n")
    pod = json.loads(lines[1])
    pod["spec"]["containers"][0]["volumeDevices"] = {}
    return "\n".join([lines[0], json.dumps(pod), *lines[2:]])
