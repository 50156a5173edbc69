# SPDX-License-Identifier: Apache-2.0
"""Huge pages: the mount, the pages in use, the cgroup's limit, and a node without them."""

import os
import re

import pytest
import specs
import world

# All tests use huge pages of the same machine.
pytestmark = [pytest.mark.xdist_group("hugepages"), pytest.mark.cgroup2]

COUNT = "/proc/sys/vm/nr_hugepages"


def free_pages():
    return int(re.search(r"^HugePages_Free:\s*(\d+)", world.read("/proc/meminfo"), re.M).group(1))


@pytest.fixture(name="pages")
def fixture_pages():
    """Reserves a few pages of 2 MiB for the node during a test."""
    before = world.read(COUNT)
    with open(COUNT, "w", encoding="ascii") as file:
        file.write(str(int(before) + 4))
    yield
    with open(COUNT, "w", encoding="ascii") as file:
        file.write(before)


def huge_pod(name, script=specs.IDLE, amount="4Mi", empty_dir=None, **spec):
    resources = {"limits": {"hugepages-2Mi": amount, "memory": "32Mi"}}
    return specs.pod(name, specs.container(script=script, resources=resources,
                                           volumeMounts=[specs.mount("huge", "/huge")]),
                     volumes=[{"name": "huge", "emptyDir": empty_dir or {"medium": "HugePages"}}], **spec)


def test_an_empty_dir_in_huge_pages_uses_them(node, pages):
    free = free_pages()
    node.launch(huge_pod("huge", "fallocate -l 4194304 /huge/file && echo taken; " + specs.IDLE,
                         empty_dir={"medium": "HugePages-2Mi", "sizeLimit": "4Mi"},
                         securityContext={"fsGroup": 1234}))
    world.wait(lambda: node.logged("huge") == ["taken"], lambda: f"pages are in use: {node.log_lines('huge')}")
    mount = world.mount_at(node.init("huge"), "/huge")
    assert mount["type"] == "hugetlbfs"
    assert {"pagesize=2M", "size=4M"} & set(mount["super"]) and free_pages() == free - 2
    top = os.stat(f"/proc/{node.init('huge')}/root/huge")
    assert (top.st_mode & 0o7777, top.st_gid) == (0o2777, 1234)
    node.remove("huge")
    node.wait_gone("huge")
    world.wait(lambda: free_pages() == free, "the pages are free again")


def test_the_pods_cgroup_limits_huge_pages_if_possible(node, pages):
    node.launch(huge_pod("limited"))
    limits = {version: world.cgroup_value(node.pod_cgroup("limited"), "hugetlb", f"hugetlb.2MB.{file}")
              for version, file in ((1, "limit_in_bytes"), (2, "max"))}
    controller = world.CGROUP + ("/cgroup.controllers" if world.cgroup_version() == 2 else "/hugetlb/cgroup.procs")
    text = world.read(controller)
    has_controller = text is not None and (world.cgroup_version() == 1 or "hugetlb" in text)
    assert limits[world.cgroup_version()] == (str(4 << 20) if has_controller else None)


def test_too_few_huge_pages_are_reported_and_the_pod_starts_when_they_suffice(node):
    total = int(world.read(COUNT)) << 21
    node.drop(huge_pod("late", amount=f"{total + (4 << 20)}"))
    node.wait_pod("late", lambda pod: "hugepages-2Mi" in str(pod["status"]), "reports what is missing")
    before = world.read(COUNT)
    with open(COUNT, "w", encoding="ascii") as file:
        file.write(str(int(before) + 2))
    try:
        node.wait_running("late")
    finally:
        with open(COUNT, "w", encoding="ascii") as file:
            file.write(before)
