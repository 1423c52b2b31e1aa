# SPDX-License-Identifier: GPL-2.0
"""Measure on the running machine: time, and what the processor's counters count if it has any.

Nothing is exact here, so every figure comes with its 95 % confidence interval and with what two
series of the same measurement differ by. The rungs take turns, so that what changes on the machine
meanwhile changes all of them alike.
"""

import fcntl
import json
import math
import os
import platform
import re
import stat
import statistics
import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from iopath import __version__, process, result
from iopath.cache import digest_file
from iopath.errors import IopathError, UsageError
from iopath.plan import NOISE_PASSES, Run
from iopath.programs import guest_program
from iopath.rungs import BIOGEN

NAME = "host"
PASSES = 20
_FEWEST = 6  # samples that a 95 % interval of a median takes
_ROUNDS = 20  # of each sample
_ROUND_NS = 5_000_000

# What is made of ioloop's counters, which count the program and the kernel apart.
COUNTERS = {
    "cycles": ("cycles_user", "cycles_kernel"),
    "instructions": ("instructions_user", "instructions_kernel"),
    "instructions_kernel": ("instructions_kernel",),
    "cache_misses": ("cache_misses",),
    "branch_misses": ("branch_misses",),
}
_CHECKING = ("KASAN", "PROVE_LOCKING", "LOCKDEP", "KCSAN", "DEBUG_KMEMLEAK", "DEBUG_OBJECTS")

# struct biogen_info and the command that fills it (kernel/include/uapi/biogen.h).
_INFO = struct.Struct("=IIQII32x")
_BIOGEN_INFO = 2 << 30 | _INFO.size << 16 | 0xBF << 8 | 2
_WRITE, _COHERENT = 1, 2

Step = Callable[[str, float], None]


def _read(path: str | Path, default: str = "") -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return default


# The machine.


def choose_cpu(wanted: int | None) -> int:
    """The CPU to measure on: *wanted*, or the last of those that are kept free, or of all."""
    allowed = sorted(os.sched_getaffinity(0))
    if wanted is None:
        isolated = [cpu for cpu in _cpu_list(_read("/sys/devices/system/cpu/isolated"))]
        return max([cpu for cpu in isolated if cpu in allowed] or allowed)
    if wanted not in allowed:
        raise UsageError(f"--on-cpu {wanted}: not a CPU that iopath may use: {allowed}")
    return wanted


def _cpu_list(text: str) -> list[int]:
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus += range(int(first), int(last or first) + 1)
    return cpus


def survey(cpu: int) -> dict[str, Any]:
    """What of this machine bears on time; "warnings" says what makes figures unsteady."""
    base = Path(f"/sys/devices/system/cpu/cpu{cpu}")
    info = _read("/proc/cpuinfo")
    model = re.search(r"^model name\s*:\s*(.*)$", info, re.MULTILINE)
    flags = re.search(r"^flags\s*:\s*(.*)$", info, re.MULTILINE)
    microcode = re.search(r"^microcode\s*:\s*(.*)$", info, re.MULTILINE)
    governor = _read(base / "cpufreq/scaling_governor", "none")
    boost = _boost()
    siblings = [n for n in _cpu_list(_read(base / "topology/thread_siblings_list")) if n != cpu]
    vulnerabilities = sorted(Path("/sys/devices/system/cpu/vulnerabilities").glob("*"))
    guest = bool(flags and "hypervisor" in flags.group(1).split())
    load = float(_read("/proc/loadavg", "0").split()[0])
    warnings = []
    if governor not in ("none", "performance"):
        warnings.append(
            f"CPU {cpu} changes its frequency (governor {governor}):"
            " cpupower frequency-set -g performance"
        )
    if boost == "on":
        warnings.append("boost is on: the frequency depends on heat and on the other cores")
    if siblings:
        others = ", ".join(map(str, siblings))
        warnings.append(f"CPU {cpu} shares its core with CPU {others}: keep that idle or offline")
    if load > 0.5:
        warnings.append(f"the machine is not idle: its load is {load:.2f}")
    if guest:
        warnings.append("this machine is a guest: others may take its time")
    clocksource = _read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    if clocksource != "tsc":
        warnings.append(f"the clock is {clocksource or 'unknown'}, not tsc: reading it is slow")
    return {
        "cpu": cpu,
        "cpu_model": model.group(1) if model else platform.machine(),
        "microcode": microcode.group(1) if microcode else "",
        "cpus": len(os.sched_getaffinity(0)),
        "governor": governor,
        "boost": boost,
        "smt_siblings": siblings,
        "isolated": _read("/sys/devices/system/cpu/isolated"),
        "guest": guest,
        "load": load,
        "mitigations": {path.name: _read(path) for path in vulnerabilities},
        "warnings": warnings,
    }


def _boost() -> str:
    turbo = _read("/sys/devices/system/cpu/intel_pstate/no_turbo")
    if turbo:
        return "off" if turbo == "1" else "on"
    boost = _read("/sys/devices/system/cpu/cpufreq/boost")
    return {"1": "on", "0": "off"}.get(boost, "unknown")


def _config(release: str) -> Path | None:
    for place in (f"/boot/config-{release}", f"/lib/modules/{release}/config"):
        if os.access(place, os.R_OK):
            return Path(place)
    return None


def _describe() -> dict[str, Any]:
    """The running kernel and its modules, as results describe a kernel."""
    release = platform.release()
    banner = _read("/proc/version")
    config = _config(release)
    modules = {
        name: {
            "srcversion": _read(f"/sys/module/{name}/srcversion"),
            "parameters": " ".join(
                f"{path.name}={_read(path)}"
                for path in sorted(Path(f"/sys/module/{name}/parameters").glob("*"))
            ),
        }
        for name in ("blknull", "biogen")
        if Path(f"/sys/module/{name}").is_dir()
    }
    return {
        "name": NAME,
        "release": release,
        "banner": banner,
        "compiler": result.compiler(banner),
        "cmdline": _read("/proc/cmdline"),
        "clocksource": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "config": result.options(config.read_text()) if config else {},
        "modules": modules,
    }


# The devices.


def check_devices(runs: Sequence[Run]) -> None:
    """Whether the devices of *runs* are there, and are ours: what is on others would be lost."""
    for device in dict.fromkeys(run.rung.device for run in runs if run.rung.device):
        writing = any(run.op == "write" for run in runs if run.rung.device == device)
        try:
            mode = Path(device).stat().st_mode
        except OSError:
            raise UsageError(
                f"{device} is not there: load the modules with `make load`, or with `modprobe"
                " blknull nr_devices=2 zero_fill=1,0; modprobe biogen device=/dev/blknull1 write=1`"
            ) from None
        if not os.access(device, os.R_OK | (os.W_OK if writing else 0)):
            raise UsageError(f"{device} may not be opened: be root, or of the group disk")
        if device == BIOGEN:
            _check_biogen(writing)
        elif not stat.S_ISBLK(mode):
            raise UsageError(f"{device} is not a block device")


def _check_biogen(writing: bool) -> None:
    try:
        with Path(BIOGEN).open("rb", buffering=0) as file:
            answer = fcntl.ioctl(file, _BIOGEN_INFO, bytes(_INFO.size))
    except OSError as error:
        raise UsageError(f"{BIOGEN}: {error.strerror}") from error
    _, flags, _, _, number = _INFO.unpack(answer)
    target = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name
    if not target.startswith("blknull"):
        raise UsageError(f"{BIOGEN} is on {target}, not on a blknull device: what is there is lost")
    if writing and not flags & _WRITE:
        raise UsageError(f"{BIOGEN} is read-only: load biogen with write=1, or add --op read")


def command(run: Run, cpu: int, *, ios: int, rounds: int = _ROUNDS) -> list[str]:
    """ioloop's command line for one run on this machine."""
    words = run.rung.command(run.op, run.block_size, run.region, ios=ios, rounds=rounds)
    words = [f"--cpus_allowed={cpu}" if w.startswith("--cpus_allowed") else w for w in words[1:]]
    return [str(guest_program("ioloop")), *words]


def timed(run: Run, cpu: int, seconds: int) -> list[str]:
    """The same for a time, with the report for people."""
    words = command(run, cpu, ios=0, rounds=1)
    counted = ("--number_ios=", "--output-format=")
    return [word for word in words if not word.startswith(counted)] + [
        "--time_based",
        f"--runtime={seconds}",
    ]


def run_loop(words: Sequence[str], title: str) -> dict[str, Any]:
    """What ioloop reports as JSON."""
    with tempfile.TemporaryDirectory(prefix="iopath-") as folder:
        log, report = Path(folder, "log"), Path(folder, "report")
        status = process.run([*words, f"--output={report}"], output=log)
        if status:
            complaint = process.last_line(log, f"it ended with status {status}")
            raise IopathError(f"{title}: {complaint.removeprefix('ioloop: ')}")
        return read_report(report)


def read_report(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except ValueError as error:
        raise IopathError(f"ioloop's report cannot be read: {error}") from error


# Measuring.


class _Series:
    """The samples of one run."""

    def __init__(self, run: Run, cpu: int) -> None:
        self.run = run
        self._cpu = cpu
        self.samples: list[dict[str, float]] = []
        self.absent: dict[str, str] = {}
        self.ios = run.ios
        self.take()
        wanted = math.ceil(_ROUND_NS / max(self.samples[0]["ns"], 1e-3) / run.rung.batch)
        self.ios = max(run.rung.batch, min(wanted * run.rung.batch, 1 << 24))

    @property
    def words(self) -> list[str]:
        return command(self.run, self._cpu, ios=self.ios)

    def take(self) -> None:
        words = [*self.words, *(["--pmu"] if self.run.counted else [])]
        found, self.absent = sample(self.run, run_loop(words, self.run.title))
        self.samples.append(found)


def sample(run: Run, report: dict[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """Of ioloop's report nanoseconds, and what was counted, per I/O; and why the rest was not."""
    job = report["jobs"][0]
    found = {"ns": statistics.median(part["ns"] / part["ios"] for part in job["rounds"])}
    absent = {}
    for name, parts in COUNTERS.items():
        if not run.counted:
            absent[name] = "the counters do not see the kernel's threads"
            continue
        counts = [job["pmu"][part] for part in parts]
        reasons = [count["reason"] for count in counts if count["value"] is None]
        if reasons:
            absent[name] = reasons[0]
        else:
            found[name] = sum(count["value"] for count in counts) / job["ios"]
    return found, absent


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """The 95 % confidence interval of the median of *samples*, whatever their distribution."""
    count, rank, tail = len(samples), 0, 0.0
    while True:
        tail += math.comb(count, rank) / 2**count
        if 2 * tail > 0.05:
            break
        rank += 1
    if not rank:
        raise ValueError("too few samples")
    ordered = sorted(samples)
    return ordered[rank - 1], ordered[count - rank]


def measure(
    runs: Sequence[Run],
    cpu: int,
    passes: int,
    step: Step,
    warn: Callable[[str], None],
    *,
    strict: bool,
) -> dict[str, Any]:
    """Measure *runs* on the running machine: the result, as result.schema.json says.

    A run that this kernel or machine refuses is left out, with a warning, unless *strict*."""
    check_devices(runs)
    whole = result_of(cpu, [])
    for text in whole["machine"]["warnings"]:
        warn(text)
    series: list[_Series] = []
    for number, run in enumerate(runs):
        step("trying the rungs", number / len(runs))
        try:
            series.append(_Series(run, cpu))
        except IopathError as error:
            if strict:
                raise
            warn(f"left out: {error}")
    if not series:
        raise IopathError("nothing is left to measure")
    _take(series, NOISE_PASSES, "measuring the noise", step)
    noise = [one.samples for one in series]
    _take(series, passes, "measuring", step)
    whole["results"] = [
        {
            "kernel": {"name": NAME, "release": whole["kernels"][0]["release"]},
            **record(one.run, first, one.samples, one.absent),
            "rounds": _ROUNDS,
            "ios_per_round": one.ios,
            "command": one.words,
        }
        for one, first in zip(series, noise, strict=True)
    ]
    return whole


def result_of(cpu: int, records: list[dict[str, Any]]) -> dict[str, Any]:
    """The result that *records* of this machine make."""
    machine, kernel = survey(cpu), _describe()
    checking = [name for name in _CHECKING if kernel["config"].get(name) == "y"]
    if checking:
        machine["warnings"].append(f"the kernel checks itself: {', '.join(checking)}")
    return {
        "schema": result.SCHEMA,
        "program": f"iopath {__version__}",
        "mode": "hardware",
        "machine": machine,
        "programs": {"ioloop": digest_file(guest_program("ioloop"))},
        "kernels": [kernel],
        "results": [
            {"kernel": {"name": NAME, "release": kernel["release"]}, **record} for record in records
        ],
    }


def _take(series: Sequence[_Series], passes: int, what: str, step: Step) -> None:
    for one in series:
        one.samples = []
    for number in range(passes):
        # There and back, so that what drifts does so for the first and the last alike.
        for one in series if number % 2 == 0 else reversed(series):
            step(what, number / passes)
            one.take()


def _between_halves(samples: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """What the medians of every other sample and of the rest differ by: A against A."""
    return {
        name: abs(
            statistics.median(sample[name] for sample in samples[0::2])
            - statistics.median(sample[name] for sample in samples[1::2])
        )
        for name in samples[0]
    }


def record(
    run: Run,
    first: Sequence[Mapping[str, float]],
    samples: Sequence[Mapping[str, float]],
    absent: Mapping[str, str],
) -> dict[str, Any]:
    """The figures of a run from its *samples*, and their noise from the *first* ones."""
    return _record(run, [first], [samples], absent, {})


def record_boots(
    run: Run,
    first: Sequence[Sequence[Mapping[str, float]]],
    samples: Sequence[Sequence[Mapping[str, float]]],
    absent: Mapping[str, str],
) -> dict[str, Any]:
    """The same of a guest that was booted several times, with the median of each boot."""
    boots = {
        name: [round(statistics.median(one[name] for one in part), 4) for part in samples]
        for name in samples[0][0]
    }
    return _record(run, first, samples, absent, boots)


def _record(
    run: Run,
    first: Sequence[Sequence[Mapping[str, float]]],
    parts: Sequence[Sequence[Mapping[str, float]]],
    absent: Mapping[str, str],
    boots: Mapping[str, list[float]],
) -> dict[str, Any]:
    noises = [_between_halves(part) for part in first]
    samples = [sample for part in parts for sample in part]
    figures: dict[str, dict[str, Any]] = {}
    for name in samples[0]:
        values = [sample[name] for sample in samples]
        low, high = interval(values)
        figures[name] = {
            "median": round(statistics.median(values), 4),
            "low": round(low, 4),
            "high": round(high, 4),
            "noise": round(max(noise[name] for noise in noises), 4),
        }
        if boots:
            figures[name]["boots"] = boots[name]
    return {
        "rung": run.rung.name,
        "op": run.op,
        "block_size": run.block_size,
        "figures": figures,
        "absent": dict(absent),
        "samples": len(samples),
        "batch": run.rung.batch,
    }


# Comparing.

# What two results must have in common for their difference to be the kernel's.
_SAME = ("cpu_model", "microcode", "cpus", "governor", "boost", "smt_siblings", "guest")


def incomparable(results: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """What differs between measurements of machines besides the kernel, in words."""
    first_name, first = results[0]
    found = []
    for name, other in results[1:]:
        for field in _SAME:
            one, two = first["machine"][field], other["machine"][field]
            if one != two:
                found.append(f"{field}: {str(one)!r} and {str(two)!r} ({first_name}, {name})")
        if first["programs"] != other["programs"]:
            found.append(f"ioloop ({first_name}, {name})")
        for module in first["kernels"][0]["modules"]:
            one, two = (part["kernels"][0]["modules"].get(module) for part in (first, other))
            if one != two:
                found.append(f"{module}: {one} and {two} ({first_name}, {name})")
    return found


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """How a figure differs, and whether that is beyond the noise: the intervals do not overlap, and
    the same measured twice does not differ as much. Boots of a guest differ by more than the
    samples of one boot do, so there a single boot of either is no verdict."""
    change = after["median"] - before["median"]
    boots = [figure["boots"] for figure in (before, after) if "boots" in figure]
    noise = max(
        before["noise"] + after["noise"],
        *((figure["high"] - figure["low"]) / 2 for figure in (before, after)),
        sum(max(part) - min(part) for part in boots),
    )
    apart = before["high"] < after["low"] or after["high"] < before["low"]
    verdict = "same"
    if any(len(part) < 2 for part in boots):
        verdict = "unknown"
    elif apart and abs(change) > noise:
        verdict = "longer" if change > 0 else "shorter"
    return {
        "difference": change,
        "percent": 100 * change / before["median"] if before["median"] else 0.0,
        "noise": noise,
        "verdict": verdict,
    }


def compare(whole: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the measurements of machines with the first, as compare.compare does exact ones: the
    difference of a rung is that of its time."""
    names = [kernel["name"] for kernel in whole["kernels"]]
    if len(names) < 2:
        raise UsageError("one measurement alone cannot be compared: give two or more")
    rows: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    for record in whole["results"]:
        key = (record["rung"], record["op"], record["block_size"])
        rows.setdefault(key, {})[record["kernel"]["name"]] = record["figures"]
    rungs = []
    for (rung, op, size), figures in rows.items():
        base = figures.get(names[0])
        differences, counted = {}, {}
        for name in names[1:]:
            if base and name in figures:
                differences[name] = difference(base["ns"], figures[name]["ns"])
                counted[name] = {
                    counter: difference(base[counter], figures[name][counter])
                    for counter in COUNTERS
                    if counter in base and counter in figures[name]
                }
        rungs.append(
            {"rung": rung, "op": op, "block_size": size, "figures": figures,
             "differences": differences, "counted": counted}
        )  # fmt: skip
    return {"base": names[0], "others": names[1:], "labels": [], "rungs": rungs}
