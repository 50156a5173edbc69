# SPDX-License-Identifier: Apache-2.0
"""The units of our services and their rating by 'systemd-analyze security': 0 is best, 10 is worst."""

import os
import re
import subprocess
import tempfile

# The agent only has the privileges that files of pods need: mainstay-launch.service has the rest. If a unit improves,
# its number here is lowered.
EXPOSURE_MAX = {"mainstay.service.in": 3.0, "mainstay-launch.service.in": 3.5, "mainstay-api.service.in": 0.4}


def read_exposure(said):
    """The number in the output of systemd-analyze, or None."""
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", said)
    return float(match[1]) if match else None


def rate(path):
    """The exposure of one unit; it need not be installed."""
    with tempfile.TemporaryDirectory() as directory, open(path, encoding="utf-8") as file:
        unit = os.path.join(directory, os.path.basename(path).removesuffix(".in"))
        with open(unit, "w", encoding="utf-8") as copy:
            copy.write(re.sub(r"@\w+@", "/usr/sbin", file.read()))
        run = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", unit], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
    return read_exposure(run.stdout), run.stdout


def check(root):
    """Yields units that are less confined than before."""
    for name, most in EXPOSURE_MAX.items():
        exposure, said = rate(os.path.join(root, "systemd", name))
        if exposure is None:
            yield f"systemd/{name}: systemd-analyze prints no rating: {said.strip()}"
        elif exposure > most:
            yield f"systemd/{name}: its exposure is {exposure}, more than {most}"
