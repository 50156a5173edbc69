# SPDX-License-Identifier: Apache-2.0
"""A race that occurs once in a million times: a test in C with a number of repetitions that takes minutes."""

import os
import subprocess

import harness
import many
import pytest

RACES = 1000000


@pytest.mark.long
def test_no_layer_entry_leads_out_of_the_layer_in_a_million_races():
    races = many.scaled(RACES)
    done = subprocess.run([os.path.join(harness.BUILD, "tests", "component-image-helper"), "image-helper-race"], check=False,
                          env={**os.environ, "MAINSTAY_RACES": str(races)}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0 and "1 passed, 0 failed" in done.stdout, done.stdout
    print(f"{races} races")
