# SPDX-License-Identifier: GPL-2.0
"""iopath track: neighbours that are undecided are booted more often."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from helpers.planted import git, history
from helpers.tracking import FILE, Planted, a_tracker
from iopath.results.result import Result
from iopath.rungs.runs import Settings
from iopath.track import store

__all__ = ["history"]


class Booted(Planted):
    """A session that boots as often as it is asked to, and has a row for each of four sizes."""

    def results(self, names: Sequence[str], settings: Settings) -> dict[str, Result]:
        found = {}
        for name, one in super().results(names, settings).items():
            records = []
            for size, record in itertools.product((512, 1024, 2048, 4096), one.results):
                boots = {
                    name: getattr(record, name)[: settings.boots]
                    for name in ("boots", "mean_boots", "with_deferred_boots")
                }
                counts = {name: part[: settings.boots] for name, part in record.counts.items()}
                boots |= {"counts": counts, "rounds": 10 * settings.boots}
                records.append(replace(record, block_size=size, **boots))
            found[name] = replace(one, results=records)
        return found


def test_undecided_neighbours_are_booted_more_often(history: Path, tmp_path: Path) -> None:
    """Six boots decide a difference in four rows. Later runs measure nothing again."""
    commits = git(history, "rev-list", "--reverse", "HEAD").splitlines()
    session = Booted(tmp_path)
    session.longer = set(commits[5:])
    place = f"{history}@{commits[0]}..HEAD"
    text = FILE.replace("linux@v6.12..for-next", place).replace("title", "boots = 5\ntitle", 1)
    news = a_tracker(session, tmp_path, text).run()
    (step,) = news.steps
    assert [change.verdict for change in step.changes] == ["longer"] * 4
    boots = {
        path.stem: store.read(path)[0].asked["boots"] for path in store.points(tmp_path / "site")
    }
    again = {commits[4][:12]: 6, commits[5][:12]: 6}
    assert boots == {commit[:12]: 5 for commit in commits} | again
    session.calls.clear()
    a_tracker(session, tmp_path, text).run()
    assert session.calls == []
