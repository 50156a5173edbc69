# SPDX-License-Identifier: Apache-2.0
"""packaging/try, with programs that already exist, like those of the package."""

import glob
import os
import subprocess
import tempfile

import booted
import harness
import pytest
import world

# The tests run one after the other, because each checks the control groups of all.
pytestmark = pytest.mark.xdist_group("try")

# Runs in a separate network namespace, and in a mount namespace in which / is shared, as under systemd, or not. With
# BUS, a program replaces systemd; it exits when its standard input ends.
SCRIPT = """busybox ip link set lo up
if [ -n "$BUS" ]; then
    mkfifo "$BUS.in"
    "$FAKE_SYSTEMD" "$BUS" <"$BUS.in" >"$BUS.out" &
    exec 9>"$BUS.in"
    export DBUS_SYSTEM_BUS_ADDRESS="unix:path=$BUS"
    until [ -S "$BUS" ]; do sleep 0.1; done
fi
env ${PRELOAD:+LD_PRELOAD="$PRELOAD" ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0"} "$@"
status=$?
grep mainstay-try /proc/self/mountinfo >&2 && exit 3
exit $status"""


def run_try(propagation, *words, **environment):
    path = f"{os.path.dirname(harness.program('mainstayd'))}:{os.environ['PATH']}"
    return subprocess.run(["unshare", "--net", "--mount", "--propagation", propagation, "sh", "-c", SCRIPT, "sh",
                           os.path.join(harness.TOP, "packaging", "try"), *words],
                          check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=4 * world.DEADLINE,
                          env={**os.environ, "PATH": path, **environment})


@pytest.fixture(name="directory")
def _directory():
    """A directory with a short path, because of the sockets, which pods with their own users can traverse."""
    with tempfile.TemporaryDirectory(prefix="try-") as directory:
        os.chmod(directory, 0o711)
        yield directory


@pytest.mark.parametrize("propagation", ["private", "shared"])
def test_try_runs_all_examples_without_a_build_and_leaves_nothing_behind(propagation, directory):
    answer = run_try(propagation, "--once", "240", TMPDIR=directory)
    assert answer.returncode == 0, answer.stdout
    examples = len(glob.glob(os.path.join(harness.TOP, "manifests", "*.yaml")))
    assert f"All {examples} pods run." in answer.stdout, answer.stdout
    assert "== build" not in answer.stdout and f"== use {harness.program('mainstayd')}" in answer.stdout
    assert os.listdir(directory) == []
    assert glob.glob(f"{world.CGROUP}/**/mainstay-try-*", recursive=True) == []


def test_try_runs_all_examples_as_a_part_of_a_service(directory):
    """A descendant of a service inherits its variables; no unit has prepared the mounts of this agent."""
    with tempfile.TemporaryDirectory(prefix="bus-") as bus:
        systemd = booted.Systemd(bus)
        systemd.end()
        answer = run_try("shared", "--once", "240", TMPDIR=directory, INVOCATION_ID="0123456789abcdef0123456789abcdef", SYSTEMD_EXEC_PID="1",
                         BUS=f"{bus}/own", FAKE_SYSTEMD=f"{bus}/fake-systemd", PRELOAD=systemd.library)
    assert answer.returncode == 0 and " pods run." in answer.stdout, answer.stdout
    assert os.listdir(directory) == []


def test_try_fails_with_the_log_of_the_agent_if_the_pods_do_not_run_in_time(directory):
    answer = run_try("private", "--once", "0", TMPDIR=directory)
    assert answer.returncode == 1 and os.listdir(directory) == [], answer.stdout


def test_try_rejects_unknown_arguments():
    answer = run_try("private", "--onec")
    assert answer.returncode == 2 and "usage: packaging/try [--build] [--once [SECONDS]]" in answer.stdout
