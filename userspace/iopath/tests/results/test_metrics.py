# SPDX-License-Identifier: GPL-2.0
"""The table of metrics, and the one in the documentation."""

from iopath.base.sources import source_root
from iopath.results.metrics import COUNTED, METRICS


def test_the_documentation_has_the_table() -> None:
    lines = [
        ".. csv-table::",
        "   :header: metric, unit, class, how it is counted, why boots or builds differ,"
        " resolution",
        "   :widths: 14, 12, 8, 32, 24, 10",
        "",
    ]
    for metric in METRICS:
        name = metric.name + ("" if metric.gated else " \\*")
        kind, resolution = "varying" if metric.sigma else "exact", f"{metric.resolution:g}"
        cells = (name, metric.unit, kind, metric.counted, metric.noise, resolution)
        lines.append("   " + ", ".join(f'"{cell}"' if "," in cell else cell for cell in cells))
    text = (source_root() / "Documentation/metrics.rst").read_text()
    assert "\n".join(lines) in text, "\n".join(lines)


def test_each_metric_has_a_name_of_its_own() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    assert {*COUNTED} < {metric.name for metric in METRICS}
