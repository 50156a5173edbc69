#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Chooses the tests that a change can affect.

    tests/changed.py [REVISION]     for the differences from it, committed or not; by default from the merge base with
                                    origin/main or, without that branch, main

Prints a line each for `programs` (the programs that programs.py runs), `system` and `vm`: that word, and the tests. A
test in C is affected if it, or a file that it reaches by its includes, has changed. The system tests of a module or a
program are in the tables below; a module without a row affects all of them. lint and the mark `quick` are not chosen:
they always run.
"""

import fnmatch
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "lint"))

import tree  # noqa: E402

ALL = ["*"]
NODE_API = ["node_api*", "lone_*", "system_logs", "tls_limits", "takeover", "debug"]
IMAGES = ["image_*", "pull*", "registry", "signatures", "cosign", "deltas", "tool_images", "many_layers", "damaged_layers", "crash_states_images",
          "failed_allocations_images", "lost_state", "pod_rollouts", "rootfs_import"]
SOURCES = ["index_source", "index_images", "tampering", "source_sign", "source_fleet", "static_pod_url", "report", "object_sources", "pod_sources", "flash"]
CLUSTER = ["apiserver*", "daemonset*", "kube_node", "kubelet", "node_api_joined", "network_readiness", "squatters", "object_sources", "own_keys", "pod_security",
           "crash_states_remote", "tls_limits", "image_access", "image_isolation"]
COMMANDS = ["get_objects", "events", "logs", "exec", "attach", "cp", "top", "delete", "debug", "ephemeral", "corpus", "published*", "programs",
            "lone_*", "critical", "source_fleet", "index_source", "status", "daemonset_views", "service_manager", "usage"]

# Files named system/test_<pattern>.py, by the module below agent/ that changed.
OF_MODULES = {
    "access": NODE_API,
    "apiserver": CLUSTER, "kubeclient": CLUSTER,
    "cdi": ["cdi", "published_forms"],
    "cni": ["network*", "dual_stack", "restarts", "survival"],
    "daemonset": ["daemonset*", "apiserver_daemonsets", "rollouts", "classes", "object_sources", "own_keys"],
    "daemonset/rules": ["daemonset*", "apiserver_daemonsets", "rollouts", "classes", "object_sources", "own_keys", "pod_security"],
    "csi": ["csi*", "plugin*", "apiserver_volumes"], "devices": ["*device*", "plugin*"], "node-devices": ["*device*"], "plugins": ["*device*", "plugin*", "csi*"], "plugin-host": ["*device*", "plugin*", "csi*"],
    "eviction": ["pressure", "storage", "inodes", "resources", "critical"],
    "http": [*COMMANDS, *NODE_API, "descriptors", "slow_agent"],
    "image": IMAGES,
    "report": ["report", "flash"],
    "source": SOURCES,
    "secrets": ["secrets*", "canaries", "object_sources", "index_source", "apiserver_cache", "apiserver_offline", "apiserver_objects", "other_cluster"],
    "secret-helper": ["secrets*", "canaries", "takeover"],
    "cli": COMMANDS,
    "image-helper": [*IMAGES, *SOURCES],
    "kubelet": ["kubelet"],
    "launch": ["launched_programs", "unit_privileges"],
    "node-api": NODE_API,
    "manifest": ALL, "metrics": ALL, "model": ALL, "node": ALL, "pods": ALL, "bundle": ALL, "sandbox": ALL,
    "desired": ALL, "shim": ALL, "pause": ALL, "agent": ALL,
}

# Suites that other files affect, by path patterns; the first match counts. Files without a row affect only lint.
OF_PATHS = [
    ("tests/system/test_*.py", {}),  # itself
    ("tests/vm/test_*.py", {}),
    ("tests/system/*", {"system": ALL}),
    ("tests/corpus/*", {"unit": ["manifest"], "fuzz": ["cases", "manifest"], "system": ["corpus", "published*"]}),
    ("tests/fuzz/corpus/*", {"fuzz": ALL}),
    ("tests/unit/*.c", {}),  # by its includes
    ("tests/component/*.c", {}),
    ("tests/fuzz/*.c", {}),
    ("tests/unit/*", {"unit": ALL, "system": ["corpus"]}),
    ("tests/vm/*", {"vm": ALL}),
    ("tests/failpoints", {"component": ALL, "system": ALL}),
    ("manifests/*", {"unit": ["manifest"], "system": ["corpus", "daemonset_examples", "launch"]}),
    ("packaging/man/*", {"unit": ALL, "system": ["programs"]}),
    ("packaging/completion/*", {"unit": ["cli"], "vm": ["package", "service"]}),
    ("packaging/try", {"system": ["try"], "vm": ["try"]}),
    ("packaging/*", {"vm": ALL}),
    ("systemd/*", {"vm": ALL, "system": ["kubelet", "service_manager", "unit_privileges"]}),
    ("*CMakeLists.txt", {"unit": ALL, "component": ALL, "fuzz": ALL, "system": ALL, "vm": ALL}),
]

# Modules that behave differently with systemd, cgroup v2 or after a power cut.
OF_MACHINES = {"agent", "bundle", "node", "pods", "sandbox", "shim"}


def system_tests(patterns, suite="system"):
    names = (name[len("test_"):-len(".py")] for name in os.listdir(os.path.join(TOP, "tests", suite))
             if fnmatch.fnmatch(name, "test_*.py"))
    return {f"tests/{suite}/test_{name}.py" for name in names
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}


def module_of(path):
    """The longest module that the file is in, or None if it is not below agent/."""
    if not path.startswith("agent/"):
        return None
    directory = os.path.dirname(path)[len("agent/"):]
    while directory and directory not in OF_MODULES:
        directory = os.path.dirname(directory)
    return directory or "agent"


class Includes:
    """The files of the tree that each file includes, and the sources that implement a header."""

    def __init__(self):
        self.headers, self.sources = {}, {}
        for path in tree.files(TOP, ".c", ".h"):
            text = tree.read(TOP, path) or ""
            places = (either for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.M)
                      for either in (name, os.path.join(os.path.dirname(path), name), os.path.join("tests", name)))
            self.headers[path] = {place for place in map(os.path.normpath, places) if os.path.isfile(os.path.join(TOP, place))}
        for path in self.headers:
            if path.endswith(".c"):
                own = path[:-2] + ".h"
                # A source without a header implements part of another header in its directory.
                behind = [own] if own in self.headers else [header for header in self.headers[path]
                                                            if not path.startswith("tests/")
                                                            and os.path.dirname(header) == os.path.dirname(path)]
                for header in behind:
                    self.sources.setdefault(header, set()).add(path)

    def reach(self, start):
        found, due = set(), [start]
        while due:
            path = due.pop()
            if path not in found:
                found.add(path)
                due += self.headers.get(path, set()) | self.sources.get(path, set())
        return found


def c_tests(changed):
    """The names that programs.py uses, by suite."""
    includes, found = Includes(), {"unit": set(), "component": set(), "fuzz": set()}
    for path in includes.headers:
        match = re.fullmatch(r"tests/(?:(unit)/(.+)/test-|(component)/test-|(fuzz)/fuzz-)(.+)\.c", path)
        if match and includes.reach(path) & changed:
            suite = match[1] or match[3] or match[4]
            found[suite].add("-".join(filter(None, [match[2] and match[2].replace("/", "-"), match[5]])))
    if "manifest" in found["fuzz"]:
        found["fuzz"].add("cases")
    return found


def choose(changed):
    """The tests of each suite that these files affect."""
    chosen = {**c_tests(changed), "system": set(), "vm": set()}
    for path in changed:
        module = module_of(path)
        if path.startswith("common/") or module is not None:
            chosen["system"] |= system_tests(OF_MODULES.get(module, ALL))
            if path.startswith("common/") or module in OF_MACHINES:
                chosen["vm"] |= system_tests(ALL, "vm")
            continue
        if re.fullmatch(r"tests/(system|vm)/test_\w+\.py", path) and os.path.exists(os.path.join(TOP, path)):
            chosen[path.split("/")[1]].add(path)
        suites = next((suites for pattern, suites in OF_PATHS if fnmatch.fnmatch(path, pattern)), {})
        for suite, patterns in suites.items():
            if suite in ("system", "vm"):
                chosen[suite] |= system_tests(patterns, suite)
            else:
                chosen[suite] |= set(patterns)
    return chosen


def find_problems(modules):
    """Used by lint: modules without a row, and rows that match nothing."""
    problems = [f"tests/changed.py: the module {name} has no row" for name in modules
                if name not in OF_MODULES and name.split("/")[0] not in OF_MODULES and name != "common"]
    problems += [f"tests/changed.py: there is no module {name}" for name in OF_MODULES
                 if name not in modules and not any(module.startswith(name + "/") for module in modules)]
    patterns = {("system", pattern) for row in OF_MODULES.values() for pattern in row}
    patterns |= {(suite, pattern) for _, suites in OF_PATHS for suite, row in suites.items() if suite in ("system", "vm")
                 for pattern in row}
    return problems + [f"tests/changed.py: no file is tests/{suite}/test_{pattern}.py" for suite, pattern in sorted(patterns)
                       if not system_tests([pattern], suite)]


def git(*words):
    return subprocess.run(["git", "-C", TOP, *words], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.split()


def find_changed(revision=None):
    base = [revision] if revision else git("merge-base", "HEAD", "origin/main") or git("merge-base", "HEAD", "main") or ["HEAD"]
    return set(git("diff", "--name-only", "--no-renames", base[0])) | set(git("ls-files", "--others", "--exclude-standard"))


def main():
    chosen = choose(find_changed(*sys.argv[1:]))
    programs = {suite if name == "*" else f"{suite}-{name}" for suite in ("unit", "component", "fuzz") for name in chosen[suite]}
    for kind, tests in (("programs", programs), ("system", chosen["system"]), ("vm", chosen["vm"])):
        if tests:
            print(kind, *sorted(tests))


if __name__ == "__main__":
    main()
