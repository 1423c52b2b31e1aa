# SPDX-License-Identifier: GPL-2.0
"""The commands of iopath on the running machine."""

import argparse
import json
import os
import subprocess
from pathlib import Path

from rich.console import Console

from iopath import (
    devices,
    files,
    ftrace,
    host,
    loop,
    output,
    perf,
    result,
    rungs,
    survey,
    terminal,
)
from iopath.arch import X86_64
from iopath.errors import IopathError, UsageError
from iopath.layers import Layers
from iopath.machine import Machine
from iopath.measure import Session
from iopath.plan import Run, Settings, make_runs
from iopath.rung import OPS


def is_wanted(args: argparse.Namespace) -> bool:
    """Whether to measure the running kernel. Refuses options that only guests have."""
    if survey.NAME not in args.kernels:
        return False
    if len(args.kernels) > 1:
        raise UsageError("host: must be measured alone; compare takes its result file")
    guests = vars(Machine()) | {
        "arch": X86_64.debian,
        "no_fill": False,
        "incoherent": False,
        "boots": 1,
        "inline": False,
        "rungs": None,
    }
    for name, default in guests.items():
        if getattr(args, name, default) != default:
            raise UsageError(f"--{name.replace('_', '-')}: cannot be used with host")
    return True


def _runs(session: Session, args: argparse.Namespace) -> list[Run]:
    settings = Settings(rungs.select(args.rung), args.op or OPS, args.bs or (4096,))
    runs, _ = make_runs(settings)
    if not runs:
        raise UsageError("no rung is left to measure: choose other rungs, sizes or operations")
    # Only a rung that is named without wildcards must have its device.
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
    missing = dict.fromkeys(str(run.rung.target) for run in absent)
    names = dict.fromkeys(run.rung.name for run in absent)
    session.reporter.warn(f"left out: {', '.join(names)}: no {', '.join(missing)}")
    return [run for run in runs if run not in absent]


def measure(session: Session, args: argparse.Namespace, out: Console) -> None:
    output.check_views(args, ())
    if args.folded:
        raise UsageError("--folded: only profile counts functions")
    cpu = survey.choose_cpu(args.on_cpu)
    with session.reporter.running(1), session.reporter.task(survey.NAME) as step:
        measured = host.measure(
            _runs(session, args),
            cpu,
            args.passes,
            step,
            session.reporter.warn,
            strict=bool(args.rung),
        )
    output.write(args, measured, None)
    terminal.show(measured, out)


def profile(session: Session, args: argparse.Namespace, out: Console) -> None:
    output.check_views(args, ("html",))
    runs = _runs(session, args)
    if len(runs) > 1 and not (args.rung and args.op):
        raise UsageError("profile host: give --rung and --op; profiling all rungs takes too long")
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
    measured = result.make(host.result_of(cpu, records))
    output.write(args, measured, None, layers)
    terminal.show_profile(measured, args.top, out)


def run(session: Session, args: argparse.Namespace, out: Console) -> None:
    runs = _runs(session, args)
    cpu = survey.choose_cpu(args.on_cpu)
    devices.check(runs)
    for run in runs:
        words = loop.timed(run, cpu, args.seconds)
        out.print(f"$ {' '.join(words)}", markup=False, soft_wrap=True)
        status = subprocess.run(words, check=False).returncode
        if status:
            raise IopathError(f"{run.rung.name} {run.op}: ioloop ended with status {status}")


def trace(session: Session, args: argparse.Namespace, out: Console) -> None:
    runs = _runs(session, args)
    cpu = survey.choose_cpu(args.on_cpu)
    if not args.rung:
        raise UsageError("trace: give a rung, e.g. --rung dio.pread")
    devices.check(runs)
    for run in runs:
        out.print(
            f"{run.rung.name} {run.op}, microseconds, including ftrace's overhead:", style="bold"
        )
        out.print("\n".join(ftrace.trace(run, cpu)), markup=False, soft_wrap=True)


def scale(session: Session, args: argparse.Namespace, out: Console) -> None:
    from iopath import charts, scaling  # what draws is slow to load

    if args.svg and args.svg.suffix != ".svg":
        raise UsageError(f"--svg {args.svg}: the file's name must end in .svg")
    for path in filter(None, (args.json, args.svg)):
        files.check(path)
    with session.reporter.running(1), session.reporter.task(survey.NAME) as step:
        records = scaling.measure(sorted(os.sched_getaffinity(0)), args.op, args.bs, step)
    if args.json:
        output.write_text(args.json, json.dumps(records, indent=1) + "\n")
    if args.svg:
        charts.save(scaling.chart(records), args.svg)
    terminal.show_scaling(records, out)
