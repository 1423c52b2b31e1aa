# SPDX-License-Identifier: GPL-2.0
"""What is found becomes simple: the conditions stay, and nothing else does."""

import pytest

from helpers.screens import Functions, options, plain, planted
from iopath.rungs.runs import Run
from iopath.rungs.shapes import space
from iopath.studies.judges import Kernels
from iopath.studies.search import ShapeSearch
from iopath.studies.shrink import Shrunk, shrink_all

BESIDE = {"engine": "preadv", "priority": "best-effort", "pattern": "random"}


def shrunk(named: dict, cause: str) -> tuple[dict, dict]:
    """The values of a shape that are left, and those that it needs."""
    kernels = Functions({"a": plain, "b": planted})
    search = ShapeSearch(kernels, Kernels(["a", "b"]), space(("dio.*", "raw.*")), 1)
    shape = search.space.shape(named)
    assert shape
    (one,) = shrink_all(search, [(cause, search.contrasts([shape])[0])])
    return search.space.differing(one.contrast.shape), one.needs


@pytest.mark.parametrize(
    ("named", "cause", "left", "needs"),
    [
        (
            {**BESIDE, "size": 262144, "place": 2048},
            "unaligned",
            {"size": 65536, "place": 512},
            {"size": (65024, 65536), "place": (0, 512)},
        ),
        (
            {**BESIDE, "size": 65536, "segments": 32},
            "many_segments",
            {"engine": "preadv", "size": 16384, "segments": 32},
            {"segments": (16, 32)},
        ),
        (
            {"engine": "uring", "depth": 33, "size": 512, "ring": "defer", "target": "raw"},
            "depth_33",
            {"engine": "aio", "depth": 33},
            {"depth": (32, 33)},
        ),
        ({**BESIDE, "size": 1536}, "pin", {"size": 512}, {}),
        (
            {**BESIDE, "op": "write", "flag": "dsync", "priority": "idle", "size": 8192},
            "",
            {"engine": "preadv", "op": "write", "flag": "dsync", "priority": "idle"},
            {"flag": ("none", "dsync"), "priority": ("none", "idle")},
        ),
    ],
)
def test_shrink(named: dict, cause: str, left: dict, needs: dict) -> None:
    values, found = shrunk(named, cause)
    assert values == left
    assert {name: found.get(name) for name in needs} == needs


def test_a_small_part_of_what_grew() -> None:
    """A value is given up if most of the whole growth stays, although the function grows less."""

    def switched(run: Run) -> dict[str, float]:
        return {
            **plain(run),
            "switch": 1000.0,
            "psi": 100.0 if options(run).get("prioclass") else 50.0,
        }

    whole = space(("dio.*",))
    search = ShapeSearch(Functions({"a": plain, "b": switched}), Kernels(["a", "b"]), whole, 1)
    shape = whole.shape(BESIDE)
    assert shape
    (one,) = shrink_all(search, [("psi", search.contrasts([shape])[0])])
    assert whole.differing(one.contrast.shape) == {}
    assert one.needs == {}


def test_one_shape_is_one_finding() -> None:
    """Two functions that grow by the same shape are one cause."""

    def two(run):  # noqa: ANN001, ANN202
        return {**plain(run), "one": 40.0, "other": 50.0}

    search = ShapeSearch(
        Functions({"a": plain, "b": two}), Kernels(["a", "b"]), space(("dio.*",)), 1
    )
    shapes = [search.space.shape({"size": size}) for size in (8192, 16384)]
    contrasts = search.contrasts([one for one in shapes if one])
    found: list[Shrunk] = shrink_all(search, [*zip(("one", "other"), contrasts, strict=True)])
    assert [one.functions for one in found] == [["one", "other"]]
