# SPDX-License-Identifier: Apache-2.0
"""The user of a container according to /etc/passwd and /etc/group of its image: files, links within the image, and
paths that cannot be resolved."""

import hashlib
import json
import os

import layered_image
import pytest
import specs
import world
from layered_image import Link

PASSWD = b"root:x:0:0::/:/bin/sh\nbroken:x:77\nname:x:zero:0::/:\napp:x:77:78::/:/bin/sh\n1234:x:0:0::/:\n"
GROUP = b"root:x:0:\nbad\napp:x:78:\nteam:x:88:app\nother:x:99:someone\n"
FILES = {"etc/passwd": PASSWD, "etc/group": GROUP}
STORE = {"nix/": b"", "nix/passwd": PASSWD, "nix/group": GROUP}
APP = ("77", "78", ["78", "88"])

# The forms of the two files in an image, layer by layer; "etc!" is an /etc that replaces that of the base.
LAYOUTS = {
    "files": [FILES],
    "absolute": [{**STORE, "etc/passwd": Link("/nix/passwd"), "etc/group": Link("/nix/group")}],
    "relative": [{**STORE, "etc/passwd": Link("../nix/passwd"), "etc/group": Link("../nix/group")}],
    "leaving": [{**STORE, "etc/passwd": Link("../../../../nix/passwd"), "etc/group": Link("/../../nix/group")}],
    "hops": [{**STORE, "a": Link("b"), "b": Link("/c/../nix"), "c/": b"", "etc/passwd": Link("/a/passwd"),
              "etc/group": Link("passwd-"), "etc/passwd-": Link("../a/group")}],
    "other-layer": [STORE, {"etc/passwd": Link("/nix/passwd"), "etc/group": Link("/nix/group")}],
    "etc": [{**STORE, "etc": Link("nix")}],
    "etc-hops": [{**STORE, "etc": Link("/usr/etc"), "usr/etc": Link("../nix")}],
    "whiteout": [FILES, {"etc/.wh.passwd": b"", "etc/.wh.group": b""}, FILES],
}
LOOP = [{"etc/passwd": Link("/etc/passwd-"), "etc/passwd-": Link("passwd"), "etc/group": GROUP}]
NODE = [{"etc/passwd": Link("/proc/self/root/etc/passwd"), "etc/group": Link("/proc/1/root/etc/group")}]
HUGE = [{"etc/passwd": b"#\n" * 2**19 + PASSWD, "etc/group": GROUP}]
ABSENT = [{"etc/.wh.passwd": b"", "etc/.wh.group": b""}]


def base(has_etc=True):
    """The layers of the common test image, without /etc if that is to be a link."""
    with open("/bin/busybox", "rb") as file:
        busybox = file.read()
    tree = {"bin/": b"", "bin/busybox": busybox, "bin/sh": Link("busybox"), "bin/sleep": Link("busybox"),
            "proc/": b"", "sys/": b"", "dev/": b"", "tmp/": b""}
    return layered_image.tar({**tree, "etc/": b""} if has_etc else tree)


def add_image(node, name, layers, user=None):
    reference = f"docker.io/library/{name}:1"
    path = layered_image.save(f"{node.data}/{name}.tar", reference,
                              [base(not any("etc" in layer for layer in layers)), *map(layered_image.tar, layers)],
                              {"User": user, "Env": ["PATH=/bin"]})
    node.preload(path, f"{name}.tar")
    return reference


def users_pod(name, image, context=None, **pod_context):
    return specs.pod(name, specs.container(image=image, **({"securityContext": context} if context else {})),
                     **({"securityContext": pod_context} if pod_context else {}))


def identity(node, name):
    pid = node.init(name)
    uid, gid = (world.status(pid, key).split() for key in ("Uid", "Gid"))
    assert len(set(uid)) == len(set(gid)) == 1
    return uid[0], gid[0], sorted(world.status(pid, "Groups").split())


def expect(node, name, image, expected, context=None, **pod_context):
    node.launch(users_pod(name, image, context, **pod_context))
    assert identity(node, name) == expected


@pytest.mark.parametrize("layout", LAYOUTS)
def test_users_are_resolved_within_the_image(node, layout):
    """A numeric user gets the same groups as with plain files, whether the image or the pod names it."""
    for user in ("app", "77"):
        expect(node, f"image-{user}", add_image(node, f"of-{user}", LAYOUTS[layout], user), APP)
    image = add_image(node, "root", LAYOUTS[layout])
    expect(node, "pod", image, APP, runAsUser=77)
    expect(node, "container", image, APP, {"runAsUser": 77})
    expect(node, "root", image, ("0", "0", ["0"]))


@pytest.mark.parametrize("user,expected", [
    ("77:99", ("77", "99", ["88", "99"])),
    ("app:other", ("77", "99", ["88", "99"])),
    ("app:5", ("77", "5", ["5", "88"])),
    ("app:", APP),
    ("1234", ("1234", "0", ["0"])),
    ("5:6", ("5", "6", ["6"])),
    ("", ("0", "0", ["0"])),
])
def test_the_user_of_an_image_has_its_own_group_and_the_groups_that_list_it(node, user, expected):
    expect(node, "user", add_image(node, "user", LAYOUTS["absolute"], user), expected)


@pytest.mark.parametrize("context,expected", [
    ({"runAsUser": 77, "runAsGroup": 5}, ("77", "5", ["5", "88"])),
    ({"runAsGroup": 5}, ("77", "5", ["5", "88"])),
    ({"runAsUser": 1000}, ("1000", "0", ["0"])),
    ({"runAsUser": 77, "supplementalGroups": [9], "fsGroup": 8}, ("77", "78", ["78", "8", "88", "9"])),
    ({"runAsUser": 77, "supplementalGroupsPolicy": "Strict"}, ("77", "78", ["78"])),
    ({"supplementalGroupsPolicy": "Strict", "supplementalGroups": [9]}, ("77", "78", ["78", "9"])),
    ({"supplementalGroupsPolicy": "Merge", "supplementalGroups": [9]}, ("77", "78", ["78", "88", "9"])),
], ids=str)
def test_a_pod_s_user_and_groups_take_precedence(node, context, expected):
    expect(node, "user", add_image(node, "user", LAYOUTS["relative"], "app"), expected, **context)


@pytest.mark.parametrize("layers,user,cause", [
    (LAYOUTS["files"], "nobody", "the image's user 'nobody' is not in its /etc/passwd"),
    (LAYOUTS["files"], "broken", "the image's user 'broken' is not in its /etc/passwd"),
    (LAYOUTS["files"], "name", "the image's user 'name' is not in its /etc/passwd"),
    (LAYOUTS["files"], "app:nosuchgroup", "the image's group 'nosuchgroup' is not in its /etc/group"),
    (LAYOUTS["files"], "4294967296", "the image's user '4294967296' is out of range"),
    (NODE, "root", "the image's user 'root' is not in its /etc/passwd"),
    (ABSENT, "root", "the image's user 'root' is not in its /etc/passwd"),
], ids=lambda value: value if isinstance(value, str) and " " not in value else None)
def test_a_container_waits_for_a_user_that_its_image_does_not_have(node, layers, user, cause):
    """Only the container that needs the user waits: others of the same image and of the same pod run."""
    image = add_image(node, "user", layers, user)
    node.drop(specs.pod("mixed", specs.container("named", image=image),
                        specs.container("numbered", image=image, securityContext={"runAsUser": 4000, "runAsGroup": 4001})))
    message = node.wait_waiting("mixed", "CreateContainerConfigError", "named")
    assert cause in message and "runAsUser" in message
    pid = node.init("mixed", "numbered")
    assert world.status(pid, "Gid").split()[0] == "4001"
    expect(node, "user-alone", image, ("4000", "0", ["0"]), runAsUser=4000)


def test_a_group_that_the_image_does_not_have_is_overridden_alone(node):
    image = add_image(node, "user", LAYOUTS["files"], "app:nosuchgroup")
    expect(node, "group", image, ("77", "5", ["5", "88"]), runAsGroup=5)
    expect(node, "user", image, APP, runAsUser=77)


@pytest.mark.parametrize("layers,cause", [(LOOP, "cannot be resolved: Too many levels of symbolic links"),
                                          (HUGE, "is larger than 1 MiB"),
                                          ([{"etc/passwd/": b""}], "is not a regular file")], ids=["loop", "huge", "directory"])
def test_no_container_runs_with_the_root_group_because_its_users_cannot_be_read(node, layers, cause):
    image = add_image(node, "user", layers, "77")
    node.drop(users_pod("image", image))
    node.drop(users_pod("pod", image, runAsUser=77, runAsGroup=5))
    for name in ("image", "pod"):
        assert f"the image's /etc/passwd {cause}" in node.wait_waiting(name, "CreateContainerConfigError")


def test_a_pod_that_names_all_ids_needs_no_files_of_the_image(node):
    image = add_image(node, "user", LOOP, "app")
    expect(node, "strict", image, ("77", "5", ["5"]), runAsUser=77, runAsGroup=5, supplementalGroupsPolicy="Strict")


def test_a_numeric_user_that_cannot_be_resolved_is_not_root(node):
    image = add_image(node, "user", LAYOUTS["files"], "77:nosuchgroup")
    node.drop(users_pod("pod", image, runAsNonRoot=True))
    assert "nosuchgroup" in node.wait_waiting("pod", "CreateContainerConfigError")


def as_of_an_earlier_version(path):
    """Rewrites the record of an image like a version that did not follow the links."""
    record = json.loads(world.read(path)[:-65])
    assert record.pop("userVersion") == 2
    record.pop("userError", None)
    record.update({"gid": 0, "groups": []} if record["user"] == "77" else
                  {"uid": 0, "gid": 0, "groups": [], "userError": "the image's user 'app' is not in its /etc/passwd"})
    text = json.dumps(record)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{text}{hashlib.sha256(text.encode()).hexdigest()}\n")


def test_the_users_of_images_of_an_earlier_version_are_resolved_again(node):
    images = {user: add_image(node, f"of-{user}", LAYOUTS["absolute"], user) for user in ("app", "77")}
    for user, image in images.items():
        expect(node, f"first-{user}", image, APP)
    for user in images:
        node.remove(f"first-{user}")
        node.wait_gone(f"first-{user}")
    node.stop()
    for entry in os.scandir(f"{node.state}/images/records"):
        if json.loads(world.read(entry.path)[:-65]).get("user") in images:
            as_of_an_earlier_version(entry.path)
    node.start()
    for user, image in images.items():
        expect(node, f"second-{user}", image, APP)
