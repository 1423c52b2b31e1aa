# SPDX-License-Identifier: GPL-2.0
"""Compare kernels: what differs beyond the noise, and which functions and layers account for it."""

import math
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iopath import noise
from iopath.errors import IopathError, UsageError
from iopath.layers import Layers
from iopath.result import matters, title
from iopath.rungs import OPS, RUNGS
from iopath.symbols import Symbol, plain

# Instructions per I/O below which two figures are the same.
RESOLUTION = noise.RESOLUTION["instructions_per_io"]

# What must be the same for a difference to be the kernel's.
_SAME = ("mode", "qemu", "machine", "programs", "source")

Key = tuple[str, str, int]  # rung, op, block size
_Function = tuple[str, str]  # name, module

# What of a function is counted.
_COUNTS = ("instructions", "reads", "writes", "locked", "calls", "indirect", "branches")

_LISTED = 120  # options of a kind that a label names

# What is compared besides instructions; of cache lines, the parts that are added up.
METRICS: dict[str, tuple[str, ...]] = {
    "mean": (),
    "with deferred work": (),
    "locked": (),
    "indirect": (),
    "reads": (),
    "writes": (),
    "calls": (),
    "branches": (),
    "faults": (),
    "switches": (),
    "code lines": ("code_user", "code_kernel"),
    "data lines": ("data_user", "data_kernel"),
}

# Those of them that are figures of their own, with instructions of their own: what the median of
# short rounds does not see.
LONG_RUN = {"mean": "mean", "with deferred work": "with_deferred"}

# Of these, one more is worth a look whatever the sum of the instructions.
_DEAR = ("locked", "indirect")


def merge(results: Sequence[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """One result of several, each given with the name of its file.

    A kernel that several files have is called by its file, too.
    """
    names = [kernel["name"] for _, part in results for kernel in part["kernels"]]
    whole: dict[str, Any] = {**results[0][1], "kernels": [], "results": []}
    whole.pop("comparison", None)  # a file's own
    for file, part in results:
        for kernel in part["kernels"]:
            name = kernel["name"]
            shown = f"{name} ({file})" if names.count(name) > 1 else name
            if any(shown == other["name"] for other in whole["kernels"]):
                raise UsageError(f"{file}: {name} is in it, and in another file of that name")
            whole["kernels"].append({**kernel, "name": shown})
            whole["results"] += [
                {**record, "kernel": {**record["kernel"], "name": shown}}
                for record in part["results"]
                if record["kernel"]["name"] == name
            ]
    return whole


def in_order(
    names: Sequence[str], files: Mapping[str, dict[str, Any]], measured: dict[str, Any] | None
) -> list[tuple[str, dict[str, Any]]]:
    """The results of *files* and of the kernels that were *measured*, each with the name of its
    file, in the order of *names*: the first is what the others are compared with."""
    parts = []
    for name in names:
        if name in files:
            parts.append((Path(name).name, files[name]))
        elif measured:
            kernels = [kernel for kernel in measured["kernels"] if kernel["name"] == name]
            records = [r for r in measured["results"] if r["kernel"]["name"] == name]
            parts.append(("measured now", {**measured, "kernels": kernels, "results": records}))
    return parts


def incomparable(results: Sequence[tuple[str, dict[str, Any]]]) -> list[str]:
    """What differs between results besides the kernel, in words; nothing if they are comparable."""
    first_name, first = results[0]
    found = []
    for name, other in results[1:]:
        for field in _SAME:
            if first[field] != other[field]:
                found.append(
                    f"{field}: {_differing(first[field], other[field])} ({first_name}, {name})"
                )
        for field in ("zero_fill", "coherent"):
            if first["kernels"][0][field] != other["kernels"][0][field]:
                found.append(f"{field} ({first_name}, {name})")
        found += [f"{text} ({first_name}, {name})" for text in _run_differently(first, other)]
    return found


# How a record was made.
_RUN = ("rounds", "ios_per_round", "batch", "long_run_ios", "command")


def _run_differently(first: dict[str, Any], other: dict[str, Any]) -> Iterator[str]:
    """The rungs that were run in another way, and what of it differs. Which region a rung has
    depends on what else was measured, and says nothing."""
    runs = []
    for whole in (first, other):
        found: dict[str, dict[str, Any]] = {}
        for record in whole["results"]:
            run = {name: record.get(name) for name in _RUN}
            run["command"] = [w for w in record["command"] if not w.startswith("--region=")]
            found[f"{title(record)} of {record['block_size']} bytes"] = run
        runs.append(found)
    for name, run in runs[0].items():
        if name in runs[1] and run != runs[1][name]:
            one, two = dict(run), dict(runs[1][name])
            both = [word for word in one["command"] if word in two["command"]]
            for part in (one, two):
                part["command"] = " ".join(word for word in part["command"] if word not in both)
            yield f"{name}: {_differing(one, two)}"


def _differing(one: object, other: object) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [key for key in one | other if one.get(key) != other.get(key)]
        return ", ".join(
            f"{key} {str(one.get(key))[:40]!r} and {str(other.get(key))[:40]!r}" for key in keys
        )
    return f"{str(one)[:40]!r} and {str(other)[:40]!r}"


def relayer(result: Mapping[str, Any], layers: Layers) -> None:
    """Sort the functions of a result into *layers*: those of a file may be of another table."""
    for record in result["results"]:
        profile = record.get("profile")
        if not profile:
            continue
        sums: dict[str, float] = defaultdict(float)
        for function in profile["functions"]:
            function["layer"] = layers.of(Symbol(function["name"], function["module"]))
            sums[function["layer"]] += function["instructions"]
        profile["layers"] = {name: round(sums[name], 4) for name in layers.names if name in sums}


def compare(result: Mapping[str, Any], layers: Layers) -> dict[str, Any]:
    """Compare every kernel of *result* with the first.

    The comparison: {"base", "others", "labels", "options", "rungs"}; "labels" say what else than
    its code differs between the kernels, "options" is every option that differs; each of "rungs"
    has the figures of every kernel and for each other kernel the difference, a verdict ("same",
    "longer", "shorter", or "unknown" without a second boot to tell the noise), and, of profiled
    results, the layers and functions that account for it, largest first. Those and "unattributed"
    (what the clock and the profile differ by) add up to it. "metrics" is the same for each of
    METRICS, with the verdicts "same", "more", "fewer" and "unknown". "moved" is whether functions
    differ by an instruction or more, or locked instructions and the like differ, whatever the sum.
    """
    names = [kernel["name"] for kernel in result["kernels"]]
    if len(names) < 2:
        raise UsageError("one kernel alone cannot be compared: give two or more")
    rows: dict[Key, dict[str, dict[str, Any]]] = defaultdict(dict)
    for record in result["results"]:
        key = (record["rung"], record["op"], record["block_size"])
        rows[key][record["kernel"]["name"]] = record
    executed = executed_names(result)
    renamed = {name: layers.renamed(executed[names[0]], executed[name]) for name in names[1:]}
    verdicts = {name: _judge(rows, names[0], name) for name in names[1:]}
    return {
        "base": names[0],
        "others": names[1:],
        "labels": list(labels(result["kernels"])),
        "options": options(result["kernels"]),
        "rungs": [
            _rung(key, records, names, renamed, {name: verdicts[name][key] for name in verdicts})
            for key, records in rows.items()
        ],
    }


_Verdicts = Mapping[str, noise.Verdict]  # by figure


def _judge(
    rows: Mapping[Key, Mapping[str, dict[str, Any]]], base: str, other: str
) -> dict[Key, dict[str, noise.Verdict]]:
    """The verdicts on each figure of each rung; all rungs are judged together."""
    found: dict[Key, dict[str, noise.Verdict]] = {key: {} for key in rows}
    for figure, boots in noise.BOOTS.items():
        keys = [
            key
            for key, records in rows.items()
            if all(boots in records.get(name, ()) for name in (base, other))
        ]
        judged = noise.judge(
            [(rows[key][base][boots], rows[key][other][boots]) for key in keys],
            noise.RESOLUTION[figure],
        )
        for key, verdict in zip(keys, judged, strict=True):
            found[key][figure] = verdict
    return found


def executed_names(result: Mapping[str, Any]) -> dict[str, set[str]]:
    """The names of the functions that each kernel executes, without a compiler's suffixes."""
    found: dict[str, set[str]] = {kernel["name"]: set() for kernel in result["kernels"]}
    for record in result["results"]:
        for function in record.get("profile", {}).get("functions", ()):
            found[record["kernel"]["name"]].add(plain(function["name"]))
    return found


def _rung(
    key: Key,
    records: Mapping[str, dict[str, Any]],
    names: Sequence[str],
    renamed: Mapping[str, Mapping[str, str]],
    verdicts: Mapping[str, _Verdicts],
) -> dict[str, Any]:
    base = records.get(names[0])
    differences = {}
    for name in names[1:]:
        if base and name in records:
            differences[name] = _difference(base, records[name], renamed[name], verdicts[name])
    return {
        "rung": key[0],
        "op": key[1],
        "block_size": key[2],
        "figures": {
            name: {"instructions": record["instructions_per_io"], "spread": record["boot_spread"]}
            for name, record in records.items()
        },
        "differences": differences,
    }


def _difference(
    before: dict[str, Any],
    after: dict[str, Any],
    renamed: Mapping[str, str],
    verdicts: _Verdicts,
) -> dict[str, Any]:
    one, other = before["instructions_per_io"], after["instructions_per_io"]
    difference = other - one
    judged = verdicts["instructions_per_io"]
    verdict = judged.verdict
    functions = _attribute(before, after, renamed)
    metrics = _long_run(before, after, verdicts) | _metrics(before, after, judged.noise)
    by_layer: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in functions:
        by_layer[row["layer"]][0] += row["before"]
        by_layer[row["layer"]][1] += row["after"]
    rows = [
        {"layer": name, "before": a, "after": b, "difference": b - a}
        for name, (a, b) in by_layer.items()
    ]
    attributed = sum(row["difference"] for row in functions)
    least = max(1 - RESOLUTION, judged.noise or 0)
    return {
        "difference": difference,
        "percent": _percent(one, other),
        "noise": judged.noise,
        "verdict": verdict,
        "findings": noise.findings(after, before),
        "metrics": metrics,
        "moved": any(
            abs(part) > least
            for row in functions
            for part in (row["difference"], *(row["counts"].get(name, 0.0) for name in _DEAR))
        ),
        "layers": sorted(rows, key=lambda row: -abs(row["difference"])),
        "functions": [
            row for row in functions if row["difference"] or row["note"] or row["counts"]
        ],
        "unattributed": difference - attributed if functions else difference,
    }


def _percent(before: float, after: float) -> float | None:
    return 100 * (after - before) / before if before else None


def _long_run(
    before: dict[str, Any], after: dict[str, Any], verdicts: _Verdicts
) -> dict[str, dict[str, Any]]:
    """What the long runs differ by, and the functions that differ there. It is "telling" if that is
    beyond the noise something else than what the medians of short rounds differ by."""
    median = verdicts["instructions_per_io"].difference
    words = {"longer": "more", "shorter": "fewer"}
    found = {}
    for name, figure in LONG_RUN.items():
        if figure not in verdicts:
            continue
        judged = verdicts[figure]
        found[name] = {
            "before": before[figure],
            "after": after[figure],
            "difference": round(judged.difference, 4),
            "percent": _percent(before[figure], after[figure]),
            "noise": judged.noise,
            "verdict": words.get(judged.verdict, judged.verdict),
            "telling": judged.noise is not None
            and abs(judged.difference - median) > max(judged.noise, noise.RESOLUTION[figure]),
            "functions": _long_run_functions(before, after, figure),
        }
    return found


def _long_run_functions(
    before: dict[str, Any], after: dict[str, Any], figure: str
) -> list[dict[str, Any]]:
    """What each function has more or less in the long runs, largest first."""
    sides: list[dict[_Function, float]] = []
    for record in (before, after):
        counts: dict[_Function, float] = defaultdict(float)
        for row in record.get("profile", {}).get("long_run", ()):
            count = row["mean"] + (row["deferred"] if figure == "with_deferred" else 0)
            counts[plain(row["name"]), row["module"]] += count
        sides.append(counts)
    rows = [
        {
            "name": Symbol(*key).text,
            "difference": round(sides[1].get(key, 0) - sides[0].get(key, 0), 4),
        }
        for key in sides[0] | sides[1]
    ]
    rows = [row for row in rows if row["difference"]]
    return sorted(rows, key=lambda row: (-abs(row["difference"]), row["name"]))


def _metrics(
    before: dict[str, Any], after: dict[str, Any], instructions_noise: float | None
) -> dict[str, dict[str, Any]]:
    """What both profiles differ by besides instructions.

    What is counted is done by an instruction, so *instructions_noise* bounds its own. Cache lines
    have their own noise: the layout of the code moves them, too.
    """
    if "profile" not in before or "profile" not in after:
        return {}
    found = {}
    for name, lines in METRICS.items():
        if name in LONG_RUN:
            continue
        one, other = (_metric(record["profile"], name) for record in (before, after))
        own = instructions_noise
        if lines:
            own = _line_noise([record["profile"] for record in (before, after)], lines)
        difference = round(other - one, 4)
        if own is None or instructions_noise is None:
            verdict = "unknown"
        elif abs(difference) <= max(own, RESOLUTION):
            verdict = "same"
        else:
            verdict = "more" if difference > 0 else "fewer"
        found[name] = {
            "before": one,
            "after": other,
            "difference": difference,
            "percent": _percent(one, other),
            "noise": own,
            "verdict": verdict,
        }
    return found


def _metric(profile: dict[str, Any], name: str) -> float:
    lines = METRICS[name]
    return round(sum(profile["lines"][part] for part in lines), 4) if lines else profile[name]


def _line_noise(profiles: Sequence[dict[str, Any]], lines: Sequence[str]) -> float | None:
    """How far a difference of cache lines may be off; nothing if a file does not know it."""
    noise = [profile.get("lines_noise", {}).get(part) for profile in profiles for part in lines]
    return None if None in noise else round(math.hypot(*noise), 4)


def _attribute(
    before: dict[str, Any], after: dict[str, Any], renamed: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What each function has more or less, largest first, by its name in both."""
    if "profile" not in before or "profile" not in after:
        return []
    sides: list[dict[_Function, dict[str, float]]] = []
    called: list[dict[_Function, str]] = []
    layer_of: list[dict[_Function, str]] = []
    for record in (before, after):
        counts: dict[_Function, dict[str, float]] = defaultdict(lambda: dict.fromkeys(_COUNTS, 0.0))
        original: dict[_Function, str] = {}
        layer: dict[_Function, str] = {}
        largest: dict[_Function, float] = defaultdict(float)
        for function in record["profile"]["functions"]:
            name = plain(function["name"])
            key = (renamed.get(name, name), function["module"])
            for name in _COUNTS:
                counts[key][name] += function[name]
            if function["instructions"] >= largest[key]:
                largest[key] = function["instructions"]
                original[key] = function["name"]
                layer[key] = function["layer"]
        sides.append(counts)
        called.append(original)
        layer_of.append(layer)
    pairs = _alike(sides, layer_of)
    nothing = dict.fromkeys(_COUNTS, 0.0)
    rows = []
    for key in sides[0] | sides[1]:
        if key in pairs.values():
            continue  # shown as the older function's newer name
        newer = pairs.get(key, key)
        old, new = called[0].get(key), called[1].get(newer)
        note = ""
        if old is None:
            note = "new"
        elif new is None:
            note = "gone"
        elif key in pairs:
            note = f"{old} before?"
        elif plain(old) != plain(new):
            note = f"was {old}"
        a, b = sides[0].get(key, nothing), sides[1].get(newer, nothing)
        layer = layer_of[1].get(newer, layer_of[0].get(key, ""))
        if key in pairs and layer == "other":
            layer = layer_of[0][key]
        changes = {name: round(b[name] - a[name], 4) for name in _COUNTS}
        rows.append(
            {
                "name": (new or old or "") + (f" [{key[1]}]" if key[1] else ""),
                "layer": layer,
                "before": a["instructions"],
                "after": b["instructions"],
                "difference": changes.pop("instructions"),
                "counts": {name: change for name, change in changes.items() if change},
                "note": note,
            }
        )
    rows.sort(key=lambda row: (-abs(row["difference"]), row["name"]))
    return rows


def _alike(
    sides: Sequence[Mapping[_Function, Mapping[str, float]]],
    layer_of: Sequence[Mapping[_Function, str]],
) -> dict[_Function, _Function]:
    """The functions that may have got another name, each with that name: one that is gone and one
    that is new, which execute the same, if no other does."""
    by_counts: dict[tuple, tuple[list[_Function], list[_Function]]] = {}
    for at in (0, 1):
        for key, counts in sides[at].items():
            if key not in sides[1 - at]:
                alike = (key[1], *counts.values())
                by_counts.setdefault(alike, ([], []))[at].append(key)
    return {
        gone[0]: new[0]
        for gone, new in by_counts.values()
        if len(gone) == len(new) == 1
        and (layer_of[0][gone[0]] == layer_of[1][new[0]] or "other" in
             (layer_of[0][gone[0]], layer_of[1][new[0]]))
    }  # fmt: skip


def labels(kernels: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What differs between the kernels apart from their code."""
    compilers = {kernel["name"]: kernel["compiler"] for kernel in kernels}
    if len(set(compilers.values())) > 1:
        yield "compiler: " + "; ".join(f"{name} {text}" for name, text in compilers.items())
    yield from _option_labels(kernels)
    shims = {kernel["name"]: _shims(kernel) for kernel in kernels}
    if len(set(shims.values())) > 1:
        yield "shims: " + "; ".join(f"{name} {text or 'none'}" for name, text in shims.items())


def options(kernels: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Every option that differs, with its value in each kernel; "" where a kernel does not have it.

    A kernel without an option and one that has it switched off are alike.
    """
    found = {}
    for option in dict.fromkeys(option for kernel in kernels for option in kernel["config"]):
        values = [kernel["config"].get(option, "") for kernel in kernels]
        if len({value or "n" for value in values}) > 1:
            found[option] = values
    return found


def _option_labels(kernels: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What of the configuration differs: first what is known to matter, then what else is built in,
    then what only some kernels have; modules' options last, for no guest loads them."""
    groups: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for option, values in options(kernels).items():
        if matters(option):
            groups["options"][option] = values
        elif "m" in values and {*values} <= {"m", "n", ""}:
            groups["options of modules"][option] = values
        elif "" in values:
            groups["options that not all of them have"][option] = values
        else:
            groups["other options"][option] = values
    for name in ("options", "other options", "options that not all of them have"):
        found = groups[name]
        if len(found) > _LISTED and name != "options":
            yield f"{name}: {len(found)} (--json lists them)"
        elif found:
            yield f"{name}: " + ", ".join(
                f"{option} {'/'.join(value or '-' for value in values)}"
                for option, values in found.items()
            )
    if modules := groups["options of modules"]:
        yield f"options of modules: {len(modules)} (--json lists them)"


def _shims(kernel: dict[str, Any]) -> str:
    return ", ".join(
        filter(None, (facts.get("iopath_shims", "") for facts in kernel["modules"].values()))
    )


# Limits: when a difference is a regression.


@dataclass(frozen=True)
class Limit:
    """By how many per cent a rung may grow in *metric*. Of both operations if *op* is empty."""

    rung: str
    op: str
    metric: str
    percent: float

    @property
    def text(self) -> str:
        metric = "" if self.metric == "instructions" else self.metric
        return " ".join(filter(None, (self.rung, self.op, metric)))


def read_limits(path: Path) -> list[Limit]:
    """A file of limits in per cent: TOML, "RUNG [OP] [METRIC]" = PERCENT."""
    try:
        table = tomllib.loads(path.read_text())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a table of limits: {error}") from error
    if not table:
        raise UsageError(f'{path} has no limits: add lines like "dio.pread read" = 0.5')
    return [_read_limit(path, name, value) for name, value in table.items()]


def _read_limit(path: Path, name: str, value: object) -> Limit:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UsageError(f'{path}: {name} is not a number of per cent, like "dio.pread" = 0.5')
    rung, *words = name.split() or [""]
    if rung not in (known.name for known in RUNGS):
        raise UsageError(f"{path}: {name!r}: no rung is called {rung!r}")
    op = words.pop(0) if words and words[0] in OPS else ""
    metric = " ".join(words) or "instructions"
    if metric not in ("instructions", *METRICS):
        raise UsageError(
            f"{path}: {name!r}: {metric!r} is neither an operation ({', '.join(OPS)})"
            f" nor a metric (instructions, {', '.join(METRICS)})"
        )
    return Limit(rung, op, metric, float(value))


def regressions(
    comparison: Mapping[str, Any], fail_above: float | None, limits: Sequence[Limit]
) -> list[str]:
    """The rungs that became longer by more than their limit in per cent, in words.

    *fail_above* is the limit of the instructions of rungs that have no limit of their own. Raises
    IopathError where a limit cannot be judged: a figure or its noise is missing, or no rung is of
    that name.
    """
    rungs = comparison["rungs"]
    if not rungs:
        raise IopathError("cannot judge: there is no result to compare")
    for limit in limits:
        if not any(_applies(limit, rung) for rung in rungs):
            raise IopathError(f"cannot judge {limit.text}: no result is of that rung")
    found = []
    for rung in rungs:
        allowed = {} if fail_above is None else {"instructions": fail_above}
        # A limit of one operation goes before one of both.
        for limit in sorted(limits, key=lambda limit: bool(limit.op)):
            if _applies(limit, rung):
                allowed[limit.metric] = limit.percent
        for metric, percent in allowed.items():
            for name in comparison["others"]:
                found += _exceeds(comparison["base"], name, rung, metric, percent)
                if metric == "instructions" and fail_above is not None:
                    found += _beyond_the_median(comparison["base"], name, rung, percent)
    return found


def _applies(limit: Limit, rung: Mapping[str, Any]) -> bool:
    return limit.rung == rung["rung"] and limit.op in ("", rung["op"])


def _beyond_the_median(base: str, name: str, rung: Mapping[str, Any], allowed: float) -> list[str]:
    """What the long runs exceed, where they say something else than the median."""
    found = []
    metrics = rung["differences"].get(name, {}).get("metrics")
    if metrics is None:
        return []  # of time
    for metric in LONG_RUN:
        if metrics.get(metric, {}).get("telling", True):
            found += _exceeds(base, name, rung, metric, allowed)
    return found


def _exceeds(
    base: str, name: str, rung: Mapping[str, Any], metric: str, allowed: float
) -> list[str]:
    what = f"{title(rung)}{f' {metric}' if metric != 'instructions' else ''}"
    for kernel in (base, name):
        if kernel not in rung["figures"]:
            raise IopathError(f"cannot judge {what}: {kernel} has no result of it")
    change = rung["differences"][name]
    if metric != "instructions":
        if metric not in change.get("metrics", {}):
            lacks = "long run" if metric in LONG_RUN else "profile"
            raise IopathError(f"cannot judge {what}: the results have no {lacks}")
        change = change["metrics"][metric]
    if change["verdict"] == "unknown":
        raise IopathError(
            f"cannot judge {what}: the noise is not known: measure with --boots {noise.FEWEST} or"
            " more"
        )
    if change["verdict"] not in ("longer", "more"):
        return []
    percent = change["percent"]
    if percent is not None and percent <= allowed:
        return []
    by = f"{change['difference']:,.2f}" if percent is None else f"{percent:.2f} %"
    takes = "takes" if metric == "instructions" else "has"
    return [f"{what}: {name} {takes} {by} more than {base}, {allowed:g} % is allowed"]
