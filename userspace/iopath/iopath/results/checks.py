# SPDX-License-Identifier: GPL-2.0
"""What must hold in a result besides its schema: a file may have been edited, or joined by hand."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

from iopath.base.arch import BY_DEBIAN
from iopath.base.errors import IopathError
from iopath.results import result
from iopath.results.profiles import COUNTS
from iopath.results.result import ExactRecord, ExactResult, Key, Result
from iopath.results.syscalls import EVERY

_ROUNDED = 0.01  # sums of figures with four decimals
_SHARE = 1e-6  # of larger figures
# Instructions of a round that the guest's clock counts and the profile does not, at most.
_OVERHEAD = 64

# The words that iopath adds to a guest's command line, by name.
_ADDED = {"maxcpus", "slab_nomerge"} | {
    word.partition("=")[0]
    for arch in BY_DEBIAN.values()
    for word in f"{arch.cmdline} {arch.cmdline_several}".split()
}


def load(path: Path) -> Result:
    """The result in a file of a user. Raises IopathError also if it contradicts itself."""
    found = result.load(path)
    exact = _of_exact(found) if isinstance(found, ExactResult) else ()
    for text in itertools.chain(_of_result(found), exact):
        raise IopathError(f"{path} is not a result file: {text}")
    return found


def _of_result(found: Result) -> Iterator[str]:
    """What contradicts itself in any result, in words."""
    known: set[tuple[str, Key]] = set()
    for record in found.results:
        name = f"{record.kernel.name}: {record.title} {record.size}".rstrip()
        if (record.kernel.name, record.key) in known:
            yield f"{name} is there twice"
        known.add((record.kernel.name, record.key))
        if record.kernel.name not in found.names:
            yield f"{name}: it does not have this kernel"


def _of_exact(found: ExactResult) -> Iterator[str]:
    """The same of a result that was counted."""
    for record in found.results:
        name = f"{record.kernel.name}: {record.title} {record.size}".rstrip()
        yield from (f"{name}: {text}" for text in (*_of_record(record), *_of_profile(record)))
    for kernel in found.kernels:
        asked = found.instrument(kernel).machine.cmdline.split()
        more = [word for word in kernel.cmdline.split() if word not in asked]
        if lacking := [word for word in asked if word not in kernel.cmdline.split()]:
            yield f"{kernel.name}: it booted without {lacking[0]}"
        if others := [word for word in more if word.partition("=")[0] not in _ADDED]:
            yield f"{kernel.name}: it booted with {others[0]}, which the machine does not have"


def _of_record(record: ExactRecord) -> Iterator[str]:
    boots = len(record.boots)
    if record.scenario is None and (not record.calls or record.calls.kind == EVERY):
        yield "it does not say what its scenario is made of: measure again"
    counts = record.counts or {}
    of_boots = {"layouts": record.layouts, "mean_boots": record.mean_boots,
                "with_deferred_boots": record.with_deferred_boots}  # fmt: skip
    for name, values in (of_boots | counts).items():
        # Where rounds have layouts, the first boot alone has counts and a long run.
        alone = record.layouts and name != "layouts" and values and len(values) == 1
        if values is not None and len(values) != boots and not alone:
            yield f"{name} has {len(values)} boots, its figure has {boots}"
    for name, values in counts.items():
        if min(values) < 0:
            yield f"{name} is negative"
    for name, whole, parts in (
        ("instructions_per_io", record.path, record.boots),
        ("mean", record.mean, record.mean_boots),
        ("with_deferred", record.total, record.total_boots),
    ):
        if parts and not _equal(whole or 0.0, math.fsum(parts) / len(parts)):
            yield f"{name} is not the mean of its boots"
    if record.all_parts and not _equal(record.total or 0.0, math.fsum(record.all_parts.values())):
        yield "the parts of the total do not add up to it"


def _of_profile(record: ExactRecord) -> Iterator[str]:
    profile = record.profile
    if not profile:
        return
    for count in COUNTS:
        parts = math.fsum(one.count(count) for one in profile.functions)
        if not _equal(profile.count(count), parts):
            yield f"the {count} of its functions do not add up"
    for name, instructions in (
        ("layers", profile.layers.values()),
        ("stacks", (count for _, count in profile.stacks)),
        ("user and kernel", (profile.user, profile.kernel)),
    ):
        if not _equal(profile.instructions, math.fsum(instructions)):
            yield f"the instructions of its {name} do not add up"
    if text := contradiction(record):
        yield text


def contradiction(record: ExactRecord) -> str:
    """How the guest's clock and the profile contradict each other, in words; empty if they do not.
    Both are of the same boot, but perhaps of two rounds of it."""
    if record.profile is None:
        return ""
    clock, counted = record.boots[0], record.profile.instructions
    if abs(clock - counted) <= _OVERHEAD / record.ios_per_round + record.spread:
        return ""
    return f"the clock counts {clock:,.2f} instructions per I/O, the profile {counted:,.2f}"


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= max(_ROUNDED, _SHARE * abs(one))
