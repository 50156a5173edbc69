# SPDX-License-Identifier: Apache-2.0
"""The input of the checks: the files of the tree, and C without its comments or strings."""

import functools
import os
import re

SKIPPED_DIRECTORIES = re.compile(r"^(\.git|build.*|__pycache__|\.pytest_cache|_CPack_Packages)$")


def files(root, *suffixes):
    """All files below root, relative and sorted; with suffixes, only those that end with one of them."""
    found = []
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = [d for d in subdirectories if not SKIPPED_DIRECTORIES.match(d)]
        for name in names:
            path = os.path.relpath(os.path.join(directory, name), root)
            if os.path.islink(os.path.join(root, path)) or path == ".git":
                continue
            if not suffixes or path.endswith(suffixes):
                found.append(path)
    return sorted(found)


def read(root, path):
    """The text of a file, or None if it is not text."""
    with open(os.path.join(root, path), "rb") as file:
        data = file.read()
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


@functools.lru_cache(maxsize=None)
def without_comments(text):
    """C with comments blanked; line numbers and columns do not change."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
    return pattern.sub(lambda m: m.group(0) if m.group(0)[0] in "\"'" else _blank(m), text)


@functools.lru_cache(maxsize=None)
def without_strings(text):
    """C without comments and with the contents of strings blanked."""
    return re.sub(r'"(?:\\.|[^"\\\n])*"', lambda m: '"' + " " * (len(m.group(0)) - 2) + '"',
                  without_comments(text))


def interpreter(text):
    """The last word of a script's first line: 'bash', 'python3', or ''."""
    first = text.split("\n", 1)[0] if text else ""
    return first.split("/")[-1].split()[-1] if first.startswith("#!") else ""


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1
