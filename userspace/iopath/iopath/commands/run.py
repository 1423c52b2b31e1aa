# SPDX-License-Identifier: GPL-2.0
"""Count what any program costs, by its system calls; or run rungs on this machine."""

import argparse
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from iopath.base import files
from iopath.base.errors import IopathError, UsageError
from iopath.cli import on_host
from iopath.cli.building import Building
from iopath.cli.measuring import Guest, Range, Scenario, add_boots
from iopath.cli.options import add_all, add_file, add_top, number, percent
from iopath.cli.work import Work
from iopath.compare import limits
from iopath.compare import program as changes
from iopath.host import devices, loop, survey
from iopath.measure import executable, program
from iopath.measure.program import Program
from iopath.measure.session import Session
from iopath.results import program as results
from iopath.results.layers import Layers
from iopath.rungs.builtin import DEVICES, MOUNTS
from iopath.show import program as show

EXAMPLES = (
    "iopath run debian:6.1 debian:7.2 --package fio -- fio job.fio",
    "iopath run host --rung dio.pread",
)
PROGRAM = True  # behind --

_SECONDS = 3
_LIMIT = 20_000_000_000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    parser.add_argument(
        "--device", choices=list(DEVICES), default="null",
        help="what the program finds in /dev: blknull0, in mode bio (null), blknull2, in mode mq,"
        " null_blk's nullb0, or nvme0n1 (default: null)",
    )  # fmt: skip
    parser.add_argument(
        "--mount", choices=list(MOUNTS),
        help="mount a new file system at /mnt, and run the program there",
    )  # fmt: skip
    parser.add_argument(
        "--package", metavar="NAME", help="take the program from this package of Debian"
    )
    parser.add_argument(
        "--file", action="append", default=[], metavar="HOST[:GUEST]",
        help="give the guest a file; arguments that name files are given as well",
    )  # fmt: skip
    add_file(parser, "output", "file for what the program prints on the first kernel")
    parser.add_argument(
        "--max-instructions", type=number(1, 1 << 62, "instructions"), default=_LIMIT, metavar="N",
        help="end a program that has executed N instructions (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--drain", type=number(0, 600, "seconds"), default=0, metavar="SECONDS",
        help="also count what the kernel does in so many seconds of the guest's time after the"
        " program's end (default: 0)",
    )  # fmt: skip
    parser.add_argument(
        "--fail-above", type=percent, metavar="PERCENT",
        help="exit with 1 if the whole or a system call grows by more than PERCENT, with 125 if it"
        " cannot be judged",
    )  # fmt: skip
    add_file(parser, "json", "file for the whole result")
    add_file(parser, "markdown", "file for what is printed, as Markdown")
    add_all(parser)
    add_top(parser, "functions to show of each system call (default: 1)")
    add_boots(parser, 1)
    parser.add_argument(
        "--seconds", type=number(1, 86400, "seconds"), default=_SECONDS, metavar="N",
        help="host: how long each rung runs (default: 3)",
    )  # fmt: skip
    Scenario.add(parser)
    on_host.add_cpu(parser)
    Guest.add(parser)
    Building.add(parser)
    Range.add(parser)


def run(args: argparse.Namespace, work: Work) -> int:
    scenario, guest, building = Scenario.read(args), Guest.read(args), Building.read(args)
    others = {
        "device": args.device != "null", "mount": args.mount, "package": args.package,
        "file": args.file, "output": args.output, "drain": args.drain,
        "max-instructions": args.max_instructions != _LIMIT, "json": args.json,
        "markdown": args.markdown,
        "fail-above": args.fail_above is not None, "all": args.all, "top": args.top is not None,
        "boots": args.boots != 1,
    }  # fmt: skip
    others = {name: bool(used) for name, used in others.items()}
    if on_host.is_asked(args.kernels, scenario, guest, building.arch, others):
        if args.program:
            raise UsageError("host: runs rungs; a program is counted on another KERNEL")
        return _on_host(scenario, args, work)
    for_host = (args.rung, args.op, args.bs, args.no_fill, args.incoherent, args.rungs)
    if any(for_host) or args.seconds != _SECONDS or args.on_cpu is not None:
        raise UsageError("run: options of rungs are for host: name a program behind --")
    if not args.program:
        raise UsageError("run: no program: name it behind --, as in iopath run debian:6.1 -- ls")
    guest.need_counts()
    building.check(args.kernels)
    for path in filter(None, (args.json, args.markdown, args.output)):
        files.check(path)
    return _count(args, guest, building, work)


def _count(args: argparse.Namespace, guest: Guest, building: Building, work: Work) -> int:
    with work.session() as session:
        session.recipe = building.recipe(session)
        names = Range.read(args).expand(session, args.kernels)
        if repeated := [name for name in names if names.count(name) > 1]:
            raise UsageError(f"{repeated[0]}: a kernel may be named once")
        wanted = _program(args, session)
        ran, printed, qemu = program.run(session, names, wanted, guest.machine, args.boots)
    if args.output:
        args.output.write_bytes(printed[names[0]])
    device = "" if args.mount else args.device
    result = program.result(ran, wanted, guest.machine, qemu, device, args.mount or "")
    comparisons = [changes.compare(ran[0], other, Layers(None)) for other in ran[1:]]
    if args.json:
        files.write_text(args.json, results.dump(result, comparisons))
    amount = {"every": args.all, "top": args.top}
    views = [show.changed(result, one, **amount) for one in comparisons]
    views = views or [show.counted(result, ran[0], **amount)]
    if args.markdown:
        files.write_text(args.markdown, "\n".join(view.markdown for view in views))
    for at, view in enumerate(views):
        if at:
            work.out.print()
        view.show(work.out)
    if args.fail_above is not None:
        _judge(ran, args.fail_above)
    return 0


def _judge(ran: Sequence[results.Ran], limit: float) -> None:
    if len(ran) == 1:
        raise UsageError("--fail-above: needs two kernels")
    grown, unknown = [], []
    for other in ran[1:]:
        more, untold = changes.regressions(ran[0], other, limit)
        grown += more
        unknown += untold
    limits.gate(grown, unknown)


def _program(args: argparse.Namespace, session: Session) -> Program:
    name, *words = args.program
    if args.package:
        path, found = executable.of_package(session.cache, session.apt, args.package, name)
    else:
        path, found = executable.of_machine(name)
    rung = MOUNTS[args.mount] if args.mount else DEVICES[args.device]
    wanted = Program(
        path, words, found, rung, bool(args.mount), args.max_instructions, args.drain, _stdin()
    )
    given: dict[str, bytes] = {}
    for text in args.file:
        host, _, inside = text.partition(":")
        given[_inside(wanted, inside or Path(host).name)] = _read(host, "--file ")
    for word in words:
        plain = PurePosixPath(word)
        if not plain.is_absolute() and ".." not in plain.parts and Path(word).is_file():
            given.setdefault(_inside(wanted, word), _read(word))
    return replace(wanted, given=given)


def _inside(wanted: Program, path: str) -> str:
    """A path in the guest, as its files are named."""
    return str(PurePosixPath(wanted.work, path)).lstrip("/")


def _read(name: str, option: str = "") -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"{option}{name}: {error.strerror}") from None


def _stdin() -> bytes | None:
    """The standard input, if it is a file."""
    try:
        is_file = stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):
        return None
    return sys.stdin.buffer.read() if is_file else None


def _on_host(scenario: Scenario, args: argparse.Namespace, work: Work) -> int:
    on_host.prepare(work)
    runs = on_host.runs(scenario, work.reporter.warn)
    cpu = survey.choose_cpu(args.on_cpu)
    devices.check(runs)
    for run in runs:
        words = loop.timed(run, cpu, args.seconds)
        work.say(f"$ {' '.join(words)}")
        status = subprocess.run(words, check=False).returncode
        if status:
            raise IopathError(f"{run.rung.name} {run.op}: ioloop ended with status {status}")
    return 0
