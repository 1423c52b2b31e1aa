# SPDX-License-Identifier: GPL-2.0
"""A reply to a series that came by mail: what each patch costs, in a few lines of plain text."""

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from email.header import Header

from iopath.kernels import kbuild
from iopath.kernels.mail import Mail, Series
from iopath.results.layers import Layers
from iopath.show import sharing_tables, texts
from iopath.show.console import wrap
from iopath.studies.mailed import Patches
from iopath.studies.series import SeriesCommit, SeriesReport

_WIDTH = 72  # columns
_LINES = 25
_STATEMENT = "Measured, not timed: instructions {} in emulation. Repeat it with:"
_UTF_8 = (
    "MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8",
    "Content-Transfer-Encoding: 8bit",
)  # fmt: skip


class MailReport(SeriesReport):
    """The report on a series that came by mail. *repeat* is the command for those who have the
    mails elsewhere. *always*: there is a reply even if no patch changes anything."""

    def __init__(
        self, thread: Series, patches: Patches, layers: Layers, command: str, repeat: str,
        *, every: bool, always: bool,
    ) -> None:  # fmt: skip
        super().__init__([*patches.values()], layers, command, every=every)
        self._thread = thread
        self._patches = patches
        self._repeat = repeat
        self._always = always

    def reply(self) -> str:
        return text(self._thread, self._patches, self._repeat, always=self._always)


def text(thread: Series, patches: Patches, command: str, *, always: bool) -> str:
    """The reply; empty if no patch changes anything, unless *always* is set."""
    blocks = [
        [_cut(f"> {mail.subject}"), *lines]
        for mail in thread.patches
        if (lines := [*_lines(patches.get(mail.number))])
    ]
    if not (blocks or always):
        return ""
    whats = [one.comparison.command for one in patches.values() if one.comparison]
    what = f"of {whats[0]}" if whats and whats[0] else "per I/O"
    lines = [*_headers(thread.first), ""]
    tail = ["", *wrap(_STATEMENT.format(what), _WIDTH), *_command(command)]
    # Characters of others than ASCII are in subjects and names.
    if not all(map(str.isascii, itertools.chain(*blocks))):
        lines = [*_UTF_8, *lines]
    if blocks:
        lines += _fitting(blocks, _LINES - len(lines) - len(tail))
    else:
        lines.append("No patch changes anything.")
    return "\n".join([*lines, *tail, ""])


def _headers(mail: Mail) -> Iterator[str]:
    """What makes it a reply. Names in References are the thread's first and last ones."""
    subject = mail.subject if mail.subject.lower().startswith("re:") else f"Re: {mail.subject}"
    title = Header(subject, None if subject.isascii() else "utf-8", _WIDTH, "Subject")
    yield from f"Subject: {title.encode()}".splitlines()
    if mail.message_id:
        yield f"In-Reply-To: {mail.message_id}"
        names = dict.fromkeys([*mail.references[:1], *mail.references[-1:], mail.message_id])
        for number, name in enumerate(names):
            yield f" {name}" if number else f"References: {name}"


def _lines(entry: SeriesCommit | None) -> Iterator[str]:
    """What is said of a patch: nothing if it changes nothing."""
    if entry is None:
        yield "not measured"
    elif entry.error:
        error = kbuild.without_log(entry.error).replace("/src/", "")
        yield from wrap(re.sub(r"^(?!does not |needs )", "not measured: ", error), _WIDTH)
    elif changes := [*entry.changes()]:
        rung, change = changes[0]
        title = entry.comparison.title(rung) if entry.comparison else rung.title
        unsure = "?" if change.verdict == "unknown" else ""
        figure, functions, kind = change, change.functions, "path"
        if change.total:
            figure, functions, kind = change.total, change.total.functions or (), "total"
        part = "" if figure.percent is None else f" ({figure.percent:+.2f} %)"
        said = [f"{title}: {kind} {texts.signed(figure.difference)}{unsure}{part}"]
        # What is said first is not cut off. Nothing else shows a shared line.
        for shared in entry.shared.get(rung.key, ())[:1]:
            said.append(f"shared: {sharing_tables.changed_lines(shared, 1)}")
        if functions:
            said.append(f"{functions[0].name} {texts.signed(functions[0].difference)}")
        if costly := texts.costly(change):
            said.append(costly)
        elif change.cause:
            said.append(change.cause)
        if more := len(changes) - 1:
            said.append(f"{texts.rungs(more)} more")
        yield from wrap("; ".join(said), _WIDTH)


def _fitting(blocks: Sequence[list[str]], room: int) -> list[str]:
    """The lines of the *blocks* in so much *room*: each begins with two, the others are taken while
    there is room. The last blocks are only counted if there is none."""
    shown = list(blocks)
    while 2 * len(shown) + (len(shown) < len(blocks)) > room and len(shown) > 1:
        shown.pop()
    left = len(blocks) - len(shown)
    spare = room - 2 * len(shown) - bool(left)
    lines = []
    for block in shown:
        taken = min(len(block) - 2, max(spare, 0))
        spare -= taken
        kept = block[: 2 + taken]
        if len(kept) < len(block):
            kept[-1] = f"{kept[-1][: _WIDTH - 4]} ..."
        lines += kept
    if left:
        lines.append(f"{left} more {'patch' if left == 1 else 'patches'} that change something")
    return lines


def _command(command: str) -> list[str]:
    """The command on lines that a shell joins."""
    lines: list[str] = []
    for word in shlex.split(command):
        quoted = shlex.quote(word)
        if lines and len(lines[-1]) + len(quoted) + 3 <= _WIDTH:
            lines[-1] += f" {quoted}"
        else:
            lines.append(f"    {quoted}" if lines else f"  {quoted}")
    return [*(f"{line} \\" for line in lines[:-1]), *lines[-1:]]


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 4].rstrip()} ..."
