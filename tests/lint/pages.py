# SPDX-License-Identifier: Apache-2.0
"""The documents: the manual pages can be built and displayed, references have a target, README.md stays short, and
every reason, condition and event of the agent is explained."""

import glob
import html
import os
import re
import subprocess
import tempfile

import tree

MAN = os.path.join("packaging", "man")
TROUBLESHOOTING = os.path.join(MAN, "mainstay-troubleshooting.7.md")
README_LINES_MAX = 130
README_COLUMNS_MAX = 100

# The sources of reasons, conditions and events.
REPORTING = ("agent/pods/**/*.c", "agent/daemonset/*.c", "agent/apiserver/*.c", "agent/*.c", "agent/model/status.c",
             "agent/model/eviction.c", "agent/model/json-daemonset.c", "agent/kubeclient/node-json.c",
             "agent/kubeclient/pod-*.c")
CAPITALIZED = re.compile(r'"((?:mainstay\.io/)?[A-Z][a-z]*(?:[A-Z]+[a-z]*)*)"')
# Capitalized words in these sources that are none of the three: kinds, headers, methods, values, names of probes and
# hooks, sections of dumps.
OTHER_WORDS = {"Accept", "Agent", "Authorization", "Connection", "ControllerRevision", "DELETE", "DaemonSet", "DaemonSets",
               "CSINode", "DeleteOptions", "False", "Host", "KubeletConfiguration", "Lease", "Liveness", "Node", "None", "PATCH", "POST", "Pod", "PodList",
               "PostStart", "PreStop", "Readiness", "SERVING", "Startup", "Status", "TokenRequest", "Trailer", "True", "UNKNOWN"}


def manuals(root):
    return [os.path.relpath(path, root) for path in sorted(glob.glob(os.path.join(root, MAN, "*.md")))]


def check_title(path, text):
    """"mainstay-config.5.md" starts with "# mainstay-config 5 "."""
    name, section = os.path.basename(path)[:-len(".md")].rsplit(".", 1)
    if not text.startswith(f"# {name} {section} "):
        yield f"{path}:1: the title is not '# {name} {section} …'"
    if not re.search(rf"^## NAME\n\n{re.escape(name)} - \S", text, re.M):
        yield f"{path}:1: no section NAME with '{name} - …'"


def check_references(root, path, text):
    for match in re.finditer(r"\*\*(mainstay[a-z-]*)\*\*\((\d)\)", text):
        if not os.path.exists(os.path.join(root, MAN, f"{match.group(1)}.{match.group(2)}.md")):
            yield f"{path}:{tree.line_of(text, match.start())}: there is no page {match.group(1)}({match.group(2)})"


def check_code(path, text):
    """go-md2man does not escape lines of code."""
    for match in re.finditer(r"^    [.']", text, re.M):
        place = f"{path}:{tree.line_of(text, match.start())}"
        yield f"{place}: roff takes a line that starts with {match.group(0)[-1]} for a request"


def check_rendering(root, path):
    """Messages of go-md2man and mandoc."""
    with tempfile.NamedTemporaryFile() as page:
        made = subprocess.run(["go-md2man", "-in", os.path.join(root, path), "-out", page.name], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        shown = subprocess.run(["mandoc", "-Tlint", "-Werror", page.name], check=False, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    return [f"{path}: {line}" for line in (made.stdout + shown.stdout).splitlines()]


def check_manuals(root):
    problems = [f"{os.path.relpath(path, root)}: only sources in Markdown stand here; pages are made of them when the package is built"
                for path in sorted(glob.glob(os.path.join(root, MAN, "*"))) if not path.endswith(".md")]
    for path in manuals(root):
        text = tree.read(root, path)
        problems += [*check_title(path, text), *check_references(root, path, text), *check_code(path, text),
                     *check_rendering(root, path)]
    return problems


def check_links(root):
    """Relative links of documents lead to files of the tree."""
    problems = []
    for path in tree.files(root, ".md"):
        text = tree.read(root, path)
        for match in re.finditer(r"\]\(([^)#:\s]+)\)", re.sub(r"`[^`\n]*`", lambda m: " " * len(m.group(0)), text)):
            if not os.path.exists(os.path.join(root, os.path.dirname(path), match.group(1))):
                problems.append(f"{path}:{tree.line_of(text, match.start())}: there is no {match.group(1)}")
    return problems


def check_readme(root):
    lines = (tree.read(root, "README.md") or "").rstrip("\n").split("\n")
    problems = [f"README.md:{number}: has {len(line)} columns, more than {README_COLUMNS_MAX}"
                for number, line in enumerate(lines, 1) if len(line) > README_COLUMNS_MAX]
    if len(lines) > README_LINES_MAX:
        problems.append(f"README.md:{README_LINES_MAX}: has {len(lines)} lines, more than {README_LINES_MAX}; "
                        "the rest belongs into packaging/man/")
    return problems


def check_pictures(root):
    """A picture matches its source: each label of a .dot file is in the .svg file next to it."""
    problems = []
    for path in tree.files(root, ".dot"):
        picture = os.path.join(root, path[:-len(".dot")] + ".svg")
        shown = html.unescape(tree.read(root, os.path.relpath(picture, root)) or "") if os.path.exists(picture) else ""
        for label in re.findall(r'label="([^"]*)"', tree.read(root, path)):
            problems += [f"{path}: its picture does not show '{line}': dot -Tsvg" for line in label.split("\\n")
                         if f">{line}<" not in shown]
    return problems


def check_reasons(root):
    """Every reason, condition and event is in mainstay-troubleshooting(7), each by itself in backquotes."""
    explained = set(re.findall(r"`([\w./]+)`", tree.read(root, TROUBLESHOOTING)))
    problems = []
    for pattern in REPORTING:
        for path in sorted(glob.glob(os.path.join(root, pattern), recursive=True)):
            name = os.path.relpath(path, root)
            text = tree.without_comments(tree.read(root, name))
            for match in CAPITALIZED.finditer(text):
                word = match.group(1)
                if len(word) > 3 and word not in explained and word not in OTHER_WORDS:
                    place = f"{name}:{tree.line_of(text, match.start())}"
                    problems.append(f"{place}: {word} is not explained by {TROUBLESHOOTING}")
    return problems


def check_routes(root):
    """Every path that the agent serves is in mainstayd(8)."""
    page, routes = tree.read(root, os.path.join(MAN, "mainstayd.8.md")), os.path.join("agent", "http", "routes.c")
    for match in re.finditer(r'\{ "([A-Z]+)", *"(/[^"]*)"', tree.read(root, routes)):
        method = "" if match.group(1) == "GET" else f"{match.group(1)} "
        if f"`{method}{match.group(2)}`" not in page:
            yield f"{routes}: {match.group(1)} {match.group(2)} is not described by {MAN}/mainstayd.8.md"


def check_names_in_readmes(root):
    """Functions and files that the READMEs below agent/ and common/ name exist."""
    sources = [path for path in tree.files(root, ".c", ".h") if path.startswith(("agent/", "common/"))]
    functions = {name for path in sources for name in re.findall(r"(\w+)\(", tree.read(root, path))}
    problems = []
    for path in tree.files(root, "README.md"):
        if not path.startswith(("agent/", "common/")):
            continue
        text, folder = tree.read(root, path), os.path.dirname(path)
        for match in re.finditer(r"`(\w+)\(\)`|`([\w/-]+\.[ch])`", text):
            function, file = match.groups()
            exists = function in functions if function else any(
                os.path.exists(os.path.join(root, start, file)) for start in ("", "agent", folder))
            if not exists:
                problems.append(f"{path}:{tree.line_of(text, match.start())}: {match.group(0)} does not exist")
    return problems


def check_conformance(root):
    """The tests that the list of Kubernetes' own specs names exist: `file::name` next to it, `system/file::name`
    elsewhere."""
    path = os.path.join("tests", "cluster", "README.md")
    if not os.path.exists(os.path.join(root, path)):
        return
    text, known = tree.read(root, path), {}
    for match in re.finditer(r"`(?:(\w+)/)?(\w+)::(\w+)`", text):
        folder, file, name = match.groups()
        source = os.path.join("tests", folder or "cluster", f"test_{file}.py")
        if source not in known:
            known[source] = tree.read(root, source) if os.path.exists(os.path.join(root, source)) else ""
        if name != "name" and f"def test_{name}(" not in known[source]:
            yield f"{path}:{tree.line_of(text, match.start())}: there is no test_{name} in {source}"


def _test_source(folder, file):
    """The file of a test in the notation of tests/FAULTS.md, and the pattern of its definition."""
    if folder in ("system", "vm", "cluster"):
        return os.path.join("tests", folder, f"test_{file}.py"), "def test_{}("
    if folder == "bench":
        return os.path.join("tests", folder, f"{file}.py"), "def {}("
    return os.path.join("tests", folder, f"test-{file}.c"), "TEST({})"


def _missing_tests(root, row):
    """The names in a row of the table of faults that do not exist."""
    for target in re.findall(r"`fuzz/([\w-]+)`", row):
        if not os.path.exists(os.path.join(root, "tests", "fuzz", f"fuzz-{target}.c")):
            yield f"there is no target tests/fuzz/fuzz-{target}.c"
    for folder, file, name in re.findall(r"`([\w/-]+)/([\w-]+)::(\w+)`", row):
        source, form = _test_source(folder, file)
        text = tree.read(root, source) if os.path.exists(os.path.join(root, source)) else ""
        if form.format(name) not in text:
            yield f"there is no test {name} in {source}"


def check_faults(root):
    """Each row of the table of faults names existing tests, or is marked as open."""
    path = os.path.join("tests", "FAULTS.md")
    if not os.path.exists(os.path.join(root, path)):
        return
    for number, row in enumerate(tree.read(root, path).split("\n"), 1):
        match = re.match(r"\| ([A-Z]\d+) \| ", row)
        if not match:
            continue
        for problem in _missing_tests(root, row):
            yield f"{path}:{number}: {problem}"
        if not re.search(r"`fuzz/|::\w+`|\*open\*", row):
            yield f"{path}:{number}: {match.group(1)} names no test and is not marked as *open*"


def _tests_of_item(root, text):
    """Yields each test that an item of a list of tests names, as "FILE: TEST", and whether it exists."""
    source = None
    for word in re.findall(r"`([^`]+)`", text):
        if word.endswith((".py", ".c")):
            source = word if "/" in word else os.path.join("tests", "system", word)
            continue
        exists = source is not None and os.path.exists(os.path.join(root, source))
        form = "TEST({})" if exists and source.endswith(".c") else "def {}("
        yield f"{source}: {word}", exists and form.format(word) in tree.read(root, source)


def _numbers(text):
    """The numbers of the tests that a cell names: "(1, 2)"."""
    return {int(number) for group in re.findall(r"\((\d+(?:, \d+)*)\)", text) for number in group.split(", ")}


def _untested_cells(rows):
    """The cells that name no tests, neither themselves nor in the heading of their column or row."""
    heads = rows[0]
    for row in rows[2:]:
        for head, cell in zip(heads[1:], row[1:]):
            if not _numbers(cell) | _numbers(head) | _numbers(row[0]):
                yield f"the cell '{cell}' of '{row[0]}' names no test"


def _check_tested_table(root, section, items):
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.split("\n") if line.startswith("|")]
    named = _numbers("\n".join(cell for row in rows for cell in row))
    for number, text in items.items():
        tests = list(_tests_of_item(root, text))
        if not tests:
            yield f"{number}. names no test"
        yield from (f"{number}. there is no {name}" for name, exists in tests if not exists)
        if number not in named:
            yield f"no cell names {number}"
    yield from (f"there is no {number}. in the list of tests" for number in sorted(named - set(items)))
    if rows:
        yield from _untested_cells(rows)


def check_security(root):
    """Each cell of a table of SECURITY.md that has a list of tests names some of them, and they exist."""
    path = "SECURITY.md"
    for section in (tree.read(root, path) or "").split("\n## ")[1:]:
        items = {int(number): text for number, text in re.findall(r"^(\d+)\. ((?:.+\n?)(?:^ .+\n?)*)", section, re.M)}
        if items:
            yield from (f"{path}: {section.split(chr(10))[0]}: {problem}" for problem in _check_tested_table(root, section, items))


def check(root):
    return [*check_routes(root), *check_conformance(root), *check_faults(root), *check_security(root), *check_manuals(root), *check_links(root),
            *check_readme(root), *check_reasons(root), *check_names_in_readmes(root), *check_pictures(root)]
