# SPDX-License-Identifier: GPL-2.0
"""The command iopath."""

import argparse
import json
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal

from iopath import (
    bisection,
    cluster,
    compare,
    features,
    featuretable,
    files,
    gitrepo,
    guest,
    host,
    kernelbuild,
    limits,
    on_host,
    options,
    output,
    prune,
    result,
    rungfile,
    rungs,
    series,
    sharing_changes,
    sharing_tables,
    terminal,
    trackcommand,
)
from iopath.arch import BY_DEBIAN, X86_64
from iopath.build import image_entry
from iopath.cache import Cache, cache_root
from iopath.comparison import Comparison
from iopath.errors import IopathError, Regressed, UsageError
from iopath.kernels import arch_of
from iopath.layers import Layers
from iopath.machine import Machine
from iopath.measure import Session
from iopath.plan import Settings
from iopath.process import Stopped
from iopath.progress import Reporter
from iopath.result import Result
from iopath.rung import OPS, Rung

CANNOT_TELL = 125  # exit status: git bisect run skips the commit


def _kernels(session: Session, args: argparse.Namespace, out: Console) -> None:
    kernels = session.debian_kernels(BY_DEBIAN[args.arch], update=args.update)
    cached = {k.release for k in kernels if session.cache.path(*image_entry(k)).exists()}
    shown = [k for k in kernels if args.all or not k.missing]
    if args.json:
        listed = [vars(k) | {"cached": k.release in cached} for k in shown]
        output.write_text(args.json, json.dumps(listed, indent=1) + "\n")
    terminal.show_kernels(shown, cached, out)


def _rungs(session: Session, args: argparse.Namespace, out: Console) -> None:
    if args.json:
        listed = [
            {"name": rung.name, "about": rung.about, "operations": rung.ops(OPS),
             "needs": rung.requires, "ladder": rung in rungs.select([])}
            for rung in rungs.RUNGS
        ]  # fmt: skip
        output.write_text(args.json, json.dumps(listed, indent=1) + "\n")
    terminal.show_rungs(rungs.RUNGS, out)


def _cache(session: Session, args: argparse.Namespace, out: Console) -> None:
    root = session.cache.root
    if not args.prune:
        if args.size is not None or args.older is not None:
            raise UsageError("--size and --older need --prune")
        prune.show(prune.stored(root), out)
        return
    size = prune.LIMIT if args.size is None and args.older is None else args.size
    removed = prune.prune(root, size=size, age=args.older)
    freed = sum(entry.size for entry in removed)
    out.print(f"removed {len(removed)} entries, {decimal(freed)}", highlight=False)


def _select(args: argparse.Namespace) -> list[Rung]:
    """The rungs that --rung and --rungs choose."""
    return rungs.select(args.rung, _added(args))


def _added(args: argparse.Namespace) -> Sequence[Rung]:
    """The rungs of --rungs."""
    return rungfile.load(args.rungs) if args.rungs else ()


def _settings(args: argparse.Namespace, *, boots: int = 1, profiled: bool = False) -> Settings:
    if args.accel != "tcg" and getattr(args, "cpus", 1) > 1:
        raise UsageError("--cpus: only emulated guests have several CPUs; leave out --accel kvm")
    return Settings(
        rungs=_select(args),
        ops=args.op or OPS,
        block_sizes=args.bs or (4096,),
        machine=Machine(
            args.cpu, args.memory, args.cmdline, args.seed, args.time_limit, args.accel
        ),
        fill=not args.no_fill,
        coherent=not args.incoherent,
        boots=boots,
        passes=getattr(args, "passes", host.PASSES),
        profile=profiled,
        inline=getattr(args, "inline", False),
        layers=getattr(args, "layers", None),
        cpus=getattr(args, "cpus", 1),
    )


def _measure(session: Session, args: argparse.Namespace, out: Console) -> None:
    output.check(args)
    if on_host.is_wanted(args):
        on_host.measure(session, args, out)
        return
    if args.folded:
        raise UsageError("--folded: only profile and compare count functions")
    if args.accel != "tcg":
        output.check_views(args, ())
    measured = session.measure(_expanded(session, args), _settings(args, boots=args.boots))
    output.write(args, measured, None)
    terminal.show(measured, out)
    sharing_tables.show(measured, out)


def _expanded(session: Session, args: argparse.Namespace) -> list[str]:
    """The kernels that are named, with the commits of ranges."""
    return session.expand(args.kernels, every=args.every, merges=args.merges)


def _need_counts(args: argparse.Namespace) -> None:
    if args.accel != "tcg":
        raise UsageError(
            "--accel kvm: only measure supports it; functions are counted in emulation"
        )


def _profile(session: Session, args: argparse.Namespace, out: Console) -> None:
    output.check(args)
    if on_host.is_wanted(args):
        on_host.profile(session, args, out)
        return
    _need_counts(args)
    layers = Layers(args.layers)
    measured = session.measure(_expanded(session, args), _settings(args, profiled=True))
    output.write(args, measured, None, layers)
    terminal.show_profile(measured, args.top, out)
    sharing_tables.show(measured, out)


def _parts(session: Session, args: argparse.Namespace) -> list[compare.Named]:
    """The results to compare in the order of the arguments, each with its file's name."""
    named = {
        name: _chosen(result.load(Path(name)), name, args)
        for name in args.kernels
        if name.endswith(".json")
    }
    names = [name for name in args.kernels if name not in named]
    measured = None
    if names:
        measured = session.measure(names, _settings(args, boots=args.boots, profiled=True))
    return compare.in_order(args.kernels, named, measured)


def _chosen(whole: Result, file: str, args: argparse.Namespace) -> Result:
    """The results of a file that match --rung, --op and --bs."""
    chosen = {rung.name for rung in _select(args)} if args.rung else None
    records = [
        record
        for record in whole.results
        if (chosen is None or record.rung in chosen)
        and (not args.op or record.op in (*args.op, "none"))
        and (not args.bs or record.block_size in (*args.bs, 0))
    ]
    if not records:
        raise IopathError(f"{file} has no results that match --rung, --op and --bs")
    return replace(whole, results=records)


def _compare(session: Session, args: argparse.Namespace, out: Console) -> None:
    output.check(args)
    _need_counts(args)
    layers = Layers(args.layers)
    args.kernels = _expanded(session, args)
    if len(args.kernels) == 1 and not args.kernels[0].endswith(".json"):
        raise UsageError(compare.NOTHING)
    limits_ = limits.read(args.limits, _added(args)) if args.limits else []
    whole, comparison = compare.compare_all(_parts(session, args), layers, anyway=args.anyway)
    output.write(args, whole, comparison, layers)
    _show_comparison(comparison, whole, args, out)
    sharing_tables.show_changes(sharing_changes.changes(whole), out)
    if args.fail_above is not None or limits_:
        found = limits.regressions(comparison, args.fail_above, limits_)
        found += sharing_changes.regressions(whole, limits_, args.fail_above)
        if found:
            raise Regressed("; ".join(found))


def _bisect(session: Session, args: argparse.Namespace, out: Console) -> None:
    output.check(args)
    _need_counts(args)
    layers = Layers(args.layers)

    def say(text: str) -> None:
        out.print(text, markup=False, soft_wrap=True)

    search = bisection.Search(session, _settings(args, boots=args.boots), say)
    if args.tree:
        tree = args.tree.absolute()
        ends = bisection.tree(search, tree, args.good, args.bad, args.build, session.cache, say)
    elif args.good.startswith("git:"):
        place, good = gitrepo.split(args.good.removeprefix("git:"))
        other, bad = gitrepo.split(args.bad.removeprefix("git:"))
        if not args.bad.startswith("git:") or place != other:
            raise UsageError(
                f"{args.bad}: not a commit of {place}: it must be git:{place}@REVISION"
            )
        repository = session.repository(place)
        ends = bisection.commits(search, repository, good, bad, session.cache, say)
    else:
        specs = [_debian_spec(name) for name in (args.good, args.bad)]
        known = session.debian_kernels(arch_of(specs[0]))
        kernels = bisection.between(*specs, known)
        say(bisection.describe(kernels, known))
        ends = bisection.packages(search, kernels, say)
    whole = compare.merge([("good", ends[0]), ("bad", ends[1])])
    comparison = compare.compare(whole, layers)
    output.write(args, whole, comparison, layers)
    say(f"first bad: {whole.names[1]}")
    _show_comparison(comparison, whole, args, out)


def _show_comparison(
    comparison: Comparison, whole: Result, args: argparse.Namespace, out: Console
) -> None:
    if args.all:
        terminal.show_all(comparison, out, args.top)
        out.print()
        terminal.show_header(whole, out)
    else:
        terminal.show_comparison(comparison, out, args.top)


def _features(session: Session, args: argparse.Namespace, out: Console) -> None:
    for path in filter(None, (args.json, args.markdown, args.svg)):
        files.check(path)
    if args.svg and args.svg.suffix != ".svg":
        raise UsageError(f"--svg {args.svg}: the file's name must end in .svg")
    if not args.kernels and not args.list:
        raise UsageError("no kernel is given: e.g. iopath features debian:6.12")
    base, known = features.load(args.features)
    chosen = [features.PLAIN, *features.choose(known, args.feature)]
    for names in args.together:
        some = [features.choose(known, [name]) for name in names.split(",")]
        chosen.append(features.together([one for part in some for one in part]))
    if args.list:
        for feature in chosen:
            out.print(f"{feature.name:20} {feature.about}", markup=False, soft_wrap=True)
        return
    machine = Machine(cmdline=base.cmdline, seed=args.seed)
    settings = Settings([], ops=args.op or (), machine=machine, boots=args.boots, profile=True)
    layers = Layers()
    with ThreadPoolExecutor(guest.cpu_count()) as executor:
        run = features.Features(session, base, settings, session.executor or executor, layers)
        costs = [cost for kernel in args.kernels for cost in run.measure(kernel, chosen, args.rung)]
    if args.json:
        output.write_text(args.json, json.dumps(features.dump(base, costs), indent=1) + "\n")
    if args.markdown:
        output.write_text(args.markdown, featuretable.markdown(base, costs))
    if args.svg:
        from iopath import charts, featurechart  # slow to load

        charts.save(featurechart.chart(costs), args.svg)
    featuretable.show(base, costs, out)
    failed = dict.fromkeys(cost.feature for cost in costs if cost.error)
    if failed:
        raise IopathError(f"not measured: {', '.join(failed)}")


def _series(session: Session, args: argparse.Namespace, out: Console) -> None:
    for path in filter(None, (args.json, args.markdown)):
        files.check(path)
    _need_counts(args)
    name = args.range if args.range.startswith("git:") else f"git:.@{args.range}"
    if ".." not in name:
        raise UsageError(f"{args.range}: not a range of commits: it must be like A..B")
    names = session.expand([name], every=args.every, merges=args.merges)
    settings = _settings(args, boots=args.boots, profiled=True)
    entries = series.measure(session, names, settings, Layers(args.layers), session.reporter.note)
    if args.json:
        output.write_text(args.json, series.dump(entries))
    if args.markdown:
        command = shlex.join(["iopath", *_without_files(args.argv)])
        output.write_text(args.markdown, series.markdown(entries, command, every=args.all))
    series.show(entries, out, every=args.all)


def _without_files(argv: Sequence[str]) -> list[str]:
    """The words of a command without the files that it writes."""
    found, words = [], iter(argv)
    for word in words:
        if word in ("--json", "--markdown"):
            next(words, None)
        elif not word.startswith(("--json=", "--markdown=")):
            found.append(word)
    return found


def _track(session: Session, args: argparse.Namespace, out: Console) -> None:
    trackcommand.run(session, args, out, partial(_recipe, session))


def _recipe(
    session: Session, suite: str, config: str, options: Sequence[str], arch: str
) -> kernelbuild.Recipe:
    """How kernels of a git repository are built."""
    if config == kernelbuild.MINIMAL:
        base = None
    elif config.startswith("debian:"):
        with session.reporter.task(config) as step:
            base = kernelbuild.cut_down(
                session.build(session.find(config), step).config.read_text()
            )
    else:
        try:
            base = Path(config).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read --config {config}: {error}") from error
    return kernelbuild.recipe(suite, base, options, BY_DEBIAN[arch])


def _recipe_of(session: Session, args: argparse.Namespace) -> kernelbuild.Recipe:
    """How the kernels of a git repository that a command names are built."""
    named = getattr(args, "kernels", [getattr(args, "good", "git:")])
    if args.arch != X86_64.debian and not any(name.startswith("git:") for name in named):
        raise UsageError(
            f"--arch {args.arch}: only kernels of a git repository are built for it; Debian's have"
            f" it in their name, like debian:6.12-{args.arch}"
        )
    return _recipe(session, args.suite, args.config, args.kconfig, args.arch)


def _debian_spec(name: str) -> str:
    if not name.startswith("debian:"):
        raise UsageError(
            f"{name}: bisect takes debian:... kernels, git:PATH@REVISION, or commits with --tree"
        )
    return name.removeprefix("debian:")


_COMMANDS = {
    "kernels": _kernels,
    "rungs": _rungs,
    "cache": _cache,
    "measure": _measure,
    "profile": _profile,
    "compare": _compare,
    "bisect": _bisect,
    "series": _series,
    "track": _track,
    "features": _features,
    "run": on_host.run,
    "trace": on_host.trace,
    "scale": on_host.scale,
}


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _judges(argv: Sequence[str]) -> bool:
    """Whether an exit status of 1 or 2 could be mistaken for a verdict. argparse accepts any
    unique prefix of an option."""
    words = [word.partition("=")[0] for word in argv]
    return any(
        len(word) > 2 and option.startswith(word)
        for word in words
        for option in ("--fail-above", "--limits")
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its exit status: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

    With --fail-above or --limits: 0 good, 1 regressed, 125 cannot be judged."""
    argv = sys.argv[1:] if argv is None else argv
    # For git bisect run: a commit that cannot be tested is not bad.
    judging = _judges(argv)
    try:
        args = options.parser().parse_args(argv)
        args.argv = argv
    except SystemExit as exit_:
        if judging and exit_.code == UsageError.status:
            return CANNOT_TELL
        raise
    out = terminal.stdout()
    reporter = Reporter(Console(stderr=True), quiet=args.quiet)
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        session = Session(Cache(cache_root(), reporter.warn), reporter)
        try:
            if getattr(args, "scheduler", None):
                session.executor = cluster.Cluster(args.scheduler)
            if hasattr(args, "config"):
                session.recipe = _recipe_of(session, args)
            _COMMANDS[args.command](session, args, out)
        finally:
            if session.executor:
                session.executor.shutdown(wait=False, cancel_futures=True)
            session.cache.release()
            prune.keep_in_bounds(session.cache.root)
    except Regressed as error:
        print(f"iopath: {error}", file=sys.stderr)
        return error.status
    except IopathError as error:
        print(f"iopath: {error}", file=sys.stderr)
        return CANNOT_TELL if judging else error.status
    except (KeyboardInterrupt, Stopped):
        print("iopath: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return CANNOT_TELL if judging else 1
    except Exception:
        if not judging:
            raise
        traceback.print_exc()
        return CANNOT_TELL
    return 0


if __name__ == "__main__":
    sys.exit(main())
