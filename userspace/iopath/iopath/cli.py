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
from typing import Any

from rich.console import Console

from iopath import __version__, compare, profile, report, result, rungs
from iopath.build import image_inputs
from iopath.cache import Cache, out_of_space
from iopath.errors import IopathError, UsageError
from iopath.guest import Machine
from iopath.measure import Session
from iopath.paths import cache_root
from iopath.plan import Settings
from iopath.process import Stopped
from iopath.profile import Layers
from iopath.progress import Reporter


def _block_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([km]?)", text.lower())
    size = int(match.group(1)) << {"": 0, "k": 10, "m": 20}[match.group(2)] if match else 0
    if not 512 <= size <= 1 << 20 or size % 512:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a block size: a multiple of 512 bytes from 512 to 1m is"
        )
    return size


def _number(low: int, high: int, unit: str) -> "type":
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
        "--boots", default=1, type=_number(1, 100, "boots"), metavar="N",
        help="boot each kernel N times, with other seeds and layouts (default: 1)",
    )  # fmt: skip

    profiling = commands.add_parser(
        "profile", help="show where the instructions go: functions and layers"
    )
    profiling.add_argument("kernels", nargs="+", metavar="KERNEL")
    profiling.add_argument(
        "--folded",
        metavar="FILE",
        type=Path,
        help="write call stacks as flame graph tools read them",
    )
    profiling.add_argument(
        "--top", type=_number(1, 10000, "functions"), default=40, metavar="N",
        help="functions to show (default: 40)",
    )  # fmt: skip

    comparing = commands.add_parser(
        "compare", help="compare kernels or result files with the first, function by function"
    )
    comparing.add_argument("kernels", nargs="+", metavar="KERNEL|FILE.json")
    comparing.add_argument(
        "--boots", default=2, type=_number(1, 100, "boots"), metavar="N",
        help="boot each kernel N times, with other seeds and layouts (default: 2)",
    )  # fmt: skip
    comparing.add_argument(
        "--top", type=_number(1, 10000, "functions"), default=15, metavar="N",
        help="functions to show for each difference (default: 15)",
    )  # fmt: skip
    comparing.add_argument(
        "--fail-above", type=_percent, metavar="PERCENT",
        help="exit with 1 if any rung takes more than that longer, with 125 if that cannot be told",
    )  # fmt: skip
    comparing.add_argument(
        "--limits", metavar="FILE", type=Path, help='limits per rung, TOML: "dio.pread read" = 0.5'
    )
    comparing.add_argument(
        "--anyway", action="store_true", help="compare files that differ in more than the kernel"
    )

    for command in (measuring, profiling, comparing):
        _add_scenario(command)
        _add_machine(command)
    for command in (profiling, comparing):
        command.add_argument(
            "--layers", metavar="FILE", type=Path, help="a table of layers instead of iopath's"
        )
    for command in (listing, measuring, profiling, comparing):
        command.add_argument("--quiet", action="store_true", help="say nothing of the progress")
    return parser


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of per cent: 0 or more is")
    return value


def _add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rung", action="append", default=[], metavar="NAME",
        help=f"only these rungs, wildcards allowed: {', '.join(r.name for r in rungs.RUNGS)}",
    )  # fmt: skip
    parser.add_argument("--op", choices=rungs.OPS, action="append", help="only this operation")
    parser.add_argument(
        "--bs", type=_block_size, action="append", metavar="SIZE",
        help="bytes per I/O, 512 to 1m (default: 4k); several make several rows",
    )  # fmt: skip
    parser.add_argument("--no-fill", action="store_true", help="load blknull with zero_fill=0")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the result to FILE")


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
        "--memory", default=default.memory, type=_number(256, 1 << 16, "MiB"), metavar="MIB",
        help="memory in MiB (default: %(default)s)",
    )  # fmt: skip
    guest.add_argument(
        "--seed", default=default.seed, type=_number(0, (1 << 31) - 1, "seeds"), metavar="N",
        help="seed of all that is random (default: %(default)s)",
    )  # fmt: skip
    guest.add_argument(
        "--time-limit", default=default.time_limit, type=_number(1, 86400, "seconds"),
        metavar="SECONDS", help="real time that a boot may take (default: %(default)s)",
    )  # fmt: skip


def _write(path: Path, text: str) -> None:
    """Write *text* to *path*: the whole of it or nothing."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with out_of_space(f"cannot write {path}"):
            part.write_text(text)
            part.rename(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def _kernels(session: Session, args: argparse.Namespace, out: Console) -> None:
    kernels = session.debian_kernels(update=args.update)
    cached = {k.release for k in kernels if session.cache.path("image", image_inputs(k)).exists()}
    shown = [k for k in kernels if args.all or not k.missing]
    if args.json:
        listed = [vars(k) | {"cached": k.release in cached} for k in shown]
        _write(args.json, json.dumps(listed, indent=1) + "\n")
    report.show_kernels(shown, cached, out)


def _settings(args: argparse.Namespace, *, boots: int = 1, profiled: bool = False) -> Settings:
    for path in (args.json, getattr(args, "folded", None)):
        if path and not path.absolute().parent.is_dir():
            raise UsageError(f"cannot write {path}: there is no such folder")
    return Settings(
        rungs=rungs.select(args.rung),
        ops=args.op or rungs.OPS,
        block_sizes=args.bs or (4096,),
        machine=Machine(args.cpu, args.memory, args.cmdline, args.seed, args.time_limit),
        fill=not args.no_fill,
        boots=boots,
        profile=profiled,
        layers=getattr(args, "layers", None),
    )


def _take(session: Session, args: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    """Measure, and write the result where it is wanted."""
    measured = session.measure(args.kernels, settings)
    result.validate(measured, "the result")
    if args.json:
        _write(args.json, json.dumps(measured, indent=1) + "\n")
    return measured


def _measure(session: Session, args: argparse.Namespace, out: Console) -> None:
    report.show(_take(session, args, _settings(args, boots=args.boots)), out)


def _profile(session: Session, args: argparse.Namespace, out: Console) -> None:
    measured = _take(session, args, _settings(args, profiled=True))
    if args.folded:
        _write(args.folded, profile.fold_all(measured["results"]))
    report.show_profile(measured, args.top, out)


def _compare(session: Session, args: argparse.Namespace, out: Console) -> None:
    layers = Layers(args.layers)
    limits = compare.read_limits(args.limits) if args.limits else {}
    files = [name for name in args.kernels if name.endswith(".json")]
    names = [name for name in args.kernels if name not in files]
    parts = [(Path(name).name, result.load(Path(name))) for name in files]
    if names:
        measured = session.measure(names, _settings(args, boots=args.boots, profiled=True))
        result.validate(measured, "the result")
        parts.append(("measured now", measured))
    differing = compare.incomparable(parts)
    if differing and not args.anyway:
        raise IopathError(
            f"these differ in more than the kernel: {'; '.join(differing)}"
            " (--anyway compares them all the same)"
        )
    whole = compare.merge(parts)
    order = {name: at for at, name in enumerate(args.kernels)}
    whole["kernels"].sort(key=lambda kernel: order.get(kernel["name"], -1))
    comparison = compare.compare(whole, layers)
    comparison["labels"] = [*differing, *comparison["labels"]]
    if args.json:
        _write(args.json, json.dumps(whole, indent=1) + "\n")
    report.show_header(whole, out)
    report.show_comparison(comparison, args.top, out)
    if args.fail_above is not None or limits:
        above = float("inf") if args.fail_above is None else args.fail_above
        found = compare.regressions(comparison, above, limits)
        if found:
            raise IopathError("; ".join(found))


_COMMANDS = {
    "kernels": _kernels,
    "measure": _measure,
    "profile": _profile,
    "compare": _compare,
}


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
        session = Session(Cache(cache_root(), reporter.warn), reporter)
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
