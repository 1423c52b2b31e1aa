# SPDX-License-Identifier: GPL-2.0
"""Profile the running machine: perf samples the rounds of a loop. ioloop starts and stops perf, so
that only the rounds are sampled."""

import os
import platform
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from iopath.base import process, temporary
from iopath.base.errors import IopathError
from iopath.host import loop, survey
from iopath.results.layers import Layers
from iopath.results.profiles import SampledFunction, SampledProfile
from iopath.results.result import HardwareRecord, KernelName
from iopath.results.symbol import Symbol
from iopath.rungs import ioloop_report
from iopath.rungs.runs import Run

_FREQUENCY = 2999  # samples a second; not a multiple of the timer's
_SECONDS = 3
# The tasks that do the I/O: the loop, and the threads of biogen's generator.
_TASK = re.compile(r"ioloop|biogen/\d+")
_HEAD = re.compile(r"^(\S.*?)\s+(\d+)\s*$")
_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)$")


def record(run: Run, cpu: int, data: Path, layers: Layers) -> HardwareRecord:
    """The record of *run* with its profile. perf writes to *data*."""
    perf = process.need("perf", "linux-perf")
    title = f"{run.rung.name} {run.op}"
    event = _event(perf)
    with temporary.folder() as folder:
        for fifo in ("ctl", "ack"):
            os.mkfifo(folder / fifo)
        words = [
            *loop.timed(run, cpu, _SECONDS), "--output-format=json", f"--output={folder}/report",
            f"--perf_control={folder}/ctl,{folder}/ack",
        ]  # fmt: skip
        # taskset: perf learns a task's name on the CPU where it is set, before 6.7 only on this
        # CPU.
        sampling = [
            perf, "record", "-q", "-e", event, "-F", str(_FREQUENCY), "-g", "-C", str(cpu),
            "-D", "-1", f"--control=fifo:{folder}/ctl,{folder}/ack", "-o", str(data), "--",
            process.need("taskset", "util-linux"), "-c", str(cpu), *words,
        ]  # fmt: skip
        log = folder / "log"
        if process.run(sampling, output=log) or not (folder / "report").exists():
            raise IopathError(f"perf cannot record {title}: {_complaint(log)}")
        job = ioloop_report.read((folder / "report").read_text()).jobs[0]
    ns = job.ns / job.ios
    script = subprocess.run(
        [perf, "script", "-i", data, "-F", "comm,period,ip,sym,dso"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if script.returncode:
        raise IopathError(f"perf cannot read {data}: {script.stderr.strip().splitlines()[-1]}")
    stacks = list(_stacks(script.stdout.splitlines()))
    if not stacks:
        raise IopathError(f"perf took no sample of {title} on CPU {cpu} (record: {data})")
    return HardwareRecord(
        kernel=KernelName(name=survey.NAME, release=platform.release()),
        rung=run.rung.name,
        op=run.op,
        block_size=run.block_size,
        command=words,
        profile=_profile(event, data, stacks, ns, layers),
    )


def _event(perf: str) -> str:
    """The event to sample: cycles, or a timer where there is no PMU."""
    tried = subprocess.run(
        [perf, "stat", "-x,", "-e", "cycles", "true"], capture_output=True, text=True, check=False
    )
    if tried.returncode == 0 and re.search(r"^\d+,", tried.stderr, re.MULTILINE):
        return "cycles"
    return "cpu-clock"


def _complaint(log: Path) -> str:
    """Why perf did not run, on one line."""
    text = log.read_text(errors="replace")
    if "perf_event_paranoid" in text or "No permission" in text or "Permission denied" in text:
        setting = Path("/proc/sys/kernel/perf_event_paranoid").read_text().strip()
        return f"permission denied: run as root, or lower kernel.perf_event_paranoid from {setting}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "rror" in line or "ioloop:" in line), lines[-1])


def _stacks(lines: Iterable[str]) -> Iterable[tuple[int, list[Symbol]]]:
    """The weight and the functions, innermost first, of each sample of a task that does I/O."""
    weight, frames, ours = 0, [], False
    for line in [*lines, ""]:
        if not line.strip():
            if ours and frames:
                yield weight, frames
            frames, ours = [], False
        elif match := _FRAME.match(line):
            frames.append(Symbol(_name(match), _module(match.group(3))))
        elif match := _HEAD.match(line):
            weight, ours = int(match.group(2)), bool(_TASK.fullmatch(match.group(1)))


def _name(match: re.Match) -> str:
    return match.group(2) if match.group(2) != "[unknown]" else f"0x{match.group(1)}"


def _module(dso: str) -> str:
    """The module as profiles name it: empty for the kernel, a module's name, or "user"."""
    if dso.startswith("[kernel") or dso == "[guest.kernel.kallsyms]" or "vmlinux" in dso:
        return ""
    if match := re.fullmatch(r"\[(\w+)\]", dso):
        return match.group(1)
    if match := re.search(r"/([^/]+)\.ko(\.\w+)?$", dso):
        return match.group(1).replace("-", "_")
    return "user"


def _profile(
    event: str, data: Path, stacks: list[tuple[int, list[Symbol]]], ns: float, layers: Layers
) -> SampledProfile:
    """The shares of *ns*, the time of an I/O, by function, layer and stack."""
    whole = sum(weight for weight, _ in stacks)
    scale = ns / whole
    functions: dict[Symbol, float] = defaultdict(float)
    samples: dict[Symbol, int] = defaultdict(int)
    folded: dict[str, float] = defaultdict(float)
    by_layer: dict[str, float] = defaultdict(float)
    for weight, frames in stacks:
        functions[frames[0]] += weight * scale
        samples[frames[0]] += 1
        by_layer[layers.of(frames[0])] += weight * scale
        folded[";".join(symbol.text for symbol in reversed(frames))] += weight * scale
    ordered = sorted(functions.items(), key=lambda item: (-item[1], item[0].name))
    return SampledProfile(
        event=event,
        data=str(data),
        ns=round(ns, 4),
        samples=len(stacks),
        layers={n: round(by_layer[n], 4) for n in layers.names if n in by_layer},
        functions=[
            SampledFunction(
                name=symbol.name, module=symbol.module, layer=layers.of(symbol),
                ns=round(part, 4), samples=samples[symbol],
            )
            for symbol, part in ordered
        ],
        stacks=[(stack, round(part, 4)) for stack, part in sorted(folded.items())],
    )  # fmt: skip
