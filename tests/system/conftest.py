# SPDX-License-Identifier: Apache-2.0
"""What all system tests share: the image, made once; a node for each test; the closing count."""

import os
import shutil
import subprocess
import sys
import tempfile

import apiserver
import harness
import member
import pytest
import specs

sys.dont_write_bytecode = True


@pytest.fixture(scope="session", name="archive")
def fixture_archive():
    directory = tempfile.mkdtemp(prefix="mainstay-images-")
    path = os.path.join(directory, "busybox.tar")
    subprocess.run([os.path.join(harness.TOP, "tests", "make-image"), specs.IMAGE, path], check=True)
    yield path
    shutil.rmtree(directory)


@pytest.fixture(name="make_node")
def fixture_make_node(archive):
    """Nodes with a configuration of the test's own; each must leave nothing behind."""
    nodes = []

    def make(**options):
        node = harness.Node(**{"archive": archive, **options})
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.finish()


@pytest.fixture(name="node")
def fixture_node(make_node):
    return make_node()


@pytest.fixture(name="api")
def fixture_api():
    """An API server."""
    directory = tempfile.mkdtemp(prefix="mainstay-api-")
    server = apiserver.make(directory)
    yield server
    server.stop()
    shutil.rmtree(directory)


@pytest.fixture(name="make_member")
def fixture_make_member(archive, api):
    """Nodes that have joined the API server; each must leave nothing behind."""
    nodes = []

    def make(**options):
        node = member.Member(api, **{"archive": archive, **options})
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.finish()


@pytest.fixture(scope="module", name="shared_node")
def fixture_shared_node(archive):
    """One node for all tests of a file, for those that only look or that leave it as it was."""
    node = harness.Node(archive)
    yield node
    node.finish()


def pytest_terminal_summary(terminalreporter):
    """The line that tests/run adds up. A test whose teardown fails has failed too."""
    count = {what: len(terminalreporter.stats.get(what, [])) for what in ("passed", "failed", "error", "skipped")}
    failed = count["failed"] + count["error"]
    terminalreporter.write_line(
        f"{count['passed']} passed, {failed} failed" + (f", {count['skipped']} skipped" if count["skipped"] else ""))
