# SPDX-License-Identifier: GPL-2.0
"""The command measure, where it refuses."""

from pathlib import Path

import pytest

from helpers.command import Command


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["debian:9.9"], "debian:9.9: no such kernel; there are 5.10, 6.1, 6.12, 7.2, 7.3"),
        (["debian:6.1.0-999-amd64"], "debian:6.1.0-999-amd64: no such kernel"),
        (["debian:6.1", "debian:6.1"], "debian:6.1: a kernel may be named once"),
        (["debian:9.9-arm64"], "debian:9.9-arm64: no such kernel; there are 6.1, 6.12, 7.2"),
        (["debian:"], "debian:: not a kernel; ask for deb:FILES, debian:SERIES"),
        (["6.1"], "6.1: not a kernel; ask for deb:FILES, debian:SERIES"),
        (["host", "debian:6.1"], "host: must be measured alone; compare takes its result file"),
        (["host", "--boots", "3"], "--boots: cannot be used with host"),
        (["host", "--model"], "--model: cannot be used with host"),
        (["debian:6.1", "--accel", "kvm", "--model"], "--model: only emulated guests are modelled"),
        (["host", "--svg", "x.svg"], "--svg: only exact results can be drawn"),
        (["host", "--on-cpu", "9999"], "--on-cpu 9999: iopath may not run there: must be one of 0"),
        (["tree:/nonexistent"], "tree:/nonexistent: /nonexistent/arch/x86/boot/bzImage is missing"),
        (["debain:6.1"], "debain:6.1: not a kernel: did you mean 'debian'?"),
        (
            ["debian:6.1.0-65-amd64"],
            "debian:6.1.0-65-amd64: no such kernel: did you mean '6.1.0-56-amd64'?",
        ),
        (["debian:6.1", "--rung", "dio.prad"], "unknown rung 'dio.prad': did you mean 'dio.pread'"),
        (
            ["debian:6.1", "--rung", "raw"],
            "unknown rung 'raw': did you mean 'raw.*'? (iopath rungs",
        ),
        (["debian:6.1", "--json", "/nonexistent/x"], "cannot write /nonexistent/x: there is no"),
    ],
)
def test_measure(listed: Command, args: list[str], complaint: str) -> None:
    assert listed.fails("measure", *args, status=2).startswith(f"iopath: {complaint}")


def test_kernel_whose_dependency_is_gone(listed: Command) -> None:
    said = listed.fails("measure", "debian:6.19")
    assert said.startswith(
        "iopath: debian:6.19: 6.19.14+deb13-amd64 is unavailable: linux-modules-6.19.14+deb13-amd64"
        " (= 6.19.14-1~bpo13+1) is no longer on the mirror; there are 5.10, 6.1,"
    )


def test_no_network(empty: Command, tmp_path: Path) -> None:
    said = empty.fails("measure", "debian:6.1", "--json", tmp_path / "out.json")
    assert said.startswith("iopath: cannot fetch the lists of kernel packages: ")
    assert "127.0.0.1" in said
    assert not (tmp_path / "out.json").exists()


def test_no_network_for_a_listed_kernel(listed: Command) -> None:
    said = listed.fails("measure", "debian:6.1")
    assert said.startswith("iopath: debian:6.1: cannot download linux-image-6.1.0-56-amd64")


def test_a_rung_is_no_file_of_rungs(listed: Command) -> None:
    said = listed.fails("measure", "debian:6.1", "--rungs", "dio.pread", status=2)
    assert said == (
        "iopath: --rungs dio.pread: no such file; to measure a rung, use --rung dio.pread"
    )


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("", "it is a folder"), ("none/x", "there is no such folder"), ("link", "it is a link into")],
)
def test_what_cannot_be_written_is_said_at_once(
    listed: Command, tmp_path: Path, name: str, complaint: str
) -> None:
    (tmp_path / "link").symlink_to("none/x")
    said = listed.fails("measure", "debian:6.1", "--json", tmp_path / name, status=2)
    assert said.startswith(f"iopath: cannot write {tmp_path / name}: {complaint}")
