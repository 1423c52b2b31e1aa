# SPDX-License-Identifier: GPL-2.0
"""The type of a bridge between instructions and time, and how it is read from a file, which
bridge.schema.json describes.

compare/bridge.py makes bridges and estimates with them.
"""

from dataclasses import dataclass
from pathlib import Path

from iopath.base import typed
from iopath.base.errors import IopathError
from iopath.results import jsonfile
from iopath.results.result import MORE, SCHEMA, OfRung

AGREE = 5.0  # per cent by which the count of a PMU may differ from the exact one

_KIND = "a bridge"
MODE = "bridge"


@dataclass(kw_only=True)
class BridgedRung(OfRung):
    """A rung that was counted in a guest and measured on the machine, both on the same release.

    *predicted_ns* is the prediction of the line through the other rungs. *absent* is the reason why
    the PMU counted no instructions."""

    rung: str
    op: str
    block_size: int
    instructions: float
    ns: float
    predicted_ns: float
    cycles: float | None = None
    pmu_instructions: float | None = None
    absent: str = ""

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

    schema: int
    mode: str
    program: str
    cpu_model: str
    warnings: list[str]
    kernel: str
    release: str
    arch: str
    fixed_ns: float
    ns_per_instruction: float
    error: float
    share: float
    rungs: list[BridgedRung]

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
    jsonfile.validate(data, "bridge.schema.json", str(path), _KIND)
    bridge = typed.structure(data, Bridge)
    bridge.check(str(path))
    return bridge
