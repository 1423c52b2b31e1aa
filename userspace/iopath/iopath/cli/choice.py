# SPDX-License-Identifier: GPL-2.0
"""The results in files that --rung, --op and --bs choose."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from iopath.base.errors import IopathError
from iopath.results import checks
from iopath.results.result import Result, size_text
from iopath.rungs import builtin
from iopath.rungs.rung import Rung


def is_file(name: str) -> bool:
    """Whether a name on the command line is of a file, not of a kernel."""
    return name.endswith(".json")


@dataclass(frozen=True)
class Choice:
    """Patterns of names of rungs, operations and block sizes; without any, all are chosen. *added*
    are rungs besides iopath's."""

    patterns: Sequence[str]
    ops: Sequence[str]
    block_sizes: Sequence[int]
    added: Sequence[Rung]

    @property
    def known(self) -> dict[str, Rung]:
        """All rungs by name."""
        return {rung.name: rung for rung in (*builtin.RUNGS, *self.added)}

    def unknown(self, name: str) -> str:
        """A message that no rung has the *name*."""
        return builtin.unknown(name, sorted(self.known))

    def load(self, names: Sequence[str]) -> dict[str, Result]:
        """The results of the files among *names* that are chosen."""
        return {name: self._of_file(name) for name in names if is_file(name)}

    def _of_file(self, file: str) -> Result:
        whole = checks.load(Path(file))
        rungs = {rung.name for rung in builtin.select(self.patterns, self.added)}
        records = [
            record
            for record in whole.results
            if (not self.patterns or record.rung in rungs)
            and (not self.ops or record.op in (*self.ops, "none"))
            and (not self.block_sizes or record.block_size in (*self.block_sizes, 0))
        ]
        if not records:
            raise IopathError(f"{file} has no results that match --rung, --op and --bs")
        return replace(whole, results=records)

    def missing(self, whole: Result) -> Iterator[str]:
        """What is named and no kernel has, in words."""
        known = self.known
        present = {record.rung for record in whole.results}
        for name in sorted({*self.patterns} & set(known) - present):
            yield f"{name}: no kernel can run it"
        for name in sorted(present & set(known)):
            if known[name].target is None:
                continue
            records = [record for record in whole.results if record.rung == name]
            ops = {*self.ops} & {*known[name].can} - {record.op for record in records}
            sizes = {*self.block_sizes} - {record.block_size for record in records}
            for what in (*sorted(ops), *map(size_text, sorted(sizes))):
                yield f"{name} {what}: no result is of it"
