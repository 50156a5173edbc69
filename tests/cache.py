# SPDX-License-Identifier: Apache-2.0
"""Data that one run of the tests leaves for the next ones, outside of the tree: it outlives builds and clones, and may
be removed at any time."""

import json
import os
import sys

sys.dont_write_bytecode = True


def directory(*names):
    """It is there afterwards."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = os.path.join(base, "mainstay-tests", *names)
    os.makedirs(path, exist_ok=True)
    return path


def write(path, text):
    """Writes atomically, because two runs may write at the same time."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(temporary, path)


class Durations:
    """How long each test of a suite took last time, so that the longest ones start first."""

    def __init__(self, suite):
        self.path = os.path.join(directory("durations"), f"{suite}.json")
        try:
            with open(self.path, encoding="utf-8") as file:
                self.known = json.load(file)
        except (OSError, ValueError):
            self.known = {}

    def record_duration(self, name, seconds):
        self.known[name] = round(seconds, 2)

    def duration_of(self, name, guess=float("inf")):
        """Without a guess, one that is not known may take long."""
        return self.known.get(name, guess)

    def sort(self, names):
        return sorted(names, key=self.duration_of, reverse=True)

    def save(self):
        write(self.path, json.dumps(self.known, indent=0, sort_keys=True))
