# SPDX-License-Identifier: GPL-2.0
"""Shared lines of the commits of a series: the table, the letter, the JSON and the gate."""

import io
import json
import re
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from helpers.counted import SETTINGS, a_program, a_session
from helpers.counted import a_boot as a_count
from helpers.examples import BOOTS, a_record, a_result
from helpers.planted import git
from helpers.shared_lines import a_boot, a_line, merged
from helpers.tracking import shift
from iopath.base.cache import Cache
from iopath.base.errors import IopathError, Unreachable
from iopath.compare import compare, shared_writes
from iopath.kernels import gitrepo
from iopath.kernels.gitrepo import open_repository
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import ExactResult, Result
from iopath.rungs.runs import Settings
from iopath.studies import series

RUNG = "dio.pread"

LOCK = a_line("bios_submitted", locked=True, by="submit_bio")


def a_commit(name: str, lines: list[dict[str, Any]], locked: int) -> ExactResult:
    record = a_record(name, RUNG, "read", 4096)
    record["counts"]["locked"] = [float(locked)] * BOOTS
    record |= {"cpus": 2, "sharing": merged([a_boot(lines)] * BOOTS, RUNG)}
    return result.parse(a_result([record]))


def entries(*commits: ExactResult) -> list[series.SeriesCommit]:
    """Commits, each compared with the one before."""
    found = [series.SeriesCommit("one", "commit one", result=commits[0])]
    for number, one in enumerate(commits[1:]):
        before, (name,) = found[-1].commit, one.names
        whole = compare.join([(before, commits[number]), (name, one)])
        found.append(
            series.SeriesCommit(
                name, f"commit {name}", "", before, one, compare.compare(whole, Layers()), whole,
                shared_writes.written(whole),
            )
        )  # fmt: skip
    return found


def the_series() -> list[series.SeriesCommit]:
    """The second commit adds a locked write to a line of its own, the third one does nothing."""
    return entries(a_commit("one", [], 3), a_commit("two", [LOCK], 4), a_commit("three", [LOCK], 4))


def test_a_new_shared_line_is_in_the_table() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(the_series(), console, every=False)
    said = console.export_text()
    assert said.startswith(
        "0 of 2 commits change the path; 1 changes other counts; 1 changes what CPUs share.\n"
    )
    _, head, _, rung, shared = said.rstrip().splitlines()
    assert head.split() == [
        "commit", "subject", "rung", "path", "%", "costly", "CPUs", "share", "writes", "locked",
        "functions",
    ]  # fmt: skip
    assert "locked +1" in rung
    assert shared.split() == ["files", "+1.00", "+1.00", "new", "bios_submitted:", "submit_bio"]


def test_a_new_shared_line_is_in_the_letter_and_the_json() -> None:
    text = series.markdown(the_series(), "iopath series A..B --cpus 2", every=False)
    assert "    dio.pread read: +0.00 (+0.00 %); locked +1\n" in text
    assert "    CPUs share files: writes +1.00, locked +1.00\n    new bios_submitted: " in text
    assert "commit three" not in text
    (_, two, three) = json.loads(series.dump(the_series()))["commits"]
    (rung,) = two["rungs"]
    assert rung["costly"] == {"locked": 1.0}
    (shared,) = rung["shared"]
    assert shared == {
        "arrangements": ["files"], "writes": 1.0, "locked": 1.0, "lines": ["new bios_submitted"],
    }  # fmt: skip
    assert three["rungs"][0]["shared"] == []
    assert (rung["before"], rung["after"]) == (601.93, 601.93)


def test_the_gate_judges_each_commit() -> None:
    grown, unknown = series.judged(the_series(), 1)
    assert unknown == []
    assert all(" two " in one and " than one: " in one for one in grown)
    assert any("takes more than one: locked 33.33 % (1 % allowed)" in one for one in grown)
    assert any("files, bios_submitted, writes 1.00 (1 % allowed)" in one for one in grown)
    failed = series.SeriesCommit("four", "commit four", error="does not build: x.c:1")
    assert series.judged([*the_series()[:1], failed], 1) == ([], ["four: not measured"])
    few = entries(*(a_commit(name, [], 3) for name in ("one", "two")))
    assert series.judged(few, 1) == ([], [])


def test_arrangements_that_differ_alike_are_one() -> None:
    (changes,) = shared_writes.written(_whole([LOCK], [LOCK])).values()
    assert [one.arrangements for one in changes] == [("files", "threads")]
    (changes,) = shared_writes.written(_whole([LOCK], [])).values()
    assert [one.arrangements for one in changes] == [("files",)]


def _whole(*written: list[dict[str, Any]]) -> ExactResult:
    """Two commits on two arrangements, of which the second has the lines *written* in each."""
    records = []
    for name in ("one", "two"):
        record = a_record(name, RUNG, "read", 4096) | {"cpus": 2}
        parts = []
        for arrangement, lines in zip(("files", "threads"), written, strict=True):
            own = deepcopy(merged([a_boot(lines if name == "two" else [])] * BOOTS, RUNG))
            for part in (*own["lines"], *own["figures"]):
                part["arrangement"] = arrangement
            own["arrangements"] = [{**own["arrangements"][0], "name": arrangement}]
            parts.append(own)
        record["sharing"] = {key: [one for part in parts for one in part[key]] for key in parts[0]}
        records.append(record)
    return result.parse(a_result(records))


def test_sizes_are_told_apart() -> None:
    """Two sizes of a rung are two rows of the table and of the letter."""

    def sizes(name: str, more: float) -> ExactResult:
        records = [a_record(name, RUNG, "read", size) for size in (4096, 65536)]
        for record in records:
            record["boots"] = [figure + more for figure in record["boots"]]
            record["instructions_per_io"] += more
        return result.parse(a_result(records))

    found = entries(sizes("one", 0), sizes("two", 100))
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(found, console, every=False)
    said = console.export_text() + series.markdown(found, "", every=False)
    for size in ("4 KiB", "64 KiB"):
        assert len(re.findall(rf"\b{RUNG} read {size}\b", said)) == 2
    _, unknown = series.judged(entries(sizes("one", 0), sizes("two", 0)), 0)
    assert not any(RUNG in text for text in unknown)


def four(boots: int = 7) -> list[series.SeriesCommit]:
    """Four commits: the first, one that changes nothing, one that does not build, and one that
    adds 5 instructions."""
    results = {}
    for name, more in (("one", 0), ("two", 0), ("four", 5)):
        record = a_record(name, "dio.pread", "read", 4096)
        shift(record, more)
        for field in ("boots", "mean_boots", "with_deferred_boots"):
            record[field] = record[field][:1] * boots
        record["profile"]["functions"][0]["instructions"] += more
        results[name] = result.parse(a_result([record]))

    def entry(name: str, before: str) -> series.SeriesCommit:
        whole = compare.join([(before, results[before]), (name, results[name])])
        comparison = compare.compare(whole, Layers())
        return series.SeriesCommit(name, f"commit {name}", "", before, results[name], comparison)

    failed = series.SeriesCommit(
        "three", "commit three", error="does not build: x.c:1 (log: /tmp/log)"
    )
    first = series.SeriesCommit("one", "commit one", result=results["one"])
    return [first, entry("two", "one"), failed, entry("four", "two")]


def test_series_table() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(four(), console, every=False)
    said = console.export_text()
    assert said.startswith("1 of 2 commits changes the path; 1 could not be measured.\n")
    rows = [line.split() for line in said.splitlines()[3:]]
    assert [row[0] for row in rows] == ["three", "four"]
    assert "+5.00" in rows[1]
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(four(), console, every=True)
    rows = [line.split()[0] for line in console.export_text().splitlines()[3:]]
    assert rows == ["one", "two", "three", "four"]


def test_series_of_unknown_noise() -> None:
    """A commit that changes nothing is in no row because there is one boot only."""
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(four(boots=1), console, every=False)
    said = console.export_text()
    assert said.startswith(
        "1 of 2 commits changes the path; 1 could not be measured. ? may be noise"
    )
    rows = [line.split() for line in said.splitlines()[3:]]
    assert [row[0] for row in rows] == ["three", "four"]
    assert "+5.00?" in rows[1]


def test_series_mail() -> None:
    """Nothing of this machine is in a mail."""
    text = series.markdown(four(), "iopath series A..B", every=False)
    assert "four commit four\n    dio.pread read: +5.00 (" in text
    assert "    not measured: does not build: x.c:1\n" in text
    assert "/tmp/log" not in text
    assert text.endswith("Repeat it with:\n\n    iopath series A..B\n")
    assert max(map(len, text.splitlines())) <= 78


def test_series_json() -> None:
    commits = json.loads(series.dump(four()))["commits"]
    assert [one["commit"] for one in commits] == ["one", "two", "three", "four"]
    assert [one["before"] for one in commits] == [None, "one", None, "two"]
    (rung,) = commits[3]["rungs"]
    assert (rung["rung"], rung["difference"], rung["verdict"]) == ("dio.pread", 5.0, "longer")
    assert commits[2]["error"].startswith("does not build")


class Commits:
    """A stand-in for a session: the file "figure" of a commit has the cost of its kernel, or
    "broken", and then the deferred cost. The kernel *lacks* cannot run the rung."""

    def __init__(self, folder: Path, cache: Cache, lacks: str = "") -> None:
        self.repositories = open_repository(str(folder), cache)
        self._lacks = lacks
        self.gone = ""

    def commit(self, name: str) -> tuple[gitrepo.Repository, str]:
        return self.repositories, name.partition("@")[2]

    def build_ahead(self, names: Sequence[str]) -> None:
        pass

    def measure(self, names: Sequence[str], settings: Settings) -> Result:
        name = names[0].partition("@")[2]
        if self.gone and name.startswith(self.gone):
            raise Unreachable("the scheduler is gone")
        figure, _, deferred = git(self.repositories.path, "show", f"{name}:figure").split()
        if figure == "broken":
            raise IopathError(f"{name[:12]} does not build")
        records = []
        for rung in ("dio.pread", "dio.aio.1"):
            if rung != "dio.pread" and name.startswith(self._lacks or "-"):
                continue
            record = a_record(name, rung, "read", 4096)
            for field, by in (("", 0), ("mean", 0), ("with_deferred", int(deferred))):
                record[field or "instructions_per_io"] = int(figure) + by
                record[f"{field}_boots".lstrip("_")] = [int(figure) + by] * 7
            records.append(record)
        return result.parse(a_result(records))


def measured(folder: Path, session: Commits) -> list[series.SeriesCommit]:
    found = session.repositories
    commits = found.between("HEAD~4", "HEAD")
    wanted = [f"git:{folder}@{name[:12]}" for name in commits]
    entries: list[series.SeriesCommit] = []
    try:
        series.measure(session, wanted, Settings([]), Layers(), lambda text: None, entries)  # type: ignore[arg-type]
    except Unreachable:
        assert session.gone
    return entries


def test_series_with_a_merge(branched: tuple[Path, dict[str, str]], cache: Cache) -> None:
    """Each commit is compared with its parent, or the nearest ancestor that was measured: a branch
    with the commit where it begins, the merge with the line. *all* is shown beside the path."""
    folder, names = branched
    entries = measured(folder, Commits(folder, cache))
    subjects = {name[:12]: subject for subject, name in names.items()}
    rows = {}
    for entry in entries:
        change = next((change for rung, change in entry.changes(every=True)), None)
        whole = change.metrics["total"].difference if change else None
        difference = change.difference if change else None
        rows[entry.subject] = (subjects.get(entry.before, ""), difference, whole)
    assert rows == {
        "first": ("", None, None),
        "seven": ("first", 7, 7),
        "broken": ("", None, None),
        "side": ("first", 100, 100),
        "later": ("side", 0, 900),
        "merge": ("seven", 100, 1000),
        "gone": ("merge", -100, -1000),
    }
    text = series.markdown(entries, "iopath series A..B", every=False)
    assert "dio.pread read: +900.00 in total; path +0.00 (+0.00 %)" in text
    assert "dio.pread read: +1,000.00 in total; path +100.00 (+4.98 %)" in text
    assert "dio.pread read: +7.00 (+0.35 %)" in text
    commits = json.loads(series.dump(entries))["commits"]
    by_subject = {one["subject"]: one["rungs"] for one in commits}
    assert [row["total"] for row in by_subject["later"]] == [900, 900]
    console = Console(width=200, record=True, file=io.StringIO())
    series.show(entries, console, every=False)
    assert "+900.00" in console.export_text()


def test_series_without_a_rung(branched: tuple[Path, dict[str, str]], cache: Cache) -> None:
    """If the kernel of a commit cannot run a rung, it has no figure, and the text says so."""
    folder, names = branched
    entries = measured(folder, Commits(folder, cache, lacks=names["seven"][:12]))
    (seven,) = [entry for entry in entries if entry.subject == "seven"]
    assert [rung.rung for rung, _ in seven.changes(every=True)] == ["dio.pread"]
    assert seven.left_out == ["dio.aio.1 read"]
    assert "or on " in series.markdown(entries, "", every=False)
    commits = json.loads(series.dump(entries))["commits"]
    left_out = {one["subject"]: one["left_out"] for one in commits}
    assert left_out["seven"] == ["dio.aio.1 read"]


def test_series_that_is_cut_short(branched: tuple[Path, dict[str, str]], cache: Cache) -> None:
    """Commits that were measured before the scheduler died are shown."""
    folder, names = branched
    session = Commits(folder, cache)
    session.gone = names["merge"][:12]
    subjects = {entry.subject for entry in measured(folder, session)}
    assert subjects == {"first", "seven", "broken", "side", "later"}


def a_series(*reads: int) -> list[series.SeriesCommit]:
    """Commits on which a read takes so much; they are named by their places."""
    names = [str(number) for number in range(len(reads))]
    session = a_session(
        lambda kernel: a_program({kernel: [a_count(reads[int(kernel[-1])])] * 7}),
        commit=lambda name: (REPOSITORY, name[-1]), build_ahead=lambda names: None,
    )  # fmt: skip
    entries: list[series.SeriesCommit] = []
    kernels = [f"git:linux@{name}" for name in names]
    series.measure(session, kernels, SETTINGS, Layers(), lambda text: None, entries)
    return entries


REPOSITORY = SimpleNamespace(
    commit=lambda name: name, subject=lambda name: f"commit {name}",
    ancestors=lambda name, first: [str(number) for number in range(int(name))][::-1],
)  # fmt: skip


def test_a_series() -> None:
    """Of a commit its system calls and the whole are shown, what does I/O first."""
    entries = a_series(100, 100, 105)
    console = Console(width=200, file=io.StringIO())
    series.show(entries, console, every=False)
    first, head, _, ios, read, whole = console.file.getvalue().splitlines()
    assert first.rstrip() == "1 of 2 commits changes the path."
    assert head.split()[:5] == ["commit", "subject", "rung", "path", "%"]
    assert ios.split()[2:] == ["2", "I/O", "calls", "+50.00", "+5.00", "vfs_read", "+50.00"]
    assert whole.split() == ["the", "whole", "+50.00", "+4.59", "vfs_read", "+50.00"]
    assert read.split() == ["read", "+5.00", "+5.00", "vfs_read", "+5.00"]
    letter = series.markdown(entries, "iopath series A..B -- dd bs=4k", every=False)
    assert letter.splitlines()[0] == "Instructions of dd bs=4k 'a b', counted exactly by iopath:"
    assert "    read: +5.00 (+5.00 %)\n    vfs_read +5.00\n" in letter
    assert series.judged(entries, 5) == ([], [])
    (ios, grown), unknown = series.judged(entries, 4.7)
    assert ios.startswith("I/O calls: 2 takes more than 1: instructions 5.00 %")
    assert grown.startswith("read: 2 takes more than 1: instructions 5.00 %")
    assert unknown == []
