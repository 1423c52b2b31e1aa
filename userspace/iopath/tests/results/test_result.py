# SPDX-License-Identifier: GPL-2.0
"""From the rounds that a guest recorded to the figures, the result file and the table."""

import copy
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from examples import STACKS, a_profile
from rich.console import Console

from iopath.base.errors import IopathError, UsageError
from iopath.counts.longrun import LongRun
from iopath.counts.pathcount import CountedRound
from iopath.guest.machine import Machine
from iopath.measure.rounds import RunCounts, check_calibration, check_rounds
from iopath.measure.rounds import figure as make_figure
from iopath.results.result import SCHEMA, ExactRecord, dump, load, parse, size_text
from iopath.rungs.builtin import RUNGS, select
from iopath.rungs.report import Job, Report, Round
from iopath.rungs.runs import Run, Settings
from iopath.show import terminal

PREAD = select(["dio.pread"])[0]
RUN = Run(1, PREAD, "read", 4096)


def record(*rounds: tuple[int, int | None], expected: int | None = None) -> Report:
    """ioloop's report of rounds of (instructions, interrupts)."""
    parts = tuple(Round(ios=100, ns=0, tsc=tsc, interrupts=number) for tsc, number in rounds)
    return Report((Job(parts),), expected)


def counted(
    report: Report, over: int = 7, switches: int = 0, iterations: int = 0
) -> list[CountedRound]:
    """What the plugin counts of the rounds of *report*: all but the last *over* instructions, and
    the *iterations* of string instructions."""
    return [
        CountedRound(part.tsc - over - iterations, iterations, part.quiet, switches)
        for part in report.rounds
    ]


def run_counts(
    report: Report, mean: float = 10.0, later: float = 0.0, iterations: int = 0
) -> RunCounts:
    """What the plugin counts of a run in a boot."""
    rounds = counted(report, iterations=iterations)
    return RunCounts(LongRun(mean, mean + later, []), {}, rounds)


def figure(*rounds: tuple[int, int | None], iterations: int = 0) -> ExactRecord:
    report = record(*rounds)
    counts = run_counts(report, iterations=iterations)
    return make_figure("debian:6.1", "6.1.0-56-amd64", RUN, [report], [counts])


def test_median_of_calm_rounds() -> None:
    found = figure((1000, 0), (1004, 0), (1010, 0), (9000, 1), (100, 2))
    assert found.instructions_per_io == 10.04
    assert found.spread == 0.1
    assert (found.rounds, found.rounds_with_interrupts) == (5, 2)
    assert found.mean_with_interrupts == pytest.approx(12114 / 500)


def test_a_round_of_unknown_interrupts_is_not_calm() -> None:
    found = figure((1000, 0), (9000, None), (9000, None))
    assert found.instructions_per_io == 10
    assert found.rounds_with_interrupts == 2


def test_median_of_an_even_number_is_the_lower_of_the_middle_two() -> None:
    """It is the figure of a round, the one that the plugin has the profile of."""
    assert figure((1000, 0), (1001, 0), (1003, 0), (1004, 0)).instructions_per_io == 10.01


def test_rounds_of_all_jobs_count() -> None:
    both = Report(record((1000, 0)).jobs + record((3000, 0)).jobs)
    assert make_figure("a", "b", RUN, [both], [run_counts(both)]).instructions_per_io == 10


def test_mean_of_boots() -> None:
    boots = [record((1000, 0), (1002, 0)), record((1500, 0)), record((1100, 0), (1, 1))]
    longs = [(12.5, 1.0), (11.5, 3.0), (13.5, 0.0)]
    counts = [run_counts(boot, *long) for boot, long in zip(boots, longs, strict=True)]
    found = make_figure("a", "b", RUN, boots, counts)
    assert found.instructions_per_io == 12
    assert found.boots == [10, 15, 11]
    assert found.profile_boot == 2
    assert (found.mean, found.with_deferred) == (12.5, 13.8333)
    assert found.mean_boots == [12.5, 11.5, 13.5]
    assert found.with_deferred_boots == [13.5, 14.5, 13.5]
    assert found.long_run_ios == 12000
    assert (found.boot_spread, found.spread) == (5, 0.02)
    assert (found.rounds, found.rounds_with_interrupts) == (5, 1)


def test_the_figure_is_the_mean_of_the_boots() -> None:
    """The profile is of one boot: if their number is even, of the lower of the middle two."""
    boots = [record((count, 0)) for count in (1300, 1000, 1100, 1200)]
    found = make_figure("a", "b", RUN, boots, [run_counts(boot) for boot in boots])
    assert (found.instructions_per_io, found.profile_boot) == (11.5, 2)


def test_iterations_of_string_instructions_are_no_instructions() -> None:
    """The clock counts them."""
    found = figure((1000, 0), (1004, 0), iterations=400)
    assert found.instructions_per_io == 6
    assert found.mean_with_interrupts == pytest.approx(6.02)
    check_rounds(RUN, CALM, counted(CALM, iterations=400))
    short = [replace(part, iterations=399) for part in counted(CALM, iterations=400)]
    short[1] = replace(short[1], iterations=400)
    with pytest.raises(IopathError, match="pathcount is wrong"):
        check_rounds(RUN, CALM, short)


def test_boots_differ_in_the_seed_alone() -> None:
    asked = Machine(cmdline="nokaslr mitigations=off", seed=5)
    machines = Settings(RUNGS, machine=asked, boots=3).machines()
    assert [machine.seed for machine in machines] == [5, 6, 7]
    assert [replace(machine, seed=5) for machine in machines] == [asked] * 3


@pytest.mark.parametrize("calm", [0, 1])
def test_too_few_calm_rounds_are_no_figure(calm: int) -> None:
    rounds = [(1000, 0)] * calm + [(1000, 1)] * 7
    with pytest.raises(IopathError, match=f"only {calm} of {calm + 7} rounds had no"):
        figure(*rounds)


@pytest.mark.parametrize("counts", [[6000], [6000, 6064], [6003, 6003]])
def test_calibration(counts: list[int]) -> None:
    check_calibration(record(*((n, 0) for n in counts), expected=6000))


@pytest.mark.parametrize(
    "rounds", [[(5999, 0)], [(6000, 0), (6065, 0)], [(12000, 0)], [(6000, 1)], []]
)
def test_calibration_that_fails(rounds: list[tuple[int, int]]) -> None:
    with pytest.raises(IopathError, match="the guest's clock does not count instructions"):
        check_calibration(record(*rounds, expected=6000))


CALM = record((1000, 0), (1004, 0), (9000, 1))


def test_clock_and_plugin_agree() -> None:
    check_rounds(RUN, CALM, counted(CALM))


def test_a_guest_that_waits_may_take_longer() -> None:
    counts = counted(CALM)
    counts[1] = replace(counts[1], instructions=500, switches=2)
    check_rounds(RUN, CALM, counts)
    check_rounds(RUN, CALM, counted(CALM, over=500, switches=1))
    counts[1] = replace(counts[1], instructions=998)
    with pytest.raises(IopathError, match="the rounds took 6, 7 instructions more than"):
        check_rounds(RUN, CALM, counts)


@pytest.mark.parametrize("instructions", [500, 996, 998])
def test_a_round_that_the_plugin_counts_otherwise_is_refused(instructions: int) -> None:
    counts = counted(CALM)
    counts[1] = replace(counts[1], instructions=instructions)
    with pytest.raises(IopathError, match="more than were counted: pathcount is wrong"):
        check_rounds(RUN, CALM, counts)


@pytest.mark.parametrize("over", [-1, 65])
def test_what_lies_between_clock_and_marker_is_little(over: int) -> None:
    with pytest.raises(IopathError, match=f"the rounds took {over} instructions more than"):
        check_rounds(RUN, CALM, counted(CALM, over=over))


def test_rounds_that_were_not_counted_are_refused() -> None:
    with pytest.raises(IopathError, match="3 rounds, but 2 were counted"):
        check_rounds(RUN, CALM, counted(CALM)[:2])


def kernel(name: str, release: str) -> dict[str, Any]:
    return {
        "name": name,
        "release": release,
        "version": "1-1",
        "origin": "Debian bookworm",
        "banner": "Linux version",
        "compiler": "gcc-12 (Debian 12.2.0-14) 12.2.0",
        "cpu_model": "QEMU TCG CPU",
        "cmdline": "console=ttyS0 nokaslr",
        "clocksource": "tsc",
        "config": {"HZ": "250", "PREEMPT_VOLUNTARY": "y"},
        "digests": {"vmlinuz": "0" * 64, "config": "a" * 64},
        "modules": {"blknull": {"version": "1"}},
        "zero_fill": True,
        "coherent": True,
        "quiet_after_seconds": 3,
    }


@pytest.fixture
def result() -> dict[str, Any]:
    """A result of two kernels: 6.1 with 10 and 20 instructions, 7.2 with 12 and 15."""
    kernels = [kernel("debian:6.1", "6.1.0-56-amd64"), kernel("debian:7.2", "7.2.12+deb13-amd64")]
    results = []
    for owner, counts in zip(kernels, [(1000, 2000), (1200, 1500)], strict=True):
        for op, count in zip(("read", "write"), counts, strict=True):
            run = Run(1, PREAD, op, 4096)
            report = record((count, 0))
            counted = [run_counts(report)]
            found = make_figure(owner["name"], owner["release"], run, [report], counted)
            found.mean = found.with_deferred = count / 100
            found.mean_boots = found.with_deferred_boots = [count / 100]
            found.all_parts = {"task": count / 100}
            found.scenario = "f" * 64
            results.append(dump(found))
    return {
        "schema": SCHEMA,
        "program": "iopath 0.2.0",
        "mode": "exact",
        "qemu": {"version": "7.2.22", "digest": "b" * 64},
        "machine": {"cpu": "max", "memory_mib": 1024, "cmdline": "nokaslr", "seed": 1},
        "programs": {"init": "c" * 64, "ioloop": "d" * 64},
        "source": "e" * 64,
        "kernels": kernels,
        "results": results,
    }


def test_result_is_valid_and_survives_a_file(result: dict[str, Any], tmp_path: Path) -> None:
    assert dump(parse(result)) == result
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    assert dump(load(path)) == result


_PROMISED = ("kernel", "rung", "op", "block_size", "instructions_per_io", "spread", "boots")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda r: r.pop("results"), "at the top: 'results'"),
        (lambda r: r.update(kernels=[]), "at kernels"),
        (lambda r: r.update(schema=0), "at schema"),
        (lambda r: r.update(mode="guessed"), "at mode"),
        (lambda r: r["results"][0].update(instructions_per_io="10"), "at results/0/instr"),
        (lambda r: r["results"][0].update(instructions_per_io=-1), "at results/0/instr"),
        (lambda r: r["results"][1].update(op="trim"), "at results/1/op"),
        (lambda r: r["results"][0]["kernel"].pop("name"), "at results/0/kernel"),
        (lambda r: r["kernels"][1]["digests"].update(vmlinuz="x"), "at kernels/1/digests"),
        *((lambda r, key=key: r["results"][0].pop(key), "at results/0: ") for key in _PROMISED),
    ],
)
def test_schema_refuses(
    result: dict[str, Any], change: Callable[[dict[str, Any]], None], place: str
) -> None:
    broken = copy.deepcopy(result)
    change(broken)
    with pytest.raises(IopathError, match=f"^it is not a result file: {place}") as told:
        parse(broken, "it")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not a result file: "),
        ("[]", "is not a result file: at the top"),
        ('{"schema": 1, "mode": "program"}', "has the counts of a program in an older format: "),
        ('{"schema": 99}', "has schema 99, this iopath knows up to"),
        ('{"schema": 2, "spread": NaN}', "is not a result file: NaN is not a number"),
        ('{"schema": 2, "spread": -Infinity}', "is not a result file: -Infinity is not a number"),
        ("[" * 100_000, "is not a result file: it is nested too deeply"),
    ],
)
def test_load_refuses(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(IopathError, match=complaint):
        load(path)
    with pytest.raises(UsageError, match="No such file"):
        load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda r: r["results"].append(r["results"][0]), "is there twice"),
        (lambda r: r["results"][0]["kernel"].update(name="another"), "does not have this kernel"),
        (lambda r: r["results"][0].update(profile_boot=9), "its profile is of boot 9 of "),
        (lambda r: r["results"][0].update(boots=[11.0]), "instructions_per_io is not the mean of"),
        (lambda r: r["results"][0].update(boots=[9.0, 11.0]), "mean_boots has 1 boots, its figure"),
        (lambda r: r["results"][0].update(mean=11.0), "mean is not the mean of its boots"),
        (lambda r: r["results"][0].update(with_deferred=1.0), "with_deferred is not the mean of"),
        (lambda r: r["results"][0].update(layouts=[[1.0], [1.0]]), "layouts has 2 boots"),
        (lambda r: r["results"][0].update(all_parts={"task": 1.0}), "the parts of the total do"),
        (lambda r: r["results"][0]["counts"].update(locked=[-1.0]), "locked is negative"),
        (lambda r: r["results"][0].pop("scenario"), "does not say what its scenario is made of"),
        (lambda r: r["kernels"][1].update(cmdline="console=ttyS0"), "it booted without nokaslr"),
        (lambda r: r["kernels"][1].update(cmdline="nokaslr mitigations=auto"),
         "it booted with mitigations=auto, which the machine does not have"),
        (lambda r: r["results"][0].update(profile=a_profile(STACKS)), "the clock counts 10.00 "),
        *(
            (lambda r, change=change: r["results"][0].update(
                instructions_per_io=601.93, boots=[601.93], profile_boot=0,
                profile=a_profile(STACKS) | change), complaint)
            for change, complaint in (
                ({"functions": []}, "the instructions of its functions do not add up"),
                ({"locked": 9}, "the locked of its functions do not add up"),
                ({"layers": {"VFS": 9.0}}, "the instructions of its layers do not add up"),
                ({"stacks": [["f", 9.0]]}, "the instructions of its stacks do not add up"),
                ({"user": 9}, "the instructions of its user and kernel do not add up"),
            )
        ),
    ],
)  # fmt: skip
def test_records_that_contradict_the_file(
    result: dict[str, Any], tmp_path: Path, change: Callable[[dict[str, Any]], None], complaint: str
) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    load(path)
    change(result)
    path.write_text(json.dumps(result))
    with pytest.raises(IopathError, match=f"is not a result file: .*{complaint}"):
        load(path)


def shown(result: dict[str, Any]) -> list[str]:
    """The table and the facts as they are printed, a single space between words."""
    console = Console(file=io.StringIO(), width=200, highlight=False)
    terminal.show(parse(result), console)
    terminal.show_facts(parse(result), console)
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_table(result: dict[str, Any]) -> None:
    lines = shown(result)
    assert "rung op size debian:6.1 spread debian:7.2 spread change" in lines
    assert "dio.pread read 4 KiB 10.00 0.00 12.00 0.00 +2.00 (+20.0 %)" in lines
    assert "write 4 KiB 20.00 0.00 15.00 0.00 -5.00 (-25.0 %)" in lines


def test_all_stands_beside_the_path(result: dict[str, Any]) -> None:
    del result["kernels"][1], result["results"][2:]
    result["results"][0] |= {"mean": 60.0, "with_deferred": 1210.5}
    for name in ("mean", "with_deferred"):
        del result["results"][1][name]
    lines = shown(result)
    assert "rung op size debian:6.1 spread total" in lines
    assert "dio.pread read 4 KiB 10.00 0.00 1,210.50" in lines
    assert "write 4 KiB 20.00 0.00 -" in lines


def test_change_is_against_the_first_kernel(result: dict[str, Any]) -> None:
    result["kernels"].reverse()
    assert "dio.pread read 4 KiB 12.00 0.00 10.00 0.00 -2.00 (-16.7 %)" in shown(result)


def test_a_figure_that_is_not_there_has_no_change(result: dict[str, Any]) -> None:
    del result["results"][2]
    assert "dio.pread read 4 KiB 10.00 0.00 -" in shown(result)


def test_nothing_to_divide_by(result: dict[str, Any]) -> None:
    result["results"][0] |= {"instructions_per_io": 0, "with_deferred": 0.0}
    assert "dio.pread read 4 KiB 0.00 0.00 12.00 0.00 +12.00" in shown(result)


def test_facts_answer_what_a_reviewer_asks(result: dict[str, Any]) -> None:
    text = "\n".join(shown(result))
    for fact in ("QEMU 7.2.22", "CPU max", "1024 MiB", "nokaslr", "6.1.0-56-amd64", "gcc-12",
                 "PREEMPT_VOLUNTARY", "HZ=250", "aaaaaaaa"):  # fmt: skip
        assert fact in text


@pytest.mark.parametrize(
    ("size", "text"), [(512, "512 B"), (4096, "4 KiB"), (1536, "1536 B"), (1 << 20, "1 MiB")]
)
def test_sizes(size: int, text: str) -> None:
    assert size_text(size) == text


def test_rungs_by_pattern() -> None:
    names = [rung.name for rung in RUNGS]
    assert select([]) == list(RUNGS[: names.index("mq.uring") + 1])
    assert select(["*"]) == list(RUNGS)
    assert [rung.name for rung in select(["dio.aio.*", "syscall"])][:2] == ["syscall", "dio.aio.1"]
    with pytest.raises(UsageError, match="unknown rung 'raw': did you mean"):
        select(["raw"])
