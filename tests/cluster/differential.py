#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sends random manifests to `mainstay validate` and to an API server's dry run, and reports where the two disagree,
grouped by field and message.

    MAINSTAY_KUBERNETES=DIR tests/cluster/differential.py [--count N] [--seed S] [--keep DIRECTORY]

Intentional disagreements are in expected-differences.txt. Exits with 0 if there are no others.
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import threading

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(TOP, "tests", "cluster"), os.path.join(TOP, "tests", "system")]

import generate  # noqa: E402  pylint: disable=wrong-import-position
import harness  # noqa: E402  pylint: disable=wrong-import-position
from client import Refused  # noqa: E402  pylint: disable=wrong-import-position

EXPECTED = os.path.join(TOP, "tests", "cluster", "expected-differences.txt")
BATCH = 500
THREADS = 4
PATH = "/api/v1/namespaces/default/pods?dryRun=All&fieldValidation=Strict"
CONTENT_TYPES = {".json": "application/json", ".yaml": "application/yaml"}


def validate(directory, names):
    """The first message of Mainstay for each file that it refuses."""
    done = subprocess.run([harness.program("mainstay"), "validate", *names], cwd=directory, check=False, timeout=600,
                          encoding="utf-8", errors="replace", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    refused, accepted = {}, set()
    for line in done.stdout.splitlines() + done.stderr.splitlines():
        match = re.match(r"error: (\d+\.(?:json|yaml)):(?:\d+:\d+:)? ?(.*)", line)
        if match:
            refused.setdefault(match.group(1), match.group(2))
        elif re.match(r"\d+\.(json|yaml): ok ", line):
            accepted.add(line.split(":")[0])
    lost = set(names) - accepted - set(refused)
    assert not lost, f"mainstay validate does not mention {sorted(lost)[:3]}: {done.stderr[-2000:]}"
    return refused


class Server:
    """Does dry runs, with a connection for each thread."""

    def __init__(self, plane):
        self.plane, self.local = plane, threading.local()

    def refuses(self, directory, name):
        """The first cause, or None."""
        if not hasattr(self.local, "client"):
            self.local.client = self.plane.make_client("admin")
        with open(os.path.join(directory, name), "rb") as file:
            text = file.read()
        try:
            self.local.client.do("POST", PATH, text, CONTENT_TYPES[os.path.splitext(name)[1]])
        except Refused as refused:
            causes = refused.status.get("details", {}).get("causes")
            if causes:
                return f"{causes[0].get('field', '')}: {causes[0].get('message', '')}"
            return refused.status.get("message", str(refused))
        return None


def general(message):
    """The message without the parts that are specific to this manifest."""
    message = re.sub(r"\[(\d+|\w+)\]", "[]", message)
    message = re.sub(r'\b[pP]od "[^"]*"', "pod", message)
    message = re.sub(r'Pod "[^"]*" is invalid: ', "", message)
    message = re.sub(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|`[^`]*`', "…", message)
    message = re.sub(r"(Invalid value|Unsupported value|Duplicate value): .*?: ", r"\1: …: ", message)
    message = re.sub(r"\b\d[\w.+-]*", "N", message)
    return message[:200]


def patterns():
    """Lines of 'side field: message' with * for anything; the lines with # give the reason."""
    with open(EXPECTED, encoding="utf-8") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    return [re.compile(re.escape(line).replace(r"\*", ".*") + "$") for line in lines]


def compare(plane, count, seed, directory):
    """Groups of disagreements: the side that refuses, the message, and the files."""
    groups = {}
    server = Server(plane)
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        for start in range(0, count, BATCH):
            names = []
            for number in range(start, min(start + BATCH, count)):
                name, text = generate.make(seed, number)
                with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
                    file.write(text)
                names.append(name)
            ours = pool.submit(validate, directory, names)
            theirs = dict(zip(names, pool.map(lambda name: server.refuses(directory, name), names)))
            ours = ours.result()
            for name in names:
                if bool(theirs[name]) != (name in ours):
                    key = f"server {general(theirs[name])}" if theirs[name] else f"mainstay {general(ours[name])}"
                    groups.setdefault(key, []).append((name, theirs[name] or ours[name]))
                else:
                    os.unlink(os.path.join(directory, name))
    return groups


def unexpected(groups):
    known = patterns()
    return {key: found for key, found in groups.items() if not any(pattern.match(key) for pattern in known)}


def describe(groups):
    """The largest group first: the refusal, its frequency, and an example."""
    lines = []
    for key, found in sorted(groups.items(), key=lambda pair: -len(pair[1])):
        lines.append(f"{len(found):6} only {key}\n         {found[0][0]}: {found[0][1][:300]}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--keep", metavar="DIRECTORY", help="keeps the manifests about which the two disagree")
    arguments = parser.parse_args()

    import control_plane  # pylint: disable=import-outside-toplevel
    plane = control_plane.ControlPlane()
    try:
        with tempfile.TemporaryDirectory(prefix="mainstay-differential-") as temporary:
            if arguments.keep:
                os.makedirs(arguments.keep, exist_ok=True)
            groups = compare(plane, arguments.count, arguments.seed, arguments.keep or temporary)
    finally:
        plane.finish()
    left = unexpected(groups)
    print(describe(left))
    print(f"{arguments.count} manifests, {sum(map(len, groups.values()))} disagreements in {len(groups)} groups, "
          f"{sum(map(len, left.values()))} in {len(left)} groups of them not expected")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
