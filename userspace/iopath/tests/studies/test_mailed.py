# SPDX-License-Identifier: GPL-2.0
"""What each patch of a series costs that came by mail."""

from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from iopath.kernels.mail import Mail, Series
from iopath.results.layers import Layers
from iopath.rungs.runs import Settings
from iopath.studies import mailed
from iopath.studies.mailed import Patches
from iopath.studies.series import SeriesCommit

NOT_BUILT = "does not build: block/bdev.c:1: error: expected ;"


def patch(number: int) -> Mail:
    return Mail(
        b"", f"[PATCH {number}/3] x", f"<{number}>", (), datetime.now(UTC), 1, number, 3, True
    )


@pytest.mark.parametrize(
    ("without", "expected"),
    [
        pytest.param("", "", id="measured"),
        pytest.param(
            "too few rounds had no interrupt", "too few rounds had no interrupt", id="not"
        ),
        pytest.param(NOT_BUILT, NOT_BUILT, id="does not build either"),
        pytest.param("does not apply: block/bio.c", NOT_BUILT, id="does not apply"),
    ],
)
def test_the_error_of_a_later_patch_is_its_own(
    monkeypatch: pytest.MonkeyPatch, without: str, expected: str
) -> None:
    """Where a patch builds without the one that does not, what is said of it is what was found
    without that."""

    def measure(_: object, patches: list[Mail], *arguments: Patches) -> None:
        numbers, found = [one.number for one in patches], arguments[-1]
        found |= {number: SeriesCommit("", "x") for number in (0, 1)}
        if 2 in numbers:
            found |= {number: SeriesCommit("", "x", NOT_BUILT) for number in (2, 3)}
        else:
            found[3] = SeriesCommit("", "x", without)

    monkeypatch.setattr(mailed, "_measure", measure)
    thread = Series(patch(1), [patch(number) for number in (1, 2, 3)])
    found: Patches = {}
    mailed.measure(Mock(), thread, "git:x@HEAD", Mock(spec=Settings), Layers(), Mock(), found)
    assert found[3].error == expected
    assert found[2].error.startswith(NOT_BUILT)
    assert ("measured without it" in found[2].error) == (expected != NOT_BUILT)
