# SPDX-License-Identifier: Apache-2.0
"""`mainstay validate` accepts and refuses the same manifests as an API server; the program of the same name does the
same with any number of manifests."""

import os
import random

import differential
import pytest

COUNT = 1500


def check(plane, directory, count, seed):
    groups = differential.compare(plane, count, seed, str(directory))
    left = differential.unexpected(groups)
    assert not left, f"seed {seed}:\n{differential.describe(left)}"


@pytest.mark.data
def test_random_manifests_get_the_verdicts_of_the_api_server(plane, tmp_path):
    check(plane, tmp_path, COUNT, "0")


@pytest.mark.data
@pytest.mark.long
def test_more_random_manifests_get_the_verdicts_of_the_api_server(plane, tmp_path):
    check(plane, tmp_path, 20 * COUNT, os.environ.get("MAINSTAY_SEED") or str(random.randrange(10**6)))


@pytest.mark.data
def test_generated_manifests_include_valid_and_invalid_ones(tmp_path):
    names = []
    for number in range(300):
        name, text = differential.generate.make("0", number)
        (tmp_path / name).write_text(text, encoding="utf-8")
        names.append(name)
    refused = differential.validate(str(tmp_path), names)
    assert 100 < len(refused) < 230, len(refused)
