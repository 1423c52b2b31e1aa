# SPDX-License-Identifier: GPL-2.0
"""How often kernels are booted: as often as asked, and undecided rungs as often as it takes."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

from helpers.examples import a_record, a_result
from iopath.compare import compare
from iopath.measure.measurement import Measurement
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import Result
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings
from iopath.studies import boots

RUNGS = ["raw.pread", "dio.pread", "dio.aio.1", "dio.aio.100", "dio.uring"]
LONGER = "dio.uring"


class Booted:
    """A session whose kernel "after" takes five instructions more for one rung."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], int]] = []
        self.said: list[str] = []
        self.reporter = SimpleNamespace(note=self.said.append)

    def results(self, names: Sequence[str], settings: Settings) -> dict[str, Result]:
        self.asked.append(([rung.name for rung in settings.rungs], settings.boots))
        found = {}
        for name in names:
            records = []
            for rung in settings.rungs:
                record = a_record(name, rung.name, "read", 4096)
                by = 5.0 * (name == "after" and rung.name == LONGER)
                for figure in ("instructions_per_io", "mean", "with_deferred"):
                    record[figure] += by
                for part in ("boots", "mean_boots", "with_deferred_boots"):
                    record[part] = [figure + by for figure in record[part]][: settings.boots]
                record["counts"] = {
                    metric: values[: settings.boots] for metric, values in record["counts"].items()
                }
                records.append(record)
            found[name] = result.parse(a_result(records))
        return found


def compared(session: Booted, asked: int, *rungs: str) -> compare.Compared:
    settings = Settings(select([*rungs]), boots=asked)
    measured = session.results(["before", "after"], settings)
    names = {"before": "one", "after": "two"}
    return boots.compare(session, settings, measured, names, Layers())  # type: ignore[arg-type]


def test_what_has_no_layouts_is_booted_more_often() -> None:
    """Five boots decide; kernels have the names that were asked for."""
    session = Booted()
    found = compared(session, 2, *RUNGS)
    assert session.asked == [(RUNGS, 2), (RUNGS, 5)]
    assert session.said == ["booting 5 times: 5 rungs are undecided"]
    assert found.whole.names == ["one", "two"]
    rows = {rung.rung: rung.differences["two"] for rung in found.comparison.rungs}
    assert {name: change.verdict for name, change in rows.items()} == {
        rung: "longer" if rung == LONGER else "same" for rung in RUNGS
    }
    assert found.wanted == {}


def test_what_is_decided_is_not_measured_again() -> None:
    session = Booted()
    assert compared(session, 5, *RUNGS).wanted == {}
    assert session.asked == [(RUNGS, 5)]


def test_few_boots_stay_few() -> None:
    """Who asks for fewer boots than decide anything gets these."""
    session = Booted()
    assert compared(session, 1, *RUNGS).wanted
    assert len(session.asked) == 1


def test_several_cpus_are_booted_more_often() -> None:
    """Guests with one CPU, whose figures have layouts, are not. Fewer that were asked for stay."""
    two = boots.asked(Settings(select(RUNGS[:1]), ops=("read",), cpus=2), None)
    assert [len(two.machines()), two.boots, Measurement("a", two).guests] == [5, 2, 7]
    assert boots.asked(replace(two, cpus=1), None).machines() == two.machines()[:2]
    assert boots.enough(two, {RUNGS[0]: 4}).machines() == two.machines()
    assert boots.enough(two, {RUNGS[0]: 4}).boots == 4
    few = boots.asked(Settings(select(RUNGS[:1]), cpus=2), 3)
    assert len(few.machines()) == few.boots == 3
    assert boots.enough(few, {RUNGS[0]: 5}) is None


def test_if_most_rungs_are_undecided_all_are_measured_again() -> None:
    """Their guests have run, so they are reused."""
    settings = Settings(select(RUNGS), boots=5)
    wanted = dict.fromkeys(RUNGS[:3], 6)
    more = boots.enough(settings, wanted)
    assert more
    assert [rung.name for rung in more.rungs] == RUNGS
    assert boots.enough(settings, {}) is None
