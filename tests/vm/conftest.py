# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the package and the disk, made once, and machines that boot from it."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "system"))

import image  # noqa: E402  pylint: disable=wrong-import-position
from machine import Machine  # noqa: E402  pylint: disable=wrong-import-position
import specs  # noqa: E402  pylint: disable=wrong-import-position

PACKAGE = os.environ.get("MAINSTAY_PACKAGE", os.path.join(TOP, "build-deb"))


@pytest.fixture(scope="session", name="disk")
def _disk():
    """The disk, the kernel and the RAM disk; with our package and an image of a container in /root."""
    cache = os.path.join(TOP, "build-vm")
    os.makedirs(cache, exist_ok=True)
    (package,) = glob.glob(os.path.join(PACKAGE, "mainstay_*.deb"))
    archive = os.path.join(cache, "busybox.tar")
    if not os.path.exists(archive):
        subprocess.run([os.path.join(TOP, "tests", "make-image"), specs.IMAGE, archive], check=True)
    return image.build(cache, [package, archive])


@pytest.fixture(scope="module", name="machine")
def _machine(disk):
    """Booted, with our package installed; all tests of a file share it, in their order."""
    directory = tempfile.mkdtemp(prefix="mainstay-vm-")
    machine = Machine(directory, *disk)
    try:
        machine.boot()
        machine.run("dpkg --install /root/mainstay_*.deb")
        machine.run("cp /root/busybox.tar /var/lib/mainstay/preload/")
        yield machine
    finally:
        machine.end()
        shutil.rmtree(directory)
