# SPDX-License-Identifier: GPL-2.0
"""The model of caches and branch predictors, in guests."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.command import KERNEL, Command, copy_cache, copy_states
from iopath.guest.machine import Machine
from iopath.measure.session import Session

HERE = Path(__file__).parent


@pytest.fixture
def fresh(
    prepared: Path, session: Session, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Command]:
    """iopath with KERNEL, its modules and a state, and no result."""
    folder = tmp_path_factory.mktemp("fresh")
    copy_cache(prepared, folder / "cache")
    copy_states(session, folder / "cache", [1], Machine().cmdline)
    command = Command(folder / "cache", folder)
    yield command
    command.stop()


def records(iopath: Command, *words: str | Path, command: str = "profile") -> dict[str, Any]:
    """The records by rung."""
    out = iopath.temporary / "out.json"
    done = iopath.run(command, KERNEL, *words, "--quiet", "--json", out)
    assert done.returncode == 0, done.stderr
    assert ("of a model" in done.stdout) == ("--model" in words)
    found = {record["rung"]: record for record in json.loads(out.read_text())["results"]}
    out.unlink()
    return found


@pytest.mark.guest
def test_a_pread(iopath: Command, fresh: Command) -> None:
    """The figures are the same each time, and nearly the same with another seed. Counts are the
    same without the model."""
    words = ("--rung", "dio.pread", "--op", "read")
    # Lines that were just used are in L1. A system call alone is short: no set has too many.
    warm = records(iopath, "--rung", "syscall", "--model")["syscall"]["model"]["warm"]
    assert warm["l1i"] == warm["itlb"] == 0
    first, again, off = (
        records(command, *words, *more)["dio.pread"]
        for command, more in ((iopath, ["--model"]), (fresh, ["--model"]), (iopath, []))
    )
    model = first["model"]
    assert again["model"] == model
    assert "model" not in off
    for other in (again, off):
        assert (other["boots"], other["counts"]) == (first["boots"], first["counts"])
    # All lines and pages are missed once after other work, and all lines are in L2.
    cold = model["cold"]
    counts = {name: boots[0] for name, boots in first["counts"].items()}
    assert cold["l1i"] == counts["code lines"]
    assert cold["itlb"] == counts["code pages"]
    assert abs(cold["l1d"] - counts["data lines"]) <= 3
    assert abs(cold["dtlb"] - counts["data pages"]) <= 3
    # Of some 270 lines, more than eight may be in one of 64 sets. The kernel moves its stack at
    # random.
    warm = model["warm"]
    assert warm["itlb"] == 0
    assert warm["l1i"] <= 16
    assert warm["l1d"] <= 16
    assert warm["returns"] == 0
    assert 0 < warm["conditional"] < counts["branches"] / 10
    seeds = [
        records(iopath, *words, "--model", "--seed", seed, command="measure")["dio.pread"]
        for seed in ("2", "3")
    ]
    for other in (record["model"] for record in seeds):
        for state, misses in model.items():
            for name, figure in misses.items():
                noise = 16 if name in ("l1d", "l2") else 3
                assert abs(other[state][name] - figure) <= noise, (state, name, misses, other)


@pytest.mark.guest
def test_a_known_working_set(fresh: Command, tmp_path: Path) -> None:
    """A repeated walk over memory of twice the size of L1D misses each line each time."""
    build = ["gcc", "-O2", "-static", "-Wall", "-Werror", "-o", tmp_path / "walk", HERE / "walk.c"]
    subprocess.run(build, check=True)
    sizes = (16, 64, 2048)
    rungs = tmp_path / "walk.toml"
    rungs.write_text(
        "".join(
            f'[[rung]]\nname = "walk.{kib}"\nprogram = "walk"\noptions = ["--kib={kib}"]\n'
            "ios = 10\n"
            for kib in sizes
        )
    )
    found = records(fresh, "--rungs", rungs, "--model", command="measure")
    # The program's pointers are in a line and a page more. What does not fit is missed whole.
    for kib, fits_l1, fits_l2, fits_tlb in (
        (16, True, True, True),
        (64, False, True, True),
        (2048, False, False, False),
    ):
        record, lines, pages = found[f"walk.{kib}"], kib * 16 + 1, kib // 4 + 1
        warm, cold = record["model"]["warm"], record["model"]["cold"]
        assert record["counts"]["data lines"] == [lines]
        assert record["counts"]["data pages"] == [pages]
        l2 = lines * (not fits_l2)
        missed = (lines * (not fits_l1), l2, pages * (not fits_tlb))
        assert (warm["l1d"], warm["l2"], warm["dtlb"]) == missed
        # Hits in L1I do not count as uses in L2, so lines that do not fit replace that code there.
        code = record["counts"]["code lines"][0] * (not fits_l2)
        assert (cold["l1d"], cold["l2"], cold["dtlb"]) == (lines, l2 + code, pages)
