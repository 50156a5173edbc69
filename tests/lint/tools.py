# SPDX-License-Identifier: Apache-2.0
"""The checks by external tools: clang-format, clang-tidy, shellcheck, codespell. Each returns the tool's own
messages."""

import concurrent.futures
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import cache  # noqa: E402  pylint: disable=wrong-import-position
import tree  # noqa: E402  pylint: disable=wrong-import-position

STAMPS_KEPT_SECONDS = 30 * 24 * 3600

SPELLING_IGNORED = "nd,ue,fo,te,ot,crate,mis,readby,accoount,tage,truns"  # the last three: the kubelet's, columns after a tab


def run(root, argv):
    """The lines that the tool printed if it has findings, otherwise none."""
    result = subprocess.run(argv, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    if result.returncode == 0:
        return []
    return result.stdout.strip().split("\n") or [f"{argv[0]} ended with status {result.returncode}"]


def check_format(root, only=None):
    """Checks the format of all sources, or of these."""
    sources = [path for path in tree.files(root, ".c", ".h") if only is None or path in only]
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
    """Two objects of a library must not define the same name: the linker would use the first one that it finds."""
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


def check_fuzzer(root):
    """With MAINSTAY_FUZZER=ON all code must be instrumented, because libFuzzer gets no feedback from other code."""
    with tempfile.TemporaryDirectory(prefix="mainstay-lint-") as build:
        problems = run(root, ["cmake", "-G", "Ninja", "-B", build, "-DCMAKE_C_COMPILER=clang", "-DMAINSTAY_FUZZER=ON",
                              "-DMAINSTAY_SANITIZE=address", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"])
        if problems:
            return problems
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
            commands = json.load(file)
        problems = [f"{os.path.relpath(entry['file'], root)}: is not instrumented with MAINSTAY_FUZZER=ON"
                    for entry in commands if "-fsanitize=fuzzer" not in entry["command"]
                    and "-ffreestanding" not in entry["command"]]
        output = next(re.search(r" -o (\S+)", entry["command"]).group(1) for entry in commands
                      if entry["file"] == os.path.join(root, "common/utf8.c"))
        problems += run(root, ["ninja", "-C", build, output])
        symbols = subprocess.run(["nm", os.path.join(build, output)], text=True, check=False, stdout=subprocess.PIPE).stdout
        return problems + ([] if "__sanitizer_cov_" in symbols else [f"{output} lacks the symbols of coverage"])


def _closure(root, source, known):
    """The source and all headers of the tree that it includes, by name, each with its text. Each header is read once
    and kept in 'known'."""
    found, due = {}, [os.path.relpath(source, root)]
    while due:
        path = due.pop()
        if path in found:
            continue
        if path not in known:
            text = tree.read(root, path) or ""
            places = [(os.path.normpath(name), os.path.normpath(os.path.join(os.path.dirname(path), name)))
                      for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.M)]
            known[path] = text, [place for either in places for place in either
                                 if os.path.isfile(os.path.join(root, place))]
        found[path], headers = known[path]
        due += headers
    return found


def _toolchain(root):
    """The inputs of a verdict in addition to the code: the rules, the tool, and the headers of libraries."""
    said = [tree.read(root, ".clang-tidy") or ""]
    for argv in (["clang-tidy", "--version"], ["dpkg-query", "-W", "-f", "${Package} ${Version}\n", "*-dev", "*-dev-bin"]):
        said.append(subprocess.run(argv, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout)
    return "\n".join(said)


def _stamp_path(*parts):
    """The file whose existence means that this was checked without findings."""
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return os.path.join(cache.directory("tidy", digest[:2]), digest)


def _is_good(stamp):
    try:
        os.utime(stamp)
        return True
    except OSError:
        return False


def _remove_old_stamps():
    for directory, _, names in os.walk(cache.directory("tidy")):
        for path in (os.path.join(directory, name) for name in names):
            if os.stat(path).st_mtime < time.time() - STAMPS_KEPT_SECONDS:
                os.unlink(path)


def _tidy_one(root, build, source, stamps, with_analyzer):
    argv = ["clang-tidy", "--quiet", "-p", build, *([] if with_analyzer else ["--checks=-clang-analyzer-*"]), source]
    result = subprocess.run(argv, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            check=False)
    if result.returncode == 0:
        for stamp in stamps:
            cache.write(stamp, "")
        return []
    return (result.stdout.strip() or result.stderr.strip()).split("\n")


def check_tidy(root, build, with_analyzer=True):
    """Checks each source in compile_commands.json, unless it had no findings with the same headers, options, rules and
    tools before, which is cached outside of the tree. The analyzer takes nine tenths of the time."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = {entry["file"]: entry["command"].replace(build, "").replace(root, "") for entry in json.load(file)}
    toolchain, known, due = _toolchain(root), {}, []
    for source, command in sorted(commands.items()):
        texts = [part for pair in sorted(_closure(root, source, known).items()) for part in pair]
        full, plain = (_stamp_path(toolchain, command, source[len(root):], *texts, kind) for kind in ("analyzer", "plain"))
        if not _is_good(full) and (with_analyzer or not _is_good(plain)):
            due.append((source, [full, plain] if with_analyzer else [plain]))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda job: _tidy_one(root, build, *job, with_analyzer), due))
    _remove_old_stamps()
    return [line for lines in results for line in lines]


def check_cppcheck(root, build):
    """Analyzes the sources in compile_commands.json by cppcheck. The definitions of macros for it and its false
    positives are in the files next to this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    result = subprocess.run(
        ["cppcheck", f"--project={build}/compile_commands.json", f"-j{os.cpu_count()}", "--quiet", "--library=posix", "--library=gnu",
         f"--library={here}/cppcheck.cfg", f"--suppressions-list={here}/cppcheck-suppressions.txt", "--suppress=*:/usr/*",
         "--enable=warning,performance,portability", "--template={file}:{line}: {message} [{id}]",
         *[f"--file-filter={root}/{folder}/*" for folder in ("agent", "common")]],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return sorted(set(result.stdout.splitlines()))
