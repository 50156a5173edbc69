# SPDX-License-Identifier: Apache-2.0
"""An edit of a node label, among many DaemonSets: the time until the pod of the DaemonSet that now matches runs, and
until the pod of the one that no longer matches gets SIGTERM."""

import os
import statistics
import time

import bare
import harness
import specs

SETS = 300

SCRIPT = "trap 'echo end-$NAME > /bench/up; exit 0' TERM; echo $NAME > /bench/up; sleep 100000 & wait"


def daemonset(node, name):
    container = specs.container(script=SCRIPT, env=[{"name": "NAME", "value": name}],
                                volumeMounts=[specs.mount("bench", "/bench")])
    return specs.daemonset(name, container, volumes=[specs.host_path("bench", node.data)], nodeSelector={"role": name})


def stage_config(node, role):
    """Writes the configuration with this label next to the current one; returns its path."""
    path, node.config = node.config, node.config + ".next"
    node.write_config(mainstay={"nodeLabels": {"role": role}})
    path, node.config = node.config, path
    return path


def edit(node, fifo, role, message):
    staged = stage_config(node, role)
    started = time.monotonic()
    os.rename(staged, node.config)
    return fifo.wait_for([message]) - started


def measure(archive, arguments, figures):
    node = harness.Node(archive)
    runtime = None
    try:
        fifo = bare.StartFifo(node.data)
        node.drop(bare.measured_pod(node, "warm"))
        fifo.wait_for(["warm"])
        runtime = bare.Runtime(node, archive, node.wait_running("warm"))
        runtime.run(fifo)
        names = ["one", "two", *(f"other{i}" for i in range(SETS - 2))]
        node.drop(specs.text(*[daemonset(node, name) for name in names]), file="many.yaml")
        starts, stops, bares = [], [], []
        for _ in range(arguments.samples):
            bares.append(runtime.run(fifo))
            starts.append(edit(node, fifo, "one", "one"))
            bares.append(runtime.run(fifo))
            stops.append(edit(node, fifo, "none", "end-one"))
            harness.wait(lambda: len(node.pods()) == 1, "the pod of the DaemonSet is removed")
            runtime.delete_all()
        alone = statistics.median(bares)
        figures.add(f"label edited -> pod of a DaemonSet runs, beyond {bare.RUNTIME} run, {SETS} sets",
                    (statistics.median(starts) - alone) * 1000, 100, "ms",
                    ours_ms=round(statistics.median(starts) * 1000, 1), bare_ms=round(alone * 1000, 1),
                    samples=len(starts))
        figures.add(f"label edited -> pod of a DaemonSet gets SIGTERM, {SETS} sets", statistics.median(stops) * 1000, 100, "ms",
                    samples=len(stops))
    finally:
        if runtime:
            runtime.delete_all()
        node.finish()
