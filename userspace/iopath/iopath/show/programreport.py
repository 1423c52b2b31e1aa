# SPDX-License-Identifier: GPL-2.0
"""What views show of the counts of a program."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from iopath.compare import program as changes
from iopath.compare.program import WHOLE, Comparison
from iopath.results import program as results
from iopath.results.layers import table
from iopath.results.program import BESIDE, Ran, Result
from iopath.results.symbol import Symbol
from iopath.show import program as show
from iopath.show.figures import Figure
from iopath.show.stacks import Stacks


@dataclass
class ProgramReport:
    """The counts of a program on kernels, and how the others differ from the first one. Texts have
    *every* row, and the *top* functions of each."""

    result: Result
    comparisons: Sequence[Comparison]
    every: bool = False
    top: int | None = None

    def tables(self) -> list[show.View]:
        """What is printed: what differs, or what one kernel counted."""
        amount = {"every": self.every, "top": self.top}
        changed = [show.changed(self.result, one, **amount) for one in self.comparisons]
        return changed or [show.counted(self.result, self.result.kernels[0], **amount)]

    def json(self) -> str:
        return results.dump(self.result, self.comparisons)

    def html(self) -> str:
        from iopath.show import programpage  # slow to load

        return programpage.render(self.result, self.comparisons)

    def markdown(self) -> str:
        return "\n".join(table.markdown for table in self.tables())

    def figures(self) -> Iterator[Figure]:
        return (one for ran in self.result.kernels for one in figures(ran, self.command))

    def stacks(self) -> Iterator[Stacks]:
        """The functions of each part, such as a system call, below it."""
        for ran in self.result.kernels:
            parts = [part for part in ran.boots[0].parts if part.kind != BESIDE]
            counts = [
                (f"{part.name};{function}", count)
                for part in parts
                for function, count in part.functions.items()
            ]
            names = {name for part in parts for name in part.functions}
            layers = {name: table(None).of(Symbol(name)) for name in names}
            yield Stacks(ran.name, self.result.program, "instructions", counts, layers)

    @property
    def command(self) -> str:
        return show.command(self.result)


def figures(ran: Ran, command: str) -> Iterator[Figure]:
    """The whole, and the kernel's part of each system call."""
    for name, spread in changes.figures(ran).items():
        unit = "instructions" if name == WHOLE else "instructions per call"
        yield Figure(
            ran.name, command, name, unit, round(spread.value, 4), round(spread.least, 4),
            round(spread.most, 4), len(ran.boots),
        )  # fmt: skip
