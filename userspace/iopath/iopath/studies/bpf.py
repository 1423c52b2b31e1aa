# SPDX-License-Identifier: GPL-2.0
"""An object of eBPF of the user's as a feature: its programs are attached in the guest."""

import re
from pathlib import Path

from iopath.base.errors import IopathError, UsageError
from iopath.kernels import elf
from iopath.measure import packages
from iopath.measure.assemble import JITED
from iopath.rungs.feature import Feature

_LONGEST = 15  # letters of a program's name that the kernel keeps


def feature(path: Path) -> Feature:
    """The feature that attaches the programs in a file, and is called as it is. Those of control
    groups are attached to the root of all."""
    name = path.name
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise UsageError(f"--bpf {path}: a name may have letters, digits, '.', '-' and '_'")
    try:
        programs = elf.bpf_programs(path.read_bytes())
    except OSError as error:
        raise UsageError(f"--bpf {path}: {error.strerror}") from error
    except IopathError as error:
        raise UsageError(f"--bpf {path}: {error}") from error
    return Feature(
        name=name,
        about=f"eBPF at {', '.join(dict.fromkeys(programs.values()))}",
        tools=((packages.OWN, "attach"),),
        files=((f"bpf/{name}", path),),
        setup=(
            "mount tracefs /sys/kernel/tracing", "mkdir /cg", "mount cgroup2 /cg",
            f"run {JITED}{name} /bin/attach /bpf/{name} /cg",
        ),
        shows=("|".join(f"bpf_prog_{program[:_LONGEST]}*" for program in programs),),
        needs=("CONFIG_BPF_SYSCALL", "CONFIG_BPF_JIT", "CONFIG_CGROUPS"),
    )  # fmt: skip
