# SPDX-License-Identifier: GPL-2.0
"""Profiles in Callgrind's format, for callgrind_annotate and KCachegrind: a kernel and a rung are
an object, and their layers its files. How often a function calls another is not counted: it is 1.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

from iopath import __version__
from iopath.show.stacks import Stacks

_EVENTS = {"instructions": "Ir"}  # as Callgrind calls them


def render(found: Iterable[Stacks]) -> str:
    every = list(found)
    total = sum(count for one in every for _, count in one.counts)
    units = dict.fromkeys(_EVENTS.get(one.unit, one.unit) for one in every)
    head = [
        "# callgrind format", "version: 1", f"creator: iopath {__version__}", "positions: line",
        f"events: {' '.join(units) or 'Ir'}", f"summary: {total}",
    ]  # fmt: skip
    lines = [line for one in every for line in _object(one)]
    return "\n".join([*head, *lines, f"totals: {total}"]) + "\n"


def _object(one: Stacks) -> Iterator[str]:
    """The functions of a kernel and a rung: what each took by itself, and through its calls.
    callgrind_annotate tells functions of one name apart by their files."""
    own: Counter[str] = Counter()
    calls: dict[str, Counter[str]] = {}
    for stack, count in one.counts:
        frames = stack.split(";")
        own[frames[-1]] += count
        # A recursive function's call is in a stack twice, and is counted once.
        for caller, called in set(itertools.pairwise(frames)):
            calls.setdefault(caller, Counter())[called] += count
            own[caller] += 0
    name = f"{one.kernel} {one.title}"
    files = {part: f"{name}/{one.layers.get(part, '???')}" for part in own}
    yield f"\nob={name}"
    for part in sorted(own):
        yield from (f"fl={files[part]}", f"fn={part}", f"0 {own[part]}")
        for called, count in sorted(calls.get(part, {}).items()):
            yield from (f"cfi={files[called]}", f"cfn={called}", "calls=1 0", f"0 {count}")
