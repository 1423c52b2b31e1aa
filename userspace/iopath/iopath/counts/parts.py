# SPDX-License-Identifier: GPL-2.0
"""Who executed the instructions of a flat region: interrupts, soft interrupts, work items, threads.

The plugin has sums by call path (Documentation/pathcount.rst). A part is named after the nearest
caller that says what the kernel was doing. The kernel calls work items, soft interrupts, timers,
callbacks and threads by a pointer, each kind in one place.

What the kernel does from time to time, whether there is I/O or not, is left out by these names.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from iopath.base.arch import Arch
from iopath.counts.plugin_output import Flat, Part
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
    "__hrtimer_run_queues": "hrtimer",
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

_WORKER = "thread worker_thread"  # carries out work items

# The kernel's own work, which comes by the clock: names of parts. What calls timers and callbacks
# is among it, but they themselves are only if they are named here. A timer that wakes a task or a
# worker does not say for whom.
_CLOCKWORK = {
    "RCU callback": (  # of tasks that have ended
        "__put_task_struct_rcu_cb", "delayed_put_task_struct", "put_cred_rcu",
        "thread_stack_free_rcu",
    ),
    "hrtimer": (
        "dl_task_timer", "hrtick", "hrtimer_wakeup", "inactive_task_timer",
        "sched_rt_period_timer", "tick_nohz_handler", "tick_sched_timer", "watchdog_timer_fn",
    ),
    "kworker": (
        "addrconf_verify_work", "blk_mq_timeout_work", "check_lifetime",
        "clocksource_watchdog_work", "crng_reseed", "delayed_vfree_work",
        "flush_memcg_stats_dwork", "idle_cull_fn", "neigh_managed_work", "neigh_periodic_work",
        "psi_avgs_work", "vmstat_shepherd", "vmstat_update",
    ),
    "softirq": (
        "hrtimer_run_softirq", "rcu_core_si", "rcu_process_callbacks", "run_rebalance_domains",
        "run_timer_softirq", "sched_balance_softirq",
    ),
    "thread": (
        "cpu_stop_should_run", "cpu_stopper_thread", "kcompactd", "khugepaged", "kswapd",
        "kthread", "kthreadd", "rcu_exp_gp_kthread_worker", "rcu_gp_kthread", "rcu_tasks_kthread",
        "ret_from_fork", "run_ksoftirqd", "smpboot_thread_fn", "watchdog",
    ),
    "timer": (
        "blk_rq_timed_out_timer", "clocksource_watchdog", "delayed_work_timer_fn", "mce_timer_fn",
        "idle_worker_timeout", "process_timeout", "tcp_orphan_update", "writeout_period",
    ),
}  # fmt: skip
_OWN = {f"{kind} {function}" for kind, found in _CLOCKWORK.items() for function in found}


def interrupt(function: str) -> str:
    """The name of the part of an interrupt that *function* handles."""
    return f"{_INTERRUPT} {function}"


# The timer's interrupts, which may also end an I/O.
TICKS = {
    interrupt(function)
    for function in (
        "sysvec_apic_timer_interrupt", "arch_timer_handler_virt", "riscv_timer_interrupt"
    )
}  # fmt: skip


def _entry(function: str) -> str:
    return interrupt(function.removeprefix("asm_"))


def is_tick(function: str) -> bool:
    """Whether a vector, which *function* is entered by, is that of the timer's interrupt."""
    return _entry(function) in TICKS


@dataclass
class _Thread:
    """A task beside the region's: how many instructions its work items execute for the I/O, and how
    many for the kernel itself (*own*)."""

    name: str
    for_io: int = 0
    own: int = 0

    def count(self, instructions: int, *, own: bool) -> None:
        if own:
            self.own += instructions
        else:
            self.for_io += instructions

    def share(self, *, waits: bool) -> float:
        """What share of its switches, and of a worker's loop, is for the I/O. Where the region's
        task waits for a device, the idle task is switched to for the I/O."""
        if self.name == IDLE:
            return float(waits)
        if self.name == _WORKER:
            return self.for_io / max(1, self.for_io + self.own)
        return float(self.name not in _OWN)


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
        names, _, _ = self._named(region)
        for part, name in zip(region.parts, names, strict=True):
            found[name] += part.instructions
        found.pop(TASK, None)
        return found

    def for_io(self, region: Flat, timers: Mapping[str, float], *, waits: bool) -> dict[str, float]:
        """The same without the kernel's own work. *timers* has what share of the timer's interrupts
        is for the I/O, by the name of their parts; the task may wait for a device."""
        names, threads, entries = self._named(region)
        for part, name, thread in zip(region.parts, names, threads, strict=True):
            if thread and name.startswith("kworker "):
                thread.count(part.instructions, own=name in _OWN)
        found: dict[str, float] = defaultdict(float)
        for part, name, thread, entry in zip(region.parts, names, threads, entries, strict=True):
            if name in (_SWITCHES, _WORKER):
                share = thread.share(waits=waits) if thread else timers.get(entry, 1)
            else:
                share = 0 if name == IDLE or name in _OWN else timers.get(name, 1)
            found[name] += share * part.instructions
        found.pop(TASK, None)
        return {name: count for name, count in found.items() if count}

    def entries(self, region: Flat) -> set[str]:
        """The names of the parts in which interrupts are entered."""
        found = [(part.address, self._function(part.address)) for part in region.parts
                 if part.kind == "e"]  # fmt: skip
        return {_entry(name) for at, name in found if not self._arch.is_exception(at, name)}

    def handlers(self, region: Flat) -> dict[int, str]:
        """The functions that handle interrupts, by address, with the name of their part."""
        return {
            part.address: interrupt(self._function(part.address))
            for part in region.parts
            if self._called_by(part) == _INTERRUPT
        }

    def _named(self, region: Flat) -> tuple[list[str], list[_Thread | None], list[str]]:
        """The names of the parts; the task that each belongs to, if that is not the region's; and
        the interrupt that it is in, or nothing."""
        names: list[str] = []
        threads: list[_Thread | None] = []
        entries: list[str] = []
        for part in region.parts:
            above, thread, entry = TASK, None, ""
            if part.parent is not None:
                above, thread = names[part.parent], threads[part.parent]
                entry = entries[part.parent]
            name = self._name(part, above, region, of_thread=part.kind == "t" or bool(thread))
            names.append(name)
            threads.append(_Thread(name) if part.kind == "t" else thread)
            entries.append(name if part.kind == "e" else entry)
        return names, threads, entries

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
        kind = self._called_by(part)
        return f"{kind} {name}" if kind else above

    def _called_by(self, part: Part) -> str:
        """What kind of work a part is that is called by a pointer; empty if it is none. Where
        handlers are called, the interrupt controller is told of the end of any interrupt, too."""
        kind = _CALLED_BY.get(self._function(part.site), "") if part.kind == "C" else ""
        ends = kind == _INTERRUPT and "eoi" in self._function(part.address)
        return "" if ends else kind

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
