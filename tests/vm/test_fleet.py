# SPDX-License-Identifier: Apache-2.0
"""mainstay-fleet(7), word by word: its blocks are run on two machines of one network. The first is the web server and a node
without a till, the second is a node with one."""

import base64
import collections
import contextlib
import os
import re

from conftest import TOP, install, machine_of
import pytest

PAGE = os.path.join(TOP, "packaging", "man", "mainstay-fleet.7.md")
ROLES = {"On the web server": "server", "On each node": "nodes", "On a node with a till": "till"}
COPIED = ("/etc/nginx/manifests.crt", "/srv/fleet/shops.pub")
DEADLINE = 600  # twice the time that the page names, under emulation

pytestmark = pytest.mark.long


def read_blocks():
    """The blocks of each section, in their order: whose they are, and the script."""
    sections, section, role = collections.OrderedDict(), None, None
    with open(PAGE, encoding="utf-8") as page:
        for paragraph in re.split(r"\n\n", page.read()):
            if paragraph.startswith("## "):
                section, role = sections.setdefault(paragraph[3:].strip(), []), None
            elif paragraph.startswith("    "):
                assert role, f"the page does not say where this is run:\n{paragraph}"
                section.append((role, "".join(line[4:] + "\n" for line in paragraph.splitlines())))
            else:
                role = next((role for words, role in ROLES.items() if paragraph.startswith(words)), None)
    return {name: blocks for name, blocks in sections.items() if blocks}


class Fleet:
    def __init__(self, server, till):
        self.server, self.till, self.nodes = server, till, [server, till]
        self.blocks = read_blocks()

    def next(self, section):
        """Runs the next block of a section; returns the output of the machines."""
        role, script = self.blocks[section].pop(0)
        machines = {"server": [self.server], "nodes": self.nodes, "till": [self.till]}[role]
        return [machine.run(f"set -e; mkdir -p /srv/fleet; cd /srv/fleet\n{script}") for machine in machines]

    def copy_to_nodes(self):
        for path in COPIED:
            content = self.server.run(f"base64 -w 0 {path}")
            for node in self.nodes:
                node.write(f"/etc/mainstay/{os.path.basename(path)}", base64.b64decode(content).decode())

    def wait_each(self, script, what):
        for node in self.nodes:
            node.wait(script, what, DEADLINE)


@pytest.fixture(scope="module", name="fleet")
def _fleet(disk):
    with contextlib.ExitStack() as stack:
        server, till = (stack.enter_context(machine_of(disk)) for _ in range(2))
        lan = f"stream,id=lan,addr.type=unix,addr.path={server.path('lan')}"
        for number, (machine, end) in enumerate(((server, "on"), (till, "off")), 1):
            install(machine, "-netdev", f"{lan},server={end}", "-device", f"virtio-net-pci,netdev=lan,mac=52:54:00:00:00:0{number}")
            machine.run(f"ip link set eth0 up && ip address add 10.1.1.{number}/24 dev eth0; "
                        "echo 10.1.1.1 manifests.example.com >>/etc/hosts")
        yield Fleet(server, till)


def identity(machine, name):
    """State that a replaced or restarted pod would change."""
    return machine.run(f"mainstay get pods -l app={name} -o json | grep -E '\"(uid|containerID|restartCount)\"'")


def serve_as_registry(machine):
    """There is no network: what the page copies from a registry, this machine has in an archive, which is then gone."""
    machine.write("/usr/local/bin/skopeo", "#!/bin/sh\nset -e\ncp /var/lib/mainstay/preload/*.tar \"$(expr \"$3\" : 'oci-archive:\\([^:]*\\)')\"\n")
    machine.run("chmod +x /usr/local/bin/skopeo")


def empty_store(machine):
    machine.run("systemctl stop mainstay; rm -rf /var/lib/mainstay/preload/* /var/lib/mainstay/images; systemctl start mainstay")


def test_the_page_from_an_empty_web_server_to_an_updated_fleet(fleet):
    serve_as_registry(fleet.server)
    for _ in range(4):
        fleet.next("THE WEB SERVER")
    for node in fleet.nodes:
        empty_store(node)
    fleet.copy_to_nodes()
    fleet.next("THE NODES")
    fleet.next("THE NODES")
    fleet.wait_each("mainstay logs daemonset/greeter | grep -x Hello", "the first index runs")
    fleet.till.wait("mainstay logs daemonset/till | grep -x Open", "the till has its pod", DEADLINE)
    pods = fleet.next("THE NODES")
    assert all("index 1 of the fleet shops" in printed and "greeter-" in printed for printed in pods), pods
    assert ["till-" in printed for printed in pods] == [False, True], pods

    till, greeter = identity(fleet.till, "till"), identity(fleet.till, "greeter")
    fleet.next("AN UPDATE")
    fleet.wait_each("mainstay logs daemonset/greeter | grep -x 'Good morning'", "the update runs")
    status = fleet.next("AN UPDATE")
    assert all("index 2 of the fleet shops" in printed and "Good morning" in printed for printed in status), status
    assert identity(fleet.till, "till") == till and identity(fleet.till, "greeter") != greeter

    fleet.next("AN UPDATE THAT FAILS")
    fleet.wait_each("mainstay source status | grep 'rolled back index 3'", "the update that fails is rolled back")
    fleet.wait_each("mainstay logs daemonset/greeter | grep -x 'Good morning'", "the index before runs again")
    status = fleet.next("AN UPDATE THAT FAILS")
    assert all("not everything was ready within 30s" in printed and "SourceRefused" in printed for printed in status), status
    assert identity(fleet.till, "till") == till
    fleet.next("AN UPDATE THAT FAILS")
    fleet.wait_each("mainstay source status | grep 'index 4 of the fleet shops'", "the mended index is taken")
    assert identity(fleet.till, "till") == till


def test_a_stick_with_what_is_served(fleet):
    fleet.next("A NODE WITHOUT A NETWORK")
    fleet.server.run("sed -i 's,url: .*,url: file:///media/shops/index.json,; /caFile/d' /etc/mainstay/config.yaml")
    fleet.server.run("rm -r /srv/manifests/shops; ip link delete eth0 2>/dev/null || ip link set eth0 down")
    fleet.server.run("systemctl stop mainstay; rm -rf /var/lib/mainstay/images /var/lib/mainstay/sources; systemctl start mainstay")
    fleet.server.wait("mainstay source status | grep 'index 4 of the fleet shops'", "the stick's index is in use", DEADLINE)
    fleet.server.run("cd /srv/fleet && mainstay source sign manifests /media/shops --key shops.pem --fleet shops --expires 365d "
                     "--from images")
    fleet.server.wait("mainstay source status | grep 'index 5 of the fleet shops'", "the next index of the stick is taken", DEADLINE)
    assert not {section: blocks for section, blocks in fleet.blocks.items() if blocks}, "the test runs all blocks of the page"
