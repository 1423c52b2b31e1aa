# SPDX-License-Identifier: GPL-2.0
"""The kernel host: the running machine, for all commands that measure it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from iopath.base.arch import X86_64, this_machine
from iopath.base.errors import UsageError
from iopath.cli.measuring import Guest, Scenario
from iopath.cli.options import Options, number
from iopath.cli.work import Work
from iopath.guest.machine import Machine
from iopath.host import survey
from iopath.kernels import guest_programs
from iopath.rungs.runs import Run, make_runs


def add_cpu(parser: Options) -> None:
    parser.add_argument(
        "--on-cpu", type=number(0, 1 << 16, "CPUs"), metavar="N",
        help="the CPU of this machine to measure on (default: an isolated one, or the last)",
    )  # fmt: skip


def is_asked(
    names: Sequence[str], scenario: Scenario, guest: Guest, arch: str, others: Mapping[str, bool]
) -> bool:
    """Whether the kernels *names* are the running one. Refuses options that only guests have;
    *others* has further ones, and whether they are used."""
    if survey.NAME not in names:
        return False
    if len(names) > 1:
        raise UsageError("host: must be measured alone; compare takes its result file")
    default = vars(Machine())
    used = {name: value != default[name] for name, value in vars(guest.machine).items()}
    used |= {
        "arch": arch != X86_64.debian,
        "no-fill": not scenario.fill,
        "incoherent": not scenario.coherent,
        "rungs": guest.rungs is not None,
    }
    for name in (name for name, is_used in (used | others).items() if is_used):
        raise UsageError(f"--{name.replace('_', '-')}: cannot be used with host")
    return True


def prepare(work: Work) -> None:
    """Get the loop that this machine runs: on x86-64, the one that guests run."""
    arch = this_machine()
    if not guest_programs.are_built(arch):
        with work.session() as session:
            session.programs(arch)


def runs(scenario: Scenario, warn: Callable[[str], None]) -> list[Run]:
    """The runs. Rungs without their device are left out, unless they are named."""
    found, _ = make_runs(scenario.settings())
    if not found:
        raise UsageError("no rung is left to measure: choose other rungs, sizes or operations")
    # Only a rung that is named without wildcards must have its device.
    absent = [
        run
        for run in found
        if scenario.rungs
        and run.rung.name not in scenario.rungs
        and not all(Path(path).exists() for path in run.rung.paths)
    ]
    if not absent or len(absent) == len(found):
        return found
    missing = dict.fromkeys(
        path for run in absent for path in run.rung.paths if not Path(path).exists()
    )
    names = dict.fromkeys(run.rung.name for run in absent)
    warn(f"left out: {', '.join(names)}: no {', '.join(missing)}")
    return [run for run in found if run not in absent]
