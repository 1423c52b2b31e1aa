# SPDX-License-Identifier: GPL-2.0
"""The command iopath."""

import argparse
import json
import os
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from iopath import __version__, measure, report, rungs
from iopath.build import image_inputs
from iopath.cache import Cache, out_of_space
from iopath.errors import IopathError, UsageError
from iopath.guest import Machine
from iopath.paths import cache_root
from iopath.process import Stopped
from iopath.progress import Reporter


def _block_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([km]?)", text.lower())
    size = int(match.group(1)) << {"": 0, "k": 10, "m": 20}[match.group(2)] if match else 0
    if not 512 <= size <= 1 << 20 or size % 512:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a block size: a multiple of 512 bytes from 512 to 1m is"
        )
    return size


def _positive(low: int, high: int, unit: str) -> "type":
    def parse(text: str) -> int:
        if not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a number of {unit}: {low} to {high} is"
            )
        return int(text)

    return parse  # type: ignore[return-value]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="iopath",
        description="What one I/O costs in the Linux kernel above the driver, in instructions.",
        epilog="KERNEL is debian:SERIES (debian:6.1, debian:7.2-rt), debian:RELEASE"
        " (debian:7.2.12+deb13-amd64) or tree:PATH (a built kernel tree).",
    )
    parser.add_argument("--version", action="version", version=f"iopath {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    listing = commands.add_parser("kernels", help="list the kernels that can be measured")
    listing.add_argument("--all", action="store_true", help="also those that lack a part")
    listing.add_argument("--update", action="store_true", help="fetch the lists of packages anew")
    listing.add_argument("--json", metavar="FILE", type=Path, help="write the list to FILE")

    measuring = commands.add_parser("measure", help="measure what an I/O costs on kernels")
    measuring.add_argument("kernels", nargs="+", metavar="KERNEL")
    measuring.add_argument(
        "--rung", action="append", default=[], metavar="NAME",
        help=f"only these rungs, wildcards allowed: {', '.join(r.name for r in rungs.RUNGS)}",
    )  # fmt: skip
    measuring.add_argument("--op", choices=rungs.OPS, action="append", help="only this operation")
    measuring.add_argument(
        "--bs", type=_block_size, action="append", metavar="SIZE",
        help="bytes per I/O, 512 to 1m (default: 4k); several make several rows",
    )  # fmt: skip
    measuring.add_argument("--no-fill", action="store_true", help="load blknull with zero_fill=0")
    measuring.add_argument("--json", metavar="FILE", type=Path, help="write the result to FILE")
    _add_machine(measuring)
    for command in (listing, measuring):
        command.add_argument("--quiet", action="store_true", help="say nothing of the progress")
    return parser


def _add_machine(parser: argparse.ArgumentParser) -> None:
    default = Machine()
    guest = parser.add_argument_group("the guest")
    guest.add_argument(
        "--cmdline", default=default.cmdline, metavar="TEXT",
        help="kernel command line (default: '%(default)s')",
    )  # fmt: skip
    guest.add_argument(
        "--cpu", default=default.cpu, metavar="MODEL", help="CPU as QEMU names it (default: max)"
    )
    guest.add_argument(
        "--memory", default=default.memory, type=_positive(256, 1 << 16, "MiB"), metavar="MIB",
        help="memory in MiB (default: %(default)s)",
    )  # fmt: skip
    guest.add_argument(
        "--seed", default=default.seed, type=_positive(0, (1 << 31) - 1, "seeds"), metavar="N",
        help="seed of all that is random (default: %(default)s)",
    )  # fmt: skip
    guest.add_argument(
        "--time-limit", default=default.time_limit, type=_positive(1, 86400, "seconds"),
        metavar="SECONDS", help="real time that a boot may take (default: %(default)s)",
    )  # fmt: skip


def _write(path: Path, value: object) -> None:
    """Write JSON to *path*: the whole of it or nothing."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with out_of_space(f"cannot write {path}"):
            part.write_text(json.dumps(value, indent=1) + "\n")
            part.rename(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def _kernels(session: measure.Session, args: argparse.Namespace, out: Console) -> None:
    kernels = session.debian_kernels(update=args.update)
    cached = {k.release for k in kernels if session.cache.path("image", image_inputs(k)).exists()}
    shown = [k for k in kernels if args.all or not k.missing]
    if args.json:
        _write(args.json, [vars(k) | {"cached": k.release in cached} for k in shown])
    report.show_kernels(shown, cached, out)


def _measure(session: measure.Session, args: argparse.Namespace, out: Console) -> None:
    if args.json and not args.json.absolute().parent.is_dir():
        raise UsageError(f"cannot write {args.json}: there is no such folder")
    settings = measure.Settings(
        rungs=rungs.select(args.rung),
        ops=args.op or rungs.OPS,
        block_sizes=args.bs or (4096,),
        machine=Machine(args.cpu, args.memory, args.cmdline, args.seed, args.time_limit),
        fill=not args.no_fill,
    )
    result = session.measure(args.kernels, settings)
    measure.validate(result, "the result")
    if args.json:
        _write(args.json, result)
    report.show(result, out)


_COMMANDS = {"kernels": _kernels, "measure": _measure}


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    args = _parser().parse_args(argv)
    width = None if sys.stdout.isatty() else 160
    out = Console(width=width, highlight=False)
    reporter = Reporter(Console(stderr=True), quiet=args.quiet)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        session = measure.Session(Cache(cache_root(), reporter.warn), reporter)
        _COMMANDS[args.command](session, args, out)
    except IopathError as error:
        print(f"iopath: {error}", file=sys.stderr)
        return error.status
    except (KeyboardInterrupt, Stopped):
        print("iopath: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
