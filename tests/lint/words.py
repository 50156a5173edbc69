#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The words of the tree: each of these has a plainer one, or the one that Kubernetes, OCI, CNI or systemd use."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tree  # noqa: E402

# A word of ours that is not used any longer, and what stands in its place.
OLD_WORDS = {
    r"wish(es|ed|ing)?": "desired, desired pods",
    r"doorbells?|bell": "watch",
    r"anew|any ?more": "again, no longer",
    r"wh?o(m|ever)?": "it, the pod, the process",
    r"somebody|someone|nobody|anybody|everybody": "the name of what acts",
    r"he|him|his|she": "it",
    r"persons?|people": "the user, the administrator",
    r"tell(s|ing)?|told|tidings|news": "report, reported, message, update",
    r"sentences?": "message",
    r"troubles?": "last error",
    r"undertakers?|stand-ins?": "sandbox teardown, dummy interface",
    r"lanes?": "connection generation",
    r"standing": "connection status, permissions",
    r"seal(s|ed)?": "checksum",
    r"li(fe|ves)": "pod worker, instance",
    r"cover(s|ed)?": "adopted pod, adopt",
    r"rooms?": "module, space",
    r"doors?": "header, interface",
    r"rings?": "suite",
    r"beg[iau]n(s|ning)?": "start",
    r"go(es|ing)? on|went on": "continue",
    r"for ever": "without end",
    r"(is|are|be|was|were) (another|others)": "has changed, differs",
    r"(?<!there )(is|are|was|were) no(?! (longer|less|more|later|larger))": "is not",
    r"(has|have|had) no(?! longer)": "lacks, without",
}


def compile_words(pattern):
    """For text in lower case: to ignore the case of a whole tree takes ten times as long."""
    return re.compile(rf"\b(?<![/.-])(?:{pattern})(?![\w/-])")


OLD_WORD = {compile_words(old): new for old, new in OLD_WORDS.items()}
# Most texts have none: one search is faster than one for each word.
ANY_OLD_WORD = compile_words("|".join(OLD_WORDS))

# Text that others define or that is a name in the data of a test: it stays to the letter.
EXCEPTIONS = (
    "kubelet has no disk pressure",  # the kubelet's message of the condition DiskPressure
    "image's user 'nobody'",  # the user name in /etc/passwd
    "nobody (65534)",
    "nobody:x:65534:65534:nobody",
)
EXCEPTION = re.compile("|".join(re.escape(text) for text in EXCEPTIONS))


def prose_of_c(text):
    """The comments and sentences of C, the rest blanked; lines and columns stay. A string without a space is not a
    sentence, but a key or a word of a format."""
    pattern = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
    out, at = [], 0
    for match in pattern.finditer(text):
        out.append(re.sub(r"[^\n]", " ", text[at:match.start()]))
        is_prose = match.group(0)[0] == "/" or " " in match.group(0)
        out.append(match.group(0) if is_prose else re.sub(r"[^\n]", " ", match.group(0)))
        at = match.end()
    out.append(re.sub(r"[^\n]", " ", text[at:]))
    return "".join(out)


def test_names(path, text):
    """Names of tests, with their underscores as spaces."""
    pattern = r"^TEST\((\w+)\)" if path.endswith(".c") else r"^\s*def (test_\w+)"
    for match in re.finditer(pattern, text, re.M):
        yield match.start(1), match.group(1).replace("_", " ")


def is_checked(path, text):
    """Code, documents, packaging, examples, the journal's catalog, and scripts without a suffix."""
    if "corpus/" in path or path.endswith("lint/words.py"):
        return False
    if path.endswith((".c", ".h", ".md", ".py", ".txt", ".in", ".cmake", ".sh", ".catalog", ".sysusers")):
        return True
    if path.endswith(".yaml"):
        return path.startswith(("packaging/", "manifests/"))
    return "." not in os.path.basename(path) and (path.startswith("packaging/") or bool(tree.interpreter(text)))


def find_old_words(text):
    """Offset, what stands there, and the word for it."""
    lower = text.lower()
    if not ANY_OLD_WORD.search(lower):
        return
    for old, new in OLD_WORD.items():
        for match in old.finditer(lower):
            yield match.start(), text[match.start():match.end()], new


def check(root, only=()):
    problems = []
    for path in tree.files(root):
        if only and not any(path == p or path.startswith(p.rstrip("/") + "/") for p in only):
            continue
        text = tree.read(root, path)
        if text is None or not is_checked(path, text):
            continue
        prose = prose_of_c(text) if path.endswith((".c", ".h")) else text
        prose = EXCEPTION.sub(lambda match: " " * len(match.group(0)), prose)
        for offset, word, new in find_old_words(prose):
            problems.append((path, tree.line_of(prose, offset), word, new))
        for offset, name in test_names(path, text):
            problems += [(path, tree.line_of(text, offset), name, new) for _, _, new in find_old_words(name)]
    return [f"{path}:{line}: '{word}': say {new}" for path, line, word, new in sorted(set(problems))]


if __name__ == "__main__":
    found = check(".", sys.argv[1:])
    print("\n".join(found))
    sys.exit(bool(found))
