# SPDX-License-Identifier: GPL-2.0
"""Numbers and differences as text, alike in the terminal, in Markdown and in the page."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from iopath.compare.changes import (
    Change,
    Comparison,
    ExactChange,
    FunctionChange,
    LayerChange,
    MetricChange,
    RungChange,
    TimeEstimate,
    percent,
)
from iopath.compare.noise import OFTEN
from iopath.results.bridgefile import Bridge
from iopath.results.metrics import ENTERED, METRICS, REQUESTS, TOTAL
from iopath.results.profiles import COSTLY
from iopath.results.result import MORE, REST, ExactRecord, Key, Row
from iopath.results.syscalls import BESIDE, IO, IO_CALLS, LATER, OWN, START_EXIT, SUMS, WHOLE

# What is said of rungs with a verdict.
_VERDICTS = {
    "more": "more",
    "longer": "longer",
    "fewer": "fewer",
    "shorter": "shorter",
    "same in sum": "the same in sum",
    "same path": "the same path",
    "same": "the same",
}
_LARGE = 10_000  # a figure without decimals
_PARTS = 6  # of all, that are named
_COUNTS = 3  # besides the path, that are named of a rung
_SHARED = "what CPUs share"
_OF_REQUESTS = {metric.name for metric in REQUESTS}
_LEAST_PART = 0.5  # instructions per I/O of these
UNKNOWN = f"? may be noise: boots are too few (--boots {OFTEN} decides)"

DEFERRED = "with deferred work"  # the title of what beside_path() adds to the path

# Titles of what a bridge estimates.
TIME = "estimated ns"
RATE = "M IOPS per core"


def count(value: float) -> str:
    return f"{value:,.2f}"


def signed(value: float) -> str:
    return f"{value:+,.2f}"


def large(value: float, sign: str = "") -> str:
    """A figure of two decimals, if it is not so large that they do not matter."""
    return f"{value:{sign},.2f}" if abs(value) < _LARGE else f"{value:{sign},.0f}"


def change(difference: float, share: float | None, digits: int = 2) -> str:
    """A difference, and its *share* in per cent."""
    part = "" if share is None else f" ({share:+.{digits}f} %)"
    return f"{signed(difference)}{part}"


def noise(found: Change) -> str:
    return "?" if found.noise is None else f"{found.noise:.2f}"


def metric(name: str, found: MetricChange) -> str:
    """By how much a metric differs; nothing if that is within the noise. Cache lines are shown with
    their noise even then. A difference of unknown noise has a question mark."""
    if not found.difference:
        return ""
    if found.telling is False and found.verdict != "unknown":
        return ""
    text = signed(found.difference)
    if found.verdict == "unknown":
        return f"{text}?"
    if name.endswith("lines"):
        return f"{text} ±{found.noise:.2f}"
    return "" if found.verdict == "same" else text


def executed(found: Mapping[str, float]) -> str:
    """All, and who executed it: the parts above the noise, which alone makes parts negative."""
    named = sorted((name for name in found if found[name] > MORE), key=lambda name: -found[name])
    shown = ", ".join(f"{name} {count(found[name])}" for name in named[:_PARTS])
    return f"{count(sum(found.values()))}: {shown}"


# What each I/O has, or each batch.
_USUAL = {"bios", "completions", "requests", "plug flushes", "wake-ups"}
_USUAL |= {"device requests", "sectors", "segments"}


def requests(record: ExactRecord) -> str:
    """What became of the requests of an I/O; nothing if it was one."""
    means = {metric: statistics.fmean(metric.value(record) or [0.0]) for metric in REQUESTS}
    shown = {metric.name: mean for metric, mean in means.items() if mean >= metric.resolution}
    if not shown.keys() - _USUAL and max(shown.get("bios", 0), shown.get("requests", 0)) < 1.5:
        return ""
    return ", ".join(f"{name} {count(mean)}" for name, mean in shown.items())


def uncounted(records: Iterable[ExactRecord]) -> str:
    """The metrics of requests that none of the records of a kernel has."""
    have = {name for record in records for name in record.counts or ()}
    return ", ".join(metric.name for metric in ENTERED if metric.name not in have)


def parts(found: Mapping[str, float], write: Callable[[float], str]) -> str:
    """By how much all differs, and who executes more or less: the largest parts by name, the others
    together."""
    named = [name for name, value in found.items() if name != REST and abs(value) >= _LEAST_PART]
    named = sorted(named, key=lambda name: -abs(found[name]))[:_PARTS]
    shown = {name: found[name] for name in named}
    whole = sum(found.values())
    rest = whole - sum(shown.values())
    if abs(rest) >= 0.005:
        shown[REST] = rest
    return f"{write(whole)}: {', '.join(f'{name} {write(value)}' for name, value in shown.items())}"


def time(found: TimeEstimate) -> str:
    """The range of an estimated difference in ns."""
    low, high = found.low, found.high
    digits = 0 if min(abs(low), abs(high)) >= 10 else 1
    return f"{low:+,.{digits}f} to {high:+,.{digits}f}"


def rate(found: TimeEstimate) -> str:
    """Millions of I/Os per second of one core; nothing if they are not known."""
    if found.iops_before is None or found.iops_after is None:
        return ""
    before, after = (value / 1e6 for value in (found.iops_before, found.iops_after))
    digits = 2 if min(before, after) >= 1 else 3
    return f"{after:.{digits}f} instead of {before:.{digits}f}"


def change_time(found: Change | None) -> tuple[str, str]:
    """The estimated time of a change and the rates, if there are any."""
    if not (isinstance(found, ExactChange) and found.time):
        return "", ""
    sign = "?" if found.verdict == "unknown" else ""
    return time(found.time) + sign, rate(found.time)


def error(found: Bridge) -> str:
    """The error of a bridge's estimates."""
    return (
        f"±{100 * found.error:.0f} % of an estimated difference, for {100 * found.share:.0f} % of"
        f" the differences between {rungs(len(found.rungs))}, each left out in turn"
    )


def basis(found: Bridge) -> str:
    """What times are estimated by."""
    return (
        f"ns and IOPS are estimated for {found.cpu_model} by the time of {found.release} there:"
        f" {found.ns_per_instruction:.3g} ns per instruction, {error(found)}"
    )


def by_layer(found: ExactChange) -> str:
    """By how much each layer differs."""
    return ", ".join(
        f"{part.layer} {signed(part.difference)}"
        for part in found.layers
        if abs(part.difference) >= 0.005
    )


def whole(value: float) -> str:
    """The same, without decimals if it has none."""
    return f"{value:,.0f}" if value == int(value) else large(value)


def program(records: Sequence[ExactRecord]) -> str:
    """What a program takes in its first boot: its system calls that do I/O, per I/O if it counts
    these, or else per request; what starts and ends it; the whole."""
    found = {record.op: record for record in records}
    said = []
    for op in filter(found.get, (IO_CALLS, START_EXIT, WHOLE)):
        figure, per, head = found[op].boots[0], "", ""
        if op == IO_CALLS:
            number, what = found[op].calls.times[0], "I/Os"
            if not number:
                number, what = _first_requests(found[WHOLE])
                figure /= number or 1
            head = f"{number:,.0f} {what}: " if number else ""
            per = f" per {what.removesuffix('s')}" if number else ""
        number = large(figure) if per else f"{figure:,.0f}"
        said.append(f"{head}{op} {number} instructions{per}")
    return "".join(f"{one[0].upper()}{one[1:]}. " for one in said).rstrip()


def _first_requests(whole: ExactRecord) -> tuple[float, str]:
    """How many requests a program made, in the first boot; of a driver that takes bios, these."""
    counts = whole.counts or {}
    return next(
        ((counts[name][0], name) for name in _REQUESTS if any(counts.get(name, ()))), (0, "")
    )


_REQUESTS = ("requests", "bios")


def boots(records: Sequence[ExactRecord]) -> str:
    """By how much the boots of a program differ, the parts that differ most first; nothing if there
    is one boot."""
    found = {
        "the program's own code" if record.calls.kind == OWN else record.op: (
            max(record.calls.instructions) - min(record.calls.instructions)
        )
        for record in records
        if record.calls and (record.op == WHOLE or record.calls.kind not in (*SUMS, BESIDE))
    }
    number, width = len(records[0].boots), found.pop(WHOLE)
    if number == 1:
        return ""
    parts = sorted(filter(found.get, found), key=lambda name: -found[name])
    if not parts:
        return f"{number} boots: the same count"
    named = ", ".join(f"{name} by {found[name]:,}" for name in parts)
    return f"{number} boots differ by {width:,}: {named}"


@dataclass
class Cell:
    """A kernel's figure, and how it differs from the base's. Without a comparison there is no
    verdict."""

    instructions: float
    spread: float
    change: Change | None = None

    @property
    def text(self) -> str:
        """How it differs, if by more than the noise; with a question mark if that is not known."""
        if self.change is None:
            return ""
        beside = beside_path(self.change)
        if self.change.verdict == "same":
            return self.change.verdict_text + beside
        return self.difference + ("?" if self.change.verdict == "unknown" else "") + beside

    @property
    def difference(self) -> str:
        return change(self.change.difference, self.change.percent) if self.change else ""

    @property
    def verdict(self) -> str:
        return self.change.verdict if self.change else ""


def cell(row: Row, kernel: str, base: str, comparison: Comparison | None) -> Cell | None:
    """A kernel's cell of a row."""
    record, first = row.records.get(kernel), row.records.get(base)
    if record is None:
        return None
    made = Cell(record.instructions_per_io, max(record.spread, record.boot_spread))
    if comparison:
        made.change = comparison.of(row.key).get(kernel)
    elif first and kernel != base:
        before, after = first.instructions_per_io, record.instructions_per_io
        made.change = Change(
            difference=after - before, percent=percent(before, after), noise=None, verdict=""
        )
    return made


def verdict(comparison: Comparison, name: str) -> str:
    """How many rungs take more or fewer instructions on kernel *name*: which grew and shrank most
    by per cent, and which changed most of all."""
    said = _of_program if comparison.whole else _of_rungs
    return ". ".join(said(comparison, name)) + "."


def _of_rungs(comparison: Comparison, name: str) -> Iterator[str]:
    found = [rung for rung in comparison.rungs if name in rung.differences]
    changes = [rung.differences[name] for rung in found]
    named = list(_named(comparison, name))
    if len(found) == 1:
        said = [] if changes[0].decided else [f"{found[0].title} {_take(changes)}"]
        also = [text for text in [beside(changes[0])] if text]
        yield "; ".join([*said, *(text for _, text in named), *also])
    else:
        yield f"{rungs(len(found))}: {_take(changes)}"
        yield from (": ".join(one) for one in named)
        yield from _others(changes)
    if name in comparison.alike:
        yield "Both are the same image"


# What is said of the requests of a program. Others depend on when tasks take turns.
_OF_PROGRAM = ("requests", "bios", "splits", "cache flushes", "folios", "readaheads")
_TELLING = 0.1  # of the largest change, or of what does I/O: what changed by less is not named


def _of_program(comparison: Comparison, name: str) -> Iterator[str]:
    """What a program takes on kernel *name*: first its system calls that do I/O, per I/O, and those
    that changed most; then its requests; apart from these what starts and ends it; the whole."""
    rungs = {rung.op: rung for rung in comparison.rungs}
    changes = {op: rung.differences[name] for op, rung in rungs.items()}

    def from_to(op: str, unit: str = "", of: float = 1) -> str:
        x, y = ((rungs[op].figure(one) or 0.0) / of for one in (comparison.base, name))
        figures = f"{large(x)} to {large(y)}" if unit else f"{x:,.0f} to {y:,.0f}"
        return f"{figures} instructions{unit}{_percent(changes[op])}"

    if own := changes.get(IO_CALLS):
        number = own.calls.times[1]
        requests = _requests_of(changes[WHOLE])
        if any(own.calls.times):
            before = f"{own.calls.times[0]:,.0f} to " * (own.calls.times[0] != number)
            head, text = f"{before}{number:,.0f} I/Os: ", from_to(IO_CALLS, " per I/O")
        elif requests and requests[1] == requests[2]:
            what, number, _ = requests
            one = what.removesuffix("s")
            head, text = f"{number:,.0f} {what}: ", from_to(IO_CALLS, f" per {one}", number)
        else:
            head, text = "", from_to(IO_CALLS)
        yield f"{comparison.command}: {head}{IO_CALLS} {text}"
        yield from _calls_that_changed(comparison, name)
        if said := _requests_that_changed(changes[WHOLE]):
            yield said
    else:
        yield f"{comparison.command}: no call does I/O"
    if START_EXIT in rungs:
        yield f"{START_EXIT.capitalize()} {from_to(START_EXIT)}"
    yield f"{WHOLE.capitalize()} {from_to(WHOLE)}"
    judged = [one for one in changes.values() if one.gated and one.calls.kind not in SUMS]
    if any(one.verdict != "unknown" for one in judged):
        yield f"{calls(len(judged))}: {_take(judged)}"


def _percent(found: Change) -> str:
    mark = "?" if found.verdict == "unknown" else ""
    return mark if found.percent is None else f", {found.percent:+.1f} %{mark}"


def _calls_that_changed(comparison: Comparison, name: str) -> Iterator[str]:
    """The system calls that do I/O, and an interrupt of a device, that change the whole most."""
    parts = [(rung, rung.differences[name]) for rung in comparison.rungs]
    parts = [one for one in parts if one[1].calls and one[1].calls.more]
    parts.sort(key=lambda one: -abs(one[1].calls.more))
    called = [one for one in parts if one[1].calls.part_of == IO]
    later = [one for one in parts if one[1].calls.kind == LATER and "interrupt:" in one[0].op]
    most = max((abs(change.calls.more) for _, change in called), default=0)
    for rung, change in [*called[:_CALLS], *later[:1]]:
        if abs(change.calls.more) < _TELLING * most:
            continue
        before, after = change.calls.times
        mark = "?" if change.verdict == "unknown" else ""
        if before != after:
            what = "calls" if change.calls.part_of else "times"
            yield (
                f"{rung.op}: {before:,.0f} to {after:,.0f} {what},"
                f" {change.calls.more:+,.0f} instructions{mark}"
            )
        else:
            each = "a call" if change.calls.part_of else "each time"
            text = f"{rung.op} {large(change.difference, '+')}{mark} {each}"
            part = "" if change.percent is None else f" ({change.percent:+.1f} %)"
            yield "; ".join(filter(None, [f"{text}{part}", mostly(change)]))


_CALLS = 2  # that are named


def _requests_of(whole: ExactChange) -> tuple[str, float, float] | None:
    """Which requests a program made, and how many on either kernel; of a driver that takes bios,
    these."""
    for name in _REQUESTS:
        found = whole.metrics.get(name)
        if found and (found.before or found.after):
            return name, found.before, found.after
    return None


def _requests_that_changed(whole: ExactChange) -> str:
    """How the requests of a program differ, in all."""
    found = [(name, whole.metrics.get(name)) for name in _OF_PROGRAM]
    said = [
        f"{name} {one.before:,.0f} to {one.after:,.0f}{'?' * (one.verdict == 'unknown')}"
        for name, one in found
        if one and one.difference and one.verdict != "same"
    ]
    return ", ".join(said).capitalize()


def beside(found: Change) -> str:
    """What is judged besides the path and differs otherwise: the first of it, by name. Where the
    path differs, cause() has the requests."""
    shown = {
        name if found.metric(name) else _SHARED: part
        for name, part in sorted(found.beside.items(), key=lambda one: not _is_costly(one[0]))
        if name not in _OF_REQUESTS
    }
    of_requests = isinstance(found, ExactChange) and found.verdict == "same" and found.requests
    texts = [
        f"{name} {'more' if part.grew else 'fewer'}"
        if name == _SHARED
        else f"{name} {part.difference:+,.{0 if abs(part.difference) >= 1 else 2}f}"
        for name, part in shown.items()
    ]
    more = [f"{len(texts) - _COUNTS} more"] if len(texts) > _COUNTS else []
    return ", ".join([*([of_requests] if of_requests else []), *texts[:_COUNTS], *more])


def _is_costly(name: str) -> bool:
    return any(metric.costly for metric in METRICS if metric.name == name)


def _others(changes: Sequence[Change]) -> Iterator[str]:
    """What differs otherwise than the path, and in how many rungs."""
    numbers: Counter[str] = Counter()
    for one in changes:
        numbers.update(
            {
                f"{'more' if part.grew else 'fewer'} {name if one.metric(name) else _SHARED}"
                for name, part in one.beside.items()
            }
        )
    if numbers:
        named = (f"{text} in {rungs(number)}" for text, number in numbers.most_common())
        yield f"Beside the path: {', '.join(named)}"


def _take(changes: Sequence[Change]) -> str:
    """How many rungs take more, and how many fewer. If there is one, no number is said."""
    numbers = Counter(change.verdict_text for change in changes)
    said = []
    for word, text in _VERDICTS.items():
        if number := numbers[word]:
            verb = "" if said else "takes " if number == 1 else "take "
            said.append(f"{number} {verb}{text}")
    if number := numbers["unknown"]:
        said.append(f"{number} {'is' if number == 1 else 'are'} undecided")
    text = ", ".join(said)
    return text.removeprefix("1 ") if len(changes) == 1 else text


def _named(comparison: Comparison, name: str) -> Iterator[tuple[str, str]]:
    """The rungs that a verdict names: why, and how each differs."""
    found: dict[Key, tuple[RungChange, list[str]]] = {}
    for label, rung in comparison.extremes(name).items():
        found.setdefault(rung.key, (rung, []))[1].append(label)
    for rung, labels in found.values():
        one = rung.differences[name]
        text = f"{rung.title} {_described(one, brief=len(comparison.others) > 1)}"
        yield " and ".join(labels).capitalize(), text


def commits(number: int, every: int, what: str) -> str:
    return f"{number} of {every} commits {changes(number)} {what}"


def changes(number: int) -> str:
    return "changes" if number == 1 else "change"


def rungs(number: int) -> str:
    return "1 rung" if number == 1 else f"{number} rungs"


def calls(number: int) -> str:
    return "1 system call" if number == 1 else f"{number} system calls"


def _described(found: Change, *, brief: bool) -> str:
    """A difference, and what it is mostly made of; if *brief*, only what the kernel does
    otherwise."""
    text = change(found.difference, found.percent, 1)
    if not isinstance(found, ExactChange):
        return text
    text += beside_path(found)
    why = cause(found) or ("" if brief else mostly(found))
    return f"{text}; {why}".removesuffix("; ")


def cause(found: ExactChange) -> str:
    """What the kernel does otherwise, what the scheduler takes for it, and what became of the
    requests."""
    part = found.switching
    scheduler = f" ({part.layer} {part.difference:+,.0f})" if part else ""
    return ", ".join(filter(None, (found.cause + scheduler, found.requests)))


def mostly(found: ExactChange) -> str:
    """The layer that accounts for most of a difference."""
    top = _top_layer(found)
    if not top or abs(top.difference) < 0.5:
        return ""
    word = "mostly" if 2 * abs(top.difference) >= abs(found.difference) else "above all"
    return f"{word} {top.layer}, {top.difference:+,.0f}"


def _top_layer(found: ExactChange) -> LayerChange | None:
    """The layer that moved a figure most in the direction of its change."""
    unsure = found.verdict == "unknown"
    sign = {"longer": 1, "shorter": -1}.get(found.verdict, found.difference if unsure else 0)
    layers = [part for part in found.layers if part.difference * sign > 0] or found.layers
    return max(layers, key=lambda part: abs(part.difference), default=None)


def the_others(number: int) -> str:
    """The functions that are not listed."""
    return "the other function" if number == 1 else f"the other {number} functions together"


def rest(number: int) -> str:
    """The same below a title that says what they are."""
    return "the other one" if number == 1 else f"the other {number}"


def besides(brief: Sequence[str]) -> str:
    """What differs between kernels and is not their code."""
    return f"the kernels also differ in: {'; '.join(brief)}"


# A digest of a comparison: rungs by what matters, each with a bar and what moved it most.


def brief(found: Change) -> str:
    """A difference with few digits; with a question mark if its noise is not known. If the path
    does not show what an I/O costs, all instructions executed for it are shown, too."""
    text = change(found.difference, found.percent, 1)
    return f"{text}{'?' if found.verdict == 'unknown' else ''}{beside_path(found)}"


def beside_path(found: Change) -> str:
    """The same as the end of a text about the path."""
    later = deferred(found)
    return f" in the usual path, {later} {DEFERRED}" if later else ""


def deferred(found: Change | None) -> str:
    """The difference of all instructions executed for an I/O, if the path does not show it."""
    if not (isinstance(found, ExactChange) and found.total):
        return ""
    return signed(found.total.difference)


def in_all(found: ExactChange) -> str:
    """How a part of a program differs in all, and each time in per cent."""
    if not found.calls:
        return ""
    mark = "?" if found.verdict == "unknown" else ""
    part = "" if found.percent is None else f" ({found.percent:+.1f} %)"
    return f"{found.calls.more:+,.0f}{part}{mark}"


def share(found: Change) -> str:
    """A difference in per cent only."""
    if found.verdict == "same":
        return found.verdict_text
    text = signed(found.difference) if found.percent is None else f"{found.percent:+.1f} %"
    return f"{text}?" if found.verdict == "unknown" else text


def counts(row: FunctionChange, names: Iterable[str]) -> list[str]:
    """How some counts of a function differ."""
    return [
        f"{name.replace('_', ' ')} {signed(row.counts[name])}"
        for name in names
        if name in row.counts
    ]


def notes(row: FunctionChange) -> list[str]:
    """Remarks on a function besides its instructions."""
    return [*filter(None, [row.note]), *counts(row, COSTLY)]


def expensive(found: Change) -> str:
    """How the counts of expensive instructions differ."""
    if not isinstance(found, ExactChange):
        return ""
    return ", ".join(f"{name} {difference:+,.0f}" for name, difference in found.expensive.items())


def costly(found: ExactChange) -> str:
    """The same, also of a change that may be noise."""
    metrics = [(metric.name, found.metrics.get(metric.name)) for metric in METRICS if metric.costly]
    return ", ".join(
        f"{name} {one.difference:+,.0f}{'?' if one.verdict == 'unknown' else ''}"
        for name, one in metrics
        if one and one.verdict != "same" and round(one.difference)
    )


def top_mover(found: Change) -> str:
    """What the kernel does otherwise, or the layer that moved a figure most in the direction of its
    change; if the figure is the same, what else differs."""
    if not isinstance(found, ExactChange):
        return ""
    if found.calls:
        top = _top_layer(found)
        digits = 0 if top and abs(top.difference) >= 10 else 2
        return f"{top.layer} {top.difference:+,.{digits}f}" if top and top.difference else ""
    if found.cause or found.requests:
        return found.cause or found.requests.partition(",")[0]
    if found.verdict == "same" and not found.moved:
        parts = [
            f"{DEFERRED if name == TOTAL.name else name} {found.metrics[name].difference:+,.0f}"
            for name in found.telling
        ]
        return ", ".join(parts) or beside(found) or "rounds vary"
    top = _top_layer(found)
    if not top or abs(top.difference) < 0.5:
        return expensive(found)
    return f"{top.layer} {top.difference:+,.0f}"


def bars(changes: Sequence[Change], half: int, *, ascii_only: bool = False) -> list[str]:
    """A bar for each change, to the left or the right of an axis, on a common scale. A side that no
    bar needs is left out."""
    shares = [change.percent or 0.0 for change in changes]
    largest = max(map(abs, shares), default=0.0)
    found = [_bar(share / largest if largest else 0.0, half, ascii_only) for share in shares]
    left = any(share < 0 for share in shares)
    return [bar if left else bar[half:] for bar in found]


def _bar(part: float, half: int, ascii_only: bool) -> str:
    """A bar that is *part* (-1 to 1) of *half* columns long."""
    if ascii_only:
        length = max(round(abs(part) * half), 1 if part else 0)
        blocks, axis = "#" * length, "|"
    else:
        halves = max(round(2 * abs(part) * half), 1 if part else 0)
        full, axis = "█" * (halves // 2), "│"
        blocks = full + "▌" * (halves % 2) if part > 0 else "▐" * (halves % 2) + full
    if part > 0:
        return " " * half + axis + blocks.ljust(half)
    return blocks.rjust(half) + axis + " " * half


def folded(comparison: Comparison, names: Sequence[str], shown: int) -> str:
    """What a digest on the kernels *names* that lists *shown* rungs leaves out; nothing if it
    leaves out none."""
    news = {rung.key for name in names for rung in comparison.ranked(name)}
    same = sum(
        rung.key not in news for rung in comparison.rungs if rung.differences.keys() & {*names}
    )
    parts = []
    what = "part" if comparison.whole else "rung"
    if (more := len(news) - shown) > 0:
        parts.append(f"{more} more {what}{' differs' if more == 1 else 's differ'}")
    if same:
        parts.append(f"{same} {what}{' is' if same == 1 else 's are'} the same")
    return ", ".join(parts)
