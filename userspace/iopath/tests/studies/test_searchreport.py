# SPDX-License-Identifier: GPL-2.0
"""What is shown of a search: what grew and by how much, from where on, and how to see it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from helpers.examples import STACKS, a_record, a_result
from helpers.screens import Functions, plain, planted
from iopath.base.errors import IopathError
from iopath.results import result
from iopath.results.layers import Layers
from iopath.results.result import Result
from iopath.rungs.runs import Settings
from iopath.rungs.shapes import space
from iopath.studies import searchreport
from iopath.studies.judges import Kernels, Monotonic
from iopath.studies.search import ShapeSearch
from iopath.studies.searchreport import Finding, SearchReport
from iopath.studies.shrink import Shrunk, shrink_all

LONGER = (*STACKS, (("loop [user]", "do_syscall_64", "unaligned"), "other", 90.0))
KERNELS = ["a", "b"]


class Measured:
    """A session whose kernel "b", or whose rung search.1, takes 90 instructions more. A layout
    takes *apart* more than the others."""

    def __init__(self, more: float = 90.0, error: str = "", apart: float = 0.0) -> None:
        self._more = more
        self._apart = apart
        self._error = error
        self.said: list[str] = []
        self.reporter = SimpleNamespace(note=self.said.append, warn=self.said.append)

    def results(self, names: Sequence[str], settings: Settings) -> dict[str, Result]:
        if self._error:
            raise IopathError(self._error)
        found = {}
        for name in names:
            records = []
            for rung in settings.rungs:
                longer = self._more and (name == "b" or [*names, rung.name] == ["a", "search.1"])
                stacks = LONGER if longer else STACKS
                record = a_record(name, rung.name, rung.can[0], rung.block_size or 0, stacks)
                figure = record["instructions_per_io"]
                record["layouts"] = [[figure] * 15 + [figure + self._apart]] * 7
                records.append(record)
            found[name] = result.parse(a_result(records))
        return found


@pytest.fixture
def search() -> ShapeSearch:
    whole = space(("dio.*",))
    return ShapeSearch(Functions({"a": plain, "b": planted}), Kernels(KERNELS), whole, 1)


def findings(search: ShapeSearch) -> list[Finding]:
    """An alignment of large reads, and a flag that one kernel refuses."""
    named = (
        {"size": 131072, "place": 1024, "engine": "aio", "depth": 2},
        {"engine": "preadv", "op": "write", "flag": "dsync", "priority": "idle"},
    )
    shapes = [shape for one in named if (shape := search.space.shape(one))]
    first, second = search.contrasts(shapes)
    return searchreport.named(
        search.space, shrink_all(search, [("", second), ("unaligned", first)])
    )


def shown(search: ShapeSearch, found: Sequence[Finding]) -> str:
    out = StringIO()
    console = Console(file=out, width=100)
    searchreport.show(search.space, KERNELS, found, search.state, console)
    return out.getvalue()


def test_show(search: ShapeSearch) -> None:
    """What grew comes first; each has its condition, its rung, its commands."""
    text = shown(search, findings(search))
    assert text.startswith(
        "a to b: 0 shapes, 2 causes.\n\n1. +400.00 (+16.7 %): unaligned +400.00\n"
    )
    assert "shape: dio.pread, read, 65,536 bytes, place 512\n" in text
    assert "from size 65,536 on, not at 65,024\n" in text
    assert "from place 512 on, not at 0\n" in text
    assert '[[rung]]\n      name = "search.1"\n      parts = ["dio"]\n' in text
    assert "ioloop --ioengine=sync --direct=1 --pattern=fixed --mem_offset=512" in text
    assert "2. done / write: Invalid argument\n" in text
    assert "only with flag dsync, not with none\n" in text
    assert "sync=dsync" in text
    assert text.count("fio:") == 1  # which has no offset in a page


def test_one_cause(search: ShapeSearch) -> None:
    """Shapes that the same functions make grow are one finding, with the simplest of them."""
    named = (
        {"size": 65536, "place": 512, "engine": "aio", "priority": "idle"},
        {"size": 131072, "place": 512, "engine": "preadv"},
        {"engine": "preadv", "op": "write", "flag": "dsync", "priority": "idle"},
    )
    shapes = [shape for one in named if (shape := search.space.shape(one))]
    found = [Shrunk(one, ["unaligned"]) for one in search.contrasts(shapes)]
    first, second = searchreport.named(search.space, found)
    assert first.run.rung.options[0] == "--ioengine=vsync"
    assert "   also: dio.aio read\n" in shown(search, [first, second])
    assert second.shrunk.answer
    assert not second.others


def report(search: ShapeSearch, session: Measured) -> SearchReport:
    settings = Settings([], boots=7)
    found, whole = searchreport.measured(
        session,
        search.space,
        KERNELS,
        settings,
        findings(search),
        Layers(),  # type: ignore[arg-type]
        10,
    )
    return SearchReport(
        search.space, KERNELS, found, search.state, "iopath search a b", whole, Layers()
    )


def test_what_is_measured(search: ShapeSearch) -> None:
    """The figures are those of compare, and the file has its result, too."""
    found = report(search, Measured())
    assert [one.name for one in found.findings] == ["search.1", "search.2"]
    assert "1. +90.00 " in found.markdown()
    assert "iopath search a b" in found.markdown()
    data = json.loads(found.json())
    assert {record["rung"] for record in data["results"]} == {"search.1"}
    assert data["comparison"]
    first, second = data["search"]["findings"]
    assert first["needs"]["size"] == [65024, 65536]
    assert first["fio"] is None
    assert second["answer"] == "done / write: Invalid argument"
    assert found.toml().count("[[rung]]") == 2
    assert "unaligned" in found.html()


def test_what_is_not_confirmed(search: ShapeSearch) -> None:
    session = Measured(more=0.0)
    found = report(search, session)
    assert [one.name for one in found.findings] == ["search.2"]
    assert session.said == ["search.1: not confirmed in 7 boots"]
    assert "results" not in json.loads(found.json())
    with pytest.raises(IopathError, match="nothing was found"):
        found.html()


@pytest.mark.parametrize(
    ("apart", "names"), [(80.0, ["search.1", "search.2"]), (100.0, ["search.2"])]
)
def test_what_differs_more_between_layouts(
    search: ShapeSearch, apart: float, names: Sequence[str]
) -> None:
    """A growth of 90 is not confirmed if layouts of one kernel differ by more."""
    found = report(search, Measured(apart=apart))
    assert [one.name for one in found.findings] == names


def test_functions_that_are_not_confirmed(search: ShapeSearch) -> None:
    """A function of another shape that grew by chance is none of the cause."""
    one, *_ = findings(search)
    one = replace(one, shrunk=replace(one.shrunk, functions=["unaligned", "chance"]))
    settings = Settings([], boots=7)
    (kept,), _ = searchreport.measured(
        Measured(), search.space, KERNELS, settings, [one], Layers(), 1  # type: ignore[arg-type]
    )  # fmt: skip
    assert kept.shrunk.functions == ["unaligned"]


def test_as_many_as_are_wanted(search: ShapeSearch) -> None:
    """Findings that compare does not confirm do not count towards the limit."""
    found = findings(search)
    session = Measured(more=0.0)
    settings = Settings([], boots=7)
    kept, _ = searchreport.measured(
        session, search.space, KERNELS, settings, found, Layers(), 1  # type: ignore[arg-type]
    )  # fmt: skip
    assert [one.name for one in kept] == ["search.2"]
    kept, _ = searchreport.measured(
        Measured(), search.space, KERNELS, settings, found, Layers(), 1  # type: ignore[arg-type]
    )  # fmt: skip
    assert [one.name for one in kept] == ["search.1"]


def test_what_cannot_be_measured(search: ShapeSearch) -> None:
    """It is shown as it was found."""
    session = Measured(error="it crashed")
    assert len(report(search, session).findings) == 2
    assert session.said == ["search.1: not measured: it crashed"]


def test_of_one_kernel() -> None:
    """Both shapes are measured, and the larger is more than the smaller one allows."""
    whole = space(("dio.*",))

    def dear(run):  # noqa: ANN001, ANN202
        return {**plain(run), "dear": 9000.0 if run.block_size >= 131072 else 0.0}

    search = ShapeSearch(Functions({"a": dear}), Monotonic("a", whole), whole, 1)
    shape = whole.shape({"size": 262144})
    assert shape
    found = searchreport.named(whole, shrink_all(search, [("dear", search.contrasts([shape])[0])]))
    sure, measured = searchreport.measured(
        Measured(),
        whole,
        ["a"],
        Settings([], boots=7),
        found,
        Layers(),  # type: ignore[arg-type]
        10,
    )
    (one,) = sure
    assert measured
    assert {record.rung for record in measured.results} == {"search.1", "search.1.base"}
    assert " allows: " in one.growth()
    assert whole.differing(one.shrunk.contrast.shape) == {"size": 131072}
