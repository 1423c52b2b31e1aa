# SPDX-License-Identifier: GPL-2.0
"""Figures as comma-separated values, for spreadsheets and data frames: one a row."""

import csv
import io
from collections.abc import Iterable

from iopath.show.figures import Figure

_COLUMNS = ("kernel", "name", "op", "block_size", "metric", "unit", "value", "low", "high", "boots")


def render(found: Iterable[Figure]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(_COLUMNS)
    rows.writerows([getattr(figure, name) for name in _COLUMNS] for figure in found)
    return text.getvalue()
