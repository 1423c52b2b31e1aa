# SPDX-License-Identifier: GPL-2.0
"""The views of what commands find: one row for each file that a user can ask for."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from iopath.base import files
from iopath.base.errors import UsageError


@dataclass(frozen=True)
class View:
    """What "--OPTION FILE" writes. It fits reports (reports.py) that have the method *of*, and
    shows what that gives: text, or a chart; or if *render* is "MODULE.FUNCTION" of iopath.show,
    what this function makes of it. If there are *suffixes*, the file's name ends in one of them."""

    option: str
    about: str
    of: str
    render: str = ""
    suffixes: Sequence[str] = ()

    @property
    def dest(self) -> str:
        """The name of its option among the parsed ones."""
        return self.option.replace("-", "_")

    def fits(self, kind: type) -> bool:
        return hasattr(kind, self.of)

    def need(self, kind: type) -> None:
        """Refuse a kind of report that it does not fit."""
        if not self.fits(kind):
            lack = _LACKS.get(self.of, "only exact results can be drawn")
            raise UsageError(f"--{self.option}: {lack}")

    def write(self, report: object, path: Path) -> None:
        self.need(type(report))
        shown = getattr(report, self.of)()
        if self.render:
            module, function = self.render.split(".")
            shown = getattr(import_module(f"iopath.show.{module}"), function)(shown)
        if isinstance(shown, str):
            files.write_text(path, shown)
            return
        from iopath.show import charts  # slow to load

        charts.save(shown, path, self.suffixes[0] if len(self.suffixes) == 1 else "")


_LACKS = {
    "reply": "answers mails: give them by --from-mail",
    "requests": "requests are counted of guests",
    "stacks": "no functions are counted; profile and compare count them",
}

VIEWS = (
    View("json", "the whole result, for compare and other programs", "json"),
    View("html", "a page with charts and tables; it needs no network", "html"),
    View("markdown", "the figures, for a mail or a commit message", "markdown"),
    View("requests", "how many requests, how large, in what order, and who did it", "requests",
         "requestview.render"),
    View("toml", "the rungs of what was found, for --rungs", "toml", suffixes=(".toml",)),
    View("reply", "a reply to the mails, in at most 25 lines; empty if nothing changed", "reply"),
    View("csv", "every figure, one a row", "figures", "csvfile.render"),
    View("callgrind", "functions, as callgrind_annotate reads them", "stacks", "callgrind.render"),
    View("folded", "call stacks, as flame graph tools read them", "stacks", "stacks.folded"),
    View("bencher", "the figures in Bencher's metric format", "figures", "trackers.bencher"),
    View("benchmark-action", "the figures as github-action-benchmark's customSmallerIsBetter",
         "figures", "trackers.smaller_is_better"),
    View("kcidb", "the figures as KCIDB takes them", "kcidb"),
    View("svg", "a chart of the figures", "chart", suffixes=(".svg",)),
    View("png", "a chart of the figures", "chart", suffixes=(".png",)),
    View("history", "the figures over the kernels as a chart, .svg or .png", "history",
         suffixes=(".svg", ".png")),
)  # fmt: skip


def fitting(*kinds: type) -> list[View]:
    """The views that fit any of these kinds of reports."""
    return [view for view in VIEWS if any(map(view.fits, kinds))]
