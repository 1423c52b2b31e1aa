# SPDX-License-Identifier: GPL-2.0
"""The command iopath."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.filesize import decimal

from iopath import (
    __version__,
    bisection,
    compare,
    devices,
    files,
    ftrace,
    hardware,
    host,
    loop,
    noise,
    perf,
    prune,
    report,
    result,
    rungfile,
    rungs,
    survey,
)
from iopath.arch import ARCH
from iopath.build import image_inputs
from iopath.cache import Cache, cache_root
from iopath.errors import IopathError, Regressed, UsageError
from iopath.layers import Layers
from iopath.machine import Machine
from iopath.measure import Session
from iopath.plan import Run, Settings, make_runs
from iopath.process import Stopped
from iopath.progress import Reporter

CANNOT_TELL = 125  # exit status: git bisect run skips the commit

_FILES = {
    "json": "the whole result, for compare and other programs",
    "html": "a page with charts, tables and flame graphs; it needs no network",
    "markdown": "the figures, for a mail or a commit message",
    "svg": "the ladder as a chart",
    "png": "the ladder as a chart",
    "history": "the figures over the kernels as a chart, .svg or .png",
    "folded": "call stacks, as flame graph tools read them",
}


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


def _unit(units: Mapping[str, int], example: str) -> Callable[[str], int]:
    """A parser of a number with one of *units*."""

    def parse(text: str) -> int:
        match = re.fullmatch(rf"(\d+)([{''.join(units)}])", text)
        if not match:
            raise argparse.ArgumentTypeError(f"invalid value '{text}': must be like {example}")
        return int(match[1]) * units[match[2]]

    return parse


_bytes = _unit({"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}, "500M or 10G")
_seconds = _unit({"m": 60, "h": 3600, "d": 86400}, "12h or 30d")


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (--help lists what there is)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="iopath",
        description="What one I/O costs in the Linux kernel above the driver, in instructions.",
        epilog="KERNEL is debian:SERIES (debian:6.1, debian:7.2-rt), debian:RELEASE"
        " (debian:7.2.12+deb13-amd64), tree:PATH (a built kernel tree) or host (the running"
        " kernel, measured in time).",
    )
    parser.add_argument("--version", action="version", version=f"iopath {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    listing = commands.add_parser("kernels", help="list the kernels that can be measured")
    listing.add_argument("--all", action="store_true", help="also those that lack a part")
    listing.add_argument("--update", action="store_true", help="fetch the lists of packages anew")
    listing.add_argument("--json", metavar="FILE", type=Path, help="write the list to FILE")

    caching = commands.add_parser("cache", help="list what the cache holds, and remove from it")
    caching.add_argument("--prune", action="store_true", help="remove what was not used for long")
    caching.add_argument(
        "--size", type=_bytes, metavar="SIZE",
        help="with --prune: the longest unused, until the cache takes at most SIZE, e.g. 10G"
        f" (default: {prune.LIMIT >> 30}G)",
    )  # fmt: skip
    caching.add_argument(
        "--older", type=_seconds, metavar="AGE",
        help="with --prune: instead, what was not used for AGE, e.g. 30d or 12h",
    )  # fmt: skip

    measuring = commands.add_parser("measure", help="measure what an I/O costs on kernels")
    measuring.add_argument("kernels", nargs="+", metavar="KERNEL")
    measuring.add_argument(
        "--boots", default=1, type=_number(1, 100, "boots"), metavar="N",
        help="boot each kernel N times, with other seeds (default: 1)",
    )  # fmt: skip

    profiling = commands.add_parser(
        "profile", help="show where the instructions go: functions and layers"
    )
    profiling.add_argument("kernels", nargs="+", metavar="KERNEL")
    profiling.add_argument(
        "--top", type=_number(1, 10000, "functions"), default=40, metavar="N",
        help="functions to show (default: 40)",
    )  # fmt: skip

    comparing = commands.add_parser(
        "compare", help="compare kernels or result files with the first, function by function"
    )
    comparing.add_argument("kernels", nargs="+", metavar="KERNEL|FILE.json")
    comparing.add_argument(
        "--fail-above", type=_percent, metavar="PERCENT",
        help="exit with 1 if any rung takes more than that longer, with 125 if that cannot be told",
    )  # fmt: skip
    comparing.add_argument(
        "--limits",
        metavar="FILE",
        type=Path,
        help='limits per rung and metric, TOML: "dio.pread read locked" = 0',
    )
    comparing.add_argument(
        "--anyway", action="store_true", help="compare files that differ in more than the kernel"
    )

    bisecting = commands.add_parser(
        "bisect", help="find the kernel package, or the commit, that changed a rung"
    )
    bisecting.add_argument("good", metavar="GOOD", help="a kernel, or with --tree a commit")
    bisecting.add_argument("bad", metavar="BAD", help="a kernel, or with --tree a commit")
    bisecting.add_argument(
        "--tree", metavar="PATH", type=Path, help="search the commits of this git tree of a kernel"
    )
    bisecting.add_argument(
        "--build",
        default=f"make -s olddefconfig && make -s -j{os.cpu_count()} {ARCH.target} modules",
        metavar="COMMAND", help="what builds the tree (default: %(default)s)",
    )  # fmt: skip

    running = commands.add_parser("run", help="run rungs on this machine, with ioloop's report")
    tracing = commands.add_parser("trace", help="show the path of one I/O on this machine")
    scaling = commands.add_parser("scale", help="measure on 1 to N CPUs of this machine")
    for command in (running, tracing, scaling):
        command.add_argument("kernel", choices=("host",), metavar="host")
    running.add_argument(
        "--seconds", type=_number(1, 86400, "seconds"), default=3, metavar="N",
        help="how long each rung runs (default: 3)",
    )  # fmt: skip
    scaling.add_argument("--op", choices=rungs.OPS, default="read", help="default: read")
    scaling.add_argument(
        "--bs", type=_block_size, default=4096, metavar="SIZE", help="bytes per I/O (default: 4k)"
    )
    scaling.add_argument("--json", metavar="FILE", type=Path, help=_FILES["json"])
    scaling.add_argument("--svg", metavar="FILE", type=Path, help="the figures as a chart")

    for command in (measuring, profiling, comparing, bisecting, running, tracing):
        _add_scenario(command)
    for command in (measuring, profiling, comparing, bisecting):
        _add_machine(command)
    for command in (measuring, profiling, running, tracing):
        command.add_argument(
            "--on-cpu", type=_number(0, 1 << 16, "CPUs"), metavar="N",
            help="the CPU of this machine to measure on (default: an isolated one, or the last)",
        )  # fmt: skip
    measuring.add_argument(
        "--passes", type=_number(6, 10000, "passes"), default=host.PASSES, metavar="N",
        help="samples of each rung on this machine (default: %(default)s)",
    )  # fmt: skip
    profiling.add_argument(
        "--data", metavar="FILE", type=Path, default=Path("perf.data"),
        help="what perf records of this machine (default: %(default)s)",
    )  # fmt: skip
    profiling.add_argument(
        "--inline", action="store_true",
        help="also by inlined function and source line; takes the kernel's debug information",
    )  # fmt: skip

    for command, boots in ((comparing, noise.FEWEST), (bisecting, 2)):
        command.add_argument(
            "--boots", default=boots, type=_number(1, 100, "boots"), metavar="N",
            help="boot each kernel N times, with other seeds (default: %(default)s)",
        )  # fmt: skip
        command.add_argument(
            "--top", type=_number(1, 10000, "functions"), default=15, metavar="N",
            help="functions to show for each difference (default: 15)",
        )  # fmt: skip
    for command in (profiling, comparing, bisecting):
        command.add_argument(
            "--layers", metavar="FILE", type=Path, help="a table of layers instead of iopath's"
        )
    for command in (measuring, profiling, comparing, bisecting):
        files = command.add_argument_group("files to write")
        for name, what in _FILES.items():
            files.add_argument(f"--{name}", metavar="FILE", type=Path, help=what)
    for command in commands.choices.values():
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
    parser.add_argument("--incoherent", action="store_true", help="load biogen with coherent=0")


def _add_machine(parser: argparse.ArgumentParser) -> None:
    default = Machine()
    guest = parser.add_argument_group("the guest")
    guest.add_argument(
        "--rungs", type=Path, metavar="FILE",
        help="also know the rungs in this TOML file; without --rung, measure these alone",
    )  # fmt: skip
    guest.add_argument(
        "--cmdline", default=default.cmdline, metavar="TEXT",
        help="kernel command line (default: '%(default)s')",
    )  # fmt: skip
    guest.add_argument(
        "--cpu", default=default.cpu, metavar="MODEL", help="CPU as QEMU names it (default: max)"
    )
    guest.add_argument(
        "--accel", choices=("tcg", "kvm"), default=default.accel,
        help="tcg: emulation, which counts instructions (default); kvm: time instead",
    )  # fmt: skip
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
    files.write(path, text.encode())


def _kernels(session: Session, args: argparse.Namespace, out: Console) -> None:
    kernels = session.debian_kernels(update=args.update)
    cached = {k.release for k in kernels if session.cache.path("image", image_inputs(k)).exists()}
    shown = [k for k in kernels if args.all or not k.missing]
    if args.json:
        listed = [vars(k) | {"cached": k.release in cached} for k in shown]
        _write(args.json, json.dumps(listed, indent=1) + "\n")
    report.show_kernels(shown, cached, out)


def _cache(session: Session, args: argparse.Namespace, out: Console) -> None:
    root = session.cache.root
    if not args.prune:
        if args.size is not None or args.older is not None:
            raise UsageError("--size and --older go with --prune")
        prune.show(prune.stored(root), out)
        return
    size = prune.LIMIT if args.size is None and args.older is None else args.size
    removed = prune.prune(root, size=size, age=args.older)
    freed = sum(entry.size for entry in removed)
    out.print(f"removed {len(removed)} entries, {decimal(freed)}", highlight=False)


def _check_files(args: argparse.Namespace) -> None:
    """Complain about files that cannot be written before hours are spent."""
    for name in _FILES:
        path = getattr(args, name)
        if path:
            files.check(path)
        if path and name in ("svg", "png") and path.suffix != f".{name}":
            raise UsageError(f"--{name} {path}: the file's name must end in .{name}")
    if args.history and args.history.suffix not in (".svg", ".png"):
        raise UsageError(f"--history {args.history}: the file's name must end in .svg or .png")


def _write_files(
    args: argparse.Namespace,
    measured: dict[str, Any],
    comparison: dict[str, Any] | None,
    layers: Layers | None = None,
) -> None:
    if args.json:
        compared = {"comparison": comparison} if comparison else {}
        _write(args.json, json.dumps({**measured, **compared}, indent=1) + "\n")
    if args.folded:
        _write(args.folded, result.fold_all(measured["results"]))
    if not (args.html or args.markdown or args.svg or args.png or args.history):
        return
    from iopath import charts, page  # what draws is slow to load

    if args.html:
        _write(args.html, page.render(measured, comparison, layers))
    if args.markdown:
        _write(args.markdown, page.markdown(measured, comparison))
    for path in filter(None, (args.svg, args.png)):
        charts.save(charts.ladder(measured, layers), path)
    if args.history:
        charts.save(charts.history(measured), args.history)


def _select(args: argparse.Namespace) -> list[rungs.Rung]:
    """The rungs that --rung and --rungs choose."""
    return rungs.select(args.rung, rungfile.load(args.rungs) if args.rungs else ())


def _settings(args: argparse.Namespace, *, boots: int = 1, profiled: bool = False) -> Settings:
    return Settings(
        rungs=_select(args),
        ops=args.op or rungs.OPS,
        block_sizes=args.bs or (4096,),
        machine=Machine(
            args.cpu, args.memory, args.cmdline, args.seed, args.time_limit, args.accel
        ),
        fill=not args.no_fill,
        coherent=not args.incoherent,
        boots=boots,
        passes=getattr(args, "passes", host.PASSES),
        profile=profiled,
        inline=getattr(args, "inline", False),
        layers=getattr(args, "layers", None),
    )


def _on_host(args: argparse.Namespace) -> bool:
    """Whether the running kernel is asked for, and nothing that only guests have."""
    if survey.NAME not in args.kernels:
        return False
    if len(args.kernels) > 1:
        raise UsageError("host: measured by itself; compare its result file with another's")
    guests = vars(Machine()) | {
        "no_fill": False,
        "incoherent": False,
        "boots": 1,
        "inline": False,
        "rungs": None,
    }
    for name, default in guests.items():
        if getattr(args, name, default) != default:
            raise UsageError(f"--{name.replace('_', '-')}: does not go with host")
    return True


def _check_host_files(args: argparse.Namespace, *, drawn: Sequence[str] = ()) -> None:
    for name in ("html", "markdown", "svg", "png", "history"):
        if getattr(args, name) and name not in drawn:
            raise UsageError(f"--{name}: draws exact results, not those of a machine")


def _host_runs(session: Session, args: argparse.Namespace) -> list[Run]:
    settings = Settings(rungs.select(args.rung), args.op or rungs.OPS, args.bs or (4096,))
    runs, _ = make_runs(settings)
    if not runs:
        raise UsageError("nothing is left: choose other rungs, sizes or operations")
    # What was not asked for by its own name need not be there.
    absent = [
        run
        for run in runs
        if args.rung
        and run.rung.name not in args.rung
        and run.rung.target
        and not Path(run.rung.target).exists()
    ]
    if not absent or len(absent) == len(runs):
        return runs
    devices = dict.fromkeys(str(run.rung.target) for run in absent)
    names = dict.fromkeys(run.rung.name for run in absent)
    session.reporter.warn(f"left out: {', '.join(names)}: no {', '.join(devices)}")
    return [run for run in runs if run not in absent]


def _measure_host(session: Session, args: argparse.Namespace, out: Console) -> None:
    _check_host_files(args)
    if args.folded:
        raise UsageError("--folded: measure knows no functions; profile does")
    cpu = survey.choose_cpu(args.on_cpu)
    with session.reporter.running(1), session.reporter.task(survey.NAME) as step:
        measured = host.measure(
            _host_runs(session, args),
            cpu,
            args.passes,
            step,
            session.reporter.warn,
            strict=bool(args.rung),
        )
    result.validate(measured, "the result")
    _write_files(args, measured, None)
    report.show_host(measured, out)


def _profile_host(session: Session, args: argparse.Namespace, out: Console) -> None:
    _check_host_files(args, drawn=["html"])
    runs = _host_runs(session, args)
    if len(runs) > 1 and not (args.rung and args.op):
        raise UsageError("profile host: takes long; choose with --rung and --op")
    files.check(args.data)
    cpu = survey.choose_cpu(args.on_cpu)
    layers = Layers(args.layers)
    devices.check(runs)
    records = []
    for run in runs:
        data = args.data
        if len(runs) > 1:
            data = data.with_name(f"{data.name}.{run.rung.name}.{run.op}")
        records.append(perf.record(run, cpu, data, layers))
    measured = host.result_of(cpu, records)
    result.validate(measured, "the result")
    _write_files(args, measured, None, layers)
    report.show_host_profile(measured, args.top, out)


def _run_host(session: Session, args: argparse.Namespace, out: Console) -> None:
    runs = _host_runs(session, args)
    cpu = survey.choose_cpu(args.on_cpu)
    devices.check(runs)
    for run in runs:
        words = loop.timed(run, cpu, args.seconds)
        out.print(f"$ {' '.join(words)}", markup=False, soft_wrap=True)
        status = subprocess.run(words, check=False).returncode
        if status:
            raise IopathError(f"{run.rung.name} {run.op}: ioloop ended with status {status}")


def _trace_host(session: Session, args: argparse.Namespace, out: Console) -> None:
    runs = _host_runs(session, args)
    cpu = survey.choose_cpu(args.on_cpu)
    if not args.rung:
        raise UsageError("trace: of which rung? --rung dio.pread, for one")
    devices.check(runs)
    for run in runs:
        out.print(f"{run.rung.name} {run.op}, microseconds with ftrace's own share:", style="bold")
        out.print("\n".join(ftrace.trace(run, cpu)), markup=False, soft_wrap=True)


def _scale_host(session: Session, args: argparse.Namespace, out: Console) -> None:
    from iopath import charts, scaling  # what draws is slow to load

    if args.svg and args.svg.suffix != ".svg":
        raise UsageError(f"--svg {args.svg}: the file's name must end in .svg")
    for path in filter(None, (args.json, args.svg)):
        files.check(path)
    with session.reporter.running(1), session.reporter.task(survey.NAME) as step:
        records = scaling.measure(sorted(os.sched_getaffinity(0)), args.op, args.bs, step)
    if args.json:
        _write(args.json, json.dumps(records, indent=1) + "\n")
    if args.svg:
        charts.save(scaling.chart(records), args.svg)
    report.show_scaling(records, out)


def _measure(session: Session, args: argparse.Namespace, out: Console) -> None:
    _check_files(args)
    if _on_host(args):
        _measure_host(session, args, out)
        return
    if args.folded:
        raise UsageError("--folded: measure knows no functions; profile and compare do")
    if args.accel != "tcg":
        _check_host_files(args)
    measured = session.measure(args.kernels, _settings(args, boots=args.boots))
    result.validate(measured, "the result")
    _write_files(args, measured, None)
    (report.show if measured["mode"] == "exact" else report.show_host)(measured, out)


def _need_counts(args: argparse.Namespace) -> None:
    if args.accel != "tcg":
        raise UsageError("--accel kvm: functions are counted in emulation alone; measure with it")


def _profile(session: Session, args: argparse.Namespace, out: Console) -> None:
    _check_files(args)
    if _on_host(args):
        _profile_host(session, args, out)
        return
    _need_counts(args)
    layers = Layers(args.layers)
    measured = session.measure(args.kernels, _settings(args, profiled=True))
    result.validate(measured, "the result")
    _write_files(args, measured, None, layers)
    report.show_profile(measured, args.top, out)


def _parts(session: Session, args: argparse.Namespace) -> list[tuple[str, dict[str, Any]]]:
    """What is compared, in the order that it was named in: results, each with its file's name."""
    named = {
        name: _chosen(result.load(Path(name)), name, args)
        for name in args.kernels
        if name.endswith(".json")
    }
    names = [name for name in args.kernels if name not in named]
    measured = None
    if names:
        measured = session.measure(names, _settings(args, boots=args.boots, profiled=True))
        result.validate(measured, "the result")
    return compare.in_order(args.kernels, named, measured)


def _chosen(whole: dict[str, Any], file: str, args: argparse.Namespace) -> dict[str, Any]:
    """Of a file the results that --rung, --op and --bs choose."""
    chosen = {rung.name for rung in _select(args)} if args.rung else None
    records = [
        record
        for record in whole["results"]
        if (chosen is None or record["rung"] in chosen)
        and (not args.op or record["op"] in (*args.op, "none"))
        and (not args.bs or record["block_size"] in (*args.bs, 0))
    ]
    if not records:
        raise IopathError(f"{file} has no results of what --rung, --op and --bs choose")
    return {**whole, "results": records}


def _compare(session: Session, args: argparse.Namespace, out: Console) -> None:
    _check_files(args)
    _need_counts(args)
    layers = Layers(args.layers)
    limits = compare.read_limits(args.limits) if args.limits else []
    parts = _parts(session, args)
    timed = [name for name, part in parts if part["mode"] == "hardware"]
    if timed and len(timed) < len(parts):
        raise IopathError(
            f"{timed[0]} is of time on a machine, another of instructions in a guest:"
            " these cannot be compared"
        )
    differing = hardware.incomparable(parts) if timed else compare.incomparable(parts)
    if differing and not args.anyway:
        raise IopathError(
            f"these differ in more than the kernel: {'; '.join(differing)}"
            " (--anyway compares them all the same)"
        )
    whole = compare.merge(parts)
    if timed:
        _check_host_files(args)
        comparison = hardware.compare(whole)
        comparison["labels"] = [*differing, *compare.labels(whole["kernels"])]
        _write_files(args, whole, comparison)
        report.show_host_comparison(whole, comparison, out)
    else:
        compare.relayer(whole, layers)
        comparison = compare.compare(whole, layers)
        comparison["labels"] = [*differing, *comparison["labels"]]
        _write_files(args, whole, comparison, layers)
        report.show_header(whole, out)
        report.show_comparison(comparison, args.top, out)
    if args.fail_above is not None or limits:
        found = compare.regressions(comparison, args.fail_above, limits)
        if found:
            raise Regressed("; ".join(found))


def _bisect(session: Session, args: argparse.Namespace, out: Console) -> None:
    _check_files(args)
    _need_counts(args)
    layers = Layers(args.layers)

    def say(text: str) -> None:
        out.print(text, markup=False, soft_wrap=True)

    search = bisection.Search(session, _settings(args, boots=args.boots), say)
    if args.tree:
        tree = args.tree.absolute()
        ends = bisection.tree(search, tree, args.good, args.bad, args.build, session.cache, say)
    else:
        specs = [_debian_spec(name) for name in (args.good, args.bad)]
        kernels = bisection.between(*specs, session.debian_kernels())
        say(f"{len(kernels)} kernels from {kernels[0].release} to {kernels[-1].release}")
        ends = bisection.packages(search, kernels, say)
    whole = compare.merge([("good", ends[0]), ("bad", ends[1])])
    comparison = compare.compare(whole, layers)
    _write_files(args, whole, comparison, layers)
    say(f"first bad: {whole['kernels'][1]['name']}")
    report.show_comparison(comparison, args.top, out)


def _debian_spec(name: str) -> str:
    if not name.startswith("debian:"):
        raise UsageError(f"{name}: bisect searches packages (debian:...), or with --tree commits")
    return name.removeprefix("debian:")


_COMMANDS = {
    "kernels": _kernels,
    "cache": _cache,
    "measure": _measure,
    "profile": _profile,
    "compare": _compare,
    "bisect": _bisect,
    "run": _run_host,
    "trace": _trace_host,
    "scale": _scale_host,
}


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _judges(argv: Sequence[str]) -> bool:
    """Whether an exit status of 1 or 2 would be taken for a verdict. argparse knows an option by
    any beginning of its name."""
    words = [word.partition("=")[0] for word in argv]
    return any(
        len(word) > 2 and option.startswith(word)
        for word in words
        for option in ("--fail-above", "--limits")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

    With --fail-above or --limits: 0 good, 1 regressed, 125 cannot be told."""
    argv = sys.argv[1:] if argv is None else argv
    # For git bisect run: what could not be tested is not bad.
    judging = _judges(argv)
    try:
        args = _parser().parse_args(argv)
    except SystemExit as exit_:
        if judging and exit_.code == UsageError.status:
            return CANNOT_TELL
        raise
    width = None if sys.stdout.isatty() else 160
    out = Console(width=width, highlight=False)
    reporter = Reporter(Console(stderr=True), quiet=args.quiet)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        session = Session(Cache(cache_root(), reporter.warn), reporter)
        try:
            _COMMANDS[args.command](session, args, out)
        finally:
            session.cache.release()
            prune.keep_in_bounds(session.cache.root)
    except Regressed as error:
        print(f"iopath: {error}", file=sys.stderr)
        return error.status
    except IopathError as error:
        print(f"iopath: {error}", file=sys.stderr)
        return CANNOT_TELL if judging else error.status
    except (KeyboardInterrupt, Stopped):
        print("iopath: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return CANNOT_TELL if judging else 1
    except Exception:
        if not judging:
            raise
        traceback.print_exc()
        return CANNOT_TELL
    return 0


if __name__ == "__main__":
    sys.exit(main())
