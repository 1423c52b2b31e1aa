# SPDX-License-Identifier: GPL-2.0
"""Shapes of I/O: what is drawn is possible, has one form, and is a rung of a user's file."""

from pathlib import Path
from random import Random

import pytest

from iopath.base.errors import UsageError
from iopath.rungs import builtin
from iopath.rungs.shapes import Space, fio, space, toml


@pytest.fixture(scope="module")
def whole() -> Space:
    return space()


def test_each_shape_is_a_rung(whole: Space, tmp_path: Path) -> None:
    """What is drawn and mutated is read from a file as the rung that it is."""
    random = Random(1)
    path = tmp_path / "found.toml"
    for number in range(100):
        shape = whole.draw(random, whole.wanted_targets)
        if number % 2:
            shape = whole.mutate(shape, random, whole.wanted_targets)
        assert whole.shape(whole.named(shape)) == shape
        run = whole.run(shape, "search.1")
        path.write_text(toml(whole.table(shape, "search.1")))
        assert builtin.load(path) == [run.rung]
        assert run.rung.target
        assert run.block_size == whole.named(shape)["size"]
        assert run.rung.batch == whole.named(shape)["depth"]
        assert run.ios % run.rung.batch == 0


def test_each_target_and_value_can_be_had(whole: Space) -> None:
    """Every value of every dimension is in some shape."""
    random = Random(2)
    left = {(one.name, value) for one in whole.dimensions for value in one.every}
    for _ in range(20_000):
        left -= {*whole.named(whole.draw(random, whole.wanted_targets)).items()}
        if not left:
            break
    assert not left


@pytest.mark.parametrize(
    ("named", "possible"),
    [
        ({"engine": "mmap"}, False),
        ({"engine": "mmap", "cache": "hot"}, True),
        ({"target": "raw", "cache": "hot"}, False),
        ({"engine": "preadv", "segments": 3}, False),
        ({"engine": "preadv", "segments": 8}, True),
        ({"engine": "preadv", "segments": 16}, False),  # of less than a sector
        ({"engine": "uring", "depth": 1024}, False),  # 4 MiB
        ({"engine": "uring", "depth": 33}, True),
        ({"size": 1000}, False),
        ({"target": "ext4.hole", "op": "write"}, False),
    ],
)
def test_what_is_possible(whole: Space, named: dict, possible: bool) -> None:
    assert (whole.shape(named) is not None) == possible


def test_one_form(whole: Space) -> None:
    """What a shape cannot have is not told from what it has not."""
    assert whole.shape({"depth": 33, "ring": "defer"}) == whole.shape({})
    shape = whole.shape({"engine": "uring", "depth": 33, "ring": "defer"})
    assert shape
    assert [*whole.simpler(shape)] == [
        ("engine", "pread"), ("engine", "preadv"), ("engine", "aio"), ("depth", 1),
        ("ring", "plain"), ("ring", "single"),
    ]  # fmt: skip


def test_choice_of_rungs() -> None:
    """--rung chooses targets and engines."""
    some = space(("dio.pread*", "raw.aio"))
    assert some.wanted_targets == ["dio", "raw"]
    assert some.shape({"target": "raw", "engine": "pread"}) is None
    random = Random(1)
    for _ in range(50):
        named = some.named(some.draw(random, ["dio"]))
        assert (named["target"], named["engine"]) in {("dio", "pread"), ("dio", "preadv")}
    with pytest.raises(UsageError, match=r"--rung dio.nothing: no shape"):
        space(("dio.nothing",))


def test_fio(whole: Space) -> None:
    """A job of fio, where fio has all that the shape has."""
    shape = whole.shape({"engine": "uring", "depth": 4, "buffers": "fixed", "flag": "dsync",
                         "op": "write", "pattern": "random"})  # fmt: skip
    assert shape
    job = fio(whole.run(shape, "x")).splitlines()
    assert {"ioengine=io_uring", "iodepth=4", "fixedbufs=1", "sync=dsync", "rw=randwrite",
            "bs=4096", "direct=1"} <= {*job}  # fmt: skip
    for named in ({"place": 512}, {"target": "raw"}, {"engine": "preadv", "segments": 2}):
        shape = whole.shape(named)
        assert shape
        assert fio(whole.run(shape, "x")) == ""
