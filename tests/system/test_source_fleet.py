# SPDX-License-Identifier: Apache-2.0
"""Nodes with different labels whose power returns at the same time, and one server of their index: 'source-fleet' runs
their sources and keeps their images. Each node has its own path on the server, so that its requests are known."""

import collections
import os
import random
import shutil
import subprocess
import time

import harness
import pytest
import registry
import specs
from index_source import Index, Key, Nginx, Runnable, settings
from world import read, wait

NODES = int(os.environ.get("MAINSTAY_FLEET_NODES", "1000"))
INTERVAL = int(os.environ.get("MAINSTAY_FLEET_INTERVAL", "300"))  # seconds
FEW, SHORT = 20, 5  # for the test that is always run

pytestmark = pytest.mark.xdist_group("fleet")


class Small(Runnable):
    """An image that is only fetched and unpacked."""

    def __init__(self, *layers):  # pylint: disable=super-init-not-called
        registry.Blobs.__init__(self, layers)  # pylint: disable=non-parent-init-called

    def digests(self):
        return {self.digest[7:], *(row["digest"][7:] for row in self.blob_rows())}


def small_image(name, version):
    """The lower layer is the same in all images."""
    return Small({"base": random.Random(0).randbytes(20_000)}, {name: random.Random(f"{name} {version}").randbytes(5_000)})


class Stores:
    """The nodes: each is a kind of device in a store, and its labels name both. There is a DaemonSet for each kind, one
    for each store, and one for all kinds but the first, each with its own image."""

    def __init__(self, nodes):
        self.nodes, self.kinds = nodes, 50 if nodes >= 100 else 5
        self.stores = nodes // self.kinds
        self.images, self.manifests, self.entries = {}, {}, {}

    def labels(self, node):
        return {"store": f"store-{node // self.kinds}", "device": f"device-{node % self.kinds}"}

    def selected(self, node):
        """The names of the DaemonSets that run on a node, by its labels."""
        labels = self.labels(node)
        return {labels["store"], labels["device"], *({"rest"} if labels["device"] != "device-0" else ())}

    def blobs(self, node):
        return set().union(*(self.images[name].digests() for name in self.selected(node)))

    def add(self, index, name, version=1, **fields):
        reference = f"registry.invalid/{name}:{version}"
        self.images[name] = small_image(name, version)
        self.manifests[f"{name}.yaml"] = specs.daemonset(name, {**specs.container(), "image": reference}, **fields)
        self.entries[name] = index.add_image(self.images[name], reference)

    def add_device(self, index, number, version=1):
        self.add(index, f"device-{number}", version, nodeSelector={"device": f"device-{number}"})

    def add_all(self, index):
        for number in range(self.kinds):
            self.add_device(index, number)
        for number in range(self.stores):
            self.add(index, f"store-{number}", nodeSelector={"store": f"store-{number}"})
        term = {"matchExpressions": [{"key": "device", "operator": "NotIn", "values": ["device-0"]}]}
        self.add(index, "rest", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}})

    def write(self, index):
        """Returns the digest of each file. The index gets an earlier modification time, because nodes request an index
        of the current second twice."""
        document = index.write(self.manifests, images=list(self.entries.values()), spoil=lambda path: os.utime(path, (time.time() - 10,) * 2))
        return {row["name"]: row["sha256"] for row in document["files"]}


class Fleet:
    """A fleet whose machines start their clock at their boot."""

    def __init__(self, directory, nodes):
        with open("/proc/uptime", encoding="utf-8") as file:
            uptime = int(float(file.read().split()[0]))
        self.process = subprocess.Popen(
            ["unshare", "--time", f"--boottime=-{uptime - 1}", "--fork", os.path.join(harness.BUILD, "tests", "source-fleet"),
             directory, str(nodes)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
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
    server = Nginx(str(tmp_path / "nginx"), index.directory, f"location ~ ^/node[0-9]+/(.*)$ {{ alias {index.directory}/$1; }}")
    yield server
    server.stop()


class Trial:
    """The fleet, and the requests that the server has received since the last check."""

    def __init__(self, directory, nodes, interval, index, nginx):
        self.directory, self.interval, self.index, self.nginx, self.seen = str(directory), interval, index, nginx, 0
        self.stores = Stores(nodes)

    def path(self, node, *names):
        return os.path.join(self.directory, str(node), *names)

    def write_config(self, node):
        source = settings(self.nginx.url().replace("/index.json", f"/node{node}/index.json"), [self.index.key],
                          caFile=self.nginx.certificate, interval=f"{self.interval}s", jitter=f"{self.interval * 100}ms")
        with open(self.path(node, "config"), "w", encoding="utf-8") as file:
            file.write(specs.text({"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
                                   "mainstay": {"source": source, "nodeLabels": self.stores.labels(node)}}))

    def boot(self):
        """All nodes have an index without manifests, and the next one is available when their power returns."""
        self.index.write({})
        os.makedirs(self.path(0))
        self.write_config(0)
        first = Fleet(self.directory, 1)
        wait(lambda: first.status(1) == [1, 0], "one node has the index")
        first.stop()
        for node in range(1, self.stores.nodes):
            shutil.copytree(self.path(0), self.path(node))
            self.write_config(node)
        self.stores.add_all(self.index)
        self.look()
        files = self.stores.write(self.index)
        return Fleet(self.directory, self.stores.nodes), files

    def look(self):
        lines = self.nginx.asked()[self.seen:]
        self.seen += len(lines)
        return lines

    def take(self, fleet, expected, subject):
        """Waits until all nodes have the latest index; each has sent exactly the expected requests, once each, in
        addition to those that were answered with 304. Returns the requests."""
        nodes, number, started = self.stores.nodes, self.index.number, time.monotonic()
        wait(lambda: fleet.status(number) == [nodes, 0], lambda: f"all nodes have index {number}: {fleet.status(number)}", 10 * self.interval + 60)
        took, lines = time.monotonic() - started, self.look()
        asked = collections.defaultdict(list)
        for line in lines:
            if line[2] != "304":
                assert line[2] == "200", line
                node, _, path = line[1].removeprefix("/node").partition("/")
                asked[int(node)].append(path)
        for node in range(nodes):
            assert sorted(asked[node]) == sorted(["index.json", "index.json.sig", *expected(node)]), f"requests of node {node}"
            assert set(read(self.path(node, "pods")).split()) == self.stores.selected(node), f"pods of node {node}"
        requests, size = [len(asked[node]) for node in range(nodes)], sum(int(line[3]) + int(line[4]) for line in lines)
        print(f"{nodes} nodes of {self.stores.stores} stores and {self.stores.kinds} kinds, {subject}: {took:.0f} s with an interval of "
              f"{self.interval} s, {min(requests)} to {max(requests)} requests and {size / nodes / 1000:.1f} kB a node, "
              f"index of {os.path.getsize(self.index.path) / 1000:.1f} kB")
        return lines

    def check_store(self, expected):
        for node in range(self.stores.nodes):
            assert set(os.listdir(self.path(node, "images", "blobs", "sha256"))) == expected(node), f"blobs of node {node}"

    def check_unchanged(self):
        """Each node continues to send requests, which cost at most 1 KB."""
        nodes, lines = self.stores.nodes, []

        def have_all_asked():
            lines.extend(self.look())
            return len({line[1] for line in lines}) == nodes
        self.look()
        wait(have_all_asked, "each node has sent another request", 10 * self.interval + 60)
        assert {line[2] for line in lines} == {"304"}, collections.Counter(line[2] for line in lines)
        sizes = [int(line[3]) + int(line[4]) for line in lines]
        assert max(sizes) <= 1024, max(sizes)
        print(f"{nodes} nodes, an index that has not changed: one request of {max(sizes)} B at most a node and interval, with its response")


def run_fleet(directory, nodes, interval, index, nginx):
    trial = Trial(directory / "nodes", nodes, interval, index, nginx)
    stores = trial.stores
    fleet, files = trial.boot()
    lines = trial.take(fleet, lambda node: [*(f"sha256/{digest}" for digest in files.values()),
                                            *(f"images/blobs/sha256/{digest}" for digest in stores.blobs(node))], "the first index")
    first = {node: stores.blobs(node) for node in range(nodes)}
    trial.check_store(first.get)
    trial.check_unchanged()
    stores.add_device(index, 1, version=2)
    changed = stores.write(index)["device-1.yaml"]
    trial.take(fleet, lambda node: [f"sha256/{changed}", *(f"images/blobs/sha256/{digest}" for digest in stores.blobs(node) - first[node])],
               "an update of a kind")
    trial.check_store(lambda node: first[node] | stores.blobs(node))
    fleet.stop()
    return lines


def test_each_node_fetches_what_its_labels_select(index, nginx, tmp_path):
    run_fleet(tmp_path, FEW, SHORT, index, nginx)


@pytest.mark.long
def test_requests_of_machines_that_boot_together_are_spread_over_the_interval(index, nginx, tmp_path):
    lines = run_fleet(tmp_path, NODES, INTERVAL, index, nginx)
    parts = min(60, max(1, NODES // 16))
    found = collections.Counter(int(float(line[6]) * parts / INTERVAL) for line in lines if line[1].endswith("/index.json"))
    assert max(found.values()) <= 3 * NODES / parts, f"no part of the interval has more than three times its share: {sorted(found.items())}"
    assert len(found) >= parts // 2 and NODES <= sum(found.values()) <= 2 * NODES, sorted(found.items())
