# SPDX-License-Identifier: GPL-2.0
"""The promises of a comparison are tested: if one is broken in a copy of the package, a unit test
fails."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

import iopath
from helpers import forked
from helpers.mutant import Mutant
from iopath.base.sources import source_root

TESTS = Path(__file__).parent
PACKAGE = Path(iopath.__file__).parent

MUTANTS = [
    Mutant("a figure that varies has a limit", "compare/noise.py",
           "if abs(difference) <= max(noise, least):", "if abs(difference) <= least:",
           "compare/test_noise.py::test_a_kernel_against_itself"),
    Mutant("differences below the resolution are nothing", "compare/noise.py",
           "if abs(difference) <= max(noise, least):", "if abs(difference) <= noise:",
           "compare/test_noise.py::test_one_instruction_is_found"),
    Mutant("a cost of some layouts is a difference", "compare/noise.py",
           "for end in ends if abs(end) > phase", "for end in () if abs(end) > phase",
           "compare/test_noise.py::test_a_cost_in_some_layouts"),
    Mutant("layouts that differ hide no difference of all", "compare/noise.py",
           "if abs(shift) > noise", "if abs(shift) > least",
           "compare/test_noise.py::test_the_phase_of_a_cache_is_no_difference"),
    Mutant("the largest growth is judged", "compare/noise.py",
           "(*(end for end in moved if end > 0), *moved)[0]", "moved[0]",
           "compare/test_noise.py::test_what_grew_anywhere_has_grown"),
    Mutant("the deviation is that of all rows", "compare/noise.py",
           "degrees += len(boots) - 1", "degrees += 0",
           "compare/test_noise.py::test_the_deviation_is_of_all_rows_and_of_what_is_known"),
    Mutant("few boots are no verdict", "compare/noise.py",
           "OFTEN = 5", "OFTEN = 4",
           "compare/test_exact.py::test_without_enough_boots_metrics_have_no_verdict"),
    Mutant("a count varies as the path does", "compare/exact.py",
           "least = max(least, varies)", "least = max(least, 0.0)",
           "compare/test_exact.py::test_a_count_differs_where_the_path_does_not"),
    Mutant("a share of a figure is no difference", "compare/exact.py",
           "share = metric.share * abs(min(one))", "share = 0.0",
           "compare/test_noise.py::test_a_part_of_a_figure_means_nothing"),
    Mutant("a run that is interrupted is left out", "measure/assemble.py",
           "interrupted[run.region] = str(error)", "raise",
           "measure/test_assemble.py::test_a_run_without_a_quiet_round_is_left_out"),
    Mutant("the machine must be the same", "compare/exact.py",
           '("qemu", "machine", ', '("qemu", ',
           "compare/test_exact.py::test_incomparable"),
    Mutant("locked writes have a resolution", "compare/sharing_changes.py",
           '"locked writes": 0.1', '"locked writes": 0.9',
           "compare/test_sharing_changes.py::test_the_resolution_of_locked_writes"),
    Mutant("a limit is the limit of the largest growth", "compare/limits.py",
           "most > percent", "most > percent + 3",
           "compare/test_limits.py::test_a_gate_judges_the_layout_that_grew_most"),
    Mutant("what does no I/O is never the worst", "results/result.py",
           "return self.rung not in WITHOUT_IO", "return True",
           "show/test_terminal.py::test_what_does_no_io_is_never_the_worst"),
    Mutant("a mean that is off the median is said", "results/findings.py",
           "_RARE, _RARE_SHARE = 2.0, 1e-4", "_RARE, _RARE_SHARE = 2000.0, 1e-4",
           "compare/test_noise.py::test_a_mean_off_the_median_is_a_finding"),
    Mutant("a small part of a long path is no work that happens less often", "results/findings.py",
           "_RARE, _RARE_SHARE = 2.0, 1e-4", "_RARE, _RARE_SHARE = 2.0, 0.0",
           "compare/test_noise.py::test_of_a_long_path_a_part_is_normal"),
    Mutant("a guest's clock goes on when it is loaded", "guest/guest.py",
           "ahead += (executed << shift) - executed", "ahead += executed << shift",
           "guest/test_guest.py::test_the_clock_of_a_saved_state_goes_on"),
    Mutant("a function is known by its older name", "results/layers.py",
           "if len(old) == len(new) == 1 and old != new:", "if False:",
           "compare/test_attribution.py::test_an_alias_joins_a_function_with_its_older_name"),
    Mutant("two functions of one kernel are not one", "results/layers.py",
           "if len(old) == len(new) == 1 and old != new:", "if old and new:",
           "compare/test_attribution.py::test_functions_side_by_side_are_not_joined"),
    Mutant("a function has its layer", "results/layers.py",
           "self._layers[min(found)]", "self._layers[none]",
           "results/test_layers.py::test_layers"),
    Mutant("the first layer that matches counts", "results/layers.py",
           "self._layers[min(found)]", "self._layers[found[-1]]",
           "results/test_layers.py::test_the_first_layer_with_a_pattern_that_matches"),
    Mutant("a name is guessed only if one function fits", "compare/attribution.py",
           "if len(gone) == len(new) == 1:", "if gone and new:",
           "compare/test_attribution.py::test_what_may_be_another_function_is_not_offered"),
    Mutant("locked instructions are seen whatever the sum", "compare/exact.py",
           '("instructions", "locked", "indirect", *COSTLY)', '("instructions",)',
           "compare/test_exact.py::test_a_locked_instruction_instead_of_a_plain_one_is_seen"),
    Mutant("the long run is compared on its own", "compare/exact.py",
           "change.telling = change.noise is not None", "change.telling = False",
           "compare/test_exact.py::test_what_comes_seldom_or_later_is_seen_and_fails_the_gate"),
    Mutant("rungs that were run in different ways are told", "compare/exact.py",
           "if one == two and words == others:", "if True:",
           "compare/test_exact.py::test_incomparable"),
    Mutant("the first kernel is the base", "compare/exact.py",
           "base, *others = whole.names", "*others, base = whole.names",
           "compare/test_compare.py::test_kernels_that_are_measured_and_files_keep_their_order"),
    Mutant("kernels keep the order they are named in", "compare/compare.py",
           "for file, part in parts:\n", "for file, part in sorted(parts, key=str):\n",
           "compare/test_compare.py::test_kernels_that_are_measured_and_files_keep_their_order"),
    Mutant("a limit is a limit", "compare/limits.py",
           "elif part.grew:", "elif False:",
           "compare/test_limits.py::test_limits"),
    Mutant("a limit of one operation goes before one of both", "compare/limits.py",
           "(bool(limit.metric), bool(limit.op))", "(bool(limit.metric), not limit.op)",
           "compare/test_limits.py::test_limits"),
    Mutant("locked writes to shared lines are judged", "counts/sharing.py",
           'metrics += ["locked writes"] if row.locked else []', "pass",
           "compare/test_sharing_changes.py::test_what_grew_fails"),
    Mutant("figures of other numbers of CPUs are not judged", "compare/sharing_changes.py",
           "if before.cpus != after.cpus:", "if False:",
           "compare/test_sharing_changes.py::test_what_cannot_be_compared_is_not_judged"),
    Mutant("a clock and a profile agree", "results/checks.py",
           "if abs(clock - counted) <=", "if True or abs(clock - counted) <=",
           "results/test_result.py::test_records_that_contradict_the_file"),
    Mutant("a metric that is missing cannot be judged", "compare/limits.py",
           'unknown.setdefault("a result does', '{}.setdefault("a result does',
           "compare/test_limits.py::test_what_a_file_does_not_count_cannot_be_judged"),
    Mutant("a figure without a verdict cannot be judged", "compare/limits.py",
           'elif part.verdict == "unknown":', "elif False:",
           "compare/test_limits.py::test_a_gate_does_not_pass_what_is_undecided"),
    Mutant("a gate does not pass where a figure is missing", "compare/limits.py",
           "if one not in rung.figures", "if not rung.figures",
           "compare/test_limits.py::test_a_gate_does_not_pass_on_missing_data"),
    Mutant("rounds with an interrupt do not count", "measure/rounds.py",
           "/ part.ios, part.quiet)", "/ part.ios, True)",
           "measure/test_rounds.py::test_median_of_calm_rounds"),
    Mutant("iterations of string instructions are no instructions", "measure/rounds.py",
           "((part.tsc - count.iterations) / part.ios", "(part.tsc / part.ios",
           "measure/test_rounds.py::test_iterations_of_string_instructions_are_no_instructions"),
    Mutant("the figure of a boot is that of a round", "measure/rounds.py",
           "figures.append(statistics.median_low(calm))", "figures.append(statistics.median(calm))",
           "measure/test_rounds.py::test_median_of_an_even_number_is_the_lower_of_the_middle_two"),
    Mutant("a clock that does not count instructions is refused", "measure/rounds.py",
           "if not measured or not 0 <=", "if False and not 0 <=",
           "measure/test_rounds.py::test_calibration_that_fails"),
    Mutant("a round that the clock contradicts is refused", "measure/rounds.py",
           "if len(steady) > 1 or", "if",
           "measure/test_rounds.py::test_a_round_that_the_plugin_counts_otherwise_is_refused"),
    Mutant("timer ticks are left out", "counts/longrun.py",
           "min(1.0, expected / ticks) if ticks", "1.0 if ticks",
           "counts/test_longrun.py::test_ticks_are_left_out"),
    Mutant("parts that do not add up to the functions are refused", "counts/longrun.py",
           "if round(whole) != round(", "if False and round(whole) != round(",
           "counts/test_longrun.py::test_parts_that_do_not_add_up_are_refused"),
    Mutant("what is executed after the long run belongs to the same parts", "counts/longrun.py",
           "_add(found, self._for_io(run.long_region | DRAIN, 0, waits=False))", "",
           "counts/test_longrun.py::test_what_callbacks_do_is_deferred"),
    Mutant("a work item is named by its function", "counts/parts.py",
           'return f"{kind} {name}" if kind else above', "return above",
           "counts/test_parts.py::test_work_is_named_by_its_function"),
    Mutant("a worker's switches for the kernel's own work are left out", "counts/parts.py",
           "return self.for_io / max(1, self.for_io + self.own)", "return 1.0",
           "counts/test_parts.py::test_a_workers_loop_and_switches_are_for_what_it_carries_out"),
    Mutant("the timer's ticks are not in the whole of a program", "counts/calls.py",
           'kind = BESIDE if flat', 'kind = LATER if flat',
           "counts/test_calls.py::test_parts"),
    Mutant("a read of the time stamp is a change even if the sum is the same", "compare/exact.py",
           '"locked", "indirect", *COSTLY)', '"locked", "indirect")',
           "compare/test_exact.py::test_time_stamps_instead_of_other_instructions_are_seen"),
    Mutant("code lines may move by their layout", "counts/pathcount.py",
           "return round(4 * math.sqrt(variance)", "return round(0 * math.sqrt(variance)",
           "counts/test_pathcount.py::test_the_noise_of_code_lines_is_what_their_layout_may_move"),
    Mutant("results of another QEMU are no step", "track/index.py",
           "step.differing = compare.incomparable(whole, parts)", "step.differing = []",
           "track/test_index.py::test_measured_differently"),
    Mutant("kernels beside a change of QEMU are compared by the result of both", "track/index.py",
           "if step.apart and path.exists():", "if False:",
           "track/test_tracker.py::test_a_step_beside_a_change"),
    Mutant("the first kernel of a line is judged once", "track/index.py",
           "if alike(one, point)), same", "if one), same",
           "track/test_tracker.py::test_the_first_kernel_of_a_line"),
    Mutant("a step that is judged at last is new", "track/tracker.py",
           'known = {(step["name"], bool(step["differing"]))', 'known = {(step["name"], False)',
           "track/test_tracker.py::test_an_older_kernel_that_fails"),
    Mutant("with a step that is not judged, track exits with 125", "commands/track.py",
           "    if news.unjudged:", "    if False:",
           "track/test_tracker.py::test_an_older_kernel_that_is_gone"),
    Mutant("one boot gives no step without a difference", "track/index.py",
           "abs(found.difference) <= least and not found.moved", "False",
           "track/test_index.py::test_few_boots_are_marked"),
    Mutant("a version in a chart has all digits", "show/charts.py",
           'r"<[^>]*>"', 'r"(?s).*"',
           "show/test_charts.py::test_a_chart_in_the_dark"),
    Mutant("no figure of a page leaves its cell", "show/templates/page.css",
           ".heat { font-size: .85rem; }", ".heat { font-size: .85rem; table-layout: fixed; }",
           "looks/test_legible.py::test_page[two kernels]"),
    Mutant("no text of a page is too small to read", "show/templates/page.css",
           ".options { font-size: .85rem; }", ".options { font-size: .65rem; }",
           "looks/test_legible.py::test_page[two kernels]"),
    Mutant("what a call costs in all is its place in the page", "compare/changes.py",
           "return self.calls.order, -abs(self.calls.more)",
           "return super().rank",
           "looks/test_program.py::test_what_changes_most_in_all_is_first"),
    Mutant("functions of a feature are those of the largest layers", "studies/featuretable.py",
           "(one[0] != EBPF, -sum(abs(by) for by, _ in one[1]))", "one[0]",
           "studies/test_features.py::test_functions_by_layer"),
    Mutant("an estimate has the stated share of differences within its range", "compare/bridge.py",
           "min(SHARE * (len(points) + 1) / len(points), 1.0)", "0.5",
           "compare/test_bridge.py::test_the_share_of_new_differences_is_within_the_error"),
    Mutant("a rung is predicted by the others", "compare/bridge.py",
           "if at != number]", "]",
           "compare/test_bridge.py::test_a_rung_is_predicted_by_the_others"),
    Mutant("pairs that are far apart weigh more", "compare/bridge.py",
           "self.weight = abs(u - x)", "self.weight = 1.0",
           "compare/test_bridge.py::test_rungs_that_are_close_to_each_other_weigh_little"),
    Mutant("an error that is larger than the estimate is refused", "results/bridgefile.py",
           "and self.error < 1):", "and self.error < 1e9):",
           "compare/test_bridge.py::test_time_that_does_not_depend_on_instructions_is_refused"),
    Mutant("a rate starts from what was measured", "compare/bridge.py",
           "ns = measured.ns +", "ns = bridge.fixed_ns +",
           "compare/test_bridge.py::test_the_rate_follows_the_base"),
]  # fmt: skip


Job = tuple[list[str], Path]


def job(tests: Iterable[str], folder: Path) -> Job:
    """Run tests with the copy of the package in *folder* in place of the package."""
    options = ["-x", "-p", "no:cacheprovider", "-c", str(TESTS.parent / "pyproject.toml")]
    return [*options, *(str(TESTS / test) for test in tests)], folder


def copy(folder: Path) -> Path:
    return Path(shutil.copytree(PACKAGE, folder / "iopath"))


def broken(mutant: Mutant, folder: Path) -> Job:
    path = copy(folder) / mutant.file
    text = path.read_text()
    path.write_text(text.replace(mutant.old, mutant.new))
    return job([mutant.test], folder)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[Mutant | None, forked.Done]:
    """The outcomes of the tests of all mutants, and last those of a copy that is not broken."""
    jobs = [broken(mutant, tmp_path_factory.mktemp("mutant")) for mutant in MUTANTS]
    unbroken = tmp_path_factory.mktemp("unbroken")
    copy(unbroken)
    jobs.append(job({mutant.test for mutant in MUTANTS}, unbroken))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IOPATH_SOURCE", str(source_root()))
        return dict(zip([*MUTANTS, None], forked.run(jobs), strict=True))


def test_each_is_in_the_code_once() -> None:
    """What breaks a promise is not forgotten when the code changes."""
    times = {mutant: (PACKAGE / mutant.file).read_text().count(mutant.old) for mutant in MUTANTS}
    assert {mutant.promise: count for mutant, count in times.items() if count != 1} == {}


def test_each_has_a_test() -> None:
    def known(test: str) -> bool:
        file, _, name = test.partition("[")[0].partition("::")
        return f"\ndef {name}(" in (TESTS / file).read_text()

    assert [mutant.test for mutant in MUTANTS if not known(mutant.test)] == []


@pytest.mark.long
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.promise.replace(" ", "_"))
def test_mutant(mutant: Mutant, outcomes: dict[Mutant | None, forked.Done]) -> None:
    done = outcomes[mutant]
    noticed = done.status == 1 and re.search("^FAILED ", done.said, re.MULTILINE)
    assert noticed, f"no test notices that it is broken: {mutant.promise}\n{done.said}"


@pytest.mark.long
def test_unbroken(outcomes: dict[Mutant | None, forked.Done]) -> None:
    """The same tests pass if nothing is broken."""
    done = outcomes[None]
    assert done.status == 0, done.said
