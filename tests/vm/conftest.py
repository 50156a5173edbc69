# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the package and the disk, made once, and machines that boot from it."""

import collections
import contextlib
import fcntl
import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TOP, "tests", "system"), os.path.join(TOP, "tests")]

import image  # noqa: E402  pylint: disable=wrong-import-position
from machine import Machine  # noqa: E402  pylint: disable=wrong-import-position
import specs  # noqa: E402  pylint: disable=wrong-import-position

POWER_CUTS = 10
PACKAGE = os.environ.get("MAINSTAY_PACKAGE", os.path.join(TOP, "build-deb"))
CACHE = os.path.join(TOP, "build-vm")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: run by 'tests/run full' only")


def pytest_collection_modifyitems(items):
    """The files that take longest are begun first, so that all workers end together."""
    tests = collections.Counter(item.path for item in items if not item.get_closest_marker("long"))
    items.sort(key=lambda item: -tests[item.path])


@contextlib.contextmanager
def first(what, run):
    """Whether nobody has made this in this run of the tests; all others wait until it is made."""
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, f"{what}.run"), "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file.read() != run
        file.truncate(0)
        file.write(run)


@pytest.fixture(scope="session", name="package")
def _package():
    (package,) = glob.glob(os.path.join(PACKAGE, "mainstay_*.deb"))
    return package


@pytest.fixture(scope="session", name="disk")
def _disk(package, testrun_uid):
    """The disk, the kernel and the RAM disk; with our package and images of containers in /opt/test."""
    with first("disk", testrun_uid) as missing:
        if missing:
            image.build(CACHE, [package, make_archive(CACHE, specs.IMAGE), *make_large_archives(CACHE, POWER_CUTS)])
    return image.paths(CACHE)


@pytest.fixture(scope="session", name="installed")
def _installed(disk, testrun_uid):
    """The disk, with the memory, of a machine that was booted and has our package installed."""
    suspended = os.path.join(CACHE, "installed.qcow2")
    with first("installed", testrun_uid) as missing:
        if missing:
            with machine_of(disk) as machine:
                install(machine)
                machine.suspend()
                shutil.move(machine.disk, suspended)
    return suspended


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
def machine_of(disk, arguments=""):
    """One that does not run yet, and will be told these things by its kernel's command line."""
    directory = tempfile.mkdtemp(prefix="mainstay-vm-")
    machine = Machine(directory, *disk, arguments=arguments)
    try:
        yield machine
    finally:
        machine.end()
        shutil.rmtree(directory)


def install(machine):
    """Boots it, and has our package installed."""
    machine.boot()
    machine.run("dpkg --install /opt/test/mainstay_*.deb")
    machine.run("cp /opt/test/busybox-*.tar /var/lib/mainstay/preload/")


@pytest.fixture(scope="module", name="machine")
def _machine(disk, installed):
    """Our package was just installed on it. All tests of a file share it, in their order."""
    with machine_of(disk) as machine:
        machine.resume(installed)
        yield machine


@pytest.fixture(scope="module", name="enforcing")
def _enforcing(disk):
    """The same with SELinux, which refuses what the policy does not allow."""
    with machine_of(disk, "security=selinux selinux=1") as machine:
        install(machine)
        assert machine.run("getenforce").strip() == "Enforcing"
        yield machine


@pytest.fixture(name="figures")
def _figures(request):
    """Sentences with what was measured, for people: no two hosts emulate alike."""
    sentences = []
    yield sentences
    request.node.user_properties += [("figure", sentence) for sentence in sentences]


def pytest_terminal_summary(terminalreporter):
    """What was measured, and the line that tests/run adds up."""
    stats = terminalreporter.stats
    for report in stats.get("", []):
        for _, sentence in report.user_properties:
            terminalreporter.write_line(sentence)
    count = {what: len(stats.get(what, [])) for what in ("passed", "failed", "error")}
    terminalreporter.write_line(f"{count['passed']} passed, {count['failed'] + count['error']} failed")
