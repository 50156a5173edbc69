# SPDX-License-Identifier: Apache-2.0
"""A control plane that kubeadm creates on a bare machine from image archives: from the start of the agent to the
response of the API server, compared with etcd and kube-apiserver of the same manifests without an agent, alternately.
It is measured only if MAINSTAY_KUBERNETES names the programs."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROUNDS = 3
PROGRAMS = ("etcd", "kube-apiserver")
PREPARED = ("certs all", "kubeconfig all", "etcd local", "control-plane all")


def wait_answer(machine, started):
    """Seconds until the API server reports that it is alive."""
    def answers():
        return machine.inside("curl", "-sk", "--max-time", "1", f"https://{machine.address}:6443/livez", check=False) == "ok"
    while not answers():
        if time.monotonic() - started > 120:
            raise SystemExit(f"bench: the API server does not answer\n{machine.container_logs()}")
        time.sleep(0.02)
    return time.monotonic() - started


def command_of(machine, name):
    with open(machine.path("kubernetes", "manifests", f"{name}.yaml"), encoding="utf-8") as file:
        return yaml.safe_load(file)["spec"]["containers"][0]["command"]


def bare(machine):
    """The programs alone; all files that they write are removed."""
    started, running = time.monotonic(), []
    for name in PROGRAMS:
        words = command_of(machine, name)
        with open(machine.path(f"{name}.log"), "w", encoding="utf-8") as log:
            running.append(subprocess.Popen(machine.words(machine.release.program(name), *words[1:]), stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log))
    try:
        return wait_answer(machine, started)
    finally:
        for one in reversed(running):
            one.kill()
            one.wait()
        shutil.rmtree(machine.path("etcd", "member"))


def measure_once(kubeadm, release, archives):
    machine = kubeadm.Machine("bench", archives, release)
    try:
        configuration = machine.write_configuration()
        for phase in PREPARED:
            machine.kubeadm("init", "phase", *phase.split(), "--config", configuration)
        alone = bare(machine)
        started = time.monotonic()
        machine.kubeadm("init", "phase", "kubelet-start", "--config", configuration)
        return wait_answer(machine, started), alone
    finally:
        machine.finish()


def find_release():
    """The release below MAINSTAY_KUBERNETES; None if that is not set. Fails if a program is missing."""
    sys.path.insert(0, os.path.join(TOP, "tests", "cluster"))
    from release import Releases  # pylint: disable=import-outside-toplevel
    return Releases().newest if os.environ.get("MAINSTAY_KUBERNETES") else None


def measure(_archive, _arguments, figures):
    release = find_release()
    if not release:
        return
    import kubeadm  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory(prefix="mainstay-bench-images-") as directory:
        archives = release.make_images(directory)
        rounds = [measure_once(kubeadm, release, archives) for _ in range(ROUNDS)]
    ours, alone = (statistics.median(values) for values in zip(*rounds))
    figures.add("bare machine and archives -> API server answers, more than etcd and it alone", ours - alone, 3, "s",
                ours_ms=round(ours * 1000, 1), bare_ms=round(alone * 1000, 1), samples=ROUNDS)
