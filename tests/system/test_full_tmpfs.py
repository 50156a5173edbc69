# SPDX-License-Identifier: Apache-2.0
"""File systems without inodes."""

import os
import signal

import pytest
import specs
import world
