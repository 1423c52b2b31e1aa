# SPDX-License-Identifier: GPL-2.0
"""iopath track: the steps that it finds."""

import sqlite3
from pathlib import Path

from helpers.examples import BOOTS, STACKS, a_record, a_result
from helpers.shared_lines import a_boot, a_line, merged
from helpers.tracking import LONGER, a_point, config, index_of, keep
from iopath.results import result
from iopath.track import site as tracksite
from iopath.track import store


def dump(folder: Path) -> list[tuple]:
    """Everything in an index except the times of files."""
    with sqlite3.connect(folder / "index.sqlite") as database:
        tables = ("kernel", "figure", "pair", "change")
        return [sorted(database.execute(f"select * from {table}")) for table in tables]


def test_planted_step(tmp_path: Path) -> None:
    """A step of five instructions is at its commit, names its function and has its page."""
    points = [a_point(number) for number in range(5)]
    points[2] = a_point(2, error="does not build")
    keep(tmp_path, points, planted=3)
    index = index_of(tmp_path)
    (step,) = index.steps()
    assert (step.before, step.after) == (points[1], points[3])
    (change,) = step.changes
    assert (change.title, change.text) == ("dio.pread read", "+5.00 (+0.83 %)")
    assert (change.verdict, change.functions) == ("longer", "vfs_read +5.00")
    page = (tmp_path / step.page).read_text()
    assert "dio.pread read +5.00 (+0.8 %)" in page
    assert [path.name for path in (tmp_path / "steps/block").iterdir()] == [step.page.name]
    shown = tracksite.points(config(tmp_path), index)["watches"][0]
    assert [one["title"] for one in shown["points"]] == [p.title for p in points if not p.error]
    assert shown["steps"][0]["page"] == str(step.page)
    assert [one["error"] for one in shown["failed"]] == ["does not build"]


def test_a_step_of_another_metric(tmp_path: Path) -> None:
    """Twenty locked instructions in place of others are a step, which names them."""
    for number in range(2):
        record = a_record("k", "dio.pread", "read", 4096)
        record["counts"]["locked"] = [20.0 * number] * BOOTS
        store.write(tmp_path, a_point(number), result.make(a_result([record])))
    (step,) = index_of(tmp_path).steps()
    (change,) = step.changes
    assert (change.title, change.difference, change.mover) == ("dio.pread read", 0, "locked +20")


def test_planted_shared_line(tmp_path: Path) -> None:
    """A commit that only adds a shared line is a step, which names it."""
    line = a_line("bios_submitted", locked=True, by="submit_bio")
    for number in range(2):
        record = a_record("k", "dio.pread", "read", 4096)
        boots = [a_boot([line] if number else [])] * BOOTS
        record |= {"cpus": 2, "sharing": merged(boots, "dio.pread")}
        store.write(tmp_path, a_point(number), result.make(a_result([record])))
    (step,) = index_of(tmp_path).steps()
    (change,) = step.changes
    assert (change.title, change.difference, change.verdict) == ("dio.pread read", 0, "same")
    shared = "CPUs share files: writes +1.00, locked +1.00: new bios_submitted: submit_bio"
    assert change.functions == shared


def test_index_is_made_again(tmp_path: Path) -> None:
    """An index that followed the files is the same as one made from all of them."""
    points = [a_point(number) for number in range(6)]
    keep(tmp_path, points[:2])
    index_of(tmp_path).close()
    keep(tmp_path, [points[5]])
    (tmp_path / points[0].path).unlink()
    index_of(tmp_path).close()
    keep(tmp_path, points[1:], planted=2)
    index_of(tmp_path).close()
    followed = dump(tmp_path)
    pages = sorted((tmp_path / "steps").rglob("*.html"))
    assert len(pages) == 1
    (tmp_path / "index.sqlite").unlink()
    pages[0].unlink()
    index_of(tmp_path).close()
    assert dump(tmp_path) == followed
    assert sorted((tmp_path / "steps").rglob("*.html")) == pages
    (tmp_path / "index.sqlite").write_bytes(b"nonsense" * 1000)
    index_of(tmp_path).close()
    assert dump(tmp_path) == followed


def test_few_boots_are_marked(tmp_path: Path) -> None:
    """With one boot the noise is not known: any difference is a step, with a mark."""
    for number in range(3):
        records = [a_record("k", "dio.pread", "read", 4096, LONGER if number == 2 else STACKS)]
        for record in records:
            record["boots"] = record["boots"][:1]
        store.write(tmp_path, a_point(number), result.make(a_result(records)))
    (step,) = index_of(tmp_path).steps()
    assert (step.after.title, step.changes[0].text) == (a_point(2).title, "+5.00 (+0.83 %)?")


def test_measured_differently(tmp_path: Path) -> None:
    """Results of another QEMU are not compared; the text says why."""
    keep(tmp_path, [a_point(0)])
    made = a_result([a_record("k", "dio.pread", "read", 4096, LONGER)])
    made["qemu"]["version"] = "8.0"
    store.write(tmp_path, a_point(1), result.make(made))
    (step,) = index_of(tmp_path).steps()
    assert step.changes == []
    assert "qemu: version '7.2' and '8.0'" in step.differing[0]
