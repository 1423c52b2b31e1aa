# SPDX-License-Identifier: GPL-2.0
"""From the rounds that a guest recorded to the figures, the result file and the table."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers.examples import STACKS, a_profile
from helpers.printed import printed, words
from helpers.rounds import PREAD, record, run_counts
from iopath.base.errors import IopathError, UsageError
from iopath.measure.rounds import figure as make_figure
from iopath.results import checks
from iopath.results.result import SCHEMA, dump, load, parse, size_text
from iopath.rungs.runs import Run
from iopath.show import terminal


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


def test_a_file_that_says_which_boot_has_the_profile(
    result: dict[str, Any], tmp_path: Path
) -> None:
    """iopath wrote so before all profiles were of the first boot."""
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    known = checks.load(path)
    for one in result["results"]:
        one["profile_boot"] = 9
    path.write_text(json.dumps(result))
    assert checks.load(path) == known


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
        (lambda r: r["results"][0].update(boots=[11.0]), "instructions_per_io is not the mean of"),
        (lambda r: r["results"][0].update(boots=[9.0, 11.0]), "layouts has 1 boots, its figure"),
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
                instructions_per_io=601.93, boots=[601.93],
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
    checks.load(path)
    change(result)
    path.write_text(json.dumps(result))
    with pytest.raises(IopathError, match=f"is not a result file: .*{complaint}"):
        checks.load(path)


def shown(result: dict[str, Any]) -> list[str]:
    """The table and the facts as they are printed, a single space between words."""
    shows = (terminal.show, terminal.show_facts)
    return words("".join(printed(show, parse(result)) for show in shows))


def test_table(result: dict[str, Any]) -> None:
    lines = shown(result)
    assert "rung op size debian:6.1 spread debian:7.2 spread change" in lines
    assert "dio.pread read 4 KiB 10.00 0.00 12.00 0.00 +2.00 (+20.0 %)" in lines
    assert "write 4 KiB 20.00 0.00 15.00 0.00 -5.00 (-25.0 %)" in lines


def test_all_stands_beside_the_path(result: dict[str, Any]) -> None:
    del result["kernels"][1], result["results"][2:]
    parts = {"task": 60.0, "thread kjournald2": 1150.5}
    result["results"][0] |= {"mean": 60.0, "with_deferred": 1210.5, "all_parts": parts}
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
