# SPDX-License-Identifier: GPL-2.0
"""Charts show the figures they are given, and look the same each time."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from helpers.counted import a_boot, a_program
from helpers.examples import a_record, a_result
from iopath.base.errors import UsageError
from iopath.results.layers import Layers
from iopath.results.result import parse
from iopath.show import charts
from iopath.show.palette import Palette, split


def bars(axes: Axes) -> dict[float, list[tuple[float, float, str]]]:
    """The parts of each bar, by its place: where they begin, how long they are, their colour."""
    found = defaultdict(list)
    for patch in axes.patches:
        place = round(patch.get_y() + patch.get_height() / 2, 3)
        found[place].append((patch.get_x(), patch.get_width(), to_hex(patch.get_facecolor())))
    return dict(found)


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_bars_are_stacked_by_layer_and_add_up() -> None:
    result = a_result(a_record(name, "dio.pread", "read", 4096) for name in ("a", "b"))
    figure = charts.ladder(parse(result))
    profile = result["results"][0]["profile"]
    drawn = bars(figure.axes[0])
    assert len(drawn) == 2
    palette = Palette(parse(result))
    colours = {group.name: group.colour for group in palette.groups}
    for parts in drawn.values():
        assert {colour: width for _, width, colour in parts} == pytest.approx(
            {colours[name]: count for name, count in palette.sums(profile["layers"]).items()}
        )
        end = 0.0
        for left, width, _ in parts:
            assert left == pytest.approx(end)
            end += width
        assert end == pytest.approx(profile["instructions"])
        assert parts[-1][2] == colours["other"]
    assert texts(figure).count("601.93") == 2


def test_operations_are_beside_and_sizes_below_each_other() -> None:
    figure = charts.ladder(
        parse(
            a_result(
                [
                    a_record("a", "syscall", "none", 0),
                    *(
                        a_record("a", rung, op, size)
                        for rung in ("raw", "dio")
                        for op in ("read", "write")
                        for size in (512, 4096)
                    ),
                ]
            )
        )
    )
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["read 512 B", "write 512 B", "read 4 KiB", "write 4 KiB"]
    # The rung without I/O is with the first only.
    assert [len(bars(axes)) for axes in figure.axes] == [3, 2, 2, 2]


def test_a_kernel_without_the_rung_has_no_bar() -> None:
    result = a_result([a_record("a", "x", "read", 512), a_record("b", "x", "read", 512),
                       a_record("a", "y", "read", 512)])  # fmt: skip
    assert len(bars(charts.ladder(parse(result)).axes[0])) == 3


def test_without_a_profile_a_bar_is_the_figure() -> None:
    result = a_result([a_record("a", "dio.pread", "read", 4096, stacks=None)])
    figure = charts.ladder(parse(result))
    (parts,) = bars(figure.axes[0]).values()
    assert [width for _, width, _ in parts] == [601.93]
    assert Palette(parse(result)).groups == []
    assert not figure.legends


def test_a_chart_has_at_most_nine_groups_of_layers() -> None:
    """Every layer is in a group, and its colour is the same in every chart."""
    names = Layers().names
    stacks = [((name,), name, 1.0) for name in reversed(names)]
    everything = Palette(parse(a_result([a_record("a", "x", "read", 512, stacks)])))
    assert len(everything.groups) == 9
    assert len({group.colour for group in everything.groups}) == 9
    assert everything.names()[-1] == "other"
    in_other = {name for name in names if everything.group(name) == "other"}
    assert in_other == {
        "biogen", "tracing", "eBPF program", "locks and RCU", "time", "data structures", "other",
    }  # fmt: skip
    some = Palette(parse(a_result([a_record("a", "x", "read", 512)])))
    assert set(some.groups) < set(everything.groups)
    sums = everything.sums(dict.fromkeys(names, 1.0))
    assert list(sums) == everything.names()
    assert sum(sums.values()) == len(names)


def test_layers_of_a_users_table_have_groups_of_their_own() -> None:
    stacks = [((f"f{at}",), f"layer {at}", 10.0 + at) for at in range(12)]
    palette = Palette(parse(a_result([a_record("a", "x", "read", 512, stacks)])))
    assert palette.names() == [*(f"layer {at}" for at in range(11, 3, -1)), "other"]
    assert palette.group("layer 0") == "other"


def test_what_is_much_longer_has_a_scale_of_its_own() -> None:
    assert split([4, 300, 2000, 2500, 3000, 3500, 40000, 41000]) == 40000
    assert split([4, 300, 2000, 2500, 3000, 3500, 5600]) == float("inf")
    assert split([5]) == split([]) == float("inf")


def test_history_has_each_figure() -> None:
    records = []
    for number, name in enumerate(("5.10", "6.1", "7.2")):
        for op in ("read", "write"):
            record = a_record(name, "dio.pread", op, 4096)
            record["instructions_per_io"] += 10 * number + (op == "write")
            records.append(record)
    del records[3]  # 6.1, write
    figure = charts.history(parse(a_result(records)))
    read, write = figure.axes[0].get_lines()
    assert list(read.get_ydata()) == pytest.approx([601.93, 611.93, 621.93])
    assert list(write.get_xdata()) == [0, 2]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["5.10", "6.1", "7.2"]


def test_history_does_not_blow_up_what_is_nothing() -> None:
    result = a_result(a_record(name, "dio.pread", "read", 4096) for name in "abc")
    result["results"][1]["instructions_per_io"] += 0.01
    bottom, top = charts.history(parse(result)).axes[0].get_ylim()
    assert top - bottom >= 0.05 * 601.93


def test_a_program_is_drawn_by_its_parts() -> None:
    """A bar is what a part executes in all, and a history what it executes each time. The sums are
    only in the latter, and what is less than 0.5 % (the own code) is in neither."""
    whole = a_program({"a": [a_boot(600)], "b": [a_boot(630)]})
    figure = charts.ladder(whole)
    names = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert names == ["a", "b"] * 2
    drawn = bars(figure.axes[0]).values()
    assert [sum(width for _, width, _ in parts) for parts in drawn] == [6000, 6300, 70, 70]
    assert "6,300" in [text.get_text() for text in figure.axes[0].texts]
    figure = charts.history(whole)
    assert [axes.get_title(loc="left") for axes in figure.axes if axes.lines] == [
        "the whole", "I/O calls", "read", "page fault",
    ]  # fmt: skip
    assert list(figure.axes[2].get_lines()[0].get_ydata()) == [600, 630]


@pytest.mark.parametrize("suffix", [".svg", ".png"])
@pytest.mark.parametrize("draw", [charts.ladder, charts.history])
def test_the_same_result_gives_the_same_file(
    draw: Any,  # noqa: ANN401
    suffix: str,
    tmp_path: Path,
) -> None:
    result = a_result(a_record(name, "dio.pread", "read", 4096) for name in "abc")
    for name in ("one", "two"):
        charts.save(draw(parse(result)), tmp_path / f"{name}{suffix}")
    one, two = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
    assert one == two
    if suffix == ".svg":
        assert b">dio.pread" in one  # text is text
        assert b"<dc:date>" not in one
    else:
        assert one.startswith(b"\x89PNG")


def test_a_drawing_says_each_style_once(tmp_path: Path) -> None:
    result = a_result(a_record(name, "dio.pread", "read", 4096) for name in "abc")
    charts.save(charts.ladder(parse(result)), tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text()
    styles = re.findall(r'style="([^"]*)"', text)
    assert len(styles) == len(set(styles))
    assert {*re.findall(r'class="(\w+)"', text)} == {*re.findall(r"\.(s\d+)\{", text)}
    assert not re.search(r"\d\.\d{3}", text)


def test_a_chart_in_the_dark(tmp_path: Path) -> None:
    """Black on white becomes bright on dark, and versions are text with all digits."""
    records = [a_record(name, "dio.pread", "read", 4096) for name in ("6.1.190", "6.1.192")]
    charts.save(charts.history(parse(a_result(records))), tmp_path / "x.svg")
    text = (tmp_path / "x.svg").read_text()
    assert ">6.1.190<" in text
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    assert "#1b1b1c" in light
    assert "#1b1b1c" not in dark
    assert 'style="fill: #ffffff' not in dark


def test_charts_that_cannot_be_written(tmp_path: Path) -> None:
    figure = charts.ladder(parse(a_result([a_record("a", "x", "read", 512)])))
    with pytest.raises(UsageError, match=r"x\.pdf: charts are written as \.svg or \.png"):
        charts.save(figure, tmp_path / "x.pdf")
    with pytest.raises(UsageError, match="No such file or directory"):
        charts.save(figure, tmp_path / "none/x.svg")
