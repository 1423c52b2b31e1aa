#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""What each commit of a range costs, as a kernel selftest says it: in TAP, version 13.

usage: tap.py A..B [OPTIONS of iopath series]

A commit is a test. It fails if it makes a rung grow by more than the limit of --fail-above, 0 % if
there is none, and is skipped with the reason if it was not measured. The exit status is that of
kselftest: 0 if all pass, 1 if any fails, 4 if all are skipped. IOPATH names another iopath than
that of this checkout.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

IOPATH = os.environ.get("IOPATH") or Path(__file__).resolve().parents[1] / "build/bin/iopath"
PASS, FAIL, SKIP = 0, 1, 4


def measure(words: list[str], file: Path) -> list[dict[str, Any]]:
    """The commits that were measured, but for the one that the first is compared with."""
    command = [IOPATH, "series", *words, "--json", file]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return json.loads(file.read_text())["commits"][1:] if file.exists() else []


def judge(commit: dict[str, Any], limit: float) -> tuple[int, str]:
    """The result of a commit, and the figures of the rungs that grew or differ."""
    if commit["error"] or not commit["before"]:
        return SKIP, commit["error"] or "nothing before it was measured"
    said, grew = [], False
    for rung in commit["rungs"]:
        figures = [rung["difference"], rung["total"] or 0.0]
        # Of deferred work, only the total has it.
        most = max(figures)
        if rung["verdict"] == "unknown" and most > 0:
            return SKIP, f"{rung['rung']} {rung['op']}: the boots do not decide it"
        if rung["verdict"] != "same":
            said.append(f"{rung['rung']} {rung['op']} {rung['difference']:+.2f}")
            grew |= 100 * most > limit * rung["before"]
    return (FAIL if grew else PASS), ", ".join(said)


def main(words: list[str]) -> int:
    limit = 0.0
    if "--fail-above" in words:
        limit = float(words[words.index("--fail-above") + 1])
    with tempfile.TemporaryDirectory() as folder:
        commits = measure(words, Path(folder, "series.json"))
    print("TAP version 13")
    print(f"1..{len(commits)}" if commits else "1..0 # SKIP nothing was measured")
    found = []
    for number, commit in enumerate(commits, 1):
        result, text = judge(commit, limit)
        name = f"iopath: {commit['commit']} {commit['subject']}".replace("#", "")
        if result == SKIP:
            print(f"ok {number} {name} # SKIP {text.splitlines()[0]}")
        else:
            print(f"{'not ok' if result == FAIL else 'ok'} {number} {name}")
            if text:
                print(f"# {text}")
        found.append(result)
    if FAIL in found:
        return FAIL
    return PASS if PASS in found else SKIP


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
