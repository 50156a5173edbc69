# SPDX-License-Identifier: Apache-2.0
"""The values of a parameter that a run tries."""

import pytest


def some(values, step):
    """Every step-th value in a normal run, and all of them in a full one."""
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=[] if i % step == 0 else pytest.mark.long)
            for i, value in enumerate(values)]
