# SPDX-License-Identifier: Apache-2.0
"""The evaluation of DaemonSets for a node: the functions alone, without files or processes."""

import os
import subprocess


def measure(_archive, arguments, figures):
    program = os.path.join(arguments.build, "tests", "bench-evaluate")
    said = subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    assert 0 < int(said[1]) < 1000, "some DaemonSets run on the node, and some do not"
    figures.add("1000 DaemonSets evaluated for one node, beside 200 pods", float(said[0]), 50, "ms")
