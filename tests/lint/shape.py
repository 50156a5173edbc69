# SPDX-License-Identifier: Apache-2.0
"""The shape of files: a licence line in all code, one guard in a header, and nothing that is too long to read."""

import os
import re

import tree

FUNCTION_LINES_MAX = 80
FILE_LINES_REPORTED = 800
# The sources of agent/ itself connect the modules and decide nothing.
LICENCE = "SPDX-License-" + "Identifier: Apache-2.0"


def is_code(path, text):
    if path.endswith((".c", ".h", ".py", ".cmake")) or os.path.basename(path) == "CMakeLists.txt":
        return True
    return path.startswith("manifests/") and path.endswith(".yaml") or bool(tree.interpreter(text))


def functions(text):
    """The name, first line and length of each function, which in our format ends with '}' in the first column."""
    start, name = None, ""
    for number, line in enumerate(text.split("\n"), 1):
        if start is None and re.match(r"^[A-Za-z_].*$", line) and "(" in line and not line.endswith(";"):
            match = re.search(r"(\w+)\(", line)
            start, name = number, match.group(1) if match else line
            has_body = False
        if start is None:
            continue
        has_body = has_body or line.endswith("{")
        if not has_body and line.endswith(";"):
            start = None
        elif line.startswith("}"):
            yield name, start, number - start + 1
            start = None


def check_licences(root):
    problems = []
    for path in tree.files(root):
        text = tree.read(root, path)
        if text is not None and is_code(path, text) and LICENCE not in "\n".join(text.split("\n")[:3]):
            problems.append(f"{path}:1: no '{LICENCE}'")
    return problems


def check_guards(root):
    return [f"{path}:1: no #pragma once" for path in tree.files(root, ".h")
            if not re.search(r"^#pragma once$", tree.read(root, path), re.M)]


def check_file_names(root):
    """Two files with the same name are distinguished only by their folder, and not even by that in an editor and in
    messages of tools."""
    places = {}
    for path in tree.files(root, ".c", ".h"):
        places.setdefault(os.path.basename(path), []).append(path)
    return [f"{paths[0]}:1: {name} is also the name of {', '.join(paths[1:])}" for name, paths in sorted(places.items())
            if len(paths) > 1]


def check_lengths(root):
    """Functions have a maximum length; long files are only reported, because their subject determines their length."""
    problems = []
    for path in tree.files(root, ".c", ".h", ".py"):
        text = tree.read(root, path)
        lines = text.count("\n")
        if lines > FILE_LINES_REPORTED:
            print(f"long file: {path} has {lines} lines")
        if path.endswith(".py") or path.startswith("tests/"):
            continue  # tables of cases may have any length
        for name, start, length in functions(tree.without_comments(text)):
            if length > FUNCTION_LINES_MAX:
                problems.append(f"{path}:{start}: {name}() has {length} lines, more than "
                                f"{FUNCTION_LINES_MAX}")
    return problems


def check_literals(root):
    """Literals that follow each other are one text: a space between its words belongs to one of them."""
    joined = re.compile(r'"((?:[^"\\\n]|\\.)*)"\s*\n\s*"([A-Za-z(%\'])')
    problems = []
    for path in tree.files(root, ".c", ".h"):
        if path.startswith("tests/"):
            continue  # words of values, some longer than a line
        text = tree.read(root, path)
        for match in joined.finditer(text):
            if " " in match.group(1) and re.search(r"(?<!\\)[a-z,:.)]$", match.group(1)):
                problems.append(f"{path}:{text.count(chr(10), 0, match.start(2)) + 1}: "
                                "the text lacks a space where two literals join")
    return problems
