# SPDX-License-Identifier: GPL-2.0
"""The bridge between instructions and time, on machines whose time for an instruction is known."""

import json
import random
import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers import machines
from helpers.command import Command
from helpers.machines import LADDER, NEW, OLD, Machine, on
from iopath.base.errors import IopathError
from iopath.base.sources import source_root
from iopath.compare import bridge
from iopath.results import bridgefile, result
from iopath.results.bridgefile import AGREE, Bridge
from iopath.results.result import MORE, parse

PREAD = ("dio.pread", "read", 4096)


# Both kernels; validated once, as that takes long.
EXACT = parse(machines.exact(OLD, NEW))


def made(machine: Machine, **more: Any) -> Bridge:  # noqa: ANN401
    """The bridge of a machine and the ladder of the older kernel."""
    host = machines.host(machine.times(on(0)), **more)
    return bridge.make(("host.json", result.make(host)), ("exact.json", EXACT))


def test_a_machine_of_one_speed_is_found() -> None:
    found = made(Machine(fixed=30.0, slope=0.25))
    assert found.fixed_ns == pytest.approx(30.0)
    assert found.ns_per_instruction == pytest.approx(0.25)
    assert found.error == pytest.approx(0.0, abs=1e-4)
    for rung in found.rungs:
        assert rung.predicted_ns == pytest.approx(rung.ns)
    time = bridge.estimate(found, PREAD, *LADDER[PREAD])
    assert time.low == pytest.approx(232 * 0.25)
    assert time.high == pytest.approx(232 * 0.25)
    assert time.iops_before == pytest.approx(1e9 / (30 + 0.25 * 2694.47))
    assert time.iops_after == pytest.approx(1e9 / (30 + 0.25 * 2926.47))


@pytest.mark.parametrize(
    ("varied", "noise"), [(0.0, 0.01), (0.0, 0.03), (0.05, 0.01), (0.1, 0.03), (0.15, 0.0)]
)
def test_an_estimate_has_the_truth_within_its_range(varied: float, noise: float) -> None:
    """In the stated share of machines or more. The instructions that a kernel adds take as long as
    those of any rung: their speed varies as much."""
    inside = 0
    seeds = 200
    for seed in range(seeds):
        found = made(Machine(varied=varied, noise=noise, seed=seed))
        time = bridge.estimate(found, PREAD, *LADDER[PREAD])
        truth = 232 * 0.25 * random.Random(-seed - 1).gauss(1, varied)
        inside += time.low <= truth <= time.high
        # A range that is too wide says nothing.
        assert time.high - time.low < 2 * 232 * 0.25 * 8 * (varied + noise)
    assert inside >= bridge.SHARE * seeds


def test_the_share_of_new_differences_is_within_the_error() -> None:
    """For two rungs of usual length, measured after the bridge was made."""
    source = random.Random(3)
    within = total = 0.0
    for seed in range(400):
        machine = Machine(varied=0.1, noise=0.02, seed=seed)
        found = made(machine)
        (before, after) = source.sample([*on(0).values()], 2)
        lengths = {("one", "read", 4096): before, ("two", "read", 4096): after}
        ns, more = replace(machine, seed=1000 + seed).times(lengths).values()
        time = bridge.estimate(found, PREAD, before, after)
        within += abs(after - before) * (time.low <= more - ns <= time.high)
        total += abs(after - before)
    assert within >= bridge.SHARE * total


def test_a_rung_far_off_the_others_moves_it_little() -> None:
    times = Machine().times(on(0))
    times["dio.aio.1", "read", 4096] *= 1.4
    host = result.make(machines.host(times))
    found = bridge.make(("h", host), ("e", EXACT))
    assert found.ns_per_instruction == pytest.approx(0.25, rel=0.01)


def test_a_rung_is_predicted_by_the_others() -> None:
    """There are few others, so the rung itself would change the constant."""
    ladder = {("raw.pread", "read", 512 * at): (1000.0 * at,) for at in range(1, 6)}
    times = Machine().times(on(0, ladder))
    for at, more in enumerate((10, -10, -10, 10, 100), 1):
        times["raw.pread", "read", 512 * at] += more
    found = bridge.make(
        ("h", result.make(machines.host(times))),
        ("e", result.make(machines.exact(OLD, ladder=ladder))),
    )
    assert found.rungs[-1].predicted_ns == pytest.approx(30 + 0.25 * 5000)
    assert found.rungs[-1].ns == pytest.approx(130 + 0.25 * 5000)


def test_rungs_that_are_close_to_each_other_weigh_little() -> None:
    """Many rungs differ by a few instructions, and their times by noise; some differ by many."""
    ladder = {("raw.pread", "read", 512 * at): (1000.0 + at,) for at in range(1, 16)}
    ladder |= {("dio.pread", "read", 512 * at): (1000.0 * at,) for at in range(2, 6)}
    times = Machine().times(on(0, ladder))
    for at in range(1, 16):
        times["raw.pread", "read", 512 * at] += at / 2  # ns, of an instruction each
    found = bridge.make(
        ("h", result.make(machines.host(times))),
        ("e", result.make(machines.exact(OLD, ladder=ladder))),
    )
    assert found.ns_per_instruction == pytest.approx(0.25, rel=0.02)


def refused(machine: Machine) -> bool:
    try:
        made(machine)
    except IopathError as error:
        assert re.fullmatch(
            r"host.json and exact.json: the error of an estimate, \d+ %, is larger than the"
            r" estimate \(most of it: \S+( read)?\): measure more rungs, on an idle machine",
            str(error),
        )
        return True
    return False


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_time_that_does_not_depend_on_instructions_is_refused(noise: float) -> None:
    machine = Machine(fixed=1000.0, slope=0.0, noise=noise)
    assert all(refused(replace(machine, seed=seed)) for seed in range(100))


def test_noise_is_refused() -> None:
    assert sum(refused(Machine(noise=2.0, seed=seed)) for seed in range(200)) >= 190


def test_time_that_shrinks_with_instructions_is_refused() -> None:
    assert refused(Machine(fixed=2000.0, slope=-0.25))


def test_one_rung_cannot_say_how_large_the_error_is() -> None:
    for count in range(bridge.FEWEST):
        times = dict([*Machine().times(on(0)).items()][:count])
        with pytest.raises(IopathError) as error:
            bridge.make(("h", parse(machines.host(times))), ("e", parse(machines.exact(OLD))))
        assert str(error.value) == (
            f"h and e have {count} rungs of different lengths in common: must be 5 or more"
        )


def test_rungs_of_one_length_are_as_one() -> None:
    ladder = {("raw.pread", "read", 512 << at): (1700.0,) for at in range(8)}
    times = Machine(noise=0.1).times(on(0, ladder))
    exact = parse(machines.exact(OLD, ladder=ladder))
    with pytest.raises(IopathError, match="h and e have 1 rungs of different lengths"):
        bridge.make(("h", parse(machines.host(times))), ("e", exact))


def test_only_rungs_that_both_have() -> None:
    times = Machine().times(on(0))
    times["other", "read", 4096] = times.pop(PREAD)
    found = bridge.make(("h", parse(machines.host(times))), ("e", parse(machines.exact(OLD))))
    assert len(found.rungs) == len(LADDER) - 1
    assert PREAD not in {rung.key for rung in found.rungs}
    # Of others, the rate is not known.
    time = bridge.estimate(found, PREAD, *LADDER[PREAD])
    assert (time.iops_before, time.iops_after) == (None, None)
    assert time.low == pytest.approx(232 * 0.25)


def test_the_rate_follows_the_base() -> None:
    """A comparison may begin with another kernel than the machine's."""
    found = made(Machine())
    time = bridge.estimate(found, PREAD, *reversed(LADDER[PREAD]))
    assert time.iops_before == pytest.approx(1e9 / (30 + 0.25 * 2926.47))
    assert time.iops_after == pytest.approx(1e9 / (30 + 0.25 * 2694.47))


# The PMU.


def test_a_pmu_is_compared_rung_by_rung() -> None:
    lengths = on(0)
    counted = {key: 1.01 * count + 3 for key, count in lengths.items() if key[0] != "gen.sync"}
    counted["mq.pread", "read", 4096] *= 1 + AGREE / 100
    counted["null", "none", 0] = lengths["null", "none", 0] + MORE - 0.1
    cycles = {key: 3 * ns for key, ns in Machine().times(lengths).items()}
    why = "the counters do not see the kernel's threads"
    found = made(Machine(), counts={"instructions": counted, "cycles": cycles}, absent=why)
    rungs = {rung.rung: rung for rung in found.rungs}
    assert [name for name, rung in rungs.items() if not rung.agrees] == ["mq.pread"]
    assert rungs["mq.pread"].pmu_percent == pytest.approx(6.05, abs=0.1)
    assert rungs["null"].pmu_percent == pytest.approx(122, abs=1)  # five instructions
    assert rungs["dio.pread"].cycles == pytest.approx(3 * rungs["dio.pread"].ns)
    assert rungs["gen.sync"].pmu_instructions is None
    assert rungs["gen.sync"].absent == why
    assert rungs["dio.pread"].absent == ""


def test_a_pmu_does_not_change_the_estimate() -> None:
    counts = {"instructions": {key: 2 * count for key, count in on(0).items()}}
    machine = Machine(varied=0.1)
    assert made(machine, counts=counts).error == made(machine).error


# Files.


def test_a_file_gives_the_same_bridge(tmp_path: Path) -> None:
    counts = {"instructions": {PREAD: 2700.0}}
    found = made(Machine(varied=0.1, noise=0.01), counts=counts)
    (path,) = machines.write(tmp_path, bridge=result.dump(found))
    assert bridgefile.load(path) == found


def broken(found: dict[str, Any], **changes: object) -> dict[str, Any]:
    return {key: value for key, value in (found | changes).items() if value is not ...}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"schema": 0},
            r"was made for results of schema 0, this iopath has \d+: make it again with",
        ),
        ({"schema": ...}, "is not a bridge file: at the top: 'schema' is a required property"),
        ({"mode": "exact"}, "is not a bridge file: at mode: 'bridge' was expected"),
        ({"rungs": []}, "is not a bridge file: at rungs: "),
        ({"error": "small"}, "is not a bridge file: at error: 'small' is not of type 'number'"),
        ({"error": 1.5}, "the error of an estimate, 150 %, is larger than the estimate"),
        ({"error": float("nan")}, "is not a bridge file: NaN is not a number"),
        ({"ns_per_instruction": 0.0}, "the error of an estimate, "),
    ],
)
def test_broken_files(tmp_path: Path, changes: dict[str, object], text: str) -> None:
    whole = broken(result.dump(made(Machine(varied=0.1))), **changes)
    (path,) = machines.write(tmp_path, bridge=whole)
    with pytest.raises(IopathError, match=f"{re.escape(str(path))}:? {text}") as error:
        bridgefile.load(path)
    assert "\n" not in str(error.value)


# The command line.


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A machine's result; that of two kernels; and each of these alone."""
    folder = tmp_path / "files"
    folder.mkdir()
    machine = Machine(varied=0.05, noise=0.01)
    new = {key: figures[1:] for key, figures in LADDER.items()}
    return machines.write(
        folder, host=machines.host(machine.times(on(0))), exact=machines.exact(OLD, NEW),
        old=machines.exact(OLD), new=machines.exact(NEW, ladder=new),
    )  # fmt: skip


def cells(text: str, *, rung: str) -> list[str]:
    """The cells of the last row of a rung."""
    return re.split(r" {2,}", [line for line in text.splitlines() if line.startswith(rung)][-1])


def test_from_two_results_to_the_time_of_a_comparison(
    files: Sequence[Path], empty: Command, tmp_path: Path
) -> None:
    host, exact, old, new = files
    made, compared, text = (tmp_path / name for name in ("b.json", "c.json", "c.md"))
    done = empty.run("bridge", host, exact, "--json", made)
    assert (done.returncode, done.stderr) == (0, "")
    assert "not counted on this machine: no PMU. The bridge is made of time alone" in done.stdout
    _, said, rate = cells(done.stdout, rung="dio.pread")[-3:]
    low, high = map(float, said.split(" to "))
    assert 0 < low < high
    assert low == pytest.approx(high, rel=0.5)
    assert low < 232 * 0.25 * 1.1
    assert high > 232 * 0.25 * 0.9
    assert "debian:6.1 to debian:7.2, estimated for this machine" in done.stdout
    before = 1e3 / bridgefile.load(made).rungs[[*LADDER].index(PREAD)].ns
    assert rate.endswith(f" instead of {before:.2f}")

    options = ("--time", made, "--json", compared, "--markdown", text)
    done = empty.run("compare", old, new, *options)
    assert (done.returncode, done.stderr) == (0, "")
    assert cells(done.stdout, rung="dio.pread read")[-2:] == [said, rate]
    assert "ns and IOPS are estimated for made-up CPU by the time of" in done.stdout
    (row,) = re.findall(r"^\| dio.pread read .*\|$", text.read_text(), re.MULTILINE)[:1]
    assert [cell.strip() for cell in row.split("|")][-3:-1] == [said, rate]
    assert "ns and IOPS are estimated for made-up CPU" in text.read_text()
    whole = json.loads(compared.read_text())
    rungs = {(r["rung"], r["op"]): r for r in whole["comparison"]["rungs"]}
    time = rungs["dio.pread", "read"]["differences"][NEW]["time"]
    assert f"{time['low']:+.0f} to {time['high']:+.0f}" == said
    assert time["iops_before"] > time["iops_after"]
    # A rung that is the same has no estimate.
    assert "time" not in rungs["null", "none"]["differences"][NEW]
    assert whole["comparison"]["bridge"] == json.loads(made.read_text())

    done = empty.run("compare", old, new, "--time", made, "--all")
    assert cells(done.stdout, rung="dio.pread read")[-2:] == [said, rate]
    assert cells(done.stdout, rung="null")[-1] == "same"
    without = empty.run("compare", old, new)
    assert "estimated" not in without.stdout


def test_several_kernels_have_their_times(
    files: Sequence[Path], empty: Command, tmp_path: Path
) -> None:
    made = tmp_path / "b.json"
    assert empty.run("bridge", *files[:2], "--json", made).returncode == 0
    third = {key: [figures[1] + 100] for key, figures in LADDER.items()}
    (path,) = machines.write(files[0].parent, third=machines.exact("debian:7.3", ladder=third))
    done = empty.run("compare", files[2], files[3], path, "--time", made)
    row = cells(done.stdout, rung="dio.pread read")
    assert len(re.findall(r"%, \+\d+ to \+\d+ ns", " ".join(row))) == 2


def test_pmu_on_the_terminal(files: Sequence[Path], empty: Command) -> None:
    lengths = on(0)
    counted = {**lengths, PREAD: 1.1 * lengths[PREAD]}
    del counted["gen.sync", "read", 4096]
    why = "the counters do not see the kernel's threads"
    times = Machine().times(lengths)
    whole = machines.host(times, counts={"instructions": counted, "cycles": times}, absent=why)
    (path,) = machines.write(files[0].parent, pmu=whole)
    done = empty.run("bridge", path, files[2])
    assert cells(done.stdout, rung="dio.pread")[-2:] == ["2,963.92", "+10.0 % !"]
    assert cells(done.stdout, rung="raw.pread")[-2:] == ["1,798.35", "+0.0 %"]
    assert cells(done.stdout, rung="gen.sync")[-1] == "-"
    assert f"not counted on this machine: gen.sync read: {why}" in done.stdout
    assert "! 1 rung of 11: the PMU's count differs by more than 5 %" in done.stdout
    assert "time alone" not in done.stdout


def test_unusable_files_are_refused(files: Sequence[Path], empty: Command, tmp_path: Path) -> None:
    host, exact, old, new = files
    folder = host.parent
    times = Machine().times(on(0))
    arm = machines.exact(OLD)
    arm["kernels"][0]["arch"] = "aarch64"
    two = machines.host(times)
    two["kernels"].append({**two["kernels"][0], "name": "host (b.json)"})
    other, arm_, two_, noisy = machines.write(
        folder, other=machines.host(times, release="6.6-other"), arm=arm, two=two,
        noisy=machines.host(Machine(noise=1.0).times(on(0))),
    )  # fmt: skip
    (profile_,) = machines.write(folder, profile=machines.profile(times))
    written = tmp_path / "b.json"
    for names, text in (
        ((profile_, exact), f"{profile_} holds no times: must be a result of iopath measure host"),
        ((exact, host), f"{exact} holds no times: must be a result of iopath measure host"),
        ((host, host), f"{host} holds no instructions: must be a result of a guest"),
        ((other, exact), f"{other} is of the kernel 6.6-other, {exact} has debian:6.1-release,"
         " debian:7.2-release: must have the same release"),
        ((host, arm_), f"{host} is of x86_64, debian:6.1 in {arm_} of aarch64: must be of one"
         " architecture"),
        ((two_, exact), f"{two_} has 2 kernels: must be of one"),
        ((noisy, exact), f"{noisy} and {exact}: the error of an estimate, "),
    ):  # fmt: skip
        assert empty.fails("bridge", *names, "--json", written).startswith(f"iopath: {text}")
        assert not written.exists()
    (folder / "text.json").write_text("{")
    said = empty.fails("bridge", folder / "text.json", exact)
    assert said.startswith(f"iopath: {folder / 'text.json'} is not a result file: ")
    said = empty.fails("bridge", folder / "none.json", exact, status=2)
    assert said == f"iopath: {folder / 'none.json'}: No such file or directory"

    assert empty.run("bridge", host, exact, "--json", written).returncode == 0
    whole = json.loads(written.read_text())
    wrong, foreign = machines.write(
        folder, wrong={**whole, "error": 1.2}, foreign={**whole, "arch": "aarch64"}
    )
    for names, text in (
        ((old, new, "--time", wrong), f"{wrong}: the error of an estimate, 120 %, is larger than"),
        ((old, new, "--time", foreign), f"--time {foreign}: it is of aarch64, debian:6.1 of x86_64:"
         " must be of one architecture"),
        ((old, new, "--time", old), f"{old} is not a bridge file: at "),
    ):  # fmt: skip
        assert empty.fails("compare", *names).startswith(f"iopath: {text}")
    said = empty.fails("compare", old, new, "--time", wrong, "--fail-above", "50", status=125)
    assert said.startswith(f"iopath: {wrong}: ")
    said = empty.fails("compare", host, other, "--anyway", "--time", written, status=2)
    assert said == (f"iopath: --time {written}: the results hold times: must be results of guests")


# The documentation.


def test_the_documentation_shows_what_the_command_prints(
    files: Sequence[Path], empty: Command, tmp_path: Path
) -> None:
    text = (source_root() / "Documentation/bridge.rst").read_text()
    blocks = [
        textwrap.dedent(block).strip()
        for block in re.findall(r"\.\. code-block:: none\n\n((?:    .*\n|\n)+)", text)
    ]
    empty.env["COLUMNS"] = "100"
    made = tmp_path / "bridge.json"
    printed = [
        empty.run("bridge", *files[:2], "--json", made),
        empty.run("compare", *files[2:], "--time", made),
    ]
    assert [done.stdout.strip() for done in printed] == blocks
