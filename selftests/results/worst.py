# SPDX-License-Identifier: GPL-2.0
"""What `iopath search` finds between kernels, with the causes in words, and how fast it finds it.

findings.py has this at the end of its page. causes.toml has the words.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure
from page import RESULTS, table

from iopath.base.errors import IopathError
from iopath.base.sources import source_root
from iopath.base.typed import JsonObject
from iopath.show import charts
from iopath.show.picture import BAR, GREW

SHAPES = 1536
GCC = ("git:build/linux@HEAD[suite=bookworm]", "git:build/linux@HEAD")
PAIRS = {
    "5.10 to 6.1": ("debian:5.10", "debian:6.1"),
    "6.1 to 6.12": ("debian:6.1", "debian:6.12"),
    "6.12 to 7.2": ("debian:6.12", "debian:7.2"),
    "7.2 to 7.3": ("debian:7.2", "debian:7.3"),
    "GCC 12 to GCC 14, one source of 7.2": GCC,
}
CURVE = "6.12 to 7.2"  # where searches with guidance and without are compared
LARGE = source_root() / "build/results"

ABOUT = f"""\
# What a search finds

Made by `iopath search OLD NEW --shapes {SHAPES:,} --boots 1`: the ten worst causes between two
kernels, by the growth relative to the cost of the I/O, each shrunk to the smallest shape that shows
it. Instructions are those per I/O of the task that does it; what is deferred to other tasks is in
them only where the text says so. The rungs are in the file that `--toml` writes.
"""


def searched(name: str, kernels: Sequence[str], *options: str) -> JsonObject:
    """The search between two *kernels*, as its JSON file has it."""
    LARGE.mkdir(parents=True, exist_ok=True)
    path = LARGE / f"search-{name.partition(',')[0].replace(' ', '-')}{''.join(options)}.json"
    words = ("--shapes", str(SHAPES), "--boots", "1", "--json", str(path), *options)
    done = subprocess.run(
        [sys.executable, "-m", "iopath", "search", *kernels, *words],
        cwd=source_root(), stdout=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    if done.returncode:
        raise IopathError(f"iopath search {' '.join(kernels)} failed")
    return json.loads(path.read_text())["search"]


def section(name: str, found: JsonObject, causes: Sequence[Mapping[str, str]]) -> str:
    """The findings between two kernels."""
    lines = [f"## {name}", ""]
    for number, one in enumerate(found["findings"], 1):
        shape, *rest = one["described"]
        growth, _, functions = one["growth"].partition(": ")
        if one["answer"]:
            growth, functions = one["answer"], ""
        texts = [text for text in rest if not text.startswith("ioloop: ")]
        lines += [f"{number}. **{growth}**, {shape.removeprefix('shape: ')}."]
        lines += [f"   By {functions}."] if functions else []
        lines += [f"   {'; '.join(texts)}."] if texts else []
        lines += [f"   {text}" for text in why(name, one, causes).split("\n") if text]
        lines += [""]
    return "\n".join(lines)


def why(name: str, one: JsonObject, causes: Sequence[Mapping[str, str]]) -> str:
    """The cause in words, if it is known."""
    shape = one["described"][0].removeprefix("shape: ")
    first = one["answer"] or one["growth"].partition(": ")[2].partition(" ")[0]
    for cause in causes:
        fits = cause["between"] == name and shape.startswith(cause.get("where", ""))
        if fits and cause.get("function", first) in (first, first.partition(": ")[2]):
            return cause["why"]
    return ""


def curve(guided: JsonObject, chance: JsonObject) -> str:
    """How much two searches had seen after each batch: search.svg, and the ends as a table."""
    whats = {"functions": "functions, by cost", "causes": "functions that grew"}
    with matplotlib.rc_context(charts.STYLE):
        figure = Figure(figsize=(3.4, 3.6), layout="constrained")
        figure.set_label("What a search has seen after so many shapes, guided and by chance")
        every = figure.subplots(2, 1, sharex=True)
        for axes, (what, title) in zip(every, whats.items(), strict=True):
            for found, color, name in ((guided, GREW, "guided"), (chance, BAR, "by chance")):
                batches = [{"shapes": 0, what: 0}, *found["curve"]]
                points = [[one[key] for one in batches] for key in ("shapes", what)]
                axes.plot(*points, color=color, label=name)
            axes.set_title(title, loc="left")
            axes.set(xlim=0, ylim=0)
            axes.spines[["top", "right"]].set_visible(False)
        every[0].legend(frameon=False, loc="lower right")
        every[1].set_xlabel("shapes")
    charts.save(figure, RESULTS / "search.svg")
    ends = {"guided": guided["curve"][-1], "by chance": chance["curve"][-1]}
    rows = [[name, *(f"{end[key]:,}" for key in ("shapes", *whats))] for name, end in ends.items()]
    return table(["search", "shapes", *whats.values()], rows)


def worst() -> str:
    """All sections."""
    causes = tomllib.loads(Path(__file__).with_name("causes.toml").read_text())["cause"]
    found = {name: searched(name, kernels) for name, kernels in PAIRS.items()}
    unguided = searched(CURVE, PAIRS[CURVE], "--unguided")
    text = [ABOUT, *(section(name, one, causes) for name, one in found.items())]
    text += [f"## With guidance and without, {CURVE}\n\n{curve(found[CURVE], unguided)}\n"]
    return "\n".join(text)
