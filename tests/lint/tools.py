# SPDX-License-Identifier: Apache-2.0
"""The checks that others wrote: clang-format, clang-tidy, shellcheck, codespell. Each gives the tool's own words."""

import concurrent.futures
import glob
import json
import os
import subprocess

import tree

SPELLING_IGNORED = "nd,ue,fo,te,ot,crate,mis,readby,tage,truns"  # the last two: columns after a tab


def run(root, argv):
    """The lines that the tool printed where it found something, else none."""
    result = subprocess.run(argv, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    if result.returncode == 0:
        return []
    return result.stdout.strip().split("\n") or [f"{argv[0]} ended with status {result.returncode}"]


def check_format(root):
    sources = tree.files(root, ".c", ".h")
    return run(root, ["clang-format", "--style=file", "--dry-run", "-Werror", *sources]) if sources else []


def check_shell(root):
    scripts = [path for path in tree.files(root)
               if path.endswith(".sh") or tree.interpreter(tree.read(root, path)) in ("bash", "sh")]
    return run(root, ["shellcheck", "-x", *scripts]) if scripts else []


def check_spelling(root):
    names = [path for path in tree.files(root) if os.path.basename(path) != "LICENSE"
             and "corpus" not in path and tree.read(root, path) is not None]
    return run(root, ["codespell", "-L", SPELLING_IGNORED, *names]) if names else []


def check_names(root, build):
    """A name that two objects of a library define is one of them by chance: the linker takes what it meets first."""
    problems = []
    for library in sorted(glob.glob(os.path.join(build, "*", "lib*.a"))):
        result = subprocess.run(["nm", "-A", "--defined-only", "--extern-only", library], text=True, check=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        places = {}
        for line in result.stdout.splitlines():
            place, _, rest = line.rpartition(":")
            places.setdefault(rest.split()[-1], []).append(place.split(":")[-1])
        problems += [f"{os.path.relpath(library, build)}: {name} is defined in {' and '.join(objects)}"
                     for name, objects in sorted(places.items()) if len(objects) > 1]
    return problems


def _newest(root, paths):
    return max((os.stat(os.path.join(root, path)).st_mtime for path in paths), default=0.0)


def _tidy_one(root, build, source, stamp):
    argv = ["clang-tidy", "--quiet", "-p", build, source]
    result = subprocess.run(argv, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            check=False)
    if result.returncode == 0:
        os.makedirs(os.path.dirname(stamp), exist_ok=True)
        with open(stamp, "w", encoding="utf-8"):
            pass
        return []
    return (result.stdout.strip() or result.stderr.strip()).split("\n")


def check_tidy(root, build):
    """Looks at each source that clang built, unless neither it, nor a header, nor the rules changed since it
    was found good."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        sources = sorted({entry["file"] for entry in json.load(file)})
    common = _newest(root, tree.files(root, ".h") + [".clang-tidy"])
    due = []
    for source in sources:
        stamp = os.path.join(build, "tidy", os.path.relpath(source, root) + ".ok")
        fresh = max(common, os.stat(source).st_mtime)
        if not os.path.exists(stamp) or os.stat(stamp).st_mtime < fresh:
            due.append((source, stamp))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda job: _tidy_one(root, build, *job), due)
        return [line for lines in results for line in lines]
