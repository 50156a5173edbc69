# SPDX-License-Identifier: Apache-2.0
"""The system tests with the mark `cgroup2` on control groups of version 2, which the machine that runs the suites may not have:
in a machine without systemd, with the programs of the package and each OCI runtime. They run together, and each of them has its
own result here."""

import collections
import glob
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree

from conftest import TOP, machine_of
import pytest

RUNTIMES = "runc", "crun"
WORKERS = 4
DEADLINE = 7200
COLLECT = """
import json, sys, pytest
class Listing:
    def pytest_collection_finish(self, session):
        print(json.dumps({item.nodeid: item.get_closest_marker("cgroup2_quick") is not None for item in session.items}))
sys.exit(pytest.main(sys.argv[1:], plugins=[Listing()]))
"""
PREPARE = """
mkdir -p /opt/test/source /opt/test/build/agent /opt/test/package
tar -C /opt/test/source -xf /opt/test/system-suite.tar
dpkg --extract /opt/test/mainstay_*.deb /opt/test/package
cd /opt/test/package/usr && cp -r sbin/mainstayd bin/mainstay libexec/mainstay/* /opt/test/build/agent/
"""
RUN = """
cd /opt/test/source && export MAINSTAY_BUILD=/opt/test/build MAINSTAY_RUNTIME={runtime} PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 -u -m pytest -v --rootdir . -n {workers} --dist loadgroup --tb=short -p no:cacheprovider \
    --junitxml=/var/tmp/{runtime}.xml $(cat /var/tmp/{runtime}.tests) 2>&1 | tee /dev/console >/var/tmp/output
cat /var/tmp/{runtime}.xml || {{ cat /var/tmp/output; false; }}
"""


def collect():
    """Collects the IDs of the tests, and whether each of them is quick."""
    files = subprocess.run(["grep", "-l", "pytest.mark.cgroup2", *glob.glob("tests/system/test_*.py", root_dir=TOP)], cwd=TOP, check=True,
                           text=True, stdout=subprocess.PIPE).stdout.split()
    output = subprocess.run([sys.executable, "-c", COLLECT, "--rootdir", TOP, "--collect-only", "-qq", "-p", "no:cacheprovider",
                             "-m", "cgroup2 and not long", *sorted(files)],
                            cwd=TOP, check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(next(line for line in output.splitlines() if line.startswith("{")))


def params():
    """The parameters of the tests; those that are not quick take long under emulation."""
    return [pytest.param(runtime, test, id=f"{runtime}-{os.path.basename(test)}",
                         marks=[] if is_quick and runtime == "runc" else [pytest.mark.long])
            for test, is_quick in collect().items() for runtime in RUNTIMES]


def id_of(case):
    """The ID of a test without the group that xdist appends."""
    name = re.sub(r"(^[^][]*|\])@[^][]*$", r"\1", case.get("name"))
    return f"{case.get('classname').replace('.', '/')}.py::{name}"


@pytest.fixture(scope="module", name="results")
def _results(disk, request):
    """The texts of the failures for each runtime and each selected test of this file."""
    tests = collections.defaultdict(list)
    for item in request.session.items:
        if item.path == request.path:
            tests[item.callspec.params["runtime"]].append(item.callspec.params["test"])
    with machine_of(disk, "init=/usr/local/sbin/plain-init", memory="2G") as machine:
        machine.boot()
        machine.run(PREPARE)
        return {runtime: run(machine, runtime, some) for runtime, some in tests.items()}


def run(machine, runtime, tests):
    machine.write(f"/var/tmp/{runtime}.tests", "\n".join(tests) + "\n")
    report = machine.run(RUN.format(workers=WORKERS, runtime=runtime), DEADLINE)
    found = {}
    for case in xml.etree.ElementTree.fromstring(report).iter("testcase"):
        failures = [child.text or child.get("message") for child in case if child.tag in ("failure", "error", "skipped")]
        found.setdefault(id_of(case), []).extend(failures)
    return found


@pytest.mark.parametrize("runtime,test", params())
def test_system_test_passes_on_cgroup_v2(results, runtime, test):
    assert test in results[runtime], f"it did not run; those that did: {sorted(results[runtime])}"
    assert not results[runtime][test], "\n".join(results[runtime][test])
