# SPDX-License-Identifier: GPL-2.0
"""How the kernel's path scales: the same I/O on 1 to N CPUs, on one device for all or on one each,
from programs or from the generator in the kernel."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from iopath.base.errors import UsageError
from iopath.base.programs import guest_program
from iopath.host import loop
from iopath.results.scaling import ScalingRecord
from iopath.rungs.report import Report

_ROUNDS = 5
_RUNTIME = "500ms"

# What is run: its name, ioloop's options, and the devices by number.
_VARIANTS = (
    ("pread", ("--ioengine=sync", "--direct=1"), "/dev/blknull"),
    ("generator", ("--ioengine=biogen", "--iodepth=32"), "/dev/biogen"),
)


def measure(
    cpus: Sequence[int], op: str, block_size: int, step: Callable[[str, float], None]
) -> list[ScalingRecord]:
    """A record for each way of doing I/O, each way of sharing devices and each number of CPUs:
    I/Os per second of all CPUs together, and the time of one I/O per CPU."""
    records = []
    plans = [plan for variant in _VARIANTS for plan in _plans(variant, cpus)]
    if not plans:
        raise UsageError(
            "neither /dev/blknull0 nor /dev/biogen0 exists: load the modules with make load"
        )
    for number, (name, sharing, words, count) in enumerate(plans):
        step("measuring", number / len(plans))
        words = [
            str(guest_program("ioloop")), *words, f"--rw={op}", f"--bs={block_size}",
            "--pattern=fixed", "--time_based", f"--runtime={_RUNTIME}", "--output-format=json",
        ]  # fmt: skip
        title = f"{name}, {sharing}, {count} CPUs"
        rates = [_rate(loop.run(words, title)) for _ in range(_ROUNDS)]
        rate = statistics.median(rates)
        records.append(
            ScalingRecord(
                how=name,
                devices=sharing,
                cpus=count,
                ios_per_second=round(rate, 1),
                spread=round(max(rates) - min(rates), 1),
                ns_per_io=round(1e9 * count / rate, 2),
                command=words,
            )
        )
    return records


def _plans(
    variant: tuple[str, tuple[str, ...], str], cpus: Sequence[int]
) -> list[tuple[str, str, list[str], int]]:
    name, options, device = variant
    plans = []
    for count in range(1, len(cpus) + 1):
        pinned = f"--cpus_allowed={','.join(map(str, cpus[:count]))}"
        own = [f"{device}{number}" for number in range(count)]
        if Path(own[0]).exists():
            shared = [*options, f"--filename={own[0]}", f"--numjobs={count}", pinned]
            plans.append((name, "shared", shared, count))
        # The first device of biogen may be on a device that a program uses, too.
        if count > 1 and all(Path(path).exists() for path in own):
            plans.append(
                (name, "one each", [*options, f"--filename={':'.join(own)}", pinned], count)
            )
    return plans


def _rate(report: Report) -> float:
    """I/Os per second while all jobs ran."""
    return sum(job.ios / job.ns * 1e9 for job in report.jobs)


def chart(records: Sequence[ScalingRecord]) -> Figure:
    """I/Os per second, and the time of one I/O, over the number of CPUs."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    rates, costs = figure.subplots(1, 2)
    for how, devices in dict.fromkeys((r.how, r.devices) for r in records):
        line = [r for r in records if r.how == how and (r.devices == devices or r.cpus == 1)]
        count = [r.cpus for r in line]
        style = {"marker": "o", "linestyle": "-" if devices == "shared" else "--"}
        label = f"{how}, {'one device' if devices == 'shared' else 'a device each'}"
        rates.plot(count, [r.ios_per_second / 1e6 for r in line], label=label, **style)
        costs.plot(count, [r.ns_per_io for r in line], **style)
    rates.set_ylabel("million I/Os per second")
    costs.set_ylabel("ns per I/O and CPU")
    for axes in (rates, costs):
        axes.set_xlabel("CPUs")
        axes.set_ylim(bottom=0)
        axes.set_xticks(sorted({r.cpus for r in records}))
        axes.grid(alpha=0.3)
    rates.legend(frameon=False, fontsize="small")
    return figure
