# SPDX-License-Identifier: GPL-2.0
"""Wait for what another process or thread does."""

import time
from collections.abc import Callable
from typing import TypeVar

_LIMIT = 1800  # seconds, a guard against hanging

Found = TypeVar("Found")


def wait_for(condition: Callable[[], Found], what: str) -> Found:
    """The first result of *condition* that is true. *what* is awaited."""
    until = time.monotonic() + _LIMIT
    while not (found := condition()):
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.02)
    return found
