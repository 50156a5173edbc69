# SPDX-License-Identifier: Apache-2.0
"""The agent's memory with a signed source of manifests, compared with an agent that has the same pods in its
directory."""

import os
import shutil
import statistics
import tempfile
import time

import harness
import specs
import world
from index_source import Index, Key, Nginx, settings

PODS, SAMPLES, SETTLE = 5, 15, 20


def pods():
    return {f"web{i}.yaml": specs.pod(f"web{i}") for i in range(PODS)}


def measure_both(plain, sourced):
    """Medians of the PSS in MiB, in turns: shared memory counts equally in both. The source is fetched in the
    meantime."""
    for node in (plain, sourced):
        for i in range(PODS):
            node.wait_running(f"web{i}")
    time.sleep(SETTLE)
    sizes = {plain: [], sourced: []}
    for _ in range(SAMPLES):
        for node, found in sizes.items():
            found.append(world.pss_kib(node.agent.pid) / 1024)
        time.sleep(1)
    return [statistics.median(sizes[node]) for node in (plain, sourced)]


def measure(archive, _, figures):
    directory = tempfile.mkdtemp(prefix="mainstay-bench-source-")
    root = os.path.join(directory, "root")
    os.mkdir(root)
    key = Key(directory, "key")
    Index(root, key).write(pods())
    nginx = Nginx(os.path.join(directory, "nginx"), root)
    plain = harness.Node(archive)
    sourced = harness.Node(archive, config={"mainstay": {"source": settings(nginx.url(), [key], caFile=nginx.certificate,
                                                                            interval="5s")}})
    try:
        for name, manifest in pods().items():
            plain.drop(manifest, name)
        without, with_source = measure_both(plain, sourced)
        figures.add("agent PSS with a source of manifests, more than without", with_source - without, 0.3, "MiB")
    finally:
        sourced.write_config()
        sourced.restart()
        sourced.finish()
        plain.finish()
        nginx.stop()
        shutil.rmtree(directory)
