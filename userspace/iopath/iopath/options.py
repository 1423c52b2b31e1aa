# SPDX-License-Identifier: GPL-2.0
"""The options of the command iopath."""

import argparse
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from iopath import __version__, apt, host, kernelbuild, noise, prune
from iopath.arch import BY_DEBIAN, X86_64
from iopath.errors import did_you_mean
from iopath.machine import Machine
from iopath.rung import OPS

FILES = {
    "json": "the whole result, for compare and other programs",
    "html": "a page with charts, tables and flame graphs; it needs no network",
    "markdown": "the figures, for a mail or a commit message",
    "svg": "the ladder as a chart",
    "png": "the ladder as a chart",
    "history": "the figures over the kernels as a chart, .svg or .png",
    "folded": "call stacks, as flame graph tools read them",
}


def _block_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([km]?)", text.lower())
    size = int(match.group(1)) << {"": 0, "k": 10, "m": 20}[match.group(2)] if match else 0
    if not 512 <= size <= 1 << 20 or size % 512:
        raise argparse.ArgumentTypeError(
            f"invalid block size '{text}': must be a multiple of 512, from 512 to 1m"
        )
    return size


def _number(low: int, high: int, unit: str) -> "type":
    def parse(text: str) -> int:
        if not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"invalid number of {unit} '{text}': must be from {low} to {high}"
            )
        return int(text)

    return parse  # type: ignore[return-value]


def _unit(units: Mapping[str, int], example: str) -> Callable[[str], int]:
    """A parser of a number with one of *units*."""

    def parse(text: str) -> int:
        match = re.fullmatch(rf"(\d+)([{''.join(units)}])", text)
        if not match:
            raise argparse.ArgumentTypeError(f"invalid value '{text}': must be like {example}")
        return int(match[1]) * units[match[2]]

    return parse


_bytes = _unit({"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}, "500M or 10G")
_seconds = _unit({"m": 60, "h": 3600, "d": 86400}, "12h or 30d")


# The examples that the help of each command begins with.
_EXAMPLES = {
    "": ("iopath compare debian:6.1 debian:7.2", "iopath measure debian:7.2 --rung 'dio.*'"),
    "kernels": ("iopath kernels", "iopath kernels --update --json kernels.json"),
    "rungs": ("iopath rungs", "iopath rungs --json rungs.json"),
    "cache": ("iopath cache", "iopath cache --prune --size 10G"),
    "measure": (
        "iopath measure debian:6.1 debian:7.2",
        "iopath measure debian:7.2 --rung 'dio.*' --op read --bs 4k --bs 64k",
    ),
    "profile": (
        "iopath profile debian:7.2 --rung dio.pread --op read",
        "iopath profile debian:7.2 --rung 'raw.*' --html profile.html",
    ),
    "compare": (
        "iopath compare debian:6.1 debian:7.2",
        "iopath compare tree:linux tree:linux-patched --rung 'dio.*' --fail-above 1",
    ),
    "bisect": (
        "iopath bisect debian:6.1 debian:7.2 --rung dio.pread --op read",
        "iopath bisect --tree linux v6.12 v6.13 --rung dio.pread --op read",
    ),
    "series": (
        "iopath series v6.12..my-branch --rung 'dio.*'",
        "iopath series git:linux@v6.12..v6.13 --every 100 --rung dio.pread --op read",
    ),
    "track": ("iopath track watch.toml", "iopath track watch.toml --output /srv/www/iopath"),
    "features": (
        "iopath features debian:7.2",
        "iopath features debian:6.1 debian:7.2 --feature 'trace.*' --with iostats,audit",
    ),
    "run": (
        "iopath run host --rung dio.pread",
        "iopath run host --rung 'raw.*' --op read --seconds 10",
    ),
    "trace": (
        "iopath trace host --rung dio.pread --op read",
        "iopath trace host --rung dio.pread --op write --bs 64k",
    ),
    "scale": ("iopath scale host", "iopath scale host --op write --bs 64k --svg scale.svg"),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose help begins with examples, and whose error message is one line."""

    def format_help(self) -> str:
        examples = _EXAMPLES[self.prog.removeprefix("iopath").strip()]
        lines = "".join(f"  {line}\n" for line in examples)
        return f"examples:\n{lines}\n{super().format_help()}"

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")

    def _check_value(self, action: argparse.Action, value: str) -> None:
        if action.choices is not None and value not in action.choices:
            near = did_you_mean(value, action.choices)
            known = f": must be one of {', '.join(action.choices)}"
            raise argparse.ArgumentError(action, f"invalid choice '{value}'{near or known}")

    def parse_args(self, args=None, namespace=None):  # noqa: ANN001, ANN202
        """As argparse does it, but for the message about an unknown argument."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            options = _options(self, found.command)
            near = did_you_mean(unknown[0].partition("=")[0], options)
            self.error(f"unknown argument '{unknown[0]}'{near}")
        return found


def _options(parser: argparse.ArgumentParser, command: str) -> list[str]:
    """The options of a command."""
    actions = parser._subparsers._group_actions[0].choices[command]._actions
    return [option for action in actions for option in action.option_strings]


def parser() -> argparse.ArgumentParser:
    made = _Parser(
        prog="iopath",
        description="What one I/O costs in the Linux kernel above the driver, in instructions.",
        epilog="KERNEL is debian:SERIES (debian:6.1, debian:7.2-rt), debian:RELEASE"
        " (debian:7.2.12+deb13-amd64), git:PATH@REVISION (a commit, which is built), tree:PATH (a"
        " built kernel tree) or host (the running kernel, measured in time).",
    )
    made.add_argument("--version", action="version", version=f"iopath {__version__}")
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")

    listing = commands.add_parser("kernels", help="list the kernels that can be measured")
    listing.add_argument("--all", action="store_true", help="also those with parts missing there")
    _add_arch(listing, "their architecture")
    listing.add_argument("--update", action="store_true", help="refresh the package lists")
    listing.add_argument("--json", metavar="FILE", type=Path, help="write the list to FILE")

    ladder = commands.add_parser("rungs", help="list the rungs: what each one measures")
    ladder.add_argument("--json", metavar="FILE", type=Path, help="write the list to FILE")

    caching = commands.add_parser("cache", help="list the cache, or remove entries from it")
    caching.add_argument(
        "--prune", action="store_true", help="remove entries that were not used for long"
    )
    caching.add_argument(
        "--size", type=_bytes, metavar="SIZE",
        help="with --prune: remove the longest unused until the cache takes at most SIZE, e.g. 10G"
        f" (default: {prune.LIMIT >> 30}G)",
    )  # fmt: skip
    caching.add_argument(
        "--older", type=_seconds, metavar="AGE",
        help="with --prune: remove what was not used for AGE instead, e.g. 30d or 12h",
    )  # fmt: skip

    measuring = commands.add_parser("measure", help="measure what an I/O costs on kernels")
    measuring.add_argument("kernels", nargs="+", metavar="KERNEL")
    _add_boots(measuring, 1)

    profiling = commands.add_parser(
        "profile", help="show where the instructions go: functions and layers"
    )
    profiling.add_argument("kernels", nargs="+", metavar="KERNEL")
    profiling.add_argument(
        "--top", type=_number(1, 10000, "functions"), default=40, metavar="N",
        help="functions to show (default: 40)",
    )  # fmt: skip

    comparing = commands.add_parser(
        "compare", help="compare kernels or result files with the first, function by function"
    )
    comparing.add_argument("kernels", nargs="+", metavar="KERNEL|FILE.json")
    comparing.add_argument(
        "--fail-above", type=_percent, metavar="PERCENT",
        help="exit with 1 if any rung grows by more than PERCENT, with 125 if it cannot be judged",
    )  # fmt: skip
    comparing.add_argument(
        "--limits", metavar="FILE", type=Path,
        help='limits per rung and metric, TOML: "dio.pread read locked" = 0',
    )  # fmt: skip
    comparing.add_argument(
        "--anyway", action="store_true", help="compare results even if more than the kernel differs"
    )

    bisecting = commands.add_parser(
        "bisect", help="find the kernel package, or the commit, that changed a rung"
    )
    bisecting.add_argument("good", metavar="GOOD", help="a kernel, or with --tree a commit")
    bisecting.add_argument("bad", metavar="BAD", help="a kernel, or with --tree a commit")
    bisecting.add_argument(
        "--tree", metavar="PATH", type=Path, help="search the commits of this git tree of a kernel"
    )
    bisecting.add_argument(
        "--build",
        default=f"make -s olddefconfig && make -s -j{os.cpu_count()} {X86_64.target} modules",
        metavar="COMMAND", help="command that builds the tree (default: %(default)s)",
    )  # fmt: skip

    following = commands.add_parser("series", help="what each commit of a range costs")
    following.add_argument(
        "range", metavar="A..B", help="the commits; of this folder's repository, or git:PATH@A..B"
    )

    tracking = commands.add_parser("track", help="measure new kernels and commits, as a web site")
    _add_track(tracking)
    pricing = commands.add_parser("features", help="what each feature of a kernel costs an I/O")
    _add_features(pricing)

    running = commands.add_parser("run", help="run rungs on this machine, with ioloop's report")
    tracing = commands.add_parser("trace", help="show the path of one I/O on this machine")
    scaling = commands.add_parser("scale", help="measure on 1 to N CPUs of this machine")
    for command in (running, tracing, scaling):
        command.add_argument("kernel", choices=("host",), metavar="host")
    running.add_argument(
        "--seconds", type=_number(1, 86400, "seconds"), default=3, metavar="N",
        help="how long each rung runs (default: 3)",
    )  # fmt: skip
    scaling.add_argument("--op", choices=OPS, default="read", help="default: read")
    scaling.add_argument(
        "--bs", type=_block_size, default=4096, metavar="SIZE", help="bytes per I/O (default: 4k)"
    )
    scaling.add_argument("--json", metavar="FILE", type=Path, help=FILES["json"])
    scaling.add_argument("--svg", metavar="FILE", type=Path, help="the figures as a chart")

    for command in (measuring, profiling, comparing, bisecting, following, running, tracing):
        _add_scenario(command)
    for command in (measuring, profiling, comparing, bisecting, following):
        _add_machine(command)
    for command in (measuring, profiling, comparing, bisecting, following, pricing):
        _add_recipe(command)
    for command in (measuring, profiling, comparing, following):
        _add_range(command)
    for command in (measuring, profiling, comparing, bisecting, following, tracking, pricing):
        _add_scheduler(command)
    for name in ("json", "markdown"):
        following.add_argument(f"--{name}", metavar="FILE", type=Path, help=FILES[name])
    for command in (measuring, profiling, running, tracing):
        command.add_argument(
            "--on-cpu", type=_number(0, 1 << 16, "CPUs"), metavar="N",
            help="the CPU of this machine to measure on (default: an isolated one, or the last)",
        )  # fmt: skip
    for command in (measuring, profiling, comparing):
        command.add_argument(
            "--cpus", default=1, type=_number(1, 8, "CPUs"), metavar="N",
            help="also run each rung on N CPUs at once, and list the cache lines that they share",
        )  # fmt: skip
    measuring.add_argument(
        "--passes", type=_number(6, 10000, "passes"), default=host.PASSES, metavar="N",
        help="samples of each rung on this machine (default: %(default)s)",
    )  # fmt: skip
    profiling.add_argument(
        "--data", metavar="FILE", type=Path, default=Path("perf.data"),
        help="file for perf's record (default: %(default)s)",
    )  # fmt: skip
    profiling.add_argument(
        "--inline", action="store_true",
        help="also show inlined functions and source lines; needs the kernel's debug information",
    )  # fmt: skip

    for command in (comparing, bisecting, following):
        _add_boots(command, noise.FEWEST)
        command.add_argument(
            "--all", action="store_true",
            help="show every rung, with the functions of each difference, and the facts",
        )  # fmt: skip
    for command in (comparing, bisecting):
        command.add_argument(
            "--top", type=_number(1, 10000, "functions"), metavar="N",
            help="functions to show: of the largest difference (default: 5 or more), or with --all"
            " of each (default: 15)",
        )  # fmt: skip
    for command in (profiling, comparing, bisecting, following):
        command.add_argument(
            "--layers", metavar="FILE", type=Path,
            help="use this table of layers instead of iopath's",
        )  # fmt: skip
    for command in (measuring, profiling, comparing, bisecting):
        files = command.add_argument_group("files to write")
        for name, what in FILES.items():
            files.add_argument(f"--{name}", metavar="FILE", type=Path, help=what)
    for command in commands.choices.values():
        command.add_argument("--quiet", action="store_true", help="suppress progress messages")
    return made


def _add_scheduler(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scheduler", metavar="ADDRESS",
        help="prepare kernels and run guests on the workers of this dask scheduler, e.g."
        " tcp://host:8786",
    )  # fmt: skip


def _add_arch(parser: argparse._ActionsContainer, what: str) -> None:
    parser.add_argument(
        "--arch", choices=list(BY_DEBIAN), default=X86_64.debian, help=f"{what} (default: amd64)"
    )


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    building = parser.add_argument_group("kernels of a git repository")
    _add_arch(building, "architecture to build them for")
    building.add_argument(
        "--suite", choices=list(apt.SUITES), default=kernelbuild.SUITE, metavar="SUITE",
        help="suite of Debian whose compiler builds them (default: %(default)s)",
    )  # fmt: skip
    building.add_argument(
        "--config", default=kernelbuild.MINIMAL, metavar="CONFIG",
        help="minimal (default), debian:SERIES without modules and debug information, or a file",
    )  # fmt: skip
    building.add_argument(
        "--kconfig", action="append", default=[], metavar="FOO=y",
        help="an option to set besides; FOO=n to leave it out",
    )  # fmt: skip


def _add_range(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--every", type=_number(1, 1 << 20, "commits"), default=1, metavar="N",
        help="of a range git:PATH@A..B, take each Nth commit and the last",
    )  # fmt: skip
    parser.add_argument(
        "--merges", action="store_true", help="of a range, take the merges into its line alone"
    )


def _add_track(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="TOML: what is watched")
    parser.add_argument(
        "--output", metavar="DIR", type=Path, help="the site (default: FILE without its suffix)"
    )
    parser.add_argument("--again", action="store_true", help="also try what failed before")
    parser.add_argument(
        "--mail", metavar="FILE", type=Path, help="write the text on new steps here, not to stdout"
    )
    parser.add_argument("--kcidb", metavar="FILE", type=Path, help="write all figures for KCIDB")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="write a chart to FILE")


def _add_features(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    parser.add_argument(
        "--feature", action="append", default=[], metavar="NAME",
        help="only these features, wildcards allowed (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--with", dest="together", action="append", default=[], metavar="A,B",
        help="also measure these features together",
    )  # fmt: skip
    parser.add_argument(
        "--features", type=Path, metavar="FILE", help="also know the features in this TOML file"
    )
    parser.add_argument("--list", action="store_true", help="list the features instead")
    parser.add_argument(
        "--rung", action="append", default=[], metavar="NAME",
        help="measure all features on these rungs (default: those that suit each)",
    )  # fmt: skip
    parser.add_argument("--op", choices=OPS, action="append", help="only this operation")
    _add_boots(parser, noise.FEWEST)
    _add_seed(parser)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the costs to FILE")
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write the tables to FILE")
    parser.add_argument("--svg", metavar="FILE", type=Path, help="write a chart to FILE")


def _add_boots(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--boots", default=default, type=_number(1, 100, "boots"), metavar="N",
        help="boot each kernel N times, with different seeds (default: %(default)s)",
    )  # fmt: skip


def _add_seed(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--seed", default=Machine().seed, type=_number(0, (1 << 31) - 1, "seeds"), metavar="N",
        help="seed of everything random in the guest (default: %(default)s)",
    )  # fmt: skip


def _percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"invalid percentage '{text}': must be 0 or more")
    return value


def _add_scenario(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rung", action="append", default=[], metavar="NAME",
        help="only these rungs, wildcards allowed; iopath rungs lists all",
    )  # fmt: skip
    parser.add_argument("--op", choices=OPS, action="append", help="only this operation")
    parser.add_argument(
        "--bs", type=_block_size, action="append", metavar="SIZE",
        help="bytes per I/O, 512 to 1m (default: 4k); several sizes give several rows",
    )  # fmt: skip
    parser.add_argument("--no-fill", action="store_true", help="load blknull with zero_fill=0")
    parser.add_argument("--incoherent", action="store_true", help="load biogen with coherent=0")


def _add_machine(parser: argparse.ArgumentParser) -> None:
    default = Machine()
    guest = parser.add_argument_group("the guest")
    guest.add_argument(
        "--rungs", type=Path, metavar="FILE",
        help="also know the rungs in this TOML file; without --rung, measure these alone",
    )  # fmt: skip
    guest.add_argument(
        "--cmdline", default=default.cmdline, metavar="TEXT",
        help="kernel command line (default: '%(default)s')",
    )  # fmt: skip
    guest.add_argument(
        "--cpu", default=default.cpu, metavar="MODEL",
        help="CPU as QEMU names it (default: max; of arm64, neoverse-n1; of riscv64, rv64)",
    )  # fmt: skip
    guest.add_argument(
        "--accel", choices=("tcg", "kvm"), default=default.accel,
        help="tcg: emulation, which counts instructions (default); kvm: time instead",
    )  # fmt: skip
    guest.add_argument(
        "--memory", default=default.memory, type=_number(256, 1 << 16, "MiB"), metavar="MIB",
        help="memory in MiB (default: %(default)s)",
    )  # fmt: skip
    _add_seed(guest)
    guest.add_argument(
        "--time-limit", default=default.time_limit, type=_number(1, 86400, "seconds"),
        metavar="SECONDS", help="seconds of real time that a boot may take (default: %(default)s)",
    )  # fmt: skip
