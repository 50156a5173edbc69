# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the package and the disk, made once, and machines that boot from it."""

import contextlib
import glob
import os
import random
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

POWER_CUTS = 10
PACKAGE = os.environ.get("MAINSTAY_PACKAGE", os.path.join(TOP, "build-deb"))


@pytest.fixture(scope="session", name="package")
def _package():
    (package,) = glob.glob(os.path.join(PACKAGE, "mainstay_*.deb"))
    return package


@pytest.fixture(scope="session", name="disk")
def _disk(package):
    """The disk, the kernel and the RAM disk; with our package and images of containers in /opt/test."""
    cache = os.path.join(TOP, "build-vm")
    os.makedirs(cache, exist_ok=True)
    return image.build(cache, [package, make_archive(cache, specs.IMAGE), *make_large_archives(cache, POWER_CUTS)])


def make_archive(cache, name, program="/bin/busybox"):
    """An image archive, and the digest of the program in it."""
    path = os.path.join(cache, name.rsplit("/", 1)[-1].replace(":", "-") + ".tar")
    subprocess.run([os.path.join(TOP, "tests", "make-image"), name, path, "--busybox", program], check=True)
    return path


def make_large_archives(cache, count):
    """Images that take a while to unpack, no two with a layer in common."""
    made = []
    for i in range(count):
        program = os.path.join(cache, f"busybox-{i}")
        with open("/bin/busybox", "rb") as source, open(program, "wb") as file:
            file.write(source.read() + random.Random(i).randbytes(8 << 20))
        os.chmod(program, 0o755)
        made.append(make_archive(cache, f"docker.io/library/large{i}:1", program))
        os.unlink(program)
    return made


@contextlib.contextmanager
def booted(disk, arguments=""):
    """A machine that was told these things by its kernel's command line, with our package installed."""
    directory = tempfile.mkdtemp(prefix="mainstay-vm-")
    machine = Machine(directory, *disk, arguments=arguments)
    try:
        machine.boot()
        machine.run("dpkg --install /opt/test/mainstay_*.deb")
        machine.run("cp /opt/test/busybox-*.tar /var/lib/mainstay/preload/")
        yield machine
    finally:
        machine.end()
        shutil.rmtree(directory)


@pytest.fixture(scope="module", name="machine")
def _machine(disk):
    """All tests of a file share it, in their order."""
    with booted(disk) as machine:
        yield machine


@pytest.fixture(scope="module", name="enforcing")
def _enforcing(disk):
    """The same with SELinux, which refuses what the policy does not allow."""
    with booted(disk, "security=selinux selinux=1") as machine:
        assert machine.run("getenforce").strip() == "Enforcing"
        yield machine


FIGURES = []


@pytest.fixture(name="figures")
def _figures():
    """Sentences with what was measured, for people: no two hosts emulate alike."""
    return FIGURES


def pytest_terminal_summary(terminalreporter):
    """What was measured, and the line that tests/run adds up."""
    for sentence in FIGURES:
        terminalreporter.write_line(sentence)
    count = {what: len(terminalreporter.stats.get(what, [])) for what in ("passed", "failed", "error")}
    terminalreporter.write_line(f"{count['passed']} passed, {count['failed'] + count['error']} failed")
