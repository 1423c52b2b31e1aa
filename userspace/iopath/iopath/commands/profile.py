# SPDX-License-Identifier: GPL-2.0
"""Show where the instructions go: functions and layers."""

import argparse
from dataclasses import replace
from pathlib import Path

from iopath.base import files
from iopath.base.errors import UsageError
from iopath.cli import on_host
from iopath.cli.building import Building
from iopath.cli.measuring import Guest, Scenario, add_cpus, add_model, add_range, add_scheduler
from iopath.cli.options import add_layers, add_top
from iopath.cli.output import Files
from iopath.cli.work import Work
from iopath.host import perf, survey, targets, timing
from iopath.measure.plan import guests
from iopath.results.layers import Layers, table
from iopath.results.result import Result
from iopath.rungs.runs import Settings, make_runs
from iopath.show import misses, sharing_tables, terminal
from iopath.show.reports import ProfileReport, SamplesReport, report

EXAMPLES = (
    "iopath profile debian:7.2 --rung dio.pread --op read",
    "iopath profile debian:7.2 --rung 'raw.*' --html profile.html",
)


_FUNCTIONS = 15


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    parser.add_argument(
        "--all", action="store_true", help="show every function, and every count of each"
    )
    add_top(parser, f"functions to show (default: {_FUNCTIONS})")
    Scenario.add(parser)
    Guest.add(parser)
    Building.add(parser)
    add_range(parser)
    add_scheduler(parser)
    on_host.add_cpu(parser)
    add_cpus(parser)
    add_model(parser)
    parser.add_argument(
        "--data", metavar="FILE", type=Path, default=Path("perf.data"),
        help="file for perf's record (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--inline", action="store_true",
        help="also show inlined functions and source lines; needs the kernel's debug information",
    )  # fmt: skip
    add_layers(parser)
    Files.add(parser, ProfileReport)


def run(args: argparse.Namespace, work: Work) -> int:
    scenario, guest, building = Scenario.read(args), Guest.read(args), Building.read(args)
    wanted = Files.read(args)
    wanted.check()
    others = {"cpus": args.cpus != 1, "model": args.model, "inline": args.inline}
    if on_host.is_asked(args.kernels, scenario, guest, building.arch, others):
        wanted.need(SamplesReport)
        layers = table(args.layers)
        measured = _on_host(scenario, args.on_cpu, args.data, layers, work)
    else:
        guest.need_counts()
        building.check(args.kernels)
        layers = table(args.layers)
        settings = replace(
            scenario.settings(guest.added()),
            machine=guest.machine, profile=True, inline=args.inline, layers=args.layers,
            cpus=args.cpus, model=args.model,
        )  # fmt: skip
        if not (scenario.rungs or guest.rungs):
            raise UsageError(_ask(settings))
        with work.session(args.scheduler) as session:
            session.recipe = building.recipe(session)
            kernels = session.expand(args.kernels, every=args.every, merges=args.merges)
            measured = session.measure(kernels, settings)
    wanted.write(report(measured, layers=layers))
    top = args.top or (None if args.all else _FUNCTIONS)
    terminal.show_profile(measured, work.out, top, every=args.all)
    sharing_tables.show(measured, work.out)
    misses.show(measured, work.out)
    terminal.show_facts(measured, work.out)
    return 0


def _ask(settings: Settings) -> str:
    """What a profile of the whole ladder would take, and how to ask for less."""
    runs, _ = make_runs(settings)
    return (
        f"profile: name a rung, e.g. --rung dio.pread: all {len(settings.rungs)} rungs are"
        f" {len(runs)} profiles and boot {len(guests(runs, settings))} guests for each kernel;"
        " --rung '*' measures all, with those that are not on the ladder"
    )


def _on_host(
    scenario: Scenario, on_cpu: int | None, data: Path, layers: Layers, work: Work
) -> Result:
    """The profile of each rung on this machine. perf's records are written to *data*, or if there
    are several, to files that are named after it."""
    on_host.prepare(work)
    runs = on_host.runs(scenario, work.reporter.warn)
    if len(runs) > 1 and not (scenario.rungs and scenario.ops):
        raise UsageError("profile host: give --rung and --op; profiling all rungs takes too long")
    files.check(data)
    cpu = survey.choose_cpu(on_cpu)
    targets.check(runs)
    records = []
    for run in runs:
        file = data
        if len(runs) > 1:
            file = data.with_name(f"{data.name}.{run.rung.name}.{run.op}")
        records.append(perf.record(run, cpu, file, layers))
    return timing.result_of(cpu, records)
