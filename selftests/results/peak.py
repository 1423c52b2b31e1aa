# SPDX-License-Identifier: GPL-2.0
"""Count what the published records of I/Os per second execute for each I/O, with the configuration
of a distribution and with a minimal one, and write where the difference is.

    build/venv/bin/python selftests/results/peak.py [--output FILE] [KERNEL]

The kernels are one of Debian's, and one that is built of the same source.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from debian.debian_support import Version
from page import main, measure, sums, table

from iopath.base.errors import UsageError
from iopath.kernels.recipe import SUITE, recipe
from iopath.kernels.sources.debian import DebianKernel
from iopath.measure.session import Session
from iopath.results.result import ExactRecord
from iopath.rungs.builtin import select
from iopath.rungs.runs import Settings

KERNEL = "debian:7.2"
OPTIONS = ("BLK_DEV_NULL_BLK=m",)  # of the minimal configuration
SPLIT = "peak.null_blk"  # the rung that is shown by layers and functions
FUNCTIONS = 20  # of those that differ most

# The record: I/Os per second on a core, and the frequency of that core.
IOPS, HERTZ = 12.8e6, 5.2e9
CYCLES = HERTZ / IOPS

ABOUT = f"""\
# What the loop of a record executes

Made by `selftests/results/peak.py`: instructions per read of 512 bytes by io_uring, of the
loop and of the kernel. 32 reads are submitted and awaited together, in registered buffers and on a
registered file, polled where the device polls, without statistics, merges and throttling of
writeback. This is what `t/io_uring -b512 -d128 -c32 -s32 -p1 -F1 -B1` does on such a device.

A published record, {IOPS / 1e6:.1f} million I/Os per second on a core of {HERTZ / 1e9:.1f} GHz,
leaves {CYCLES:.0f} cycles for an I/O. In parentheses: how many of the instructions such a core
would have to execute in each cycle.
"""


def repository(session: Session, kernel: DebianKernel, folder: Path) -> str:
    """A git repository of the source of a kernel of Debian's, as iopath names it."""
    name = f"linux-source-{kernel.series}"
    release = kernel.release.partition("+")[0]
    packages = [package for package in session.apt.packages() if package.name == name]
    package = next(
        (one for one in packages if one.version.startswith(release)),
        max(packages, key=lambda one: Version(one.version)),
    )
    if not (folder / ".git/HEAD").exists():
        session.apt.download(
            [f"{name}={package.version}"], package.suite, closure=False, progress=lambda part: None
        )
        folder.mkdir(parents=True)
        deb = session.apt.deb(f"{name}_{package.version}_all.deb")
        script = f"""
dpkg-deb --fsys-tarfile "$0" | tar -xO ./usr/src/{name}.tar.xz | tar -xJ --strip-components=1
git init -q
git add -A -f .
git -c user.name=Debian -c user.email=debian@localhost commit -q -m "Linux {package.version}"
"""
        words = ["bash", "-e", "-o", "pipefail", "-c", script, deb]
        subprocess.run(words, cwd=folder, check=True)
    return f"git:{folder}@HEAD"


def rungs(session: Session, kernel: str) -> dict[str, ExactRecord]:
    """The rungs of a kernel, by name."""
    settings = Settings(select(["peak.*"]), block_sizes=(512,), ops=("read",), profile=True)
    return {record.rung: record for record in measure(session, kernel, settings)}


# The tables.


def row(name: str, one: float, other: float) -> list[str]:
    return [name, f"{one:,.2f}", f"{other:,.2f}", f"{one - other:+,.2f}"]


def differences(one: Mapping[str, float], other: Mapping[str, float]) -> list[list[str]]:
    """The largest difference first; of more than FUNCTIONS, the rest in one row."""
    pairs = {name: (one.get(name, 0.0), other.get(name, 0.0)) for name in {*one, *other}}
    names = sorted(pairs, key=lambda name: (pairs[name][1] - pairs[name][0], name))
    shown, rest = names[:FUNCTIONS], names[FUNCTIONS:]
    rows = [row(name, *pairs[name]) for name in shown]
    if rest:
        both = (sum(pairs[name][side] for name in rest) for side in (0, 1))
        rows.append(row(f"{len(rest)} more", *both))
    return rows


def document(session: Session, kernels: Sequence[str]) -> str:
    session.recipe = recipe(SUITE, None, OPTIONS)
    name = kernels[0]
    kernel = session.find(name)
    if len(kernels) > 1 or not isinstance(kernel, DebianKernel):
        raise UsageError("invalid kernels: must be one of Debian's")
    debian = rungs(session, name)
    minimal = rungs(session, repository(session, kernel, Path.cwd() / "build/linux"))
    columns = (debian[SPLIT].kernel.release, "the same source, minimal configuration")

    def per_io(record: ExactRecord) -> str:
        count = record.instructions_per_io
        return f"{count:,.2f} ({count / CYCLES:.1f})"

    rows = [[rung, per_io(debian[rung]), per_io(minimal[rung])] for rung in debian]
    parts = [ABOUT, table(["rung", *columns], rows), ""]
    for what, title in (("layer", "by layers"), ("name", "by functions")):
        found = [sums(records[SPLIT], what) for records in (debian, minimal)]
        head = [what.replace("name", "function"), *columns, "difference"]
        parts += [f"## {SPLIT}, {title}", "", table(head, differences(*found)), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main(__file__, __doc__ or "", document, [KERNEL]))
