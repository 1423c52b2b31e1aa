# SPDX-License-Identifier: GPL-2.0
"""Measuring on the running machine, as far as any machine can: rungs without a device, the
statistics, and what perf prints. The rest is selftests/test_package.py's."""

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import Browser
from helpers.command import KERNEL, Command
from helpers.parsed import Parsed, labels, rebuild, rows
from helpers.sampled import a_profile
from iopath.host import survey, timing
from iopath.results import result
from iopath.results.result import COUNTERS, HardwareRecord, KernelName
from iopath.show import page


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
        "batch": 1, "command": [], "scenario": 64 * "0",
    }  # fmt: skip
    kernel = dict.fromkeys(
        ("name", "release", "version", "origin", "banner", "compiler", "cpu_model", "cmdline",
         "clocksource"), "x",
    )  # fmt: skip
    kernel |= {"config": {}, "modules": {}, "zero_fill": True, "coherent": True}
    kernel |= {"name": "debian:6.1", "cmdline": ""}
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


def test_kvm_counts_no_functions(listed: Command) -> None:
    said = listed.fails("profile", KERNEL, "--accel", "kvm", status=2)
    assert said == (
        "iopath: --accel kvm: only measure supports it; functions are counted in emulation"
    )


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
