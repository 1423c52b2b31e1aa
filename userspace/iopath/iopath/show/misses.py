# SPDX-License-Identifier: GPL-2.0
"""The tables of what a modelled CPU would miss, for the terminal."""

from dataclasses import fields

from rich.console import Console
from rich.text import Text

from iopath.results.model import Misses
from iopath.results.result import ExactRecord, Result, of_kernel
from iopath.show import texts
from iopath.show.console import put
from iopath.show.table import Table

_TITLES = {
    "l1i": "L1I", "l1d": "L1D", "l2": "L2", "itlb": "ITLB", "dtlb": "DTLB",
    "conditional": "branches", "indirect": "indirect", "returns": "returns",
}  # fmt: skip
_ABOUT = "misses and mispredictions per I/O of a model, not of this CPU (model.rst)"


def show(result: Result, console: Console) -> None:
    """Print what the modelled CPU would miss, if it was modelled."""
    for name in result.names:
        records = [
            record
            for record in of_kernel(result.results, name)
            if isinstance(record, ExactRecord) and record.model
        ]
        if records:
            heading = Text.assemble("\n", (name, "bold"), f": {_ABOUT}")
            put(console, heading, _table(records))


def _table(records: list[ExactRecord]) -> Table:
    table = Table("rung", "size", "L1, TLBs")
    for field in fields(Misses):
        table.number_column(_TITLES[field.name])
    for record in records:
        if not record.model:
            continue
        states = {"warm": record.model.warm, "cold": record.model.cold}
        heads = [record.title, record.size]
        for name, misses in states.items():
            figures = [texts.count(getattr(misses, field.name)) for field in fields(Misses)]
            table.row(*heads, name, *figures)
            heads = ["", ""]
    return table
