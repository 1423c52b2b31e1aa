# SPDX-License-Identifier: GPL-2.0
"""What the checks of the whole project share."""

import sys

import pytest
from rich.console import Console

from iopath.cache import Cache, cache_root
from iopath.measure import Session
from iopath.progress import Reporter
from iopath.sources import source_root

sys.path.append(str(source_root() / "userspace/iopath/tests"))  # cases.py, linux_source.py


@pytest.fixture(scope="session")
def session() -> Session:
    """The user's own cache, in which kernels and builds are kept between runs of the tests."""
    return Session(Cache(cache_root()), Reporter(Console(stderr=True), quiet=True))
