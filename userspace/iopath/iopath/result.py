# SPDX-License-Identifier: GPL-2.0
"""Results: made from what guests recorded, checked, read from files."""

import json
import re
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iopath import process
from iopath.build import Built
from iopath.errors import IopathError, UsageError
from iopath.plan import CLOCKSOURCE, Run, Settings

SCHEMA = 1

# What of a kernel's configuration is known to lengthen or shorten an I/O's path.
_MATTERS = re.compile(
    r"(?:PREEMPT\w*|HZ|NO_HZ\w*|CPU_MITIGATIONS|SPECULATION_MITIGATIONS|"
    r"RETPOLINE|RETHUNK|PAGE_TABLE_ISOLATION|CALL_DEPTH_TRACKING|SRSO|X86_KERNEL_IBT|CFI_CLANG|CFI"
    r"|BLK_CGROUP\w*|BLK_DEV_IO_TRACE|BLK_WBT|BUFFER_HEAD|FUNCTION_TRACER|HARDENED_USERCOPY"
    r"|INIT_ON_(?:ALLOC|FREE)_DEFAULT_ON|FORTIFY_SOURCE|RANDSTRUCT\w*|STACKPROTECTOR\w*|LSM"
    r"|DEBUG_LIST|LIST_HARDENED|SLUB_DEBUG|KASAN|LOCKDEP|PROVE_LOCKING|SECURITY|MEMCG"
    r"|CC_OPTIMIZE_FOR_\w+|LTO_\w+|AUTOFDO_CLANG|VIRT_CPU_ACCOUNTING_GEN|CONTEXT_TRACKING\w*)"
)
# What a configuration finds out of the compiler and the other tools, what each architecture can do,
# and the kernel's own name.
_PROBES = re.compile(
    r"(?:CC|GCC|CLANG|AS|LLD|PAHOLE|RUSTC?|BINDGEN|TOOLS|HAS|HAVE|ARCH_HAS|ARCH_HAVE|ARCH_WANTS?"
    r"|ARCH_SUPPORTS|ARCH_USES?)_\w+|LD_(?!DEAD)\w+|\w+_VERSION|\w+_VERSION_TEXT|BUILD_SALT"
)
_OPTION = re.compile(r"(?:# )?CONFIG_(?:MITIGATION_)?(\w+)(?:=(.*)| is not set)")
_OVERHEAD = 64  # instructions between two readings of the counter that are not the loop


def _calm(record: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rounds of a run, and those of them that no interrupt came into, as far as is known."""
    rounds = [part for job in record["jobs"] for part in job["rounds"]]
    return rounds, [part for part in rounds if part["interrupts"] == 0]


def check_calibration(record: dict[str, Any]) -> None:
    """A loop of known length must count to that length, or no figure means anything."""
    expected = record["expected_instructions"]
    _, calm = _calm(record)
    measured = [part["tsc"] for part in calm]
    if not measured or not 0 <= min(measured) - expected <= max(measured) - expected <= _OVERHEAD:
        raise IopathError(
            f"the guest's clock does not count instructions: a loop of {expected} took"
            f" {', '.join(map(str, measured)) or 'too long'}"
        )


def clock(record: dict[str, Any]) -> int:
    """How long the rounds of a run took by the guest's clock."""
    return sum(part["tsc"] for part in _calm(record)[0])


def figure(
    name: str,
    release: str,
    run: Run,
    outputs: Sequence[dict[str, Any]],
    longs: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """The record of one rung from ioloop's outputs and the figures of the long runs, of each one
    for each boot.

    A boot's figure is the median over the rounds that no interrupt came into, its spread their
    largest less their smallest; the rung's figure is the median over the boots, of an even number
    the lower of the middle two, so that it is the figure of a boot.
    """
    figures, spreads, interrupted, whole = [], [], 0, []
    for output in outputs:
        rounds, calm_rounds = _calm(output)
        calm = [part["tsc"] / part["ios"] for part in calm_rounds]
        if len(calm) < len(rounds) / 4:
            raise IopathError(
                f"{run.rung.name} {run.op}: only {len(calm)} of {len(rounds)} rounds went without"
                " an interrupt; try a smaller block size"
            )
        figures.append(statistics.median(calm))
        spreads.append(max(calm) - min(calm))
        interrupted += len(rounds) - len(calm)
        whole += [part["tsc"] / part["ios"] for part in rounds]
    middle = statistics.median_low(figures)
    means, deferred = ([long[name] for long in longs] for name in ("mean", "with_deferred"))
    return {
        "kernel": {"name": name, "release": release},
        "rung": run.rung.name,
        "op": run.op,
        "block_size": run.block_size,
        "instructions_per_io": round(middle, 4),
        "spread": round(max(spreads), 4),
        "boots": [round(figure, 4) for figure in figures],
        "boot_spread": round(max(figures) - min(figures), 4),
        "profile_boot": figures.index(middle),
        "mean": statistics.median_low(means),
        "mean_boots": means,
        "with_deferred": statistics.median_low(deferred),
        "with_deferred_boots": deferred,
        "long_run_ios": run.long_ios,
        "mean_with_interrupts": round(statistics.fmean(whole), 4),
        "rounds": len(whole),
        "rounds_with_interrupts": interrupted,
        "ios_per_round": run.ios,
        "batch": run.rung.batch,
        "command": run.rung.command(run.op, run.block_size, run.region),
    }


def describe(
    name: str, built: Built, records: dict[str, str], settings: Settings
) -> dict[str, Any]:
    """Everything about the kernel and the guest that could explain a difference."""
    version = records["/proc/version"].strip()
    cpu = re.search(r"model name\s*:\s*(.*)", records["/proc/cpuinfo"])
    return {
        "name": name,
        "release": built.release,
        "version": built.version,
        "origin": built.origin,
        "banner": version,
        "compiler": compiler(version),
        "cpu_model": cpu.group(1) if cpu else "unknown",
        "cmdline": records["/proc/cmdline"].strip(),
        "clocksource": records[CLOCKSOURCE].strip(),
        "config": options(built.config.read_text()),
        "digests": built.digests,
        "modules": {key: _modinfo(path) for key, path in built.modules.items()},
        "zero_fill": settings.fill,
        "coherent": settings.coherent,
        "quiet_after_seconds": len(records["quiet"].splitlines()),
    }


def compiler(banner: str) -> str:
    """What compiled a kernel, by its /proc/version."""
    found = re.search(r"\(((?:\S*gcc|clang)[^()]*(?:\([^()]*\)[^(),]*)?)", banner)
    return found.group(1).strip() if found else "unknown"


def options(config: str) -> dict[str, str]:
    """A kernel's configuration, but for what it finds out of the tools that compile it."""
    found = {}
    for match in filter(None, map(_OPTION.fullmatch, config.splitlines())):
        name, value = match.groups()
        if matters(name) or not _PROBES.fullmatch(name):
            found[name] = "n" if value is None else value.strip('"')
    return found


def matters(option: str) -> bool:
    """Whether an option is known to lengthen or shorten an I/O's path."""
    return _MATTERS.fullmatch(option) is not None


def _modinfo(path: Path) -> dict[str, str]:
    """What the module says of its own build."""
    output = subprocess.run(
        [process.need("modinfo", "kmod"), path], capture_output=True, text=True, check=False
    ).stdout
    facts = dict(line.split(":", 1) for line in output.splitlines() if ":" in line)
    kept = ("version", "srcversion", "vermagic", "iopath_shims")
    return {key: facts[key].strip() for key in kept if key in facts}


def load(path: Path) -> dict[str, Any]:
    """A result file, checked. Raises IopathError for one that is not ours or newer than we are."""
    try:
        result = json.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise IopathError(f"{path} is not a result file: {error}") from error
    version = result.get("schema") if isinstance(result, dict) else None
    if isinstance(version, int) and version > SCHEMA:
        raise IopathError(
            f"{path} has schema {version}, this iopath knows up to {SCHEMA}: use a newer iopath"
        )
    validate(result, str(path))
    return result


def validate(result: object, what: str) -> None:
    import jsonschema

    of_machine = isinstance(result, dict) and result.get("mode") == "hardware"
    name = "hardware.schema.json" if of_machine else "result.schema.json"
    schema = json.loads((Path(__file__).parent / name).read_text())
    try:
        jsonschema.validate(result, schema)
    except jsonschema.ValidationError as error:
        place = "/".join(map(str, error.absolute_path)) or "the top"
        raise IopathError(f"{what} is not a result file: at {place}: {error.message}") from error


def fold_all(results: Sequence[dict[str, Any]]) -> str:
    """The stacks of profiled results as flame graph tools read them, a line each:
    "KERNEL;RUNG;a;b COUNT". Counts are whole numbers there, so these are of 1000 I/Os."""
    return "".join(
        f"{record['kernel']['name']};{title(record)};{stack} {round(count * 1000)}\n"
        for record in results
        for stack, count in record["profile"]["stacks"]
    )


def title(record: dict[str, Any]) -> str:
    """A result's rung and operation, e.g. "dio.pread read"."""
    return record["rung"] if record["op"] == "none" else f"{record['rung']} {record['op']}"
