# SPDX-License-Identifier: GPL-2.0
"""Who executed the instructions of a flat region: interrupts, soft interrupts, work items, threads.

The plugin has sums by call path (Documentation/pathcount.rst). A part is named after the nearest
caller that says what the kernel was doing. The kernel calls work items, soft interrupts, timers,
callbacks and threads by a pointer, each kind in one place.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from iopath.base.arch import Arch
from iopath.counts.output import Flat, Part
from iopath.counts.symbols import Symbols
from iopath.results.result import TASK
from iopath.results.symbol import plain

_SWITCHES = "switches"
_PROGRAMS = "programs"
IDLE = "idle"

_INTERRUPT = "interrupt"

# What these functions call by a pointer.
_CALLED_BY = {
    "process_one_work": "kworker",
    "process_scheduled_works": "kworker",  # into which the compiler may inline the former
    "worker_thread": "kworker",
    "rescuer_thread": "kworker",
    "kthread": "thread",
    "ret_from_fork": "thread",
    "smpboot_thread_fn": "thread",
    "kthread_worker_fn": "thread",
    "md_thread": "thread",
    "__do_softirq": "softirq",
    "handle_softirqs": "softirq",
    "tasklet_action_common": "tasklet",
    "call_timer_fn": "timer",
    "expire_timers": "timer",
    "__run_timers": "timer",
    "rcu_do_batch": "RCU callback",
    "rcu_core": "RCU callback",  # into which the compiler may inline the former
    "rcu_process_callbacks": "RCU callback",
    "rcu_reclaim_tiny": "RCU callback",
    "srcu_invoke_callbacks": "SRCU callback",
    "__handle_irq_event_percpu": _INTERRUPT,
    "handle_irq_event_percpu": _INTERRUPT,
    "handle_percpu_devid_irq": _INTERRUPT,
    "handle_percpu_irq": _INTERRUPT,
}
_SWITCH = "__schedule"
_SWITCHED_IN = (_SWITCH, "__switch_to", "__switch_to_asm", "cpu_switch_to")
IDLE_LOOP = ("cpu_startup_entry", "do_idle", "cpu_idle_poll", "default_idle_call")


def interrupt(function: str) -> str:
    """The name of the part of an interrupt that *function* handles."""
    return f"{_INTERRUPT} {function}"


def _entry(function: str) -> str:
    return interrupt(function.removeprefix("asm_"))


class Names:
    """The names of the parts of one boot, whose flat regions are *regions*."""

    def __init__(self, arch: Arch, symbols: Symbols, regions: Iterable[Flat]) -> None:
        self._arch = arch
        self._symbols = symbols
        self._returns: dict[int, dict[str, str]] = defaultdict(dict)  # by thread
        self._programs: set[int] = set()
        for region in regions:
            self._note_threads(region.parts)

    def of(self, region: Flat) -> dict[str, float]:
        """The instructions beside the task by the name of who executed them."""
        found: dict[str, float] = defaultdict(float)
        names: list[str] = []
        threads: list[bool] = []  # of another task
        for part in region.parts:
            above = TASK if part.parent is None else names[part.parent]
            threads.append(part.kind == "t" or (part.parent is not None and threads[part.parent]))
            names.append(self._name(part, above, region, of_thread=threads[-1]))
            found[names[-1]] += part.instructions
        found.pop(TASK, None)
        return found

    def entries(self, region: Flat) -> set[str]:
        """The names of the parts in which interrupts are entered."""
        found = [(part.address, self._function(part.address)) for part in region.parts
                 if part.kind == "e"]  # fmt: skip
        return {_entry(name) for at, name in found if not self._arch.is_exception(at, name)}

    def handlers(self, region: Flat) -> dict[int, str]:
        """The functions that handle interrupts, by address, with the name of their part."""
        found = [part for part in region.parts if part.kind == "C"]
        return {
            part.address: interrupt(self._function(part.address))
            for part in found
            if _CALLED_BY.get(self._function(part.site)) == _INTERRUPT
        }

    def _name(self, part: Part, above: str, region: Flat, *, of_thread: bool) -> str:
        name = self._function(part.address)
        if part.kind == "t":
            return self._thread(part, region.parts)
        if part.kind == "e":
            if not self._arch.is_exception(part.address, name):
                return _entry(name)
            # An exception of the task belongs to the task, wherever it happens.
            return above if of_thread else TASK
        if above == TASK:
            return TASK
        site = self._function(part.site)
        if name in _SWITCHED_IN if part.kind == "r" else _SWITCH in (name, site):
            return _SWITCHES
        if part.kind == "C" and site in _CALLED_BY:
            return f"{_CALLED_BY[site]} {name}"
        return above

    def _function(self, address: int) -> str:
        return plain(self._symbols.find(address).name)

    def _note_threads(self, parts: Sequence[Part]) -> None:
        """Note which function each thread returned to from which. The last one is the thread's
        own."""
        for part in parts:
            if part.kind != "r" or part.parent is None:
                continue
            thread = parts[part.parent].address
            if not part.address:
                self._programs.add(thread)
            elif part.site:
                one, other = self._function(part.address), self._function(part.site)
                self._returns[thread][one] = other

    def _thread(self, thread: Part, parts: Sequence[Part]) -> str:
        if thread.address in self._programs:
            return _PROGRAMS
        place = parts.index(thread)
        roots = [part.address for part in parts if part.kind == "r" and part.parent == place]
        name = self._function(roots[0]) if roots else "unknown"
        seen = {name}
        while (name := self._returns[thread.address].get(name, name)) not in seen:
            seen.add(name)
        return IDLE if name in IDLE_LOOP else f"thread {name}"
