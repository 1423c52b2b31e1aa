# SPDX-License-Identifier: GPL-2.0
"""What features and layers cost, as a chart."""

from collections.abc import Sequence

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import StrMethodFormatter

from iopath.show.charts import INK, STYLE
from iopath.studies.features import Cost

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_LEAST = 10.0  # instructions; less may be the search for a tag (Documentation/features.rst)
_BAR = 0.11  # inches of height for one bar


def chart(costs: Sequence[Cost]) -> Figure:
    """Instructions more per I/O, on a logarithmic scale: layers beside features, a bar for each
    kernel, the most expensive first. What makes I/O shorter is not drawn."""
    kernels = list(dict.fromkeys(cost.kernel for cost in costs))
    sides: list[dict[str, dict[str, float]]] = []
    for layer in (False, True):
        rows: dict[str, dict[str, float]] = {}
        for cost in costs:
            if cost.layer == layer and cost.difference >= _LEAST:
                name = f"{cost.feature} ({cost.op if layer else f'{cost.rung} {cost.op}'})"
                rows.setdefault(name, {})[cost.kernel] = cost.difference
        if rows:
            sides.append(dict(sorted(rows.items(), key=lambda row: max(row[1].values()))))
    pitch = len(kernels) + 0.8
    height = max(map(len, sides), default=1) * pitch * _BAR + 1
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.5 * max(1, len(sides)), height), layout="constrained")
        grid = figure.subplots(1, max(1, len(sides)), squeeze=False)[0]
        for axes, rows in zip(grid, sides, strict=False):
            for number, kernel in enumerate(kernels):
                at = [place for place, row in enumerate(rows.values()) if kernel in row]
                length = [row[kernel] for row in rows.values() if kernel in row]
                axes.barh(
                    [pitch * place + (len(kernels) - 1) / 2 - number for place in at], length,
                    color=_COLOURS[number % len(_COLOURS)], height=0.9,
                )  # fmt: skip
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
            axes.set_yticks([pitch * place for place in range(len(rows))], list(rows), fontsize=7)
            axes.set_ylim(-pitch, pitch * len(rows))
            axes.grid(axis="x", color="#808080", alpha=0.3, linewidth=0.5)
            axes.set_axisbelow(True)
        figure.supxlabel("instructions more per I/O, logarithmic", fontsize=9, color=INK)
        handles = [
            Patch(facecolor=_COLOURS[number % len(_COLOURS)], label=kernel)
            for number, kernel in enumerate(kernels)
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(kernels) or 1)
    return figure
