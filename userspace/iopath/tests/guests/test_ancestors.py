# SPDX-License-Identifier: GPL-2.0
"""The ancestors' experiments (selftests/results/ancestors.py) run, and their tables have
properties that hold for any kernel."""

import importlib
import re
from types import ModuleType

import pytest

from helpers import kept
from helpers.command import KERNEL
from iopath.base.sources import source_root
from iopath.measure.session import Session

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def ancestors() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(source_root() / "selftests/results")
        module = importlib.import_module("ancestors")
    # More of it takes minutes.
    module.INSTANCES = (1, 100)
    module.SIZE_MB, module.BLOCKS = 4, 4 << 7
    module.States = kept.Once
    return module


@pytest.fixture(scope="module")
def text(ancestors: ModuleType, session: Session) -> str:
    return ancestors.document(session, [KERNEL])


def rows(text: str, heading: str, number: int = 0) -> list[list[str]]:
    """The cells of a table, the first or a later one behind the heading that contains a text."""
    part = next(part for part in text.split("\n## ") if part.split("\n")[0].find(heading) >= 0)
    tables = re.findall(r"(?:^\|.*\n)+", part, re.MULTILINE)
    lines = tables[number].splitlines()
    assert set(lines[1]) <= set("|-:")
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines[2:]]
    assert all(len(row) == lines[0].count("|") - 1 for row in cells)
    return cells


def value(cell: str) -> float:
    match = re.match(r"[+-]?[\d,.]+", cell)
    assert match, cell
    return float(match.group().replace(",", ""))


def test_sync_against_aio(text: str) -> None:
    *then, block, raw = rows(text, "Kenneth Chen")
    assert len(then) == 5
    for way in (1, 2):
        assert value(raw[way]) > value(block[way]) > 100_000
    assert value(block[1]) > value(block[2])
    assert all(value(gain) > 20 for gain in raw[3].split(", "))


def test_five_modes_over_eight_devices(text: str) -> None:
    total = {row[0]: value(row[2]) for row in rows(text, "Lincoln Dale")}
    assert list(total) == ["basic", "nocopy", "direct", "raw", "mmap"]
    assert total["basic"] < total["nocopy"] < total["direct"] < total["raw"]
    details = {row[0]: row for row in rows(text, "Lincoln Dale", 1)}
    for row in details.values():
        assert (value(row[1]), value(row[3])) == (34, 8 * 4 << 7)
    # Only a program that waits for the disk leaves the processor idle.
    assert value(details["direct"][8]) > value(details["basic"][8])
    devices = re.findall(r"^ +\d +- +(/dev/\w+) +512 ", text, re.MULTILINE)
    assert len(set(devices)) == 8


def test_harness_driver_and_stack(text: str) -> None:
    harness, call, driver, generated = (row[5] for row in rows(text, "Simon Shapiro"))
    assert value(driver) < value(generated) > value(harness)
    assert value(harness) < value(call)
    alone, hundred = rows(text, "Simon Shapiro", 1)
    assert (alone[0], hundred[0]) == ("1", "100")
    for raw, block in zip(alone[1:4], alone[4:7], strict=True):
        assert value(raw) > value(block) > 100_000
    assert all(value(cell) > 10_000 for cell in hundred[1:])


def test_a_read_in_pieces(text: str) -> None:
    table = rows(text, "Nate Lawson")
    assert len(table) == 16
    for row, number in zip(table, 4 * [1, 2, 4, 8], strict=True):
        times = [value(time) for time in row[3].split()]
        assert len(times) == number
        assert times == sorted(times)
    # Without a disk to wait for, pieces only cost.
    none = [value(row[3].split()[-1]) for row in table[:4]]
    assert none == sorted(none)
