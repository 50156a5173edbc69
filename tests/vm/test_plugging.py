# SPDX-License-Identifier: Apache-2.0
"""A device is plugged in and pulled out again and again while a container that has requested it keeps running, and holds
it open."""

import collections
import os

import pytest

import image
import specs
from conftest import CACHE, install, machine_of, make_archive
from pods import configure, container, end, process, wait_running, write

PLUGGINGS = int(os.environ.get("MAINSTAY_PLUGGINGS", "500"))
# The emulator's name for a device, and its conditions in the agent's list.
Device = collections.namedtuple("Device", "added conditions")
VIRTIO = Device("virtserialport,chardev=plugged,name=plugged", "path: /dev/virtio-ports/plugged")
USB = Device("usb-serial,chardev=plugged,serial=plugged,always-plugged=on",
             'match: {subsystem: tty, vendor: "0403", product: "6001", serial: plugged}')
# The container opens the device as soon as it exists, and closes it when its node is gone.
SCRIPT = """trap 'exit 0' TERM; n=0
while :; do
    if (exec 3</dev/port && echo opened $n && while [ -e /dev/port ]; do sleep 0.2; done && echo gone $n) 2>/dev/null; then
        n=$((n + 1))
    else
        sleep 0.2
    fi
done"""
LOGGED = "grep -qE ' stdout F {}$' /var/log/pods/default_web-machine_*/main/0.log"
DESCRIPTORS = "ls /proc/$(systemctl show -P MainPID mainstay)/fd | wc -l"


@pytest.fixture(scope="module", name="usb_machine")
def _usb_machine(package):
    with image.locked_root("usb") as root:
        cache = os.path.join(CACHE, "usb")
        os.makedirs(cache, exist_ok=True)
        image.build(root, cache, [package, make_archive(cache, specs.IMAGE, os.path.join(root, "bin", "busybox"))])
    with machine_of(image.paths(cache)) as machine:
        install(machine, "-device", "qemu-xhci")
        yield machine


def command(machine, text):
    answer = machine.command_monitor(text)
    assert "Error" not in answer, answer


def plug_repeatedly(machine, device, cycles):
    configure(machine, "mainstay:\n  devices:\n"
                       f"  - {{name: port, {device.conditions}, containerPath: /dev/port, optional: true}}\n")
    command(machine, "chardev-add null,id=plugged")
    write(machine, specs.pod("web", specs.container(script=SCRIPT, resources={"limits": {"mainstay.dev/port": 1}})))
    wait_running(machine, "web")
    before = process(machine, "web"), container(machine, "web")["restartCount"]
    descriptors = int(machine.run(DESCRIPTORS))
    for cycle in range(cycles):
        command(machine, f"device_add {device.added},id=plugged")
        machine.wait(LOGGED.format(f"opened {cycle}"), f"the container opens the device in cycle {cycle}")
        command(machine, "device_del plugged")
        machine.wait(LOGGED.format(f"gone {cycle}"), f"the container has no device after cycle {cycle}")
    assert (process(machine, "web"), container(machine, "web")["restartCount"]) == before
    machine.wait(f"[ $({DESCRIPTORS}) -le {descriptors} ]", "the agent has closed all descriptors")
    end(machine, "web")
    command(machine, "chardev-remove plugged")


def test_running_container_keeps_getting_a_port_of_virtio_serial(machine):
    plug_repeatedly(machine, VIRTIO, 10)


@pytest.mark.long
def test_running_container_keeps_getting_a_usb_serial_adapter(usb_machine):
    plug_repeatedly(usb_machine, USB, PLUGGINGS)
