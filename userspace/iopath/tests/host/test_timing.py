# SPDX-License-Identifier: GPL-2.0
"""Measuring on the running machine, as far as any machine can: rungs without a device, the
statistics, and what perf prints. The rest is selftests/test_package.py's."""

import json
import platform
import random
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import Browser
from helpers.command import KERNEL, Command
from helpers.parsed import Parsed, labels, rebuild, rows
from iopath.base.arch import ARCHES, this_machine
from iopath.base.errors import IopathError
from iopath.compare import times
from iopath.guest.machine import Qemu
from iopath.host import perf, samples, survey, timing
from iopath.results import kernelinfo, result
from iopath.results.layers import Layers
from iopath.results.profiles import SampledProfile
from iopath.results.result import COUNTERS, Figure, HardwareRecord, KernelName
from iopath.rungs import builtin
from iopath.rungs.runs import Run
from iopath.show import page


@pytest.mark.parametrize(("count", "ranks"), [(6, (0, 5)), (20, (5, 14)), (40, (13, 26))])
def test_interval_is_of_the_known_ranks(count: int, ranks: tuple[int, int]) -> None:
    assert samples.interval([float(value) for value in range(count)]) == ranks


def test_interval_of_too_few() -> None:
    with pytest.raises(ValueError, match="too few"):
        samples.interval([1.0] * 5)


def test_interval_covers_the_median() -> None:
    """In 95 % of cases or more, though the values are far from normal."""
    source = random.Random(1)
    covered = 0
    for _ in range(400):
        low, high = samples.interval([source.expovariate(1) for _ in range(20)])
        covered += low <= 0.6931 <= high
    assert covered >= 375


def figure(median: float, half: float, noise: float = 0.0) -> dict[str, float]:
    return {"median": median, "low": median - half, "high": median + half, "noise": noise}


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (figure(100, 1), figure(103, 1), "longer"),
        (figure(103, 1), figure(100, 1), "shorter"),
        (figure(100, 2), figure(103, 2), "same"),  # the intervals overlap
        (figure(100, 1, 2), figure(103, 1, 2), "same"),  # A and A differ by more
    ],
)
def test_verdict(before: dict[str, float], after: dict[str, float], verdict: str) -> None:
    found = times.difference(Figure(**before), Figure(**after))
    assert found.verdict == verdict
    assert found.difference == after["median"] - before["median"]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([100.0], [103.0], "unknown"),
        ([100.0, 100.0], [103.0], "unknown"),
        ([100.0, 100.5], [103.0, 103.5], "longer"),
        ([100.0, 102.0], [103.0, 105.0], "same"),  # boots of each differ by as much
    ],
)
def test_boots_of_guests_are_noise(before: list[float], after: list[float], verdict: str) -> None:
    figures = (figure(100, 0.1) | {"boots": before}, figure(103, 0.1) | {"boots": after})
    found = times.difference(*(Figure(**part) for part in figures))  # type: ignore[arg-type]
    assert found.verdict == verdict


def test_the_noise_is_of_samples_of_its_own() -> None:
    """The noise is that of the noisiest boot; the samples of the figures do not enter it."""
    run = Run(1, builtin.select(["syscall"])[0], "none", 0)
    steady = [{"ns": 50.0}] * 12
    noisy = [{"ns": 50.0}, {"ns": 53.0}] * 6
    low, high = ([{"ns": ns}] * 6 for ns in (100.0, 102.0))
    of = samples.Sampled(KernelName(name="k", release="1"), run, {}, 3, 100, [])
    found = samples.record_boots(of, [steady, noisy], [low, high])
    ns = found.figures["ns"]
    assert (ns.boots, ns.noise, ns.median) == ([100.0, 102.0], 3.0, 101.0)
    assert found.samples == 12


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The command's result here, for rungs that need no device."""
    path = tmp_path_factory.mktemp("host") / "host.json"
    command = Command(path.parent / "cache", path.parent)
    done = command.run(
        "measure", "host", "--rung", "null", "--rung", "syscall", "--passes", "6", "--json", path
    )
    assert done.returncode == 0, done.stderr
    assert "ns" in done.stdout
    command.left_nothing()
    return json.loads(path.read_text())


def test_result(measured: dict[str, Any]) -> None:
    assert measured["mode"] == "hardware"
    null, syscall = measured["results"]
    assert 0 < null["figures"]["ns"]["median"] < syscall["figures"]["ns"]["median"]
    for record in (null, syscall):
        ns = record["figures"]["ns"]
        assert ns["low"] <= ns["median"] <= ns["high"]
        # A counter has a figure, or a reason: never a zero that was not counted.
        assert record["figures"].keys() | record["absent"].keys() == {"ns", *COUNTERS}
        assert not record["figures"].keys() & record["absent"].keys()


def test_compare(measured: dict[str, Any], listed: Command, tmp_path: Path) -> None:
    # A busy machine's figures are noisy.
    measured = json.loads(json.dumps(measured))
    for value in measured["results"][1]["figures"].values():
        value.update(low=value["median"], high=value["median"], noise=0.0)
    slower = json.loads(json.dumps(measured))
    for value in slower["results"][1]["figures"].values():
        value.update({key: value[key] * 3 + (key != "noise") for key in value})
    for name, content in (("a", measured), ("b", slower)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    done = listed.run("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert done.returncode == 0, done.stderr
    assert "longer" in next(line for line in done.stdout.splitlines() if "syscall" in line)
    done = listed.run("compare", tmp_path / "a.json", tmp_path / "b.json", "--fail-above", "50")
    assert done.returncode == 1
    assert "syscall: host (b.json) takes" in done.stderr


def test_compare_refuses_another_machine(
    measured: dict[str, Any], listed: Command, tmp_path: Path
) -> None:
    other = measured | {"machine": measured["machine"] | {"cpu_model": "another"}}
    for name, content in (("a", measured), ("b", other)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    said = listed.fails("compare", tmp_path / "a.json", tmp_path / "b.json")
    assert "cpu_model" in said
    assert (
        listed.run("compare", tmp_path / "a.json", tmp_path / "b.json", "--anyway").returncode == 0
    )


def test_compare_never_mixes(measured: dict[str, Any], tmp_path: Path, listed: Command) -> None:
    record = {
        "kernel": {"name": "debian:6.1", "release": "6.1"}, "rung": "null", "op": "none",
        "block_size": 0, "instructions_per_io": 4, "spread": 0, "boots": [4], "boot_spread": 0,
        "mean_with_interrupts": 4, "rounds": 1, "rounds_with_interrupts": 0, "ios_per_round": 1,
        "batch": 1, "command": [],
    }  # fmt: skip
    kernel = dict.fromkeys(
        ("name", "release", "version", "origin", "banner", "compiler", "cpu_model", "cmdline",
         "clocksource"), "x",
    )  # fmt: skip
    kernel |= {"config": {}, "modules": {}, "zero_fill": True, "coherent": True}
    kernel["name"] = "debian:6.1"
    kernel |= {"quiet_after_seconds": 1, "digests": {"vmlinuz": "0" * 64, "config": "0" * 64}}
    exact = {
        "schema": 2, "program": "iopath", "mode": "exact",
        "qemu": {"version": "7.2", "digest": "0" * 64},
        "machine": {"cpu": "max", "memory_mib": 1, "cmdline": "", "seed": 1}, "programs": {},
        "source": "0" * 64, "kernels": [kernel], "results": [record],
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(exact))
    (tmp_path / "b.json").write_text(json.dumps(measured))
    for more in ((), ("--anyway",)):
        said = listed.fails("compare", tmp_path / "a.json", tmp_path / "b.json", *more)
        assert said.endswith("these cannot be compared")


def test_devices_that_are_not_there(listed: Command) -> None:
    no_devices = ("bwrap", "--bind", "/", "/", "--dev", "/dev")
    said = listed.fails("measure", "host", "--rung", "dio.pread", status=2, wrap=no_devices)
    assert said.startswith(
        "iopath: /dev/blknull0 does not exist: load the modules with `make load`"
    )


def test_survey_reads_this_machine() -> None:
    machine = survey.survey(0)
    assert machine.cpu_model
    assert machine.cpus >= 1
    assert survey.describe().arch == platform.machine()


# /proc/cpuinfo of a machine with CPUs of two models, as arm64 kernels print it.
ARM64_CPUS = """\
processor\t: 0
BogoMIPS\t: 48.00
Features\t: fp asimd evtstrm aes crc32 atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x2
CPU part\t: 0xd05
CPU revision\t: 0

processor\t: 1
BogoMIPS\t: 48.00
Features\t: fp asimd evtstrm aes crc32 atomics
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0b
CPU revision\t: 1
"""


@pytest.mark.parametrize(("cpu", "part"), [(0, "0xd05"), (1, "0xd0b")])
def test_the_model_is_that_of_the_cpu_measured_on(cpu: int, part: str) -> None:
    model = kernelinfo.cpu_model(survey.of_cpu(ARM64_CPUS, cpu))
    assert model == f"implementer 0x41, part {part}"


def test_machine_of_arm64(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert this_machine().syscall_prefix == "__arm64_sys_"
    assert survey.describe().arch == "aarch64"
    warnings = survey.survey(0).warnings
    assert any("not arch_sys_counter: reading it is slow" in text for text in warnings)
    for arch in ARCHES:
        with pytest.raises(IopathError, match="aarch64: guests need x86_64; host can be measured"):
            Qemu.find(arch)


def test_machine_of_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(IopathError, match="this machine is riscv64: must be x86_64 or aarch64"):
        this_machine()


def test_kvm_counts_no_functions(listed: Command) -> None:
    said = listed.fails("profile", KERNEL, "--accel", "kvm", status=2)
    assert said == (
        "iopath: --accel kvm: only measure supports it; functions are counted in emulation"
    )


# perf.


SCRIPT = """\
ioloop  500000
        ffffffff81000010 do_syscall_64+0x10 ([kernel.kallsyms])
                  401234 sync_loop_0+0x4 (/usr/bin/ioloop)

ioloop  500000
        ffffffffc0000010 blknull_submit_bio+0x3 ([blknull])
        ffffffff81000010 do_syscall_64+0x10 ([kernel.kallsyms])

swapper 500000
        ffffffff81000020 default_idle ([kernel.kallsyms])

biogen/1 1000000
        ffffffffc0001010 biogen_io_submit ([biogen])
"""


def a_profile() -> SampledProfile:
    stacks = list(perf._stacks(SCRIPT.splitlines()))
    return perf._profile("cpu-clock", Path("perf.data"), stacks, 1000.0, Layers())


def test_perf_shares_out_the_time() -> None:
    found = a_profile()
    assert {row.name: row.ns for row in found.functions} == {
        "biogen_io_submit": 500.0, "do_syscall_64": 250.0, "blknull_submit_bio": 250.0,
    }  # fmt: skip
    assert found.layers == {"driver": 250.0, "biogen": 500.0, "system call entry": 250.0}
    assert ("do_syscall_64;blknull_submit_bio [blknull]", 250.0) in found.stacks
    assert sum(part for _, part in found.stacks) == 1000.0


def test_perf_page(measured: dict[str, Any], tmp_path: Path) -> None:
    """A machine's profile is drawn as a guest's is, in time."""
    record = HardwareRecord(
        kernel=KernelName(name=survey.NAME, release=platform.release()), rung="gen.sync",
        op="read", block_size=4096, command=[], profile=a_profile(),
    )  # fmt: skip
    profiled = json.loads(json.dumps(result.dump(timing.result_of(0, [record]))))
    text = page.render(result.parse(profiled), None)
    parsed = Parsed(text)
    assert "Time per I/O" in parsed.text
    assert measured["machine"]["cpu_model"] in parsed.text
    assert parsed.data["counts"] == ["ns", "samples"]
    (drawn,) = parsed.data["rungs"][0]["profiles"]
    assert (drawn["total"], drawn["kernel"]) == (1000, 1000)
    assert rebuild(parsed.data, drawn["stacks"]) == sorted(map(list, record.profile.stacks))
    functions = {parsed.data["names"][row[0]]: row[1:] for row in drawn["functions"]}
    assert functions["do_syscall_64"] == [250, 1]
    with Browser(tmp_path) as browser:
        browser.window(1400)
        browser.open(text, "all=1")
        row = ["do_syscall_64 system call entry", "250.00", "25.00 %", "", "1.00"]
        assert row in rows(browser, "#view table:nth-of-type(2)")
        browser.open(text, "view=flame")
        shown = labels(browser)
        assert browser.errors == []
    assert (
        "biogen_io_submit [biogen]; layer: biogen; inclusive: 500.00 ns per I/O, 50.00 %;"
        " exclusive: 500.00, 50.00 %" in shown
    )
