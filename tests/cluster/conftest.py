# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all tests of the cluster suite share: the control plane, started once for all workers; the images;
nodes."""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TOP, "tests", "system"), os.path.join(TOP, "tests")]

import cache  # noqa: E402  pylint: disable=wrong-import-position
import control_plane  # noqa: E402  pylint: disable=wrong-import-position
import failures  # noqa: E402  pylint: disable=wrong-import-position
import specs  # noqa: E402  pylint: disable=wrong-import-position
from node import AGNHOST, ClusterNode  # noqa: E402  pylint: disable=wrong-import-position
from trial import Trial  # noqa: E402  pylint: disable=wrong-import-position

durations = cache.Durations("cluster")
numbers = itertools.count(1)


class Shared:
    """Shared by all workers, created by the process that starts them."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="mainstay-cluster-images-")
        self.plane = None
        try:
            self.archive, self.agnhost = (os.path.join(self.directory, name) for name in ("busybox.tar", "agnhost.tar"))
            make = os.path.join(TOP, "tests", "make-image")
            subprocess.run([make, specs.IMAGE, self.archive], check=True)
            subprocess.run([make, AGNHOST, self.agnhost, "--entrypoint",
                            os.path.join(control_plane.programs(), "agnhost")], check=True)
            self.plane = control_plane.ControlPlane()
        except BaseException:
            shutil.rmtree(self.directory)
            raise
        self.is_over = threading.Event()
        self.keeper = threading.Thread(target=self.keep, daemon=True)
        self.keeper.start()

    def keep(self):
        """Keeps the control plane running: on a busy machine the controller manager may lose its Lease and exit."""
        while not self.is_over.wait(2):
            self.plane.revive()

    def words(self):
        return {"plane": self.plane.directory, "archive": self.archive, "agnhost": self.agnhost}

    def finish(self):
        self.is_over.set()
        self.keeper.join()
        try:
            self.plane.finish()
        finally:
            shutil.rmtree(self.directory)


def pytest_configure(config):
    config.addinivalue_line("markers", "long: minutes; run by 'tests/run full cluster' only")
    failures.add_marker(config)


def pytest_sessionstart(session):
    """Runs in the process that starts the workers, or in the only process."""
    config = session.config
    if hasattr(config, "workerinput") or config.option.collectonly:
        return
    try:
        control_plane.programs()
        config.cluster = Shared()
    except control_plane.Missing as missing:
        pytest.exit(str(missing), 2)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["cluster"] = node.config.cluster.words()


def pytest_sessionfinish(session):
    if hasattr(session.config, "cluster"):
        session.config.cluster.finish()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The tests that took longest start first. Tests that stop parts of a control plane have a separate one, on one
    worker; so do the tests in a file that share a node."""
    seconds = {}
    for item in items:
        marked = item.get_closest_marker("xdist_group")
        name = (marked.args[0] if marked else "disruption" if "own_plane" in item.fixturenames else
                item.path.name if "module_node" in item.fixturenames else item.nodeid)
        seconds[name] = seconds.get(name, 0) + durations.duration_of(item.nodeid)
        if not marked:
            item.add_marker(pytest.mark.xdist_group(name))
    items.sort(key=lambda item: seconds[item.get_closest_marker("xdist_group").args[0]], reverse=True)


@pytest.fixture(scope="session", name="shared")
def fixture_shared(request):
    config = request.config
    return config.workerinput["cluster"] if hasattr(config, "workerinput") else config.cluster.words()


@pytest.fixture(scope="session", name="plane")
def fixture_plane(shared):
    """The control plane of all tests. A test that stops a part of it uses 'own_plane'."""
    return control_plane.ControlPlane(shared["plane"])


@pytest.fixture(scope="session", name="own_plane")
def fixture_own_plane():
    """A control plane for tests that stop parts of it, one after the other; they leave it running."""
    plane = control_plane.ControlPlane()
    yield plane
    plane.finish()


def finish_all(nodes):
    """Finishes each of them, even if another one fails."""
    problems = []
    for node in nodes:
        try:
            node.finish()
        except AssertionError as error:
            problems.append(str(error))
    assert not problems, "\n".join(problems)


@pytest.fixture(name="make_node")
def fixture_make_node(shared, plane):
    """Nodes with the test's own configuration; each must leave nothing behind."""
    nodes = []

    def make(*archives, **options):
        nodes.append(ClusterNode(plane, **{"archive": shared["archive"], "archives": archives, **options}))
        return nodes[-1]

    yield make
    finish_all(nodes)


@pytest.fixture(name="node")
def fixture_node(make_node):
    return make_node()


@pytest.fixture(name="agnhost_node")
def fixture_agnhost_node(make_node, shared):
    """A node that has the image of Kubernetes' own tests."""
    return make_node(shared["agnhost"])


@pytest.fixture(scope="module", name="module_node")
def fixture_module_node(shared, plane):
    """One node for all tests in a file that use 'trial'; it has the image of Kubernetes' own tests."""
    node = ClusterNode(plane, archive=shared["archive"], archives=[shared["agnhost"]])
    yield node
    finish_all([node])


@pytest.fixture(name="trial")
def fixture_trial(module_node):
    """The actions of a test on the node of its file."""
    found = Trial(module_node, f"t{next(numbers)}")
    yield found
    found.finish()


@pytest.fixture(name="make_own_node")
def fixture_make_own_node(shared, own_plane):
    """Nodes of the control plane that may be stopped; at the end of the test all run again."""
    nodes = []

    def make(**options):
        nodes.append(ClusterNode(own_plane, **{"archive": shared["archive"], **options}))
        return nodes[-1]

    yield make
    own_plane.make_whole()
    finish_all(nodes)


def pytest_terminal_summary(terminalreporter):
    """Prints the line whose counts tests/run adds up. A test whose teardown fails counts as failed."""
    seconds = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                name = failures.node_id(report)
                seconds[name] = seconds.get(name, 0) + report.duration
    for name, duration in seconds.items():
        durations.record_duration(name, duration)
    durations.save()
    failures.record_reports(terminalreporter)
    count = {what: len(terminalreporter.stats.get(what, [])) for what in ("passed", "failed", "error", "skipped")}
    failed = count["failed"] + count["error"]
    terminalreporter.write_line(
        f"{count['passed']} passed, {failed} failed" + (f", {count['skipped']} skipped" if count["skipped"] else ""))
