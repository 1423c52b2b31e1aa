# SPDX-License-Identifier: GPL-2.0
"""The recipe for a metric of contributing.rst: in a copy of the project, one is added."""

import json
import subprocess
from pathlib import Path

import pytest

from helpers.recipe_tree import PACKAGE, Tree, not_named

METRIC = """\
    _counted("accessed bytes", Source(tally="bytes"), "bytes of accesses", "bytes", costly=True),
"""
BEFORE = """    _counted("string bytes","""
COUNT = "ACCESS_COUNT(bytes, size)\n"
ROW = """\
   accessed bytes, bytes, exact, bytes of accesses, per-CPU caches that are filled again, 0.05
"""


def add_metric(tree: Tree) -> None:
    counts, metrics = "userspace/pathcount/counts.h", "Documentation/metrics.rst"
    tree.replace(f"{PACKAGE}/results/metrics.py", BEFORE, METRIC + BEFORE)
    tree.replace(counts, "ACCESS_COUNT(writes, write)\n", "ACCESS_COUNT(writes, write)\n" + COUNT)
    tree.replace(metrics, "   string bytes, bytes, ", ROW + "   string bytes, bytes, ")


@pytest.mark.guest
def test_a_metric(tmp_path: Path) -> None:
    """It is counted in a guest, for each function, too, and may have a limit. The tests of the
    tables pass."""
    tree = Tree(tmp_path)
    add_metric(tree)
    assert not_named("How to add a metric", tree) == []
    plugin = tree.programs / "pathcount.so"
    plugin.unlink()
    make = ["make", "-s", "-C", tree.root / "userspace/pathcount", f"O={tree.programs}"]
    subprocess.run(make, check=True)
    scenario = ("--rung", "dio.pread", "--op", "read")
    found = tmp_path / "found.json"
    tree.run("-m", "iopath", "profile", "debian:6.1", *scenario, "--json", found)
    (record,) = json.loads(found.read_text())["results"]
    counts = {name: value[0] for name, value in record["counts"].items()}
    accesses = counts["reads"] + counts["writes"]
    assert accesses < counts["accessed bytes"] < 64 * accesses
    profile = record["profile"]
    # The profile is of longer rounds.
    of_path = profile["costly"]["accessed_bytes"]
    assert of_path == pytest.approx(counts["accessed bytes"], rel=0.1)
    of_functions = sum(
        function.get("costly", {}).get("accessed_bytes", 0) for function in profile["functions"]
    )
    assert of_functions == pytest.approx(of_path, abs=0.1)
    whole = json.loads(found.read_text())
    whole["kernels"][0]["name"] = whole["results"][0]["kernel"]["name"] = "other"
    whole["results"][0]["counts"]["accessed bytes"][0] *= 1.2
    (tmp_path / "other.json").write_text(json.dumps(whole))
    (tmp_path / "limits.toml").write_text('"dio.pread read accessed bytes" = 5\n')
    words = ("compare", found, tmp_path / "other.json", "--limits", tmp_path / "limits.toml")
    said = tree.run("-m", "iopath", *words, status=1)
    assert "dio.pread read: other takes more than debian:6.1: accessed bytes 20.00 % (5 %" in said
    tests = [
        f"userspace/iopath/tests/{name}" for name in ("results", "counts/test_plugin_output.py")
    ]
    tree.run("-m", "pytest", "-q", "-c", "userspace/iopath/pyproject.toml", "--rootdir", ".",
             "-p", "no:cacheprovider", *tests)  # fmt: skip
