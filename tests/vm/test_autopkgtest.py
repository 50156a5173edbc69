# SPDX-License-Identifier: Apache-2.0
"""The tests of debian/tests, in order, executed as by autopkgtest: by root on a machine with the package, which was
just installed or, with $MAINSTAY_OLD_PACKAGE, has replaced an earlier one while a pod ran."""

import os
import re

from conftest import OLD_PACKAGE, TOP, machine_of
from pods import end, launch, process
import pytest

pytestmark = pytest.mark.long

TESTS = os.path.join(TOP, "packaging", "debian", "tests")
DEADLINE = 900  # seconds for each script, and for dpkg


def names():
    with open(os.path.join(TESTS, "control"), encoding="utf-8") as file:
        return [name for line in re.findall(r"^Tests: (.*)$", file.read(), re.MULTILINE) for name in line.split()]


def upgrade(machine):
    """Upgrades from the earlier package; a pod that it started keeps its process."""
    machine.boot()
    machine.run("dpkg --install /opt/test/old.deb", DEADLINE)
    machine.run("cp /opt/test/busybox-*.tar /var/lib/mainstay/preload/")
    launch(machine, "early")
    before = process(machine, "early")
    machine.run("dpkg --install /opt/test/mainstay_*.deb", DEADLINE)
    machine.wait("mainstay get pods | grep -E '^early-machine +1/1 +Running +0 '", "the new agent has the pod", DEADLINE)
    assert process(machine, "early") == before
    end(machine, "early")


@pytest.fixture(scope="module", name="machine", params=["installed", *(["upgraded"] if OLD_PACKAGE else [])])
def _machine(request, disk, installed):
    with machine_of(disk) as machine:
        if request.param == "installed":
            machine.resume(installed)
        else:
            upgrade(machine)
        yield machine


@pytest.mark.parametrize("name", names())
def test_script_of_debian_tests_passes(machine, name):
    with open(os.path.join(TESTS, name), encoding="utf-8") as file:
        machine.write(f"/tmp/{name}", file.read())
    print(machine.run(f"chmod 755 /tmp/{name} && cd /tmp && ./{name}", DEADLINE))
