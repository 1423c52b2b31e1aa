# SPDX-License-Identifier: GPL-2.0
"""Fixtures that the checks of the whole project share."""

import pytest
from rich.console import Console

from iopath.base.cache import Cache, cache_root
from iopath.base.progress import Reporter
from iopath.measure.session import Session


@pytest.fixture(scope="session")
def session() -> Session:
    """The user's own cache, in which kernels and builds are kept between runs of the tests."""
    return Session(Cache(cache_root()), Reporter(Console(stderr=True), quiet=True))
