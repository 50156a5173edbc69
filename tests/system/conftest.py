# SPDX-License-Identifier: Apache-2.0
"""Fixtures that all system tests share: the image, which is made once; a node for each test; the summary line."""

import os
import shutil
import subprocess
import sys
import tempfile

import apiserver
import clocked as clocked_nodes
import harness
import member
import puller
import pytest
import registry
import specs
from api_certs import Authority
from stick import Stick

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(harness.TOP, "tests"))

import cache  # noqa: E402  pylint: disable=wrong-import-position
import failures  # noqa: E402  pylint: disable=wrong-import-position

durations = cache.Durations("system")

SLOW_SECONDS = 40

# kubectl is not needed for the other tests.
collect_ignore = [] if os.environ.get("MAINSTAY_KUBECTL") else ["test_lone_kubectl.py"]


def pytest_configure(config):
    config.addinivalue_line("markers", "long: minutes of storms, kills or waiting; run by 'tests/run full' only")
    config.addinivalue_line("markers", "slow: waits for half a minute; starts first where it has not been timed yet")
    failures.add_marker(config)
    config.addinivalue_line("markers", "cgroup2: about control groups; a machine with version 2 of them (vm suite) runs it, too")
    config.addinivalue_line("markers", "cgroup2_quick: 'tests/run' runs it there, too; the other ones only 'tests/run full'")
    config.addinivalue_line("markers", "quick: on the main path of every pod; run by 'tests/run quick', too")


def group(item):
    """Tests that share something run one after the other, on one worker: those of a file with a shared node, and those
    with an explicit mark."""
    mark = item.get_closest_marker("xdist_group")
    if mark:
        return mark.args[0]
    return item.path.stem if "shared_node" in item.fixturenames else item.nodeid


def duration_of(item):
    """The duration of a test in seconds. A test that has not been timed yet is assumed to take as long as the longest
    one of its file: if it started last, all others would wait for it."""
    return durations.duration_of(item.nodeid, max(durations.longest_of(item.path.name), SLOW_SECONDS if item.get_closest_marker("slow") else 1))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """The tests that took longest start first, so that all workers end together."""
    seconds = {}
    for item in items:
        seconds[group(item)] = seconds.get(group(item), 0) + duration_of(item)
        if group(item) == item.path.stem:
            item.add_marker(pytest.mark.xdist_group(group(item)))
    items.sort(key=lambda item: seconds[group(item)], reverse=True)


@pytest.fixture(scope="session", name="archive")
def fixture_archive():
    directory = tempfile.mkdtemp(prefix="mainstay-images-")
    path = os.path.join(directory, "busybox.tar")
    subprocess.run([os.path.join(harness.TOP, "tests", "make-image"), specs.IMAGE, path], check=True)
    yield path
    shutil.rmtree(directory)


@pytest.fixture(scope="session", name="image_store")
def fixture_image_store(archive):
    """The agent's result for the archive, an unpacked image, because most tests are not about unpacking."""
    path = os.path.join(os.path.dirname(archive), "images")
    node = harness.Node(archive)
    node.launch(specs.pod("web"))
    harness.copy_tree(os.path.join(node.state, "images"), path)
    node.finish()
    return path


@pytest.fixture(name="with_image")
def fixture_with_image(archive, image_store):
    """Options of a node that has the image, or of one that imports the test's own archive."""
    def complete(options):
        return options if "archive" in options else {"archive": archive, "store": image_store, **options}
    return complete


@pytest.fixture(name="make_node")
def fixture_make_node(with_image):
    """Nodes with the test's own configuration; each must leave nothing behind."""
    nodes = []

    def make(**options):
        node = harness.Node(**with_image(options))
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.finish()


@pytest.fixture(name="make_stick")
def fixture_make_stick(tmp_path):
    """USB sticks that are all mounted at the same place, 'media' in the test's directory."""
    sticks = []
    (tmp_path / "media").mkdir()

    def make(*mount):
        sticks.append(Stick(tmp_path / f"stick{len(sticks)}", tmp_path / "media", *mount))
        return sticks[-1]

    yield make
    for stick in sticks:
        stick.remove()


@pytest.fixture(name="make_failing")
def fixture_make_failing(archive):
    """Nodes of a class in failing.py; their failpoints are off when they are finished, and each must leave nothing
    behind."""
    nodes = []

    def make(kind, **options):
        nodes.append(kind(archive, **options))
        return nodes[-1]
    yield make
    for node in nodes:
        node.arm({})
        node.finish()


@pytest.fixture(scope="session", name="library")
def fixture_library(tmp_path_factory):
    """The library that is preloaded into agents whose clocks the tests set."""
    return clocked_nodes.build(tmp_path_factory.mktemp("clock"))


@pytest.fixture(name="make_clocked_node")
def fixture_make_clocked_node(archive, library):
    """Nodes with the test's own configuration, for which the test makes time pass."""
    nodes = []

    def make(config=None, kind=clocked_nodes.ClockNode):
        nodes.append(kind(archive, library, config))
        return nodes[-1]

    yield make
    for node in nodes:
        node.finish()


@pytest.fixture(name="clocked")
def fixture_clocked(make_clocked_node):
    return make_clocked_node()


@pytest.fixture(name="node")
def fixture_node(make_node):
    return make_node()


@pytest.fixture(scope="session", name="copy_certificates")
def fixture_copy_certificates(tmp_path_factory):
    """Copies an authority, which is made once and has issued the certificates of the server and of the node; returns
    their names."""
    authority = Authority(str(tmp_path_factory.mktemp("certificates")))
    issued = [os.path.basename(cert).removesuffix(".crt") for cert, _ in (authority.server(), authority.node(harness.NODE_NAME))]
    config = authority.config

    def copy(directory):
        shutil.copytree(authority.directory, directory, dirs_exist_ok=True)
        with open(config, encoding="utf-8") as source, open(os.path.join(directory, os.path.basename(config)), "w", encoding="utf-8") as file:
            file.write(source.read().replace(authority.directory, directory))
        return issued
    return copy


@pytest.fixture(name="api")
def fixture_api(copy_certificates):
    """An API server."""
    directory = tempfile.mkdtemp(prefix="mainstay-api-")
    server = apiserver.make(directory, copy_certificates(directory))
    yield server
    server.stop()
    shutil.rmtree(directory)


@pytest.fixture(name="make_member")
def fixture_make_member(with_image, api):
    """Nodes that have joined the API server; each must leave nothing behind."""
    nodes = []

    def make(**options):
        node = member.Member(api, **with_image(options))
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.finish()


@pytest.fixture(name="make_clocked_member")
def fixture_make_clocked_member(with_image, api, library):
    """Nodes that have joined the API server, for which the test makes time pass."""
    nodes = []

    def make(**options):
        node = clocked_nodes.ClockedMember(library, api, **with_image(options))
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.finish()


@pytest.fixture(scope="module", name="shared_node")
def fixture_shared_node(archive, image_store):
    """One node for all tests of a file that only read from it or leave it as it was."""
    node = harness.Node(archive, store=image_store)
    yield node
    node.finish()


def note_durations(reports):
    seconds = {}
    for report in reports:
        if isinstance(report, pytest.TestReport):
            name = failures.node_id(report)
            seconds[name] = seconds.get(name, 0) + report.duration
    for name, duration in seconds.items():
        durations.record_duration(name, duration)
    durations.save()


def pytest_terminal_summary(terminalreporter):
    """Prints the line whose counts tests/run adds up. A test whose teardown fails counts as failed."""
    note_durations(report for reports in terminalreporter.stats.values() for report in reports)
    failures.record_reports(terminalreporter)
    count = {what: len(terminalreporter.stats.get(what, [])) for what in ("passed", "failed", "error", "skipped")}
    failed = count["failed"] + count["error"]
    terminalreporter.write_line(
        f"{count['passed']} passed, {failed} failed" + (f", {count['skipped']} skipped" if count["skipped"] else ""))


@pytest.fixture(name="puller")
def fixture_puller(tmp_path):
    return puller.Puller(tmp_path)


@pytest.fixture(name="serve")
def fixture_serve():
    """Starts a registry of the test."""
    servers = []

    def serve(image=None, behave=None, tls=None, **options):
        servers.append(registry.BadRegistry(image or registry.Blobs([puller.FILES]), behave, tls, **options))
        return servers[-1]

    yield serve
    for server in servers:
        server.stop()
