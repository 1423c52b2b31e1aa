# SPDX-License-Identifier: GPL-2.0
"""List the cache, or remove entries from it."""

import argparse
import time
from collections.abc import Sequence

from rich.console import Console
from rich.filesize import decimal

from iopath.base import prune
from iopath.base.errors import UsageError
from iopath.base.prune import Stored
from iopath.cli.options import in_units
from iopath.cli.work import Work
from iopath.show.console import put
from iopath.show.table import Table

# What the entries of each kind are. Those of the project's tests are not listed.
KINDS = {
    "apt": "package lists",
    "bisect": "work trees of bisections",
    "ccache": "objects of compiled kernels",
    "debug": "debug information of kernels",
    "emulator": "QEMU of other Debian suites",
    "failed": "errors of builds",
    "image": "kernels of packages",
    "kernel": "kernels built from commits",
    "logs": "consoles of guests",
    "mailed": "commits of patches in mails",
    "measured": "figures of kernels, from results",
    "modules": "blknull and biogen for a kernel",
    "programs": "programs that guests run",
    "qemu": "facts on the installed QEMU",
    "repository": "copies of git repositories",
    "result": "output of guests",
    "root": "root file systems with compilers",
    "sent": "kernels that workers were sent",
    "state": "saved guests, to be resumed",
    "workspace": "build folders of commits",
}

EXAMPLES = ("iopath cache", "iopath cache --prune --size 10G")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prune", action="store_true", help="remove the entries that have been unused longest"
    )
    parser.add_argument(
        "--size", type=in_units({"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}, "500M or 10G"),
        metavar="SIZE",
        help="with --prune: remove entries until the cache takes at most SIZE, e.g. 10G"
        f" (default: {prune.LIMIT >> 30}G)",
    )  # fmt: skip
    parser.add_argument(
        "--older", type=in_units({"m": 60, "h": 3600, "d": 86400}, "12h or 30d"), metavar="AGE",
        help="with --prune: remove entries unused for AGE instead, e.g. 30d or 12h",
    )  # fmt: skip


def run(args: argparse.Namespace, work: Work) -> int:
    if not args.prune and (args.size is not None or args.older is not None):
        raise UsageError("--size and --older need --prune")
    with work.cache() as cache:
        if not args.prune:
            _show(prune.stored(cache.root), work.out)
            return 0
        size = prune.LIMIT if args.size is None and args.older is None else args.size
        removed = prune.prune(cache.root, size=size, age=args.older)
    freed = sum(entry.size for entry in removed)
    work.out.print(f"removed {len(removed)} entries, {decimal(freed)}", highlight=False)
    return 0


def _show(entries: Sequence[Stored], console: Console) -> None:
    """Print what the cache holds, by kind."""
    table = Table("kind")
    for name in ("entries", "size", "last used"):
        table.number_column(name, joined=True)
    table.text_column("what", joined=True)
    kinds = sorted({entry.kind for entry in entries})
    for kind in kinds:
        of_kind = [entry for entry in entries if entry.kind == kind]
        table.row(
            kind,
            str(len(of_kind)),
            decimal(sum(entry.size for entry in of_kind)),
            _ago(max(entry.used for entry in of_kind)),
            KINDS.get(kind.partition("-")[0], ""),
        )
    table.add_section()
    table.row("all", str(len(entries)), decimal(sum(entry.size for entry in entries)))
    put(console, table)


def _ago(moment: float) -> str:
    seconds = max(0.0, time.time() - moment)
    for name, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds / length)} {name} ago"
    return "now"
