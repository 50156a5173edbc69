#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The messages of commits: a subject `module: imperative summary` of at most 72 columns, an empty line, a body.

    tests/lint/commits.py FILE      a message, as the hook commit-msg gets it; prints the errors
"""

import re
import subprocess
import sys

SUBJECT_COLUMNS = 72
BODY_COLUMNS = 76
SUBJECT = re.compile(r"[\w./-]+(, [\w./-]+)*: \S")
# Verbs in forms other than the imperative, which subjects have by mistake.
NOT_IMPERATIVE = re.compile(r": (Added|Adds|Adding|Fixed|Fixes|Fixing|Changed|Changes|Removed|Removes|Removing|Updated|Updates|Made|Makes)\b", re.I)
HOOK = "packaging/git-hooks/commit-msg"


def find_problems(message):
    text = re.split(r"^# -+ >8 -+$", message, maxsplit=1, flags=re.M)[0]
    lines = "\n".join(line for line in text.split("\n") if not line.startswith("#")).strip("\n").split("\n")
    subject, body = lines[0], lines[1:]
    if re.match(r'(Merge|Revert ")|(fixup|squash|amend)! ', subject):
        return []
    problems = []
    if not SUBJECT.match(subject):
        problems.append(f"the subject is not 'module: imperative summary': {subject}")
    if NOT_IMPERATIVE.search(subject):
        problems.append(f"the subject's verb is not in the imperative: {subject}")
    if subject.endswith("."):
        problems.append(f"the subject ends with a full stop: {subject}")
    if body and body[0]:
        problems.append(f"no empty line follows the subject: {subject}")
    if not any(line.strip() for line in body):
        problems.append(f"the body that says why is missing: {subject}")
    if len(subject) > SUBJECT_COLUMNS:
        problems.append(f"the subject has {len(subject)} columns, more than {SUBJECT_COLUMNS}: {subject}")
    return problems + [f"{len(line)} columns, more than {BODY_COLUMNS}: {line}" for line in body
                       if len(line) > BODY_COLUMNS and " " in line.strip()]


def git(root, *words):
    return subprocess.run(["git", "-C", root, *words], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def check(root):
    """Checks the commits since the hook was added to the tree; in a clone whose history does not reach that far, only
    the last one."""
    first = git(root, "log", "--diff-filter=A", "--format=%H", "--reverse", "--", HOOK).split()
    log = git(root, "log", "--no-merges", "--format=%h%n%B%x00", f"{first[0]}..HEAD" if first else "-1")
    for entry in filter(str.strip, log.split("\0")):
        commit, message = entry.lstrip("\n").split("\n", 1)
        for problem in find_problems(message):
            yield f"{commit}: {problem}"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        problems = find_problems(file.read())
    for problem in problems:
        print(f"commit message: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
