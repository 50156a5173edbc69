# SPDX-License-Identifier: Apache-2.0
"""A thousand nodes whose power returns at the same time, and one server of their index: 'source-fleet' has their sources."""

import collections
import os
import shutil
import statistics
import subprocess

import harness
import pytest
import specs
from index_source import Index, Key, Nginx, settings
from world import wait

NODES = 1000
INTERVAL = 60

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("fleet")]


class Fleet:
    """A fleet whose machines start their clock at their boot."""

    def __init__(self, config, directory, nodes):
        with open("/proc/uptime", encoding="utf-8") as file:
            uptime = int(float(file.read().split()[0]))
        self.process = subprocess.Popen(
            ["unshare", "--time", f"--boottime=-{uptime - 1}", "--fork", os.path.join(harness.BUILD, "tests", "source-fleet"),
             config, directory, str(nodes)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "MAINSTAY_IMAGE": harness.program("mainstay-image")})

    def status(self, number):
        """The number of nodes that use this index, and the number of those that fail."""
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        return [int(word) for word in self.process.stdout.readline().split()]

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(120) == 0


@pytest.fixture(name="index")
def fixture_index(tmp_path):
    os.mkdir(tmp_path / "root")
    return Index(str(tmp_path / "root"), Key(str(tmp_path), "one"))


@pytest.fixture(name="nginx")
def fixture_nginx(index, tmp_path):
    server = Nginx(str(tmp_path / "nginx"), index.directory)
    yield server
    server.stop()


def write_config(path, nginx, index, interval):
    with open(path, "w", encoding="utf-8") as file:
        file.write(specs.text({"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
                               "mainstay": {"source": {**settings(nginx.url(), [index.key], caFile=nginx.certificate),
                                                       "interval": f"{interval}s", "jitter": "6s"}}}))
    return str(path)


def times_of(nginx, uri):
    """The second of each request for a file."""
    return [int(float(line[6])) for line in nginx.asked() if line[1] == uri]


def test_requests_of_machines_that_boot_together_are_spread_over_the_interval(index, nginx, tmp_path):
    index.write({"web.yaml": specs.pod("web")})
    nodes = tmp_path / "nodes"
    os.mkdir(nodes)
    config = write_config(tmp_path / "config", nginx, index, INTERVAL)
    first = Fleet(config, str(nodes), 1)
    wait(lambda: first.status(1) == [1, 0], "one node has the index")
    first.stop()
    for i in range(1, NODES):
        shutil.copytree(nodes / "0", nodes / str(i))
    index.write({"web.yaml": specs.pod("web"), "db.yaml": specs.pod("db")})
    asked_before = len(times_of(nginx, "/index.json"))
    fleet = Fleet(config, str(nodes), NODES)
    wait(lambda: fleet.status(2) == [NODES, 0], lambda: f"all nodes have the second index: {fleet.status(2)}", 3 * INTERVAL)
    found = collections.Counter(times_of(nginx, "/index.json")[asked_before:])
    total = sum(found.values())
    middle = statistics.median(found.values())
    assert max(found.values()) <= 3 * middle, f"no second has more than three times the usual: {sorted(found.items())}"
    assert len(found) >= INTERVAL // 2 and NODES <= total <= 2 * NODES, f"{total} in {len(found)} seconds"
    fleet.stop()
