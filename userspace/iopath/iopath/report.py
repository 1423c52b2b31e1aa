# SPDX-License-Identifier: GPL-2.0
"""Show results as a table that a person likes to read."""

from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from iopath.kernels import DebianKernel
from iopath.result import title

# The options of a kernel that a reader asks for first.
_PREEMPT = ("PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT", "PREEMPT_VOLUNTARY", "PREEMPT_LAZY")
_MORE = ("BLK_CGROUP", "BUFFER_HEAD", "HARDENED_USERCOPY", "INIT_ON_ALLOC_DEFAULT_ON")


def size_text(size: int) -> str:
    """A number of bytes as people write it: 512 B, 4 KiB, 1 MiB."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size} B"


class _Plain(Table):
    """A table whose strings are text: brackets in names are no markup."""

    def add_column(self, header: str = "", **options: Any) -> None:  # noqa: ANN401
        super().add_column(Text(header), **options)

    def add_row(self, *cells: str | Text, **options: Any) -> None:  # noqa: ANN401
        texts = (Text(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*texts, **options)


def _table(*titles: str) -> _Plain:
    table = _Plain(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for text in titles:
        table.add_column(text)
    return table


def _grid(rows: Iterable[tuple[str, str]]) -> _Plain:
    """Names and texts side by side."""
    grid = _Plain(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(name, text)
    return grid


def show(result: dict[str, Any], console: Console) -> None:
    """Print the header that says what was measured on what, and the ladder."""
    console.print(Group(_header(result), Text(), ladder(result)))


def show_header(result: dict[str, Any], console: Console) -> None:
    """Print what was measured on what."""
    console.print(_header(result))


def facts(result: dict[str, Any]) -> list[tuple[str, str]]:
    """What was measured, and on what: what a reviewer asks first."""
    machine, kernels = result["machine"], result["kernels"]
    device = "blknull, bio mode"
    if not kernels[0]["zero_fill"]:
        device += ", zero_fill=0"
    if not kernels[0]["coherent"]:
        device += "; biogen with coherent=0"
    families = {record["rung"].partition(".")[0] for record in result["results"]}
    if "mq" in families:
        device += "; for mq.*, in mode mq"
    if "nullb" in families:
        device += "; for nullb.*, null_blk"
    return [
        ("counted", "instructions per I/O, user and kernel, by the guest's clock"),
        ("device", device),
        (
            "guest",
            f"QEMU {result['qemu']['version']} (TCG, -icount), CPU {machine['cpu']}"
            f" ({kernels[0]['cpu_model']}), 1 CPU, {machine['memory_mib']} MiB",
        ),
        ("command line", machine["cmdline"] or "(nothing added)"),
        ("made by", result["program"]),
        *((kernel["name"], _kernel_text(kernel)) for kernel in kernels),
    ]


def _header(result: dict[str, Any]) -> Table:
    return _grid(facts(result))


def _kernel_text(kernel: dict[str, Any]) -> str:
    """A kernel's release, origin, compiler and telling options."""
    config = kernel["config"]
    preempt = [name for name in _PREEMPT if config.get(name) == "y"]
    options = [preempt[0] if preempt else "PREEMPT_NONE", f"HZ={config.get('HZ', '?')}"]
    options += [name for name in _MORE if config.get(name) == "y"]
    return (
        f"{kernel['release']} ({kernel['origin']}), {kernel['compiler']}; {', '.join(options)};"
        f" config {kernel['digests']['config'][:8]}"
    )


def ladder(result: dict[str, Any]) -> Table:
    """The figures: rows are rungs, columns are kernels, changes are against the first kernel. Of
    a single kernel those of the long run, too."""
    names = [kernel["name"] for kernel in result["kernels"]]
    several = len({row["block_size"] for row in result["results"] if row["block_size"]}) > 1
    table = _table("rung", "op")
    table.add_column("size", justify="right")
    for index, name in enumerate(names):
        table.add_column(name, justify="right")
        table.add_column("spread", justify="right", style="dim")
        if index:
            table.add_column("change", justify="right")
    if len(names) == 1:
        table.add_column("mean", justify="right")
        table.add_column("with deferred work", justify="right")
    rows: dict[tuple[str, str, int], dict[str, dict[str, Any]]] = {}
    for record in result["results"]:
        key = (record["rung"], record["op"], record["block_size"])
        rows.setdefault(key, {})[record["kernel"]["name"]] = record
    previous = ""
    for (rung, op, size), figures in rows.items():
        cells = ["" if rung == previous and not several else rung]
        cells += ["" if op == "none" else op, size_text(size) if size else ""]
        previous = rung
        first = figures.get(names[0])
        for index, name in enumerate(names):
            figure = figures.get(name)
            cells.append(f"{figure['instructions_per_io']:,.2f}" if figure else "-")
            cells.append(f"{figure['spread']:.2f}" if figure else "")
            if index:
                cells.append(_change(first, figure))
        if len(names) == 1:
            long_run = ("mean", "with_deferred")
            cells += [f"{first[name]:,.2f}" if name in (first or ()) else "-" for name in long_run]
        table.add_row(*cells)
    return table


def _change(first: dict[str, Any] | None, other: dict[str, Any] | None) -> str:
    if not first or not other:
        return ""
    before, after = first["instructions_per_io"], other["instructions_per_io"]
    if not before:
        return f"{after - before:+,.2f}"
    return f"{after - before:+,.2f} ({100 * (after / before - 1):+.1f} %)"


def show_profile(measured: dict[str, Any], top: int, console: Console) -> None:
    """Print where the instructions of each rung go: by layer, then by function."""
    console.print(_header(measured))
    for record in measured["results"]:
        profile = record["profile"]
        total = profile["instructions"]
        size = f" {size_text(record['block_size'])}" if record["block_size"] else ""
        console.print(
            Text.assemble(
                "\n",
                (f"{record['kernel']['name']} {title(record)}", "bold"),
                f"{size}  {total:,.2f} instructions per I/O ({profile['kernel']:,.2f} in the"
                f" kernel), by the guest's clock {record['instructions_per_io']:,.2f}",
            )
        )
        console.print(_layer_table(profile["layers"], total))
        console.print(_function_table(profile, top))
        if "source" in profile:
            console.print(_inlined_table(profile["source"], top))
            console.print(_line_table(profile["source"], top))


def _layer_table(layers: dict[str, float], total: float) -> Table:
    table = _table("layer")
    table.add_column("instructions", justify="right")
    table.add_column("share", justify="right")
    for name, count in layers.items():
        table.add_row(name, f"{count:,.2f}", f"{100 * count / total:.1f} %")
    return table


_COUNTS = ("instructions", "reads", "writes", "locked", "calls", "indirect", "branches")


def _function_table(profile: dict[str, Any], top: int) -> Table:
    table = _table("function", "layer")
    for name in _COUNTS:
        table.add_column(name, justify="right", style="" if name == "instructions" else "dim")
    functions = profile["functions"]
    for function in functions[:top]:
        module = f" [{function['module']}]" if function["module"] else ""
        cells = [f"{function[name]:,.2f}" for name in _COUNTS]
        table.add_row(function["name"] + module, function["layer"], *cells)
    rest = functions[top:]
    if rest:
        cells = [f"{sum(function[name] for function in rest):,.2f}" for name in _COUNTS]
        table.add_row(f"{len(rest)} more functions", "", *cells, style="dim")
    cells = [f"{profile[name]:,.2f}" for name in _COUNTS]
    table.add_section()
    table.add_row("all", "", *cells, style="bold")
    return table


def _inlined_table(source: list[dict[str, Any]], top: int) -> Table:
    """What of each function is its own, and what the functions that were inlined there."""
    inlined: dict[str, dict[str, float]] = {}
    for row in source:
        parts = inlined.setdefault(row["function"], {})
        parts[row["inlined"]] = parts.get(row["inlined"], 0.0) + row["instructions"]
    table = _table("function", "inlined there")
    table.add_column("instructions", justify="right")
    for function, parts in list(inlined.items())[:top]:
        table.add_row(function, "", f"{sum(parts.values()):,.2f}", style="bold")
        for name, count in sorted(parts.items(), key=lambda part: -part[1]):
            table.add_row("", name or "(its own)", f"{count:,.2f}")
    return table


def _line_table(source: list[dict[str, Any]], top: int) -> Table:
    """The lines that execute most."""
    lines: dict[tuple[str, str], float] = {}
    for row in source:
        key = (row["line"], row["inlined"] or row["function"])
        lines[key] = lines.get(key, 0.0) + row["instructions"]
    table = _table("line", "function")
    table.add_column("instructions", justify="right")
    for (line, function), count in sorted(lines.items(), key=lambda part: -part[1])[:top]:
        table.add_row(line, function, f"{count:,.2f}")
    return table


def show_kernels(kernels: Iterable[DebianKernel], cached: set[str], console: Console) -> None:
    """List the kernels there are, oldest first."""
    table = _table("kernel", "package version", "suite", "state")
    for kernel in kernels:
        if kernel.release in cached:
            state = "cached"
        elif kernel.missing:
            state = f"cannot be had: {kernel.missing} is gone"
        else:
            state = "available"
        style = "dim" if kernel.missing else ""
        table.add_row(f"debian:{kernel.release}", kernel.version, kernel.suite, state, style=style)
    console.print(table)


def show_comparison(comparison: dict[str, Any], top: int, console: Console) -> None:
    """Print how kernels differ, rung by rung, and what accounts for it."""
    for label in comparison["labels"]:
        console.print(Text(f"differs  {label}", style="dim"))
    base = comparison["base"]
    table = _table("rung", "size")
    table.add_column(base, justify="right")
    for name in comparison["others"]:
        table.add_column(name, justify="right")
        table.add_column("change", justify="right")
        table.add_column("noise", justify="right", style="dim")
        table.add_column("verdict")
    for rung in comparison["rungs"]:
        figures = rung["figures"]
        cells = [title(rung), size_text(rung["block_size"]) if rung["block_size"] else ""]
        cells.append(f"{figures[base]['instructions']:,.2f}" if base in figures else "-")
        for name in comparison["others"]:
            change = rung["differences"].get(name)
            cells.append(f"{figures[name]['instructions']:,.2f}" if name in figures else "-")
            if change:
                cells.append(change_text(change))
                cells += [noise_text(change), _coloured(change)]
            else:
                cells += ["", "", ""]
        table.add_row(*cells)
    console.print(table)
    for name in comparison["others"]:
        _show_metrics(comparison, name, console)
    for rung in comparison["rungs"]:
        for name, change in rung["differences"].items():
            if is_telling(change):
                heading = f": {base} to {name}, {change['difference']:+,.2f} instructions per I/O"
                console.print(Text.assemble((title(rung), "bold"), heading))
                console.print(_attribution(change, top))
            for text in change["findings"]:
                console.print(Text.assemble((title(rung), "bold"), f": {name}: {text}"))
            _show_long_run(title(rung), f"{base} to {name}", change, top, console)


def _show_long_run(
    rung: str, names: str, change: dict[str, Any], top: int, console: Console
) -> None:
    """Print what the median of short rounds does not see, and the functions that account for it."""
    for figure, part in change["metrics"].items():
        if not part.get("telling"):
            continue
        heading = f": {names}, {figure}, {part['difference']:+,.2f} instructions per I/O"
        console.print(Text.assemble((rung, "bold"), heading))
        table = _table("function")
        table.add_column("difference", justify="right")
        for row in part["functions"][:top]:
            table.add_row(row["name"], f"{row['difference']:+,.2f}")
        console.print(table)


def noise_text(change: dict[str, Any]) -> str:
    return "?" if change["noise"] is None else f"{change['noise']:.2f}"


def is_telling(change: dict[str, Any]) -> bool:
    """Whether a difference has functions to show: it is beyond the noise, or they cancel."""
    changed = change["verdict"] in ("longer", "shorter")
    return bool(change["functions"]) and (changed or change["moved"])


def verdict_text(change: dict[str, Any]) -> str:
    """The verdict on a difference, and whether its functions say more than their sum."""
    if change["verdict"] == "same" and change.get("moved"):
        return "same in sum"
    return change["verdict"]


def _show_metrics(comparison: dict[str, Any], name: str, console: Console) -> None:
    """Print what a kernel differs by besides instructions, beyond the noise."""
    rows = []
    for rung in comparison["rungs"]:
        found = rung["differences"].get(name, {}).get("metrics", {})
        cells = [metric_text(metric, part) for metric, part in found.items()]
        # Of cache lines, what is within the noise is worth a look only beside something else.
        if any(
            cell and found[metric]["verdict"] != "same"
            for metric, cell in zip(found, cells, strict=True)
        ):
            rows.append((rung, cells))
            metrics = list(found)
    if not rows:
        return
    names = f"{comparison['base']} to {name}"
    console.print(Text.assemble((names, "bold"), ": what else differs per I/O"))
    table = _table("rung", "size")
    for metric in metrics:
        table.add_column(metric, justify="right")
    for rung, cells in rows:
        size = size_text(rung["block_size"]) if rung["block_size"] else ""
        table.add_row(title(rung), size, *cells)
    console.print(table)


def metric_text(metric: str, change: dict[str, Any]) -> str:
    """By how much a metric differs; nothing if that is within the noise. Cache lines are shown with
    their noise even then, a difference of unknown noise with a question mark."""
    if not change["difference"]:
        return ""
    if not change.get("telling", True) and change["verdict"] != "unknown":
        return ""
    text = f"{change['difference']:+,.2f}"
    if change["verdict"] == "unknown":
        return f"{text}?"
    if metric.endswith("lines"):
        return f"{text} ±{change['noise']:.2f}"
    return "" if change["verdict"] == "same" else text


def change_text(change: dict[str, Any]) -> str:
    percent = "" if change["percent"] is None else f" ({change['percent']:+.2f} %)"
    return f"{change['difference']:+,.2f}{percent}"


def _coloured(change: dict[str, Any]) -> Text:
    colour = {"longer": "red", "shorter": "green"}.get(change["verdict"], "")
    return Text(verdict_text(change), style=colour)


# What of a function is named beside its instructions.
_NAMED = ("locked", "indirect", "reads", "writes")


def _note(row: dict[str, Any]) -> str:
    counts = row["counts"]
    parts = [f"{name} {counts[name]:+,.2f}" for name in _NAMED if name in counts]
    return "; ".join(filter(None, [row["note"], ", ".join(parts)]))


def _attribution(change: dict[str, Any], top: int) -> Table:
    table = _table("function", "layer")
    for name in ("before", "after", "difference"):
        table.add_column(name, justify="right")
    table.add_column("")
    rows = change["functions"]
    for row in rows[:top]:
        cells = [f"{row['before']:,.2f}", f"{row['after']:,.2f}", f"{row['difference']:+,.2f}"]
        table.add_row(row["name"], row["layer"], *cells, _note(row))
    rest = rows[top:]
    if rest:
        total = sum(row["difference"] for row in rest)
        table.add_row(f"{len(rest)} more functions", "", "", "", f"{total:+,.2f}", style="dim")
    if abs(change["unattributed"]) >= 0.005:
        table.add_row(
            "clock against profile", "", "", "", f"{change['unattributed']:+,.2f}", style="dim"
        )
    table.add_section()
    table.add_row("all", "", "", "", f"{change['difference']:+,.2f}", style="bold")
    layers = [row for row in change["layers"] if abs(row["difference"]) >= 0.005]
    table.caption = Text(
        "layers: " + ", ".join(f"{row['layer']} {row['difference']:+,.2f}" for row in layers)
    )
    table.caption_justify = "left"
    return table


# Of a machine: time, with intervals, and what its counters counted.


def host_facts(result: dict[str, Any]) -> list[tuple[str, str]]:
    """On what was measured, and what of it bears on time."""
    machine = result["machine"]
    state = [f"governor {machine['governor']}", f"boost {machine['boost']}"]
    if machine["smt_siblings"]:
        state.append(f"core shared with CPU {', '.join(map(str, machine['smt_siblings']))}")
    if machine["isolated"]:
        state.append(f"isolated: {machine['isolated']}")
    state.append(f"load {machine['load']:.2f}")
    mitigated = [
        f"{name}: {text}"
        for name, text in machine["mitigations"].items()
        if not text.startswith(("Not affected", "Unknown"))
    ]
    running = all(kernel["name"].startswith("host") for kernel in result["kernels"])
    place = "on the running machine" if running else "in guests on the processor itself (KVM)"
    kernels = [
        (kernel["name"], f"{kernel['release']}, {kernel['compiler']}")
        for kernel in result["kernels"]
    ]
    return [
        ("measured", f"time per I/O and what the processor counts, {place}"),
        ("machine", f"{machine['cpu_model']}, CPU {machine['cpu']} of {machine['cpus']}"),
        ("state", "; ".join(state)),
        ("mitigations", "; ".join(mitigated) or "none"),
        ("made by", result["program"]),
        *kernels,
    ]


def _host_header(result: dict[str, Any]) -> Table:
    return _grid(host_facts(result))


_COUNTED = ("cycles", "instructions", "instructions_kernel", "cache_misses", "branch_misses")


def show_host(result: dict[str, Any], console: Console) -> None:
    """Print the ladder of a machine."""
    records = result["results"]
    counted = [name for name in _COUNTED if any(name in r["figures"] for r in records)]
    table = _table("rung", "op")
    for text in ("size", "ns", "95 %", "A/A", *(name.replace("_", " ") for name in counted)):
        table.add_column(text, justify="right", style="dim" if text in ("95 %", "A/A") else "")
    for record in records:
        ns = record["figures"]["ns"]
        cells = [record["rung"], "" if record["op"] == "none" else record["op"]]
        cells += [size_text(record["block_size"]) if record["block_size"] else ""]
        cells += [f"{ns['median']:,.2f}", f"{ns['low']:,.2f} to {ns['high']:,.2f}"]
        cells += [f"{100 * ns['noise'] / ns['median']:.2f} %"]
        for name in counted:
            figure = record["figures"].get(name)
            cells.append(f"{figure['median']:,.2f}" if figure else "-")
        table.add_row(*cells)
    console.print(Group(_host_header(result), Text(), table))
    absent = {name: text for record in records[:1] for name, text in record["absent"].items()}
    for text in dict.fromkeys(absent.values()):
        names = ", ".join(n.replace("_", " ") for n in absent if absent[n] == text)
        console.print(Text(f"not counted: {names}: {text}", style="dim"))


def show_host_comparison(
    result: dict[str, Any], comparison: dict[str, Any], console: Console
) -> None:
    """Print how machines' figures differ: time, and below it what was counted."""
    console.print(_host_header(result))
    for label in comparison["labels"]:
        console.print(Text(f"differs  {label}", style="dim"))
    table = _table("rung", "size", "per I/O")
    table.add_column(comparison["base"], justify="right")
    for name in comparison["others"]:
        table.add_column(name, justify="right")
        table.add_column("change", justify="right")
        table.add_column("noise", justify="right", style="dim")
        table.add_column("verdict")
    for rung in comparison["rungs"]:
        figures = rung["figures"]
        heads = [title(rung), size_text(rung["block_size"]) if rung["block_size"] else ""]
        shown = [n for n in ("ns", *_COUNTED) if any(n in found for found in figures.values())]
        for unit in shown:
            cells = [*heads, unit.replace("_", " ")]
            heads = ["", ""]
            base = figures.get(comparison["base"], {}).get(unit)
            cells.append(f"{base['median']:,.2f}" if base else "-")
            for name in comparison["others"]:
                figure = figures.get(name, {}).get(unit)
                times = rung["differences"].get(name)
                change = times if unit == "ns" else rung["counted"].get(name, {}).get(unit)
                cells.append(f"{figure['median']:,.2f}" if figure else "-")
                if change:
                    cells.append(change_text(change))
                    cells += [f"{change['noise']:.2f}", _coloured(change)]
                else:
                    cells += ["", "", ""]
            table.add_row(*cells)
    console.print(table)


def show_host_profile(result: dict[str, Any], top: int, console: Console) -> None:
    """Print where the time of each rung goes."""
    console.print(_host_header(result))
    for record in result["results"]:
        profile = record["profile"]
        console.print(
            Text.assemble(
                "\n",
                (title(record), "bold"),
                f": {profile['ns']:,.2f} ns per I/O, by {profile['samples']:,} samples of"
                f" {profile['event']} in {profile['data']}",
            )
        )
        if profile["event"] != "cycles":
            console.print(
                Text("no PMU: a timer samples, and what runs without interrupts is blamed on"
                     " where they come back", style="yellow")
            )  # fmt: skip
        layers = _table("layer")
        layers.add_column("ns", justify="right")
        layers.add_column("share", justify="right")
        for name, part in profile["layers"].items():
            layers.add_row(name, f"{part:,.2f}", f"{100 * part / profile['ns']:.1f} %")
        functions = _table("function", "layer")
        for name in ("ns", "share", "samples"):
            functions.add_column(name, justify="right", style="" if name == "ns" else "dim")
        rows = profile["functions"]
        for row in rows[:top]:
            module = f" [{row['module']}]" if row["module"] else ""
            functions.add_row(
                row["name"] + module, row["layer"], f"{row['ns']:,.2f}",
                f"{100 * row['ns'] / profile['ns']:.1f} %", str(row["samples"]),
            )  # fmt: skip
        if rows[top:]:
            rest = sum(row["ns"] for row in rows[top:])
            functions.add_row(f"{len(rows[top:])} more functions", "", f"{rest:,.2f}", style="dim")
        functions.add_section()
        functions.add_row("all", "", f"{profile['ns']:,.2f}", style="bold")
        console.print(layers)
        console.print(functions)


def show_scaling(records: list[dict[str, Any]], console: Console) -> None:
    """Print I/Os per second and the cost of one over the number of CPUs."""
    table = _table("how", "devices")
    for name in ("CPUs", "I/Os per second", "spread", "ns per I/O and CPU", "of 1 CPU's rate"):
        table.add_column(name, justify="right")
    alone = {r["how"]: r["ios_per_second"] for r in records if r["cpus"] == 1}
    for record in records:
        rate = record["ios_per_second"]
        table.add_row(
            record["how"], record["devices"], str(record["cpus"]), f"{rate:,.0f}",
            f"{100 * record['spread'] / rate:.1f} %", f"{record['ns_per_io']:,.2f}",
            f"{rate / alone[record['how']]:.2f}",
        )  # fmt: skip
    console.print(table)
