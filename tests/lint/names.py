# SPDX-License-Identifier: Apache-2.0
"""Names that a stack trace or grep shows without context: each type and each function of agent/ and common/ has a name
that is unique in the tree, regardless of the program."""

import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import shape  # noqa: E402
import tree  # noqa: E402

FOLDERS = ("agent/", "common/")


def types(text):
    """Name and offset of each struct, enum and union that is defined at the top level."""
    for match in re.finditer(r"^(?:typedef )?(?:struct|enum|union)\b\s*(\w*)\s*\{", text, re.M):
        end = text.find("\n}", match.end())
        name = re.match(r"\n\}\s*(\w+)?", text[end:]) if end >= 0 else None
        yield (name and name.group(1)) or match.group(1), match.start()


def functions(text):
    """Name and line of each function, static or not; functions that start with a macro or an attribute are omitted."""
    for name, line, _ in shape.functions(text):
        if re.search(r"[a-z]", name) and not name.startswith("__"):
            yield name, line


def find_homonyms(places, what):
    return [f"{found[1]}: the {what} {name} is defined at {found[0]} as well" for name, found in sorted(places.items())
            if name and len({place.rsplit(":", 1)[0] for place in found}) > 1]


def check(root):
    of_types, of_functions = {}, {}
    for path in tree.files(root, ".c", ".h"):
        if not path.startswith(FOLDERS):
            continue
        text = tree.without_comments(tree.read(root, path))
        for name, offset in types(text):
            of_types.setdefault(name, []).append(f"{path}:{tree.line_of(text, offset)}")
        if path.endswith(".c"):
            for name, line in functions(text):
                of_functions.setdefault(name, []).append(f"{path}:{line}")
    of_functions.pop("main", None)
    return find_homonyms(of_types, "type") + find_homonyms(of_functions, "function")


if __name__ == "__main__":
    problems = check(sys.argv[1] if len(sys.argv) > 1 else ".")
    print("\n".join(problems))
    sys.exit(bool(problems))
