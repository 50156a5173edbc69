# SPDX-License-Identifier: Apache-2.0
"""Figures of tests that repeat something until a leak or a rare race becomes visible, and their comparisons."""

import os
import random

import world

SCALE = float(os.environ.get("MAINSTAY_SCALE", "1"))


def scaled(figure, least=1):
    """The number of repetitions: MAINSTAY_SCALE=0.1 does a tenth of them, for a quick check."""
    return max(least, round(figure * SCALE))


def make_random():
    """Returns a random generator and prints its seed; MAINSTAY_SEED sets the seed again."""
    seed = int(os.environ.get("MAINSTAY_SEED", random.randrange(2**32)))
    print(f"MAINSTAY_SEED={seed}")
    return random.Random(seed)


def descriptors(pid):
    """The targets of the descriptors of a process, without the numbers of anonymous ones."""
    return sorted(target.split(":[")[0] for target in world.descriptors(pid).values())


def start_without_quarantine(node):
    """Starts a node whose address sanitizer returns freed memory, so that the memory of the programs can be compared."""
    environment = node.environment

    def without_quarantine():
        given = environment()
        return {**given, "ASAN_OPTIONS": f"{given['ASAN_OPTIONS']}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}
    node.environment = without_quarantine
    node.start()
    return node


def own_kib(pid):
    """The private memory of the process, including pages that a fork shares."""
    return world.memory_kib(pid, "RssAnon")


def files_below(*directories):
    return sorted(os.path.join(directory, name) for top in directories for directory, below, names in os.walk(top)
                  for name in below + names)
