# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the package and the disk, built once, and machines that boot from it."""

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

import deltas  # noqa: E402  pylint: disable=wrong-import-position
import failures  # noqa: E402  pylint: disable=wrong-import-position
import image  # noqa: E402  pylint: disable=wrong-import-position
from machine import ARCHITECTURE, Machine, RELEASE  # noqa: E402  pylint: disable=wrong-import-position
from index_source import Runnable  # noqa: E402  pylint: disable=wrong-import-position
import specs  # noqa: E402  pylint: disable=wrong-import-position

POWER_CUTS = int(os.environ.get("MAINSTAY_POWER_CUTS", "10"))
LARGE_IMAGES = 10
PACKAGE = os.environ.get("MAINSTAY_PACKAGE", os.path.join(TOP, "build-deb"))
# The package that test_upgrade.py upgrades from. It is built from an earlier commit, which not every clone contains.
OLD_PACKAGE = os.environ.get("MAINSTAY_OLD_PACKAGE")
CACHE = os.path.join(TOP, f"build-vm-{RELEASE if ARCHITECTURE == 'amd64' else ARCHITECTURE}")

collect_ignore = [] if OLD_PACKAGE else ["test_upgrade.py"]
# The machine of that test has a single release and architecture: only its kernel has tmpfs without swap space, and only
# its emulator has a TPM2.
collect_ignore += [] if (RELEASE, ARCHITECTURE) == ("trixie", "amd64") else ["test_demo.py", "test_secrets_on_disk.py"]


def pytest_configure(config):
    config.addinivalue_line("markers", "long: run by 'tests/run full' only")
    failures.add_marker(config)


def pytest_collection_modifyitems(items):
    """Starts the files with the most tests first, so that all workers finish at about the same time."""
    tests = collections.Counter(item.path for item in items if not item.get_closest_marker("long"))
    items.sort(key=lambda item: -tests[item.path])


@contextlib.contextmanager
def first(what, run):
    """Yields whether this worker has to build it in this run of the tests; other workers wait until it is built."""
    os.makedirs(CACHE, exist_ok=True)
    with open(os.path.join(CACHE, f"{what}.run"), "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        yield file.read() != run
        file.truncate(0)
        file.write(run)


@pytest.fixture(scope="session", name="package")
def _package():
    (package,) = glob.glob(os.path.join(PACKAGE, "apt", "pool", RELEASE, "mainstay_*.deb"))
    return package


@pytest.fixture(scope="session", name="disk")
def _disk(package, testrun_uid):
    """The disk, the kernel and the RAM disk. The disk has the package and image archives in /opt/test."""
    with first("disk", testrun_uid) as missing:
        if missing:
            with image.locked_root() as root:
                busybox = os.path.join(root, "bin", "busybox")
                files = [package, make_oci_archive(CACHE), make_archive(CACHE, specs.IMAGE, busybox), *make_large_archives(CACHE, LARGE_IMAGES, busybox),
                         make_sources(CACHE, "system-suite", "tests/system", *glob.glob("tests/*.py", root_dir=TOP), "tests/make-image"),
                         make_sources(CACHE, "try", "packaging", "manifests")]
                if OLD_PACKAGE:
                    files.append(shutil.copy(OLD_PACKAGE, os.path.join(CACHE, "old.deb")))
                image.build(root, CACHE, files)
    return image.paths(CACHE)


@pytest.fixture(scope="session", name="installed")
def _installed(disk, testrun_uid):
    """The disk and the memory of a machine that has booted and has the package installed."""
    suspended = os.path.join(CACHE, "installed.qcow2")
    with first("installed", testrun_uid) as missing:
        if missing:
            with machine_of(disk) as machine:
                install(machine)
                machine.suspend()
                shutil.move(machine.disk, suspended)
    return suspended


def make_archive(cache, name, program):
    """Makes an image archive; returns its path."""
    path = os.path.join(cache, name.rsplit("/", 1)[-1].replace(":", "-") + ".tar")
    subprocess.run([os.path.join(TOP, "tests", "make-image"), name, path, "--busybox", program], check=True)
    return path


def make_oci_archive(cache):
    """Makes the archive that 'skopeo copy docker://docker.io/library/busybox:1 oci-archive:…' would write."""
    return deltas.image_archive(os.path.join(cache, "skopeo.tar"), Runnable({"version": b"1\n"}), "docker.io/library/busybox:1")


def make_large_archives(cache, count, busybox):
    """Makes image archives that take a while to unpack and do not share layers."""
    made = []
    for i in range(count):
        program = os.path.join(cache, f"busybox-{i}")
        with open(busybox, "rb") as source, open(program, "wb") as file:
            file.write(source.read() + random.Random(i).randbytes(8 << 20))
        os.chmod(program, 0o755)
        made.append(make_archive(cache, f"docker.io/library/large{i}:1", program))
        os.unlink(program)
    return made


def make_sources(cache, name, *files):
    """Makes an archive of these files in the tree; returns its path."""
    path = os.path.join(cache, f"{name}.tar")
    subprocess.run(["tar", "-C", TOP, "-cf", path, "--exclude=__pycache__", *files], check=True)
    return path


@contextlib.contextmanager
def machine_of(disk, arguments="", memory="1G"):
    """A machine that is not started yet, with additional arguments for its kernel's command line."""
    directory = tempfile.mkdtemp(prefix="mainstay-vm-")
    machine = Machine(directory, *disk, memory=memory, arguments=arguments)
    try:
        yield machine
    finally:
        machine.end()
        shutil.rmtree(directory)


def install(machine, *options):
    """Boots the machine, with these options of the emulator, and installs the package."""
    machine.boot(*options)
    machine.run("dpkg --install /opt/test/mainstay_*.deb")
    machine.run("cp /opt/test/busybox-*.tar /var/lib/mainstay/preload/")


@pytest.fixture(scope="module", name="machine")
def _machine(disk, installed):
    """A machine with the package just installed. All tests of a file share it, in their order."""
    with machine_of(disk) as machine:
        machine.resume(installed)
        yield machine


@pytest.fixture(scope="module", name="enforcing")
def _enforcing(disk):
    """A machine with the package just installed, and with SELinux in enforcing mode."""
    with machine_of(disk, "security=selinux selinux=1") as machine:
        install(machine)
        assert machine.run("getenforce").strip() == "Enforcing"
        yield machine


@pytest.fixture(name="figures")
def _figures(request):
    """A list for messages with measured values. They are only printed, as they depend on the host."""
    messages = []
    yield messages
    request.node.user_properties += [("figure", message) for message in messages]


def pytest_terminal_summary(terminalreporter):
    """Prints the measured values, and the line with the counts that tests/run adds up."""
    stats = terminalreporter.stats
    for report in stats.get("", []):
        for _, message in report.user_properties:
            terminalreporter.write_line(message)
    failures.record_reports(terminalreporter)
    count = {what: len(stats.get(what, [])) for what in ("passed", "failed", "error")}
    terminalreporter.write_line(f"{count['passed']} passed, {count['failed'] + count['error']} failed")
