# SPDX-License-Identifier: Apache-2.0
"""Habits that make English hard to read, in comments, documents, messages and names of tests: sentences that do not start with
their subject, "where" for "if", words that a native engineer does not use; and lines of documents that are too long."""

import os
import re

import tree

# Folders and files without findings; new ones are added when they are clean.
COMMENTS = ("agent/", "common/", "tests/", "packaging/", "manifests/", "systemd/")
DOCUMENTS = ("packaging/man/", "agent/", "common/", "manifests/", "tests/", "CONTRIBUTING.md", "SECURITY.md")
NAMES = ("tests/",)
# These files contain the words as data, as examples or as quotations.
EXCEPT = ("CHANGELOG.md", "LICENSE", "tests/corpus/", "tests/fuzz/corpus/", "tests/lint/english.py", "tests/lint/test_lint.py",
          "tests/FAULTS.md", "tests/FLAKY.md", "tests/cluster/README.md")
COLUMNS_MAX = 100
TABLE_COLUMNS_MAX = 120
# Tables that a lint or a test compares with the code, and tables of measurements.
TABLES_EXCEPT = ("SECURITY.md", "agent/README.md", "agent/pods/README.md", "manifests/README.md", "tests/bench/FIGURES.md",
                 "tests/corpus/README.md")

SENTENCE = r"(?:^|(?<=[.!?] ))"
HABITS = (
    (re.compile(SENTENCE + r"(?:What|Of(?! these| those| course)|Where|Whoever|That (?:the|an?|it|they|there|no|nothing|all)) [a-z]"), "a sentence starts with its subject, not with '{}'"),
    (re.compile(r"\b(?:lacks|lacked|lacking)\b"), "'{}': write 'has no', 'is not', 'without'"),
    (re.compile(r"\bmend(?:s|ed|ing)?\b"), "'{}': write 'fix'"),
    (re.compile(r"(?:-E[A-Z0-9]+|NULL|\bfalse|\bFalse|\bTrue|\btrue|\b[01]|\"\"|None) where\b"), "'{}': write 'if' for a condition"),
    (re.compile(r"\bwhere (?:there (?:is|are) (?:none|no)|that is|it is not|they are not)\b"), "'{}': write 'if' for a condition"),
    (re.compile(r"\bby half\b"), "'{}': write 'partially'"),
    (re.compile(r"\b(?:is|are) let \w"), "'{}': name the actor"),
    (re.compile(r"\bas with the kubelet\b"), "'{}': write 'like the kubelet'"),
)
QUESTION = re.compile(r"[^.]*\?")  # "What do clients need?" is a question
TEST_NAME = re.compile(r"^TEST\((\w+)|^\s*def test_(\w+)", re.M)
BAD_NAME = re.compile(r"^(?:what|that|of|where|whoever)_|_lacks?_(?!of_)|_mend(?:s|ed)?(?:_|$)")


def paragraphs(lines):
    """Joins the lines of (number, text) into paragraphs: (number of the first line, text)."""
    first, words = 0, []
    for number, text in [*lines, (0, "")]:
        text = text.strip()
        if words and (not text or re.match(r"(?:[-*:] |\d+\. |\|)", text)):
            yield first, " ".join(words)
            words = []
        if text:
            first = first if words else number
            words.append(re.sub(r"^(?:[-*:]|\d+\.) +", "", text))


def comments(path, text):
    """The paragraphs of a file's comments and docstrings."""
    if path.endswith((".c", ".h")):
        for match in re.finditer(r"/\*(.*?)\*/", text, re.S):
            number = tree.line_of(text, match.start())
            yield from paragraphs((number + i, re.sub(r"^\s*\*(?: |$)", "", line))
                                  for i, line in enumerate(match.group(1).split("\n")))
        return
    block = []
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r"\s*#(?:!.*|(.*))$", line)
        if match:
            block.append((number, match.group(1) or ""))
        else:
            yield from paragraphs(block)
            block = []
    yield from paragraphs(block)
    if path.endswith(".py"):
        for match in re.finditer(r'"""(.*?)"""', text, re.S):
            number = tree.line_of(text, match.start())
            yield from paragraphs((number + i, line) for i, line in enumerate(match.group(1).split("\n")))


def prose(text):
    """The paragraphs of a document, without code blocks, tables and headings."""
    lines, is_code = [], False
    for number, line in enumerate(text.split("\n"), 1):
        is_code ^= line.startswith("```")
        is_omitted = is_code or line.startswith(("    ", "|", "#", "```"))
        lines.append((number, "" if is_omitted else line))
    return paragraphs(lines)


def habits(text):
    text = re.sub(r"`[^`]*`|\"[^\"]*\"|'[^']*'|\*\*[^*]+\*\*", "x", text)
    for pattern, advice in HABITS:
        for match in pattern.finditer(text):
            if not QUESTION.match(text, match.start()):
                yield advice.format(match.group(0).strip())


def check_columns(path, text):
    is_code, lines = False, text.split("\n")
    for number, line in enumerate(lines, 1):
        is_code ^= line.startswith("```")
        is_term = lines[number:number + 1] and lines[number].startswith(": ")
        if is_code or is_term or line.startswith(("    ", "#")) or " " not in line.strip(" *-:|"):
            continue
        is_table = line.startswith("|")
        if is_table and path in TABLES_EXCEPT:
            continue
        limit = TABLE_COLUMNS_MAX if is_table else COLUMNS_MAX
        if len(line) > limit:
            yield f"{path}:{number}: has {len(line)} columns, more than {limit}" + ("; make the table a list" if is_table else "")


def is_in(path, folders):
    return path.startswith(folders) and not path.startswith(EXCEPT)


def check(root):
    for path in tree.files(root):
        text = tree.read(root, path)
        if text is None:
            continue
        name = os.path.basename(path)
        found = ()
        if path.endswith(".md"):
            if is_in(path, DOCUMENTS):
                yield from check_columns(path, text)
                found = prose(text)
        elif is_in(path, COMMENTS) and (path.endswith((".c", ".h", ".py", ".yaml", ".sh", ".in")) or "." not in name):
            found = comments(path, text)
        for number, paragraph in found:
            for problem in habits(paragraph):
                yield f"{path}:{number}: {problem}"
        if is_in(path, NAMES) and path.endswith((".c", ".py")):
            for match in TEST_NAME.finditer(text):
                test = match.group(1) or match.group(2)
                if BAD_NAME.search(test):
                    yield f"{path}:{tree.line_of(text, match.start())}: {test}: a test is named <unit>_<does what>_<under which condition>"
