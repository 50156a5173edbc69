# SPDX-License-Identifier: Apache-2.0
"""Words that must not appear anywhere, and the encodings in which they could appear."""

import base64
import os


def encodings(word):
    """The forms in which a value may be written: unchanged, in base64 at each of the three alignments, in UTF-16 and in
    hex."""
    found = {word.encode(), word.encode("utf-16-le"), word.encode("utf-16-be"), word.encode().hex().encode(), word.encode().hex().upper().encode()}
    for text in (word.encode(), word.encode("utf-16-le"), word.encode("utf-16-be")):
        for shift in range(3):
            encoded = base64.b64encode(b"x" * shift + text)
            found.add(encoded[4 if shift else 0:-4])
    return found


def files_below(*directories):
    for directory in directories:
        for path, _, names in os.walk(directory):
            for name in names:
                file = os.path.join(path, name)
                if os.path.isfile(file) and not os.path.islink(file):
                    yield file


def files_with(words, *directories):
    """The files that contain one of the words in one of these encodings."""
    found = []
    for path in files_below(*directories):
        with open(path, "rb") as file:
            content = file.read()
        if any(word in content for word in words):
            found.append(path)
    return found
