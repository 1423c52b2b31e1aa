# SPDX-License-Identifier: GPL-2.0
"""The views of results: which command has which, where each is written, and those that other
programs read."""

import csv
import io
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helpers.command import IOPATH, Command
from helpers.counted import a_program
from helpers.examples import STACKS, a_record, a_result
from iopath.base import typed
from iopath.base.sources import source_root
from iopath.cli.parser import commands, parser
from iopath.compare import compare
from iopath.counts.calls import Started, complete
from iopath.results.layers import Layers
from iopath.results.result import HardwareRecord, parse
from iopath.results.syscalls import CALL, OWN
from iopath.rungs.feature import Base
from iopath.show import reports
from iopath.show.figures import of_record
from iopath.show.reports import ProfileReport, report
from iopath.show.views import VIEWS, View, fitting
from iopath.studies.featurereport import FeaturesReport
from iopath.studies.features import Cost
from iopath.studies.series import SeriesCommit, SeriesReport

LONGER = [*STACKS[:2], (*STACKS[2][:2], 142.0), *STACKS[3:]]
OF_TIMES = {"json", "csv", "bencher", "benchmark-action"}
OF_SAMPLES = {*OF_TIMES, "html", "callgrind", "folded"}
OF_COUNTS = {*OF_SAMPLES, "markdown", "requests", "svg", "png", "history"}
OF_COMMANDS = {
    **dict.fromkeys(("measure", "profile", "compare", "run", "bisect"), OF_COUNTS),
    "series": {*OF_COUNTS, "reply"},
    "track": {*OF_COUNTS, "kcidb"},
    "features": {*OF_TIMES, "markdown", "svg", "png"},
    "search": {"json", "html", "markdown", "toml"},
    **{name: {"json"} for name in ("bridge", "kernels", "rungs")},
}


def view(shown: object, option: str) -> Any:  # noqa: ANN401
    """What a view shows, as text."""
    (one,) = (view for view in VIEWS if view.option == option)
    module, _, function = one.render.partition(".")
    found = getattr(shown, one.of)()
    return getattr(__import__(f"iopath.show.{module}", fromlist=[function]), function)(found)


def two() -> reports.TimesReport:
    records = [a_record("a", "dio.pread", "read", 4096)]
    records.append(a_record("b", "dio.pread", "read", 4096, LONGER))
    whole = parse(a_result(records))
    return report(whole, compare.compare(whole, Layers()), Layers())


def counted() -> reports.TimesReport:
    whole = a_program(
        {
            name: [complete({
                (CALL, "read"): Started(10, 1000 + more, 50, {"vfs_read": 900 + more, "gup": 100}),
                (OWN, "its own code"): Started(1, 500, 0, {"program [user]": 500}),
            })]
            for name, more in (("a", 0), ("b", 5))
        },
        ["dd", "bs=4k"],
    )  # fmt: skip
    return report(whole, compare.compare(whole, Layers()), Layers())


def test_a_command_has_each_view_that_fits() -> None:
    """Why others do not fit is in Documentation/design.rst."""
    every = {view.option for view in VIEWS}
    options = {name: parser().command(name).options for name in commands()}
    found = {name: {one for one in every if f"--{one}" in known} for name, known in options.items()}
    assert {name: views for name, views in found.items() if views} == OF_COMMANDS
    assert every == set().union(*OF_COMMANDS.values())


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (reports.TimesReport, OF_TIMES),
        (reports.SamplesReport, OF_SAMPLES),
        (reports.CountsReport, OF_COUNTS - {"callgrind", "folded"}),
        (reports.ProfileReport, OF_COUNTS),
    ],
)
def test_a_kind_of_result_has_each_view_that_fits(kind: type, wanted: set[str]) -> None:
    assert {view.option for view in fitting(kind)} == wanted


@pytest.mark.parametrize("one", fitting(ProfileReport), ids=lambda one: one.option)
def test_a_program_has_the_views_of_rungs(one: View, tmp_path: Path) -> None:
    path = tmp_path / f"x{one.suffixes[0] if one.suffixes else ''}"
    one.write(counted(), path)
    assert path.stat().st_size > 100


def test_the_manual_page_has_each_view() -> None:
    """Where the page differs, this prints what it must have."""
    page = (source_root() / "Documentation/man/iopath.1").read_text()
    wanted = "".join(
        f".It Fl -{one.option} Ar FILE\n{one.about[0].upper()}{one.about[1:]}.\n" for one in VIEWS
    )
    lines = [line for line in wanted.splitlines() if line not in page.splitlines()]
    assert lines == [], wanted


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Two result files."""
    for name, stacks in (("a", STACKS), ("b", LONGER)):
        record = a_record(name, "dio.pread", "read", 4096, stacks)
        (tmp_path / f"{name}.json").write_text(json.dumps(a_result([record])))
    return [str(tmp_path / "a.json"), str(tmp_path / "b.json")]


@pytest.mark.parametrize(
    "one",
    [one for one in fitting(ProfileReport) if len(one.suffixes) < 2],
    ids=lambda one: one.option,
)
def test_each_view_goes_to_the_standard_output(
    listed: Command, files: list[str], one: View
) -> None:
    """Texts go to the standard error then. What cannot be written is one line, and the status 1."""
    words = ["compare", *files, f"--{one.option}"]
    written = subprocess.run([IOPATH, *words, "-"], env=listed.env, capture_output=True, check=True)
    assert len(written.stdout) > 100
    assert b"vfs_read" in written.stderr
    for script, reason in (
        ('"$0" "$@" - > /dev/full', "No space left on device"),
        ('"$0" "$@" - | true; exit ${PIPESTATUS[0]}', "Broken pipe"),
        ('"$0" "$@" - >&-', "it is closed"),
    ):
        done = subprocess.run(
            ["bash", "-c", script, IOPATH, *words],
            env=listed.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert reason in done.stderr


def test_figures_as_csv() -> None:
    """Each figure of each kernel is a row, with all its digits."""
    shown = two()
    rows = list(csv.DictReader(io.StringIO(view(shown, "csv"))))
    assert {row["kernel"] for row in rows} == {"a", "b"}
    path = [row for row in rows if row["metric"] == "instructions"]
    assert [float(row["value"]) for row in path] == [601.93, 621.93]
    assert (path[0]["name"], path[0]["op"], path[0]["block_size"]) == ("dio.pread", "read", "4096")
    assert (path[0]["low"], path[0]["boots"]) == (path[0]["high"], "7")


def test_times_as_csv() -> None:
    """Medians with their confidence interval; of a profile, its time."""
    figures = {"ns": {"median": 5.0, "low": 4.0, "high": 6.0, "noise": 0.1}}
    profile = {"event": "cycles", "data": "x", "ns": 7.0, "samples": 3, "layers": {},
               "functions": [], "stacks": []}  # fmt: skip
    records = []
    for rung, more in (("syscall", {"figures": figures}), ("dio.pread", {"profile": profile})):
        record = a_record("k", rung, "read", 4096, stacks=None)
        names = ("kernel", "rung", "op", "block_size", "command")
        records.append({name: record[name] for name in names} | more)
    found = [
        (one.name, one.metric, one.value, one.low, one.high)
        for record in typed.structure(records, list[HardwareRecord])
        for one in of_record(record)
    ]
    assert found == [("syscall", "ns", 5.0, 4.0, 6.0), ("dio.pread", "ns", 7.0, 7.0, 7.0)]


def test_figures_for_trackers() -> None:
    """A benchmark keeps its name from kernel to kernel, unless several are compared."""
    one = report(parse(a_result([a_record("git:linux@1", "dio.pread", "read", 4096)])))
    assert list(json.loads(view(one, "bencher"))) == ["dio.pread read 4 KiB"]
    shown = two()
    benchmarks = json.loads(view(shown, "bencher"))
    assert list(benchmarks) == ["a dio.pread read 4 KiB", "b dio.pread read 4 KiB"]
    assert benchmarks["b dio.pread read 4 KiB"]["instructions"] == {
        "value": 621.93, "lower_value": 621.93, "upper_value": 621.93,
    }  # fmt: skip
    measures = benchmarks["a dio.pread read 4 KiB"]
    assert "data-lines" in measures
    assert "calls" not in measures  # no limit judges it
    (first, *_) = json.loads(view(shown, "benchmark-action"))
    assert first == {
        "name": "a dio.pread read 4 KiB: instructions", "unit": "instructions", "value": 601.93,
        "range": "601.93 to 601.93", "extra": "a",
    }  # fmt: skip


def annotated(text: str, folder: Path, *words: str) -> str:
    (folder / "callgrind.out").write_text(text)
    done = subprocess.run(
        ["callgrind_annotate", "--threshold=100", *words, folder / "callgrind.out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def rows(text: str) -> dict[str, int]:
    """Functions with their instructions."""
    found = re.findall(r"^ *([\d,]+) \([\d. ]+%\) +(.+?)(?: \[[^[]*\])?$", text, re.MULTILINE)
    return {name: int(count.replace(",", "")) for count, name in found}


def test_callgrind_annotate_reads_functions(tmp_path: Path) -> None:
    """Functions of one name are apart by kernel; counts are of 1,000 I/Os."""
    found = rows(annotated(view(two(), "callgrind"), tmp_path))
    assert found["PROGRAM TOTALS"] == round(1000 * (2 * 601.86 + 20))
    assert found["a dio.pread read/VFS:vfs_read"] == 122000
    assert found["b dio.pread read/VFS:vfs_read"] == 142000
    assert found["a dio.pread read/driver:submit [blknull]"] == 5000
    assert sum(found.values()) == 2 * found["PROGRAM TOTALS"]


def test_callgrind_annotate_reads_what_compare_writes(
    listed: Command, files: list[str], tmp_path: Path
) -> None:
    listed.run("compare", *files, "--callgrind", tmp_path / "f")
    found = rows(annotated((tmp_path / "f").read_text(), tmp_path))
    assert found["b dio.pread read/VFS:vfs_read"] == 142000


def test_callgrind_annotate_reads_calls(tmp_path: Path) -> None:
    text = annotated(view(two(), "callgrind"), tmp_path, "--inclusive=yes", "--tree=calling")
    called = re.findall(r"([\d,]+) \([\d. ]+%\) +> +(\S.*?) \(1x\)", text)
    assert ("424,000", "a dio.pread read/other:gup") in called
    assert ("551,000", "a dio.pread read/VFS:vfs_read") in called


def test_recursion_is_counted_once(tmp_path: Path) -> None:
    stacks = [(("f",), "VFS", 1.0), (("f", "g", "f", "g"), "VFS", 2.0)]
    whole = parse(a_result([a_record("a", "dio.pread", "read", 4096, stacks)]))
    text = annotated(view(report(whole), "callgrind"), tmp_path, "--tree=calling")
    assert re.search(r"2,000 \([\d. ]+%\) +> +.*:g \(1x\)", text)


def test_callgrind_annotate_reads_a_program(tmp_path: Path) -> None:
    """The functions of a program are below its system calls, with their layers."""
    shown = counted()
    found = rows(annotated(view(shown, "callgrind"), tmp_path))
    assert (found["PROGRAM TOTALS"], found["b dd/VFS:vfs_read"]) == (3005, 905)
    assert view(shown, "folded").splitlines()[0] == "a;dd;read;vfs_read 900"
    (whole, ios, read, *_) = csv.DictReader(io.StringIO(view(shown, "csv")))
    assert (whole["name"], whole["metric"], whole["value"]) == ("dd bs=4k", "the whole", "1500.0")
    assert (ios["metric"], ios["value"], ios["unit"]) == (
        "I/O calls", "1000.0", "instructions per I/O",
    )  # fmt: skip
    assert (read["metric"], read["value"]) == ("read", "100.0")
    assert read["unit"] == "instructions per call"


def test_a_series_has_the_views_of_its_commits(tmp_path: Path) -> None:
    commits = [
        parse(a_result([a_record(name, "dio.pread", "read", 4096, stacks)]))
        for name, stacks in (("one", STACKS), ("two", LONGER))
    ]
    failed = SeriesCommit("three", "a third", error="it does not build")
    entries = [SeriesCommit(one.names[0], "a subject", result=one) for one in commits]
    shown = SeriesReport([*entries, failed], Layers(), "iopath series A..B", every=False)
    assert [commit["commit"] for commit in json.loads(shown.json())["commits"]] == [
        "one", "two", "three",
    ]  # fmt: skip
    found = rows(annotated(view(shown, "callgrind"), tmp_path))
    assert found["two dio.pread read/VFS:vfs_read"] == 142000
    assert {row["kernel"] for row in csv.DictReader(io.StringIO(view(shown, "csv")))} == {
        "one", "two",
    }  # fmt: skip
    assert "+20" in shown.html()


def test_costs_of_features_as_figures() -> None:
    known = Cost(
        kernel="k", feature="iostats", about="", rung="mq.pread", op="read", instructions=2100.0,
        difference=100.0, noise=0.5,
    )  # fmt: skip
    missing = Cost(kernel="k", feature="x", about="", rung="y", op="read", missing="too old")
    shown = FeaturesReport(Base("", (), (), 100), [known, missing])
    found = list(csv.DictReader(io.StringIO(view(shown, "csv"))))
    assert {row["name"] for row in found} == {"mq.pread with iostats"}
    (more,) = (row for row in found if row["metric"] == "difference")
    assert (more["value"], more["low"], more["high"]) == ("100.0", "99.5", "100.5")
