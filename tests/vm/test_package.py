# SPDX-License-Identifier: Apache-2.0
"""What Debian's own checker says of the package."""

import subprocess


def test_lintian_finds_no_error_in_the_package(package):
    said = subprocess.run(["lintian", "--allow-root", "--tag-display-limit=0", package], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
    assert not [line for line in said.splitlines() if line.startswith("E:")], said
