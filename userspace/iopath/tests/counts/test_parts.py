# SPDX-License-Identifier: GPL-2.0
"""Who executed what beside the task, by call path: on made-up calls."""

from iopath.base.arch import X86_64
from iopath.counts.parts import TICKS, Names
from iopath.counts.plugin_output import Flat, Part
from iopath.counts.symbols import Symbols

TEXT = 0xFFFFFFFF81000000
FUNCTIONS = (
    "__schedule", "schedule", "schedule_timeout", "kjournald2", "worker_thread",
    "process_one_work.isra.0", "wb_workfn", "ext4_writepages", "cpu_startup_entry", "do_idle",
    "asm_sysvec_apic_timer_interrupt", "asm_exc_page_fault", "asm_common_interrupt",
    "__handle_irq_event_percpu", "nvme_irq", "handle_softirqs", "rcu_core_si", "rcu_do_batch",
    "file_free_rcu", "call_timer_fn", "delayed_work_timer_fn", "ret_from_fork", "kthread",
    "planted", "vmstat_update", "kcompactd", "smpboot_thread_fn", "run_ksoftirqd",
    "entry_SYSCALL_64", "pick_next_task_fair", "handle_percpu_devid_irq", "arch_timer_handler_virt",
    "gic_eoi_irq",
)  # fmt: skip
AT = {name: TEXT + 64 * number for number, name in enumerate(FUNCTIONS)}
SYMBOLS = Symbols("".join(f"{address:x} t {name}\n" for name, address in AT.items()))


class Calls:
    """The parts of a region, each with one instruction more than the one before."""

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def add(self, parent: int | None, kind: str, function: str | int, site: str = "") -> int:
        address = AT[function] if isinstance(function, str) else function
        at = AT[site] + 32 if site else 0
        self.parts.append(Part(parent, kind, address, at, len(self.parts) + 1))
        return len(self.parts) - 1

    @property
    def region(self) -> Flat:
        return Flat({}, [], 1, 0, 0, 0, 0, [], self.parts)

    def names(self, *others: "Calls") -> dict[str, float]:
        regions = [self.region, *(other.region for other in others)]
        return Names(X86_64, SYMBOLS, regions).of(self.region)

    def for_io(self, *, waits: bool = False) -> dict[str, float]:
        timers = dict.fromkeys(TICKS, 0.0)
        return Names(X86_64, SYMBOLS, [self.region]).for_io(self.region, timers, waits=waits)


def test_work_is_named_by_its_function() -> None:
    """What the function calls belongs to it; the worker and switches between tasks do not."""
    calls = Calls()
    thread = calls.add(None, "t", 0x1000)
    calls.add(thread, "r", "__schedule", "schedule")
    calls.add(thread, "r", "schedule", "worker_thread")
    worker = calls.add(thread, "r", "worker_thread")
    work = calls.add(worker, "C", "wb_workfn", "process_one_work.isra.0")
    calls.add(work, "C", "ext4_writepages", "wb_workfn")
    switch = calls.add(work, "c", "__schedule", "schedule")
    calls.add(switch, "C", "pick_next_task_fair", "__schedule")
    assert calls.names() == {
        "thread worker_thread": 1 + 3 + 4,
        "switches": 2 + 7 + 8,
        "kworker wb_workfn": 5 + 6,
    }


def test_a_thread_is_named_by_what_it_returns_to_last() -> None:
    """The return may be in any region of the boot: here the thread may sleep in a deeper call."""
    calls, earlier = Calls(), Calls()
    calls.add(calls.add(None, "t", 0x1000), "r", "schedule", "schedule_timeout")
    calls.add(0, "r", "schedule_timeout")
    assert calls.names() == {"thread schedule_timeout": 6}
    earlier.add(earlier.add(None, "t", 0x1000), "r", "schedule_timeout", "kjournald2")
    assert calls.names(earlier) == {"thread kjournald2": 6}


def test_a_return_to_itself_ends() -> None:
    calls = Calls()
    calls.add(calls.add(None, "t", 0x1000), "r", "schedule", "kjournald2")
    calls.add(0, "r", "kjournald2", "schedule")
    assert sum(calls.names().values()) == 6


def test_new_threads_and_those_of_each_cpu() -> None:
    calls = Calls()
    root = calls.add(calls.add(None, "t", 0x1000), "r", "ret_from_fork")
    start = calls.add(root, "C", "kthread", "ret_from_fork")
    calls.add(start, "C", "planted", "kthread")
    daemon = calls.add(calls.add(None, "t", 0x2000), "r", "smpboot_thread_fn")
    calls.add(daemon, "C", "run_ksoftirqd", "smpboot_thread_fn")
    assert calls.names() == {
        "thread ret_from_fork": 1 + 2,
        "thread kthread": 3,
        "thread planted": 4,
        "thread smpboot_thread_fn": 5 + 6,
        "thread run_ksoftirqd": 7,
    }


def test_programs_and_the_idle_task() -> None:
    calls = Calls()
    program = calls.add(None, "t", 0x1000)
    calls.add(program, "r", 0)
    call = calls.add(program, "r", "entry_SYSCALL_64")
    calls.add(call, "e", "asm_exc_page_fault")
    idle = calls.add(None, "t", 0x2000)
    calls.add(idle, "r", "do_idle", "cpu_startup_entry")
    assert calls.names() == {"programs": 1 + 2 + 3 + 4, "idle": 5 + 6}


def test_interrupts_and_soft_interrupts() -> None:
    """Soft interrupts that follow an interrupt, and the callbacks and timers in them, have names of
    their own, whichever task is interrupted."""
    calls = Calls()
    idle = calls.add(calls.add(None, "t", 0x2000), "r", "do_idle")
    for parent in (None, idle):
        entry = calls.add(parent, "e", "asm_common_interrupt")
        calls.add(entry, "C", "nvme_irq", "__handle_irq_event_percpu")
        soft = calls.add(entry, "C", "rcu_core_si", "handle_softirqs")
        calls.add(soft, "C", "file_free_rcu", "rcu_do_batch")
        calls.add(soft, "C", "delayed_work_timer_fn", "call_timer_fn")
    assert calls.names() == {
        "idle": 1 + 2,
        "interrupt common_interrupt": 3 + 8,
        "interrupt nvme_irq": 4 + 9,
        "softirq rcu_core_si": 5 + 10,
        "RCU callback file_free_rcu": 6 + 11,
        "timer delayed_work_timer_fn": 7 + 12,
    }


def test_exceptions_of_the_task_are_its_own() -> None:
    """So are calls in an exception, except an interrupt that comes meanwhile."""
    calls = Calls()
    fault = calls.add(None, "e", "asm_exc_page_fault")
    calls.add(fault, "c", "__schedule", "schedule")
    calls.add(fault, "C", "rcu_core_si", "handle_softirqs")
    calls.add(fault, "e", "asm_sysvec_apic_timer_interrupt")
    assert calls.names() == {"interrupt sysvec_apic_timer_interrupt": 4}


def test_the_kernels_own_work_is_left_out() -> None:
    """A tick is, with the switch that follows it, but not the callbacks and the timers of others
    behind it."""
    calls = Calls()
    entry = calls.add(None, "e", "asm_sysvec_apic_timer_interrupt")
    soft = calls.add(entry, "C", "rcu_core_si", "handle_softirqs")
    calls.add(soft, "C", "file_free_rcu", "rcu_do_batch")
    calls.add(soft, "C", "planted", "call_timer_fn")
    calls.add(soft, "C", "delayed_work_timer_fn", "call_timer_fn")
    calls.add(entry, "c", "__schedule", "schedule")
    thread = calls.add(None, "t", 0x1000)
    calls.add(calls.add(thread, "r", "kcompactd"), "c", "__schedule", "schedule")
    assert calls.for_io() == {"RCU callback file_free_rcu": 3, "timer planted": 4}


def test_a_workers_loop_and_switches_are_for_what_it_carries_out() -> None:
    calls = Calls()
    worker = calls.add(calls.add(None, "t", 0x1000), "r", "worker_thread")
    calls.add(worker, "C", "vmstat_update", "process_one_work.isra.0")
    calls.add(worker, "c", "__schedule", "schedule")
    assert calls.for_io() == {}
    calls.add(worker, "C", "wb_workfn", "process_one_work.isra.0")
    assert calls.for_io() == {
        "kworker wb_workfn": 5,
        "thread worker_thread": 3 * 5 / 8,
        "switches": 4 * 5 / 8,
    }


def test_the_idle_task_is_switched_to_for_the_io_only_where_it_waits() -> None:
    calls = Calls()
    idle = calls.add(calls.add(None, "t", 0x2000), "r", "do_idle")
    calls.add(idle, "c", "__schedule", "schedule")
    entry = calls.add(idle, "e", "asm_common_interrupt")
    calls.add(entry, "C", "nvme_irq", "__handle_irq_event_percpu")
    interrupt = {"interrupt common_interrupt": 4, "interrupt nvme_irq": 5}
    assert calls.for_io() == interrupt
    assert calls.for_io(waits=True) == {"switches": 3, **interrupt}


def test_the_end_of_an_interrupt_has_no_handler() -> None:
    """The interrupt controller is told of it where the handler was called."""
    calls = Calls()
    entry = calls.add(None, "e", "asm_common_interrupt")
    calls.add(entry, "C", "arch_timer_handler_virt", "handle_percpu_devid_irq")
    calls.add(entry, "C", "gic_eoi_irq", "handle_percpu_devid_irq")
    tick = "interrupt arch_timer_handler_virt"
    assert calls.names() == {"interrupt common_interrupt": 1 + 3, tick: 2}
    names = Names(X86_64, SYMBOLS, [calls.region])
    assert names.handlers(calls.region) == {AT["arch_timer_handler_virt"]: tick}
