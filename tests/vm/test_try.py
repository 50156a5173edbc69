# SPDX-License-Identifier: Apache-2.0
"""packaging/try on a machine with the package: by a shell of a user, and as a part of a service, where systemd has made / a
shared mount and the agent does not prepare its directories itself."""

import glob
import os
import shlex

from conftest import TOP
import pytest

pytestmark = pytest.mark.long

SECONDS = 1200  # under emulation
COMMAND = f"cd /opt/tree && packaging/try --once {SECONDS}"
# A login has no variable of a service.
SHELLS = {"shell": f"env -u INVOCATION_ID bash -lc {shlex.quote(COMMAND)}",
          "service": f"systemd-run --quiet --wait --pipe bash -c {shlex.quote(COMMAND)}"}
EXAMPLES = len(glob.glob(os.path.join(TOP, "manifests", "*.yaml")))
# Everything that it makes outside of its directory has this name, and so would its processes.
LEFT = """ls -d /tmp/mainstay-try-* 2>/dev/null
grep mainstay-try /proc/self/mountinfo
find /sys/fs/cgroup -name '*mainstay*try*'
ip -o link | grep mainstay-try
pgrep -af mainstay-try
systemctl list-units --all --plain --no-legend '*mainstay*try*'
true
"""
UNTOUCHED = ("systemctl is-active mainstay; systemctl list-units --failed --plain --no-legend; "
             "find /run/mainstay -path '*/pods/*' -prune -print")


@pytest.mark.parametrize("kind", SHELLS)
def test_try_runs_all_examples_with_the_package_and_without_a_compiler(machine, kind):
    assert machine.ask("command -v gcc cmake ninja")[0] != 0
    machine.run("[ -e /opt/tree ] || { mkdir /opt/tree && tar x -f /opt/test/try.tar -C /opt/tree; }")
    machine.write("/opt/left", LEFT)  # as a script: its own command line has none of these words
    before = machine.run(UNTOUCHED)
    said = machine.run(SHELLS[kind], 2 * SECONDS)
    assert f"All {EXAMPLES} pods run." in said and "== use /usr/sbin/mainstayd" in said, said
    assert machine.run("bash /opt/left") == ""
    assert machine.run(UNTOUCHED) == before
