# SPDX-License-Identifier: GPL-2.0
"""Commits, one of which makes the path longer."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.examples import BOOTS, a_record, a_result
from iopath.base.errors import IopathError
from iopath.compare import compare
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import Result
from iopath.rungs import builtin
from iopath.rungs.runs import Settings
from iopath.studies import bisection

# Every bio passes here once.
FUNCTION = "submit_bio_noacct"

PLACE = "block/blk-core.c"

IMAGE = "arch/x86/boot/bzImage"

PLANTED = 5


def nops(count: int) -> str:
    """A statement of this number of instructions."""
    return '\tasm volatile("' + "nop\\n\\t" * count + '");\n'


NOPS = nops(PLANTED)


def plant(
    source: Path, what: str = NOPS, functions: str = "", function: str = FUNCTION,
    place: str = PLACE,
) -> None:  # fmt: skip
    """Add a statement to a *function* in a kernel's source, and *functions* before it."""
    text = (source / place).read_text()
    head, body = re.split(rf"(?=^void {function}\()", text, maxsplit=1, flags=re.MULTILINE)
    declarations, rest = re.match(r"(.*?\n\n)(.*)", body, re.DOTALL).groups()
    (source / place).write_text(f"{head}{functions}{declarations}{what}{rest}")


def replace(file: Path, old: str, new: str) -> None:
    """Replace a text that a file has once."""
    text = file.read_text()
    assert text.count(old) == 1, f"{file}: {old}"
    file.write_text(text.replace(old, new))


def differences(measured: Path) -> dict[str, dict[str, Any]]:
    """How the second kernel of a result file differs from the first, by rung."""
    whole = compare.compare(result.load(measured), Layers())
    (other,) = whole.others
    return {rung.rung: result.dump(rung.differences[other]) for rung in whole.rungs}


# Bisect.


def git(folder: Path, *words: str) -> str:
    # Packing a repository of a kernel's source takes a minute and more.
    options = ("user.name=iopath", "user.email=iopath@localhost", "gc.auto=0")
    given = (word for option in options for word in ("-c", option))
    # The index of a cached repository stays as it is: git status would write it again.
    command = ["git", "--no-optional-locks", *given, *words]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, file: str, subject: str) -> str:
    git(folder, "add", "--force", file)
    git(folder, "commit", "--quiet", "--message", subject)
    return git(folder, "rev-parse", "HEAD")


class Figures:
    """A stand-in for a session: a function gives the cost of each kernel, or that it cannot be
    measured."""

    def __init__(
        self, figure: Callable[[str], float | None], noise: tuple[float, ...] = (0.0,) * BOOTS
    ) -> None:
        self._figure = figure
        self._noise = noise
        self.mean: Callable[[str], float] = lambda name: 2000.0
        self.locked: Callable[[str], float] = lambda name: 20.0
        self.measured: list[str] = []

    def measure(self, names: list[str], settings: Settings) -> Result:
        (name,) = names
        self.measured.append(name)
        figure = self._figure(name)
        if figure is None:
            raise IopathError("it crashed")
        record = a_record(name, "dio.pread", "read", 4096, stacks=None)
        record |= {"instructions_per_io": figure, "boots": [figure + by for by in self._noise]}
        record["mean_boots"] = [self.mean(name)] * len(self._noise)
        record["counts"]["locked"] = [self.locked(name)] * len(self._noise)
        return result.parse(a_result([record]))


def search(
    figure: Callable[[str], float | None], noise: tuple[float, ...] = (0.0,) * BOOTS
) -> tuple[bisection.Search, Figures, list[str]]:
    session, said = Figures(figure, noise), []
    settings = Settings(rungs=builtin.select(["dio.pread"]), ops=["read"])
    return bisection.Search(session, settings, said.append), session, said  # type: ignore[arg-type]


def found(ends: list[Result]) -> list[str]:
    return [end.names[0] for end in ends]


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Seven commits; in each the file "figure" has the cost of the kernel."""
    folder = tmp_path / "linux"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name in ("Kbuild", "Kconfig", "Makefile"):
        (folder / name).touch()
        git(folder, "add", name)
    for number, figure in enumerate(["2000", "2000", "2000", "broken", "2000", "2007", "2007"]):
        (folder / "figure").write_text(f"{figure} {number}\n")
        commit(folder, "figure", f"commit {number}")
    return folder


@pytest.fixture
def branched(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A line on which "seven" adds 7, and a branch on which "side" adds 100 and "later" defers 900.
    It is merged after "seven", then "gone" takes the branch's part back."""
    folder = tmp_path / "linux"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=line")
    for name in ("Kbuild", "Kconfig", "Makefile"):
        (folder / name).touch()
        git(folder, "add", name)
    names = {}

    def one(subject: str, figure: str, deferred: int = 0) -> None:
        (folder / "figure").write_text(f"{figure} {subject} {deferred}\n")
        names[subject] = commit(folder, "figure", subject)

    one("first", "2000")
    git(folder, "branch", "side")
    one("seven", "2007")
    one("broken", "broken")
    git(folder, "checkout", "--quiet", "side")
    one("side", "2100")
    one("later", "2100", 900)
    git(folder, "checkout", "--quiet", "line")
    git(folder, "merge", "--quiet", "--no-commit", "--strategy=ours", "side")
    one("merge", "2107", 900)
    one("gone", "2007")
    return folder, names
