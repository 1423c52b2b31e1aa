# SPDX-License-Identifier: GPL-2.0
"""What a comparison promises is tested: each promise, broken in a copy of the package, makes a unit
test fail."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from mutant import Mutant

import iopath
from iopath.sources import source_root

TESTS = Path(__file__).parent


MUTANTS = [
    Mutant(
        "boots that differ are noise", "noise.py",
        "noise = _limit(count - 2, LADDER_ERROR / len(rows)) * _standard_error(before, after)",
        "noise = 0.0",
        "test_noise.py::test_false_verdicts",
    ),
    Mutant(
        "the largest spread of a ladder is noise", "noise.py",
        "noise = max(noise, largest)", "pass",
        "test_noise.py::test_false_verdicts",
    ),
    Mutant(
        "differences below the resolution are nothing", "noise.py",
        '"instructions_per_io": 0.05', '"instructions_per_io": 0.0',
        "test_noise.py::test_the_resolution_is_a_twentieth_of_an_instruction",
    ),
    Mutant(
        "differences above the resolution are found", "noise.py",
        '"instructions_per_io": 0.05', '"instructions_per_io": 5.0',
        "test_noise.py::test_one_instruction_is_found",
    ),
    Mutant(
        "few boots are no verdict", "noise.py",
        "FEWEST = 4", "FEWEST = 2",
        "test_noise.py::test_too_few_boots_are_no_verdict",
    ),
    Mutant(
        "a mean that is off the median is said", "noise.py",
        "_RARE = 2.0", "_RARE = 2000.0",
        "test_noise.py::test_a_mean_off_the_median_is_a_finding",
    ),
    Mutant(
        "a function is known by its older name", "layers.py",
        "if len(old) == len(new) == 1 and old != new:", "if False:",
        "test_compare.py::test_an_alias_joins_a_function_with_its_older_name",
    ),
    Mutant(
        "two functions of one kernel are not one", "layers.py",
        "if len(old) == len(new) == 1 and old != new:", "if old and new:",
        "test_compare.py::test_functions_side_by_side_are_not_joined",
    ),
    Mutant(
        "a function has its layer", "layers.py",
        'for name, pattern in self._patterns if pattern.match(text)), "other"',
        'for name, pattern in self._patterns if False), "other"',
        "test_compare.py::test_layers",
    ),
    Mutant(
        "a name is guessed only if one function fits", "attribution.py",
        "if len(gone) == len(new) == 1:", "if gone and new:",
        "test_compare.py::test_what_may_be_another_function_is_not_offered",
    ),
    Mutant(
        "locked instructions are seen whatever the sum", "compare_exact.py",
        '("instructions", "locked", "indirect", *COSTLY)', "()",
        "test_compare.py::test_a_locked_instruction_instead_of_a_plain_one_is_seen",
    ),
    Mutant(
        "the long run is compared on its own", "compare_exact.py",
        "telling=judged.noise is not None", "telling=False",
        "test_compare.py::test_what_comes_seldom_or_later_is_seen_and_fails_the_gate",
    ),
    Mutant(
        "rungs that were run in different ways are told", "compare_exact.py",
        "if name in runs[1] and run != runs[1][name]:", "if False:",
        "test_compare.py::test_incomparable",
    ),
    Mutant(
        "the first kernel is the base", "compare_exact.py",
        "base, *others = whole.names", "*others, base = whole.names",
        "test_compare.py::test_kernels_that_are_measured_and_files_keep_their_order",
    ),
    Mutant(
        "kernels keep the order they are named in", "compare.py",
        "for name in names:\n", "for name in sorted(names):\n",
        "test_compare.py::test_kernels_that_are_measured_and_files_keep_their_order",
    ),
    Mutant(
        "a limit is a limit", "limits.py",
        "if not change.grew or (", "if True or (",
        "test_compare.py::test_limits",
    ),
    Mutant(
        "a limit of one operation goes before one of both", "limits.py",
        "key=lambda limit: bool(limit.op)", "key=lambda limit: not limit.op",
        "test_compare.py::test_limits",
    ),
    Mutant(
        "a gate does not pass where a figure is missing", "limits.py",
        "if kernel not in rung.figures:", "if False:",
        "test_compare.py::test_a_gate_does_not_pass_on_missing_data",
    ),
    Mutant(
        "rounds with an interrupt do not count", "figures.py",
        'part["interrupts"] == 0) for', 'part["interrupts"] != 7) for',
        "test_result.py::test_median_of_calm_rounds",
    ),
    Mutant(
        "the figure is that of a boot", "figures.py",
        "middle = statistics.median_low(figures)", "middle = statistics.median(figures)",
        "test_result.py::test_the_figure_is_that_of_a_boot",
    ),
    Mutant(
        "a clock that does not count instructions is refused", "figures.py",
        "if not measured or not 0 <=", "if False and not 0 <=",
        "test_result.py::test_calibration_that_fails",
    ),
    Mutant(
        "timer ticks are subtracted", "longrun.py",
        "ios - self._ticks(region))", "ios)",
        "test_longrun.py::test_ticks_and_sleeps_of_an_idle_guest_are_subtracted",
    ),
    Mutant(
        "a read of the time stamp is a change even if the sum is the same", "compare_exact.py",
        '"locked", "indirect", *COSTLY)', '"locked", "indirect")',
        "test_compare.py::test_time_stamps_instead_of_other_instructions_are_seen",
    ),
    Mutant(
        "code lines may move by their layout", "pathcount.py",
        "return round(4 * math.sqrt(variance)", "return round(0 * math.sqrt(variance)",
        "test_compare.py::test_the_noise_of_code_lines_is_what_their_layout_may_move",
    ),
    Mutant(
        "results of another QEMU are no step", "trackindex.py",
        "step.differing = compare.incomparable(whole, parts)", "step.differing = []",
        "test_track.py::test_measured_differently",
    ),
    Mutant(
        "one boot gives no step without a difference", "trackindex.py",
        "abs(found.difference) <= least and not found.moved", "False",
        "test_track.py::test_few_boots_are_marked",
    ),
]  # fmt: skip


def run(tests: Iterable[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run tests with the copy of the package in *folder* in place of the package."""
    options = ["-x", "-p", "no:cacheprovider", "-c", TESTS.parent / "pyproject.toml"]
    command = [sys.executable, "-m", "pytest", *options, *(TESTS / test for test in tests)]
    env = os.environ | {"PYTHONPATH": str(folder), "IOPATH_SOURCE": str(source_root())}
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def copy(folder: Path) -> Path:
    return Path(shutil.copytree(Path(iopath.__file__).parent, folder / "iopath"))


def run_mutant(mutant: Mutant, folder: Path) -> subprocess.CompletedProcess[str]:
    path = copy(folder) / mutant.file
    text = path.read_text()
    assert text.count(mutant.old) == 1, f"{mutant.file} does not have {mutant.old!r} once"
    path.write_text(text.replace(mutant.old, mutant.new))
    return run([mutant.test], folder)


Outcomes = dict[Mutant, Future[subprocess.CompletedProcess[str]]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """What the tests of all mutants said. They run side by side."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return {
            mutant: pool.submit(run_mutant, mutant, tmp_path_factory.mktemp("mutant"))
            for mutant in MUTANTS
        }


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.promise.replace(" ", "_"))
def test_mutant(mutant: Mutant, outcomes: Outcomes) -> None:
    done = outcomes[mutant].result()
    noticed = done.returncode == 1 and re.search("^FAILED ", done.stdout, re.MULTILINE)
    assert noticed, f"no test notices that it is broken: {mutant.promise}\n{done.stdout}"


def test_unbroken(tmp_path: Path) -> None:
    """The same tests pass if nothing is broken."""
    copy(tmp_path)
    done = run({mutant.test for mutant in MUTANTS}, tmp_path)
    assert done.returncode == 0, done.stdout
