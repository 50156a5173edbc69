# SPDX-License-Identifier: Apache-2.0
"""A third static analyzer, gcc's -fanalyzer, which follows paths through all functions of a source."""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess

SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gcc-analyzer-suppressions.txt")

# The slowest sources take a minute of processor time; a source that takes so much longer is reported.
DEADLINE = 1200

HEADING = re.compile(r"(?:\S+: )?In function '(\S+?)'[:,]$")
WARNING = re.compile(r"(cc1|\S+?:\d+):(?:\d+:)? warning: (.*?)(?: \[CWE-\d+\])? \[-Wanalyzer-([a-z-]+)\]$")


def _command(entry):
    """The command without optimisation, because gcc otherwise reports false positives for inlined code and for bytes
    that are copied in one step. The definitions of the build are kept, except that assertions remain enabled."""
    words = [word for word in shlex.split(entry["command"].replace("-isystem ", "-isystem"))
             if re.match(r"-[DIU]|-isystem", word) and not re.match(r"-D(NDEBUG|_FORTIFY_SOURCE)", word)]
    return ["gcc", *words, "-O0", "-fanalyzer", "-fdiagnostics-plain-output", "-fdiagnostics-path-format=none", "-c", "-o", "/dev/null",
            entry["file"]]


def read_findings(root, directory, source, text):
    """The findings in gcc's messages about a source: (warning, "source:function", the message for a reader). The
    function may be one of a header."""
    function = "?"
    for line in text.splitlines():
        if heading := HEADING.match(line):
            function = heading.group(1)
        elif warning := WARNING.match(line):
            place, message, name = warning.groups()
            if place == "cc1":
                place = os.path.join(root, f"{source}:0")  # its report has no location
            path, _, number = place.rpartition(":")
            path = os.path.relpath(os.path.join(directory, path), root)
            yield name, f"{source}:{function}", f"{path}:{number}: {function}(): {message} [{name}]"


def _analyze(root, entry):
    """The findings of gcc in a source, and the errors that prevented the analysis."""
    source = os.path.relpath(entry["file"], root)
    try:
        result = subprocess.run(_command(entry), cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                check=False, timeout=DEADLINE, env={**os.environ, "LC_ALL": "C", "CCACHE_DISABLE": "1"})
    except subprocess.TimeoutExpired:
        return [], [f"{source}: gcc does not end within {DEADLINE} s"]
    if result.returncode != 0:
        return [], [f"{source}: {line}" for line in result.stdout.strip().split("\n")]
    return list(read_findings(root, entry["directory"], source, result.stdout)), []


def read_suppressions(text):
    """The set of (warning, "source:function"), and the errors of the text: each paragraph is a reason, followed by the
    entries to which it applies."""
    known, problems, has_reason = set(), [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("//") or not line.strip():
            has_reason = line.startswith("//")
            continue
        words = line.split()
        if len(words) != 2 or words[1].count(":") != 1:
            problems.append(f"line {number} is not 'WARNING SOURCE:FUNCTION'")
        elif not has_reason:
            problems.append(f"line {number} is without a reason above it")
        elif tuple(words) in known:
            problems.append(f"line {number} is there twice")
        else:
            known.add(tuple(words))
    return known, problems


def check(root, build, suppressions=SUPPRESSIONS, jobs=os.cpu_count()):
    """Analyzes the sources of agent/ and common/ in compile_commands.json. An unused suppression is a problem as
    well."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = [entry for entry in json.load(file)
                   if os.path.relpath(entry["file"], root).startswith(("agent/", "common/"))]
    with open(suppressions, encoding="utf-8") as file:
        known, problems = read_suppressions(file.read())
    problems = [f"{os.path.basename(suppressions)}: {problem}" for problem in problems]
    found = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for findings, failures in pool.map(lambda entry: _analyze(root, entry), entries):
            found += findings
            problems += failures
    problems += sorted({words for warning, place, words in found if (warning, place) not in known})
    needed = {(warning, place) for warning, place, _ in found}
    return problems + [f"{os.path.basename(suppressions)}: gcc does not find '{warning} {place}'"
                       for warning, place in sorted(known - needed)]
