# SPDX-License-Identifier: Apache-2.0
"""A node whose agent has no more privileges than its unit gives it: it has the capabilities of the unit, may write its own directories
only, and has its other programs started by mainstay-launch. The shims are started by a program in place of systemd."""

import os
import re
import subprocess

import booted
import harness

UNIT = os.path.join(harness.TOP, "systemd", "mainstay.service.in")

# Mounts that appear on the machine later are visible as well, as under systemd.
CONFINED = ["unshare", "--mount", "--propagation", "slave", "sh", "-ec", """mount --rbind "$1" "$1"
mount -o remount,bind,ro /
cd "$1"
shift
exec setpriv --no-new-privs --bounding-set="$@"
""", "sh"]


def capabilities():
    """The capabilities in CapabilityBoundingSet= of the unit, such as "chown"."""
    with open(UNIT, encoding="utf-8") as file:
        lines = re.findall(r"^CapabilityBoundingSet=(.*)$", file.read(), re.M)
    return [name.removeprefix("CAP_").lower() for line in lines for name in line.split()]


class UnitNode(booted.BootedNode):
    def __init__(self, launcher, *arguments, **options):
        self.launcher = launcher
        super().__init__(*arguments, **options)

    def environment(self):
        return {**super().environment(), "MAINSTAY_LAUNCH_SOCKET": self.launcher.path}

    def command(self):
        return [*CONFINED, self.directory, ",".join(["-all", *(f"+{name}" for name in capabilities())]), *super().command()]

    def start(self, ready=True):
        """Starts the agent as after mainstay-prepare.service."""
        subprocess.run([harness.program("mainstay-shim"), "prepare", self.run, os.path.join(self.directory, "kubelet")], check=True)
        super().start(ready)
