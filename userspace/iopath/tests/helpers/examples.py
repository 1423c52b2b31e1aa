# SPDX-License-Identifier: GPL-2.0
"""Results that were not measured."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from iopath.results.metrics import COUNTED

COUNTS = ("instructions", "reads", "writes", "locked", "calls", "indirect", "branches")
BOOTS = 7  # of each kernel
DIGEST = "0123456789abcdef" * 4

# The stacks of a profile: functions from the outermost in, their layers, and the own instructions
# of the last one.
STACKS = (
    (("loop [user]",), "user", 12.36),
    (("loop [user]", "do_syscall_64"), "system call entry", 31.0),
    (("loop [user]", "do_syscall_64", "vfs_read"), "VFS", 122.0),
    (("loop [user]", "do_syscall_64", "vfs_read", "gup"), "page pinning", 400.0),
    (("loop [user]", "do_syscall_64", "vfs_read", "gup", "helper.part.0"), "page pinning", 24.0),
    (("loop [user]", "do_syscall_64", "vfs_read", "submit [blknull]"), "driver", 5.0),
    (("loop [user]", "do_syscall_64", "odd"), "other", 7.5),
)

Stack = tuple[tuple[str, ...], str, float]


def a_profile(stacks: Sequence[Stack]) -> dict[str, Any]:
    functions: dict[str, tuple[str, float]] = {}
    layers: dict[str, float] = defaultdict(float)
    for path, layer, count in stacks:
        functions[path[-1]] = (layer, functions.get(path[-1], ("", 0.0))[1] + count)
        layers[layer] += count
    total = sum(layers.values())
    zeroes = dict.fromkeys(COUNTS, 0.0)
    return {
        **zeroes,
        "instructions": total,
        "user": layers["user"],
        "kernel": total - layers["user"],
        "layers": dict(layers),
        "functions": [
            {
                **zeroes,
                "name": text.split(" ")[0],
                "module": text.partition(" ")[2].strip("[]"),
                "layer": layer,
                "instructions": count,
            }
            for text, (layer, count) in functions.items()
        ],
        "stacks": [[";".join(path), count] for path, _, count in stacks],
        "lines": {"code_user": 1, "code_kernel": 90.5, "data_user": 2, "data_kernel": 60},
        "unmatched_returns": 0,
        "faults": 0,
        "switches": 0,
    }


def a_record(
    kernel: str, rung: str, op: str, size: int, stacks: Sequence[Stack] | None = STACKS
) -> dict[str, Any]:
    """One record. The clock's figure is 0.07 above the profile's total, as in real results."""
    profile = a_profile(stacks or STACKS)
    figure = round(profile["instructions"] + 0.07, 4)
    record = {
        "kernel": {"name": kernel, "release": kernel},
        "rung": rung,
        "op": op,
        "block_size": size,
        "instructions_per_io": figure,
        "spread": 0.02,
        "boots": [figure] * BOOTS,
        "boot_spread": 0.0,
        "mean": figure,
        "mean_boots": [figure] * BOOTS,
        "with_deferred": figure + 2,
        "with_deferred_boots": [figure + 2] * BOOTS,
        "counts": {name: [0.0] * BOOTS for name in COUNTED},
        "long_run_ios": 12000,
        "drain_ms": 12000,
        "mean_with_interrupts": figure,
        "rounds": 60,
        "rounds_with_interrupts": 0,
        "ios_per_round": 100,
        "batch": 1,
        "command": ["/bin/ioloop"],
        "scenario": DIGEST,
    }
    return record | ({"profile": profile} if stacks is not None else {})


def a_result(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """A result of these records, on the kernels that they name."""
    records = list(records)
    return {
        "schema": 2,
        "program": "iopath 0",
        "mode": "exact",
        "qemu": {"version": "7.2", "digest": DIGEST},
        "machine": {"cpu": "max", "memory_mib": 1024, "cmdline": "nokaslr", "seed": 1},
        "programs": {"ioloop": DIGEST},
        "source": DIGEST,
        "kernels": [
            {
                "name": name,
                "release": f"{name}-release",
                "version": "1-1",
                "origin": "Debian sid",
                "banner": "Linux",
                "compiler": "gcc-12",
                "cpu_model": "QEMU",
                "cmdline": "console=ttyS0 nokaslr",
                "clocksource": "tsc",
                "config": {"HZ": "250", "PREEMPT": "y"},
                "digests": {"vmlinuz": sha256(name.encode()).hexdigest(), "config": DIGEST},
                "modules": {"blknull": {"iopath_shims": ""}},
                "zero_fill": True,
                "coherent": True,
                "quiet_after_seconds": 1,
            }
            for name in dict.fromkeys(record["kernel"]["name"] for record in records)
        ],
        "results": records,
    }
