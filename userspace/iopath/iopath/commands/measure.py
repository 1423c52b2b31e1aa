# SPDX-License-Identifier: GPL-2.0
"""Measure what an I/O costs on kernels."""

import argparse
from dataclasses import replace
from pathlib import Path

from iopath.base.errors import UsageError
from iopath.cli import on_host, output
from iopath.cli.building import Building
from iopath.cli.measuring import (
    Guest,
    Scenario,
    add_boots,
    add_cpus,
    add_model,
    add_range,
    add_scheduler,
)
from iopath.cli.options import number
from iopath.cli.output import Files
from iopath.cli.work import Work
from iopath.host import bundle, survey, timing
from iopath.results.result import Result
from iopath.rungs.runs import make_runs
from iopath.show import misses, sharing_tables, terminal
from iopath.show.reports import CountsReport, ProfileReport, TimesReport, report

EXAMPLES = (
    "iopath measure debian:6.1 debian:7.2",
    "iopath measure debian:7.2 --rung 'dio.*' --op read --bs 4k --bs 64k",
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    add_boots(parser, 1)
    Scenario.add(parser)
    Guest.add(parser)
    Building.add(parser)
    add_range(parser)
    add_scheduler(parser)
    on_host.add_cpu(parser)
    add_cpus(parser)
    add_model(parser)
    parser.add_argument(
        "--passes", type=number(6, 10000, "passes"), default=timing.PASSES, metavar="N",
        help="samples of each rung on this machine (default: %(default)s)",
    )  # fmt: skip
    group = parser.add_argument_group("a machine where nothing may be installed")
    group.add_argument(
        "--bundle", type=Path, metavar="FILE.sh",
        help="write a file that measures host there: sh FILE.sh > host.tar",
    )  # fmt: skip
    group.add_argument(
        "--from", type=Path, dest="printed", metavar="host.tar", help="host is what it has printed"
    )
    Files.add(parser, ProfileReport)


def run(args: argparse.Namespace, work: Work) -> int:
    scenario, guest, building = Scenario.read(args), Guest.read(args), Building.read(args)
    files = Files.read(args)
    files.check()
    others = {"boots": args.boots != 1, "cpus": args.cpus != 1, "model": args.model}
    host = on_host.is_asked(args.kernels, scenario, guest, building.arch, others)
    files.need(CountsReport if guest.machine.exact and not host else TimesReport)
    if (args.bundle or args.printed) and not host:
        raise UsageError(f"--{'bundle' if args.bundle else 'from'}: is for host")
    if args.bundle:
        output.check(bundle=args.bundle)
        on_host.prepare(work)
        bundle.write(args.bundle, make_runs(scenario.settings())[0], args.passes)
        return 0
    if args.printed:
        measured: Result = bundle.read(args.printed)
    elif host:
        cpu = survey.choose_cpu(args.on_cpu)
        on_host.prepare(work)
        with work.reporter.running(1), work.reporter.task(survey.NAME) as step:
            runs = on_host.runs(scenario, work.reporter.warn)
            strict = bool(scenario.rungs)
            measured = timing.measure(
                runs, cpu, args.passes, step, work.reporter.warn, strict=strict
            )
    else:
        building.check(args.kernels)
        if not guest.machine.exact:
            if args.cpus > 1:
                raise UsageError(
                    "--cpus: only emulated guests have several CPUs; leave out --accel kvm"
                )
            if args.model:
                raise UsageError(
                    "--model: only emulated guests are modelled; leave out --accel kvm"
                )
        with work.session(args.scheduler) as session:
            session.recipe = building.recipe(session)
            settings = replace(
                scenario.settings(guest.added()),
                machine=guest.machine, boots=args.boots, passes=args.passes, cpus=args.cpus,
                model=args.model,
            )  # fmt: skip
            kernels = session.expand(args.kernels, every=args.every, merges=args.merges)
            measured = session.measure(kernels, settings)
    files.write(report(measured))
    terminal.show(measured, work.out)
    sharing_tables.show(measured, work.out)
    misses.show(measured, work.out)
    terminal.show_facts(measured, work.out)
    return 0
