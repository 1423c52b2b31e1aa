# SPDX-License-Identifier: GPL-2.0
"""Screening: a guest that dies costs the run that ended it, and no other."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from iopath.counts.plugin_output import MiscountError
from iopath.guest.channel import Record
from iopath.guest.guest import GuestError
from iopath.measure import screening
from iopath.measure.screening import Outcome, Screening
from iopath.results.layers import table
from iopath.rungs.runs import Run
from iopath.rungs.shapes import space


def runs(*sizes: int) -> list[Run]:
    whole = space()
    shapes = [whole.shape({"size": size}) for size in sizes]
    return [whole.run(one, f"x.{number}") for number, one in enumerate(shapes) if one]


class Guests(Screening):
    """Guests that die at a run of 1,536 bytes, or whose first step fails."""

    def __init__(self, *, fails: bool = False, miscounts: int = 0) -> None:
        self.sizes: list[list[int]] = []
        self._fails = fails
        self._miscounts = miscounts

    def _guest(self, kernel: object, members: Sequence[Run], layouts: int) -> list[Outcome]:
        self.sizes.append([run.block_size for run in members])
        if self._fails:
            raise GuestError("the guest failed: mkfs", [Record("error", 1, b"mkfs")])
        if self._miscounts in self.sizes[-1]:
            raise MiscountError("pathcount: regions do not nest")
        if 1536 in self.sizes[-1]:
            done = self.sizes[-1].index(1536)
            records = [Record(f"try.{number}", 0, b"") for number in range(1, done + 1)]
            raise GuestError("the guest crashed: BUG (console: log)", records)
        return [Outcome(float(run.block_size)) for run in members]


KERNEL = SimpleNamespace(equipped=lambda rung: rung)


def test_a_guest_that_dies() -> None:
    guests = Guests()
    found = guests._screen(KERNEL, runs(512, 1024, 1536, 2048), 1)  # type: ignore[arg-type]
    assert [one.figure for one in found] == [512, 1024, 0, 2048]
    assert found[2].died == "the guest crashed: BUG (console: log)"
    assert guests.sizes == [[512, 1024, 1536, 2048], [512, 1024, 2048]]


def test_a_run_that_spoils_the_counts() -> None:
    """A program that is killed inside a region leaves it open for those after it."""
    guests = Guests(miscounts=1024)
    found = guests._screen(KERNEL, runs(512, 1024, 2048, 4096), 1)  # type: ignore[arg-type]
    assert [one.figure for one in found] == [512, 0, 2048, 4096]
    assert found[1].died == "pathcount: regions do not nest"
    assert guests.sizes == [[512, 1024, 2048, 4096], [512, 1024], [512], [1024], [2048, 4096]]


def test_all_are_refused(tmp_path: Path) -> None:
    """No region begins, and the plugin reports a fault. The answers are the outcomes."""
    text = (
        '{"ok": false, "jobs": [{"first_error": {"op": "read", "strerror": "No", "result": -1}}]}'
    )
    (tmp_path / "records.json").write_text(json.dumps({"try.1": text, "try.2": text}))
    two = [replace(run, region=at) for at, run in enumerate(runs(512, 1024), 1)]
    found = screening._outcomes(tmp_path, two, {}, table(None))
    assert found == [Outcome(error="read: No")] * 2


def test_a_step_that_fails() -> None:
    """No run is to blame for what comes before the first one."""
    guests = Guests(fails=True)
    found = guests._screen(KERNEL, runs(512, 1024), 1)  # type: ignore[arg-type]
    assert [one.error for one in found] == ["set-up: the guest failed: mkfs"] * 2
    assert len(guests.sizes) == 1


@pytest.mark.parametrize(
    ("named", "ios"),
    [({}, 20), ({"size": 1 << 20}, 1), ({"engine": "uring", "depth": 33}, 33),
     ({"engine": "uring", "depth": 8}, 24), ({"target": "mq-deadline"}, 10)],
)  # fmt: skip
def test_ios(named: dict, ios: int) -> None:
    """Whole batches, and few bytes."""
    whole = space()
    shape = whole.shape(named)
    assert shape
    assert screening.ios(whole.run(shape, "x")) == ios


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"ok": true, "jobs": []}', ""),
        ('{"ok": false, "jobs": [{"first_error": {"op": "read", "strerror": "No", "result": -1}}]}',
         "read: No"),
        ('{"ok": false, "jobs": [{"first_error": {"op": "read", "strerror": null, "result": 9}}]}',
         "read: only 9 bytes"),
        ("", "refused"),
    ],
)  # fmt: skip
def test_errors(text: str, error: str) -> None:
    assert screening._error(text) == error
