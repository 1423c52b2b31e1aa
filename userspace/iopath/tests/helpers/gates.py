# SPDX-License-Identifier: GPL-2.0
"""Gates on made-up results."""

from pathlib import Path
from typing import Any

from helpers.pairs import PLAIN, row
from iopath.compare import limits
from iopath.rungs.builtin import RUNGS, unknown

STAMPED = [row("one", 500.0, locked=2.0, costly={"timestamps": 20.0}), *PLAIN[1:]]


def in_layouts(whole: dict[str, Any], more: float = 0.0, share: int = 16) -> dict[str, Any]:
    """The records have two boots of 16 layouts each. In *share* of them, the last kernel takes
    *more* instructions."""
    for record in whole["results"]:
        for name in [name for name in record if name.endswith("boots")]:
            record[name] = record[name][:2]
        record["counts"] = {name: boots[:2] for name, boots in record["counts"].items()}
        figure, by = record["boots"][0], more * (record is whole["results"][-1])
        record["layouts"] = [[figure + by] * share + [figure] * (16 - share)] * 2
    return whole


KNOWN = [rung.name for rung in RUNGS]


def unknown_rung(name: str) -> str:
    return unknown(name, KNOWN)


def limited(tmp_path: Path, text: str) -> list[Any]:
    (tmp_path / "limits.toml").write_text(text)
    return limits.read(tmp_path / "limits.toml", KNOWN, unknown_rung)


def regressions(comparison: Any, fail_above: float | None, limits_: list[Any]) -> list[str]:  # noqa: ANN401
    """What grew, if everything can be judged."""
    grown, unknown = limits.regressions(comparison, fail_above, limits_)
    assert unknown == []
    return grown


def unjudged(comparison: Any, fail_above: float | None, limits_: list[Any]) -> list[str]:  # noqa: ANN401
    """What cannot be judged, if nothing grew."""
    grown, unknown = limits.regressions(comparison, fail_above, limits_)
    assert grown == []
    return unknown
