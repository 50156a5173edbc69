# SPDX-License-Identifier: Apache-2.0
"""Deciding which DaemonSets a node runs: the functions alone, without a file or a process."""

import os
import subprocess


def measure(_archive, arguments, figures):
    program = os.path.join(arguments.build, "tests", "bench-evaluate")
    said = subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    assert 0 < int(said[1]) < 1000, "some of them run here"
    figures.add("1000 DaemonSets decided on for one node, beside 200 pods", float(said[0]), 50, "ms")
