# SPDX-License-Identifier: Apache-2.0
"""Which values of a parameter every run tries."""

import pytest


def some(values, step):
    """Each step-th value in every run, and all of them in a full one."""
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=[] if i % step == 0 else pytest.mark.long)
            for i, value in enumerate(values)]
