# SPDX-License-Identifier: GPL-2.0
"""Results of machines that do not exist, whose time for an instruction is known."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.examples import DIGEST, a_record, a_result
from helpers.sampled import a_profile
from iopath.base import typed

Key = tuple[str, str, int]

OLD, NEW = "debian:6.1", "debian:7.2"

# Realistic instructions per I/O on two kernels.
LADDER: dict[Key, tuple[float, float]] = {
    ("null", "none", 0): (4.01, 4.01),
    ("syscall", "none", 0): (327.01, 338.01),
    ("gen.sync", "read", 4096): (398.87, 421.87),
    ("raw.pread", "read", 4096): (1798.35, 1714.35),
    ("raw.aio.1", "read", 4096): (3754.44, 3592.44),
    ("raw.aio.100", "read", 4096): (2507.84, 2346.84),
    ("dio.pread", "read", 4096): (2694.47, 2926.47),
    ("dio.aio.1", "read", 4096): (4990.51, 4742.51),
    ("dio.aio.100", "read", 4096): (3787.39, 3496.39),
    ("dio.uring", "read", 4096): (3400.84, 3407.84),
    ("mq.pread", "read", 4096): (4232.87, 4488.87),
}


@dataclass(frozen=True)
class Machine:
    """An I/O takes *fixed* ns and *slope* ns for each instruction. Each rung's slope varies by the
    part *varied*, and its measured time by the part *noise*."""

    fixed: float = 30.0
    slope: float = 0.25
    varied: float = 0.0
    noise: float = 0.0
    seed: int = 1

    def times(self, ladder: Mapping[Key, float]) -> dict[Key, float]:
        source = random.Random(self.seed)
        return {
            key: (self.fixed + self.slope * source.gauss(1, self.varied) * instructions)
            * max(source.gauss(1, self.noise), 0.01)
            for key, instructions in ladder.items()
        }


def exact(*kernels: str, ladder: Mapping[Key, Sequence[float]] = LADDER) -> dict[str, Any]:
    """An exact result of *ladder*, which has a figure for each of the kernels."""
    records = []
    for at, kernel in enumerate(kernels):
        for (rung, op, size), figures in ladder.items():
            record = a_record(kernel, rung, op, size, None)
            boots = [figures[at]] * len(record["boots"])
            record |= {"instructions_per_io": figures[at], "boots": boots}
            record |= {"mean": figures[at], "mean_boots": boots}
            record |= {"with_deferred": figures[at], "with_deferred_boots": boots}
            records.append(record)
    return a_result(records)


def host(
    times: Mapping[Key, float],
    release: str = f"{OLD}-release",
    counts: Mapping[str, Mapping[Key, float]] | None = None,
    absent: str = "no PMU",
) -> dict[str, Any]:
    """The result of a machine with these times, and of its PMU the *counts* of these names."""
    kernel = {
        "name": "host", "release": release, "banner": "Linux", "compiler": "gcc-12", "cmdline": "",
        "clocksource": "tsc", "config": {}, "modules": {},
    }  # fmt: skip
    machine = {
        "cpu": 1, "cpu_model": "made-up CPU", "microcode": "", "cpus": 2, "governor": "none",
        "boost": "off", "smt_siblings": [], "isolated": "", "guest": False, "load": 0.0,
        "mitigations": {}, "warnings": [],
    }  # fmt: skip
    names = ("cycles", "instructions", "instructions_kernel", "cache_misses", "branch_misses")
    results = []
    for (rung, op, size), ns in times.items():
        found = {"ns": ns} | {
            name: part[rung, op, size]
            for name, part in (counts or {}).items()
            if (rung, op, size) in part
        }
        results.append({
            "kernel": {"name": "host", "release": release}, "rung": rung, "op": op,
            "block_size": size, "command": [], "samples": 20, "rounds": 20, "ios_per_round": 100,
            "batch": 1, "absent": {name: absent for name in names if name not in found},
            "figures": {
                name: {"median": value, "low": value, "high": value, "noise": 0.0}
                for name, value in found.items()
            },
        })  # fmt: skip
    return {
        "schema": 2, "program": "iopath 0", "mode": "hardware", "machine": machine,
        "programs": {"ioloop": DIGEST}, "kernels": [kernel], "results": results,
    }  # fmt: skip


def profile(times: Mapping[Key, float]) -> dict[str, Any]:
    """The profile of a machine, which has no times."""
    whole = host(times)
    for record in whole["results"]:
        del record["figures"], record["absent"]
        record["profile"] = typed.unstructure(a_profile())
    return whole


def on(kernel: int, ladder: Mapping[Key, Sequence[float]] = LADDER) -> dict[Key, float]:
    """The instructions of one kernel."""
    return {key: figures[kernel] for key, figures in ladder.items()}


def write(folder: Path, **wholes: dict[str, Any]) -> list[Path]:
    """Files of these names."""
    paths = []
    for name, whole in wholes.items():
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps(whole))
    return paths
