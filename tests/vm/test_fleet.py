# SPDX-License-Identifier: Apache-2.0
"""mainstay-fleet(7), executed literally: its blocks run on two machines in one network, and on one without a network
card. The first is the web server and a node without a till, the second is a node with one."""

import base64
import collections
import contextlib
import os
import re
import subprocess

from conftest import TOP, install, machine_of
from machine import SLOTS
import pytest

PAGE = os.path.join(TOP, "packaging", "man", "mainstay-fleet.7.md")
ROLES = {"On the web server": "server", "On each node": "nodes", "On a node with a till": "till",
         "On a node without a network": "alone"}
COPIED = ("/etc/nginx/manifests.crt", "/srv/fleet/shops.pub")
# A recipient whose identity nobody has.
LOST = "age1pd0sq93apwac3h6p4w5v5ra730xl8455zykcnhweqd272wkpxfnqhwvmns"
# Searched only as whole words, because a digest may contain such digits.
CODES = "-e 4711 -e 081500 -e NDcxMQ== -e MDgxNTAw"
DEADLINE = 600  # twice the time that the page names, under emulation

pytestmark = pytest.mark.long


def read_blocks():
    """The blocks of each section in order: the machine to which each belongs, and the script."""
    sections, section, role = collections.OrderedDict(), None, None
    with open(PAGE, encoding="utf-8") as page:
        for paragraph in re.split(r"\n\n", page.read()):
            if paragraph.startswith("## "):
                section, role = sections.setdefault(paragraph[3:].strip(), []), None
            elif paragraph.startswith("    "):
                assert role, f"the page does not state where this is run:\n{paragraph}"
                section.append((role, "".join(line[4:] + "\n" for line in paragraph.splitlines())))
            else:
                role = next((role for words, role in ROLES.items() if paragraph.startswith(words)), None)
    return {name: blocks for name, blocks in sections.items() if blocks}


class Fleet:
    def __init__(self, server, till, alone):
        self.server, self.till, self.nodes, self.alone = server, till, [server, till], alone
        self.blocks = read_blocks()

    def next(self, section):
        """Runs the next block of a section; returns the output of the machines."""
        role, script = self.blocks[section].pop(0)
        machines = {"server": [self.server], "nodes": self.nodes, "till": [self.till], "alone": [self.alone]}[role]
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
        server, till, alone = (stack.enter_context(machine_of(disk)) for _ in range(3))
        lan = f"stream,id=lan,addr.type=unix,addr.path={server.path('lan')}"
        for number, (machine, end) in enumerate(((server, "on"), (till, "off")), 1):
            install(machine, *SLOTS, "-netdev", f"{lan},server={end}", "-device", f"virtio-net-pci,netdev=lan,mac=52:54:00:00:00:0{number}")
            machine.run(f"ip link set eth0 up && ip address add 10.1.1.{number}/24 dev eth0; "
                        "echo 10.1.1.1 manifests.example.com >>/etc/hosts")
        yield Fleet(server, till, alone)


def identity(machine, name):
    """State that a replaced or restarted pod would change."""
    return machine.run(f"mainstay get pods -l app={name} -o json | grep -E '\"(uid|containerID|restartCount)\"'")


def serve_as_registry(machine):
    """Replaces skopeo, because there is no network: the image that the page copies from a registry is copied from an
    archive on this machine."""
    machine.write("/usr/local/bin/skopeo", "#!/bin/sh\nset -e\ncp /opt/test/skopeo.tar \"$(expr \"$3\" : 'oci-archive:\\([^:]*\\)')\"\n")
    machine.run("chmod +x /usr/local/bin/skopeo")


def empty_store(machine):
    machine.run("systemctl stop mainstay; rm -rf /var/lib/mainstay/preload/* /var/lib/mainstay/images; systemctl start mainstay")


def test_commands_of_the_page_lead_from_an_empty_web_server_to_an_updated_fleet(fleet):
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
    fleet.wait_each("mainstay source status | grep 'index 4 of the fleet shops'", "the corrected index is taken")
    assert identity(fleet.till, "till") == till


def test_commands_of_the_page_encrypt_a_secret_and_exclude_a_lost_node(fleet):
    recipients = fleet.next("A SECRET")
    found = [re.search(r"^age1\w+$", printed, re.M).group() for printed in recipients]
    assert len(set(found)) == 2, recipients
    fleet.server.write("/srv/fleet/shops.recipients", "".join(f"# {name}\n{recipient}\n" for name, recipient in
                                                             zip(("server", "till-9", "till-1"), (found[0], LOST, found[1]))))
    (signed,) = fleet.next("A SECRET")
    assert "till-code: code is encrypted for 3 recipients: server, till-9, till-1" in signed, signed
    fleet.till.wait("mainstay logs daemonset/till | grep 'Open with a code of 4 characters'", "the till has the code", DEADLINE)
    fleet.next("A SECRET")
    (signed,) = fleet.next("A LOST NODE")
    assert "till-code: code is encrypted for 2 recipients: server, till-1" in signed, signed
    assert LOST not in fleet.server.run("cat /srv/fleet/shops.recipients")
    fleet.till.wait("mainstay logs daemonset/till | grep 'Open with a new code of 6 characters'", "the till has the new code", DEADLINE)
    fleet.next("A LOST NODE")
    fleet.wait_each("mainstay source status | grep 'index 6 of the fleet shops'", "the index with the new code is in use")
    for node in fleet.nodes:
        node.run(f"! grep -r -l -w {CODES} /var/lib/mainstay/sources /var/lib/mainstay/secrets /var/log/pods")


class Stick:
    """A disk with a FAT file system, which is plugged into a running machine, mounted, and pulled out."""

    def __init__(self, path):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(64 << 20)
        subprocess.run(["/usr/sbin/mkfs.vfat", path], check=True, stdout=subprocess.DEVNULL)

    def plug(self, machine):
        device = machine.plug(self.path, "stick")
        machine.run(f"mkdir -p /media && mount {device} /media")

    @staticmethod
    def pull(machine):
        machine.run("umount /media")
        machine.pull("stick")


def test_commands_of_the_page_update_an_offline_machine_from_a_stick(fleet, tmp_path):
    stick, alone = Stick(str(tmp_path / "stick")), fleet.alone
    install(alone, *SLOTS)
    alone.run("test \"$(ls /sys/class/net)\" = lo")
    empty_store(alone)
    alone.write("/etc/mainstay/shops.pub", fleet.server.run("cat /srv/fleet/shops.pub"))
    fleet.next("A NODE WITHOUT A NETWORK")
    alone.wait("mainstay source status | grep 'when the directory is there'", "nothing is tried while the stick is out")

    stick.plug(fleet.server)
    fleet.next("A NODE WITHOUT A NETWORK")
    stick.pull(fleet.server)
    stick.plug(alone)
    alone.wait("mainstay source status | grep 'index 6 of the fleet shops'", "the stick's index is in use", DEADLINE)
    alone.wait("mainstay logs daemonset/greeter | grep -x 'Good morning'", "its pod runs", DEADLINE)
    alone.wait("grep -q 'greeter.*Running' /media/reports/*.ndjson && mainstay source status | grep 'all written'",
               "the report is on the stick", DEADLINE)
    (status,) = fleet.next("A NODE WITHOUT A NETWORK")
    assert "greeter-" in status and "till-" not in status, status
    stick.pull(alone)

    stick.plug(fleet.server)
    (printed,) = fleet.next("A NODE WITHOUT A NETWORK")
    assert re.search(r"greeter-\S+ +1/1 +Running", printed), printed
    stick.pull(fleet.server)
    alone.cut_power()
    alone.boot()
    alone.wait("mainstay get pods | grep -E 'greeter-.* 1/1'", "the node starts without the stick", DEADLINE)
    assert not {section: blocks for section, blocks in fleet.blocks.items() if blocks}, "the test runs all blocks of the page"
