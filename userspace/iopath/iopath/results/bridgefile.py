# SPDX-License-Identifier: GPL-2.0
"""The type of a bridge between instructions and time, and how it is read from a file.

compare/bridge.py makes bridges and estimates with them.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from iopath.base import typed
from iopath.base.arch import ARCH_NAMES
from iopath.base.errors import IopathError
from iopath.results import jsonfile
from iopath.results.ops import OF_RUNG
from iopath.results.result import MORE, SCHEMA, OfRung
from iopath.results.schema import Natural, NotNegative, Several

AGREE = 5.0  # per cent by which the count of a PMU may differ from the exact one

_KIND = "a bridge"
MODE = "bridge"


@dataclass(kw_only=True)
class BridgedRung(OfRung):
    """A rung that was counted in a guest and measured on the machine, both on the same release.

    *predicted_ns* is the prediction of the line through the other rungs. *absent* is the reason why
    the PMU counted no instructions."""

    rung: str
    op: Annotated[str, ("enum", OF_RUNG)]
    block_size: Annotated[Natural, "Bytes; 0 where there is no I/O."]
    instructions: Annotated[NotNegative, "Per I/O, counted in the guest."]
    ns: Annotated[NotNegative, "Per I/O, median on the machine."]
    predicted_ns: Annotated[float, "Per I/O, by the line through the other rungs."]
    cycles: Annotated[NotNegative | None, "Per I/O, by the machine's PMU."] = None
    pmu_instructions: Annotated[
        NotNegative | None, "Per I/O, retired, user and kernel, by the machine's PMU."
    ] = None
    absent: Annotated[str, "Why the PMU counted no instructions."] = ""

    @property
    def pmu_percent(self) -> float | None:
        """By how much the PMU's count differs from the exact one, in per cent."""
        if self.pmu_instructions is None or not self.instructions:
            return None
        return 100 * (self.pmu_instructions - self.instructions) / self.instructions

    @property
    def agrees(self) -> bool:
        """Whether the PMU's count is the exact one, apart from interrupts and the loop's rounds."""
        percent = self.pmu_percent
        if percent is None or self.pmu_instructions is None:
            return True
        return abs(percent) <= AGREE or abs(self.pmu_instructions - self.instructions) <= MORE


@dataclass(kw_only=True)
class Bridge:
    """The time of an I/O over its instructions, on one machine:

        ns = fixed_ns + ns_per_instruction * instructions

    *error* is the relative error of an estimated difference. Of the differences between two rungs,
    weighted by their size in instructions, the part *share* is within that."""

    schema: Annotated[
        int, "Version of the format of results whose instructions it knows.", ("const", 2)
    ]
    mode: Annotated[str, "bridge: a model of the figures of two results.", ("const", "bridge")]
    program: Annotated[str, "The program that wrote the file."]
    cpu_model: Annotated[str, "The machine's CPU."]
    warnings: Annotated[list[str], "Settings of the machine that make figures vary."]
    kernel: Annotated[str, "The kernel's name in the exact result."]
    release: Annotated[str, "The kernel that ran in both, as uname -r prints it."]
    arch: Annotated[str, "Its architecture, as QEMU calls it.", ("enum", ARCH_NAMES)]
    fixed_ns: Annotated[
        float,
        "The time of an I/O without instructions, by the line through the rungs; it may be "
        "less than 0.",
    ]
    ns_per_instruction: Annotated[float, "The slope of that line."]
    error: Annotated[
        NotNegative,
        "The part of an estimated difference in time that it may be wrong by; from 1 on "
        "there is no estimate.",
    ]
    share: Annotated[
        float,
        "The part of the differences between rungs that are within the error.",
        ("maximum", 1),
        ("exclusiveMinimum", 0),
    ]
    rungs: Annotated[Several[BridgedRung], "What the line is made of."]

    def check(self, what: str) -> None:
        """Raise IopathError if its error is larger than what it estimates."""
        if not (self.ns_per_instruction > 0 and self.error < 1):
            worst = max(self.rungs, key=lambda rung: abs(rung.predicted_ns - rung.ns))
            raise IopathError(
                f"{what}: the error of an estimate, {100 * self.error:.0f} %, is larger than the"
                f" estimate (most of it: {worst.title}): measure more rungs, on an idle"
                " machine"
            )


def load(path: Path) -> Bridge:
    """The bridge in a file. Raises IopathError if it is not a bridge, if it was made for results of
    another format, which may count in another unit, or if its error is too large."""
    data = jsonfile.read(path, _KIND)
    version = jsonfile.schema_of(data)
    if isinstance(data, dict) and data.get("mode") == MODE and version not in (None, SCHEMA):
        raise IopathError(
            f"{path} was made for results of schema {version}, this iopath has {SCHEMA}: make it"
            " again with iopath bridge"
        )
    jsonfile.validate(data, Bridge, str(path), _KIND)
    bridge = typed.structure(data, Bridge)
    bridge.check(str(path))
    return bridge
