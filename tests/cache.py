# SPDX-License-Identifier: Apache-2.0
"""Data that one run of the tests leaves for the next ones, outside of the tree: it outlives builds and clones, and may
be removed at any time."""

import json
import os
import sys

sys.dont_write_bytecode = True


def directory(*names):
    """The directory of the cache, which is created if it does not exist."""
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
    """How long each test of a suite took last time, so that the longest tests start first."""

    def __init__(self, suite):
        self.path = os.path.join(directory("durations"), f"{suite}.json")
        self.known, self.recorded, self.longest = self.read(), {}, {}
        for name, seconds in self.known.items():
            file = name.partition("::")[0].rpartition("/")[2]
            self.longest[file] = max(seconds, self.longest.get(file, 0))

    def read(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                return json.load(file)
        except (OSError, ValueError):
            return {}

    def record_duration(self, name, seconds):
        self.recorded[name] = round(seconds, 2)

    def duration_of(self, name, guess=float("inf")):
        """The duration of a test; one without an estimate is assumed to take long."""
        return self.known.get(name, guess)

    def longest_of(self, file):
        """How long the longest test of a file of pytest's took; 0 if none is known."""
        return self.longest.get(file, 0)

    def sort(self, names):
        return sorted(names, key=self.duration_of, reverse=True)

    def save(self):
        """Merges the durations into the file, because another part of the suite may have ended in the meantime."""
        write(self.path, json.dumps({**self.read(), **self.recorded}, indent=0, sort_keys=True))
