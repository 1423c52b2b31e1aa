# SPDX-License-Identifier: GPL-2.0
"""iopath track: its mail."""

from pathlib import Path

from helpers.tracking import a_point, config, index_of, keep
from iopath.commands import track
from iopath.track.tracker import News


def test_mail(tmp_path: Path) -> None:
    points = [a_point(number) for number in range(3)]
    keep(tmp_path, points, planted=2)
    index = index_of(tmp_path)
    failed = a_point(3, error="does not boot")
    news = News(index.steps(), points[2:], [failed])
    text = "\n".join(track._text(news, config(tmp_path), Path("site")))
    assert text.splitlines() == [
        "The path: 1 new step.",
        "",
        "block: 000000000001 to 000000000002 (2026-11-01)",
        "    subject 2",
        "    dio.pread read: +5.00 (+0.83 %): vfs_read +5.00",
        "    site/steps/block/000000000001..000000000002.html",
        "",
        "Measured: block 000000000002.",
        "",
        "Not measured: block 000000000003: does not boot.",
    ]
    assert list(track._text(News([], points, []), config(tmp_path), Path("site"))) == []
