# SPDX-License-Identifier: GPL-2.0
"""The search, on kernels that are functions: what is planted is found, and what is tried depends on
the seed and the number of shapes alone."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from helpers.screens import Functions, options, plain, planted
from iopath.base.errors import UsageError
from iopath.rungs.runs import Run
from iopath.rungs.shapes import space
from iopath.studies.judges import Kernels, Monotonic
from iopath.studies.search import Budget, ShapeSearch
from iopath.studies.shrink import shrink_all

PLANTED = {"unaligned", "many_segments", "depth_33", "pin"}
RUNGS = ("dio.*", "counted.*")


def search(kernels: Functions, seed: int = 1, **more: object) -> ShapeSearch:
    return ShapeSearch(kernels, Kernels([*kernels.costs]), space(RUNGS), seed, **more)  # type: ignore[arg-type]


def tried(kernels: Functions) -> list[str]:
    return [f"{run.rung.modules} {run.rung.setup} {' '.join(run.command)}" for run in kernels.asked]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_planted_is_found(seed: int) -> None:
    """A size with an alignment, a number of segments, one depth, odd blocks; and an error that one
    kernel answers a combination with."""
    found = search(Functions({"a": plain, "b": planted}), seed)
    found.run(Budget(shapes=3000))
    assert {*found.state.causes} == PLANTED
    assert [*found.state.answers] == ["done / write: Invalid argument"]
    assert found.state.shapes == 3000


def test_nothing_is_found_in_equal_kernels() -> None:
    found = search(Functions({"a": plain, "b": plain}))
    found.run(Budget(shapes=600))
    assert not found.state.causes
    assert not found.state.answers
    assert found.state.corpus  # what they execute is covered all the same


def test_what_shrinks_is_not_found() -> None:
    found = search(Functions({"a": planted, "b": plain}))
    found.run(Budget(shapes=600))
    assert not found.state.causes


def test_the_same_is_tried_again() -> None:
    """A seed and a number of shapes decide all; another seed tries other shapes."""
    runs = []
    for seed in (1, 1, 2):
        kernels = Functions({"a": plain, "b": planted})
        search(kernels, seed).run(Budget(shapes=500))
        runs.append(tried(kernels))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_no_shape_is_tried_twice() -> None:
    kernels = Functions({"a": plain, "b": plain})
    search(kernels).run(Budget(shapes=1000))
    assert len({*tried(kernels)}) == 1000


def test_a_second_cause_beside() -> None:
    """Two causes of one shape, of which one is seen alone in another shape, are two findings."""

    def two(run: Run) -> dict[str, float]:
        found = plain(run)
        if 32768 <= run.block_size <= 65536:
            found |= {"large": 800.0} | ({"both": 300.0} if "mem_offset" in options(run) else {})
        if run.block_size > 65536:
            found["both"] = 300.0
        return found

    found = search(Functions({"a": plain, "b": two}))
    found.run(Budget(shapes=1000))
    shrunk = shrink_all(found, found.worst(5))
    sizes = {
        name: int(found.space.named(one.contrast.shape)["size"])
        for one in shrunk for name in one.functions
    }  # fmt: skip
    assert {*sizes} == {"large", "both"}
    assert sizes["large"] == 32768
    assert sizes["both"] == 66048


def test_guidance_reaches_more() -> None:
    """A cost behind two conditions, each of which is seen, takes fewer shapes with guidance."""

    def steps(run):  # noqa: ANN001, ANN202
        found = plain(run)
        for number in range(6, 20):
            if run.block_size >= 512 * 2 * number and run.rung.batch > number:
                found[f"step_{number}"] = 50.0
        return found

    reached = []
    for guided in (True, False):
        found = search(Functions({"a": plain, "b": steps}), guided=guided)
        found.run(Budget(shapes=400))
        reached.append(len(found.state.causes))
    assert reached[0] >= reached[1]


def test_resumed(tmp_path: Path) -> None:
    """A corpus is kept as text, tried first on other kernels, and a later search goes on where the
    first ended."""
    first = Functions({"a": plain, "b": planted})
    found = search(first, corpus=tmp_path / "corpus")
    found.run(Budget(shapes=2000))
    assert {*found.state.causes} == PLANTED
    text = (tmp_path / "corpus/corpus.toml").read_text()
    assert text.startswith("batches = ")
    assert '[[shape]]\nwhy = "' in text
    other = Functions({"c": plain, "d": planted})
    again = search(other, corpus=tmp_path / "corpus")
    again.run(Budget(shapes=100))
    assert {*again.state.causes} == PLANTED
    batches = int(text.split()[2])
    assert tomllib.loads((tmp_path / "corpus/corpus.toml").read_text())["batches"] == batches + 1


def test_bad_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus.toml").write_text("batches = 'x'\n")
    with pytest.raises(UsageError, match="not a corpus of iopath search"):
        search(Functions({"a": plain, "b": plain}), corpus=tmp_path).run(Budget(shapes=1))


def test_guests_that_die_are_findings() -> None:
    """One for each way to die: a crash is known by its message, without the address."""

    def dies(run: Run) -> Mapping[str, float] | str:
        if run.block_size == 1536:
            return "the guest did not end within 41 s of CPU time (console: log)"
        if run.block_size in (512, 1024):
            return f"the guest crashed: BUG: fault at ffff88800{run.block_size} (console: log)"
        return plain(run)

    found = search(Functions({"a": plain, "b": dies}))
    found.run(Budget(shapes=300))
    answers = found.state.answers
    assert {*answers} == {
        "done / the guest hung", "done / the guest crashed: BUG: fault at ...",
    }  # fmt: skip
    assert all("(console: log)" in one.after.died for one in answers.values())


def test_time_ends_it() -> None:
    found = search(Functions({"a": plain, "b": plain}))
    found.run(Budget(seconds=0.001))
    assert 0 < found.state.shapes <= 256
    assert len(found.state.curve) == 1


def jumps(run: Run) -> dict[str, float]:
    """A kernel on which each byte from 128 KiB on is dear, and each I/O of a batch from 40 on."""
    found = plain(run)
    if run.block_size >= 131072:
        found["dear"] = 0.4 * sum(found.values())
    if run.rung.batch >= 40:
        found["waits"] = 300.0
    return found


def test_what_jumps_in_one_kernel() -> None:
    """A cost per byte, or per I/O of a batch, that becomes larger is found and shrunk to the first
    number that has it; a kernel that is even has none."""
    whole = space(("dio.*",))
    for cost, names in ((jumps, {"dear", "waits"}), (plain, set())):
        found = ShapeSearch(Functions({"a": cost}), Monotonic("a", whole), whole, 1)
        found.run(Budget(shapes=1500))
        assert {*found.state.causes} == names
        shrunk = shrink_all(found, found.worst(5))
        left = [whole.differing(one.contrast.shape) for one in shrunk]
        assert {one["size"] for one in left if "size" in one} == ({131072} if names else set())
        assert {one["depth"] for one in left if "depth" in one} == ({40} if names else set())


def test_no_target() -> None:
    with pytest.raises(UsageError, match="can have none"):
        search(Functions({"a": plain, "b": plain}), usable=lambda target: False)
