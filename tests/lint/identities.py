# SPDX-License-Identifier: Apache-2.0
"""Pods, DaemonSets and other objects are distinguished by model/object-identity.h, which includes their source. No
other file compares names, namespaces or UIDs of their metadata as text, except those that are listed here with the
purpose."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tree  # noqa: E402

OWNER = "agent/model/object-identity.c"
CALL = re.compile(r"\b(?:streq|streq_ptr|strcmp|strncmp)\(")
MEMBER = re.compile(r"\bmetadata(?:\.|->)(?:name|namespace|uid)\b")

# These files read objects of other programs, or text that does not belong to an object.
FOLDERS = ("agent/cli/", "agent/image-helper/", "agent/node-api/", "agent/shim/")
FILES = {
    "agent/apiserver/remote-pod.c": "objects of the API server among themselves",
    "agent/apiserver/pod-watch.c": "events of the API server among themselves",
    "agent/apiserver/pod-status-writer.c": "what was reported and what the API server has",
    "agent/apiserver/evaluated-daemonsets.c": "namespaces of the API server",
    "agent/apiserver/services.c": "namespaces of the API server",
    "agent/daemonset/daemonset-sync.c": "names of the pods of one set",
    "agent/manifest/classes.c": "the start of a name",
    "agent/manifest/manifest-table.c": "names without the node's, by their length",
    "agent/model/edit-plan.c": "names of one object before and after its edit",
    "agent/pods/manager/pod-manager-queries.c": "the order of pages",
}


def arguments(text, start):
    depth, at = 1, start
    while depth and at < len(text):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start:at - 1]


def comparisons(text):
    """The line and the text of each comparison of a member of some metadata."""
    for call in CALL.finditer(text):
        compared = arguments(text, call.end())
        if MEMBER.search(compared):
            yield tree.line_of(text, call.start()), " ".join(compared.split())


def check(root):
    used, problems = set(), []
    for path in tree.files(root, ".c", ".h"):
        if not path.startswith("agent/") or path.startswith(FOLDERS) or path == OWNER:
            continue
        found = list(comparisons(tree.without_strings(tree.without_comments(tree.read(root, path)))))
        if found and path in FILES:
            used.add(path)
            continue
        problems += [f"{path}:{line}: compares '{text}' as text: use agent/model/object-identity.h, which knows the source"
                     for line, text in found]
    if os.path.isfile(os.path.join(root, OWNER)):
        problems += [f"tests/lint/identities.py: {path} needs no exception" for path in sorted(set(FILES) - used)]
    return problems


if __name__ == "__main__":
    found_problems = check(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(found_problems))
    sys.exit(bool(found_problems))
