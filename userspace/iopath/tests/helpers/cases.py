# SPDX-License-Identifier: GPL-2.0
"""Which cases of a test a `make check` without T= and KERNEL= runs."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def cases(every: Iterable[Any], *, quick: Collection[Any]) -> list[Any]:
    """Parameters for a test: those that are not in *quick* are long."""
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=[] if case in quick else [pytest.mark.long],
        )
        for case in every
    ]
