# SPDX-License-Identifier: GPL-2.0
"""The types of options, and options that several commands have."""

import argparse
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from pathlib import Path

from iopath.base.arch import BY_DEBIAN, X86_64

Options = argparse._ActionsContainer  # a parser, or a group of its options


def block_size(text: str) -> int:
    match = re.fullmatch(r"(\d+)([km]?)", text.lower())
    size = int(match.group(1)) << {"": 0, "k": 10, "m": 20}[match.group(2)] if match else 0
    if not 512 <= size <= 1 << 20 or size % 512:
        raise ArgumentTypeError(
            f"invalid block size '{text}': must be a multiple of 512, from 512 to 1m"
        )
    return size


def number(low: int, high: int, unit: str) -> Callable[[str], int]:
    """A parser of a number of *unit*."""

    def parse(text: str) -> int:
        if not text.isdigit() or not low <= int(text) <= high:
            raise ArgumentTypeError(
                f"invalid number of {unit} '{text}': must be from {low} to {high}"
            )
        return int(text)

    return parse


def percent(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise ArgumentTypeError(f"invalid percentage '{text}': must be 0 or more")
    return value


def in_units(units: Mapping[str, int], example: str) -> Callable[[str], int]:
    """A parser of a number with one of *units*."""

    def parse(text: str) -> int:
        match = re.fullmatch(rf"(\d+)([{''.join(units)}])", text)
        if not match:
            raise ArgumentTypeError(f"invalid value '{text}': must be like {example}")
        return int(match[1]) * units[match[2]]

    return parse


def add_file(parser: Options, name: str, about: str) -> None:
    """A file that is read or written."""
    parser.add_argument(f"--{name}", metavar="FILE", type=Path, help=about)


def add_arch(parser: Options, what: str) -> None:
    parser.add_argument(
        "--arch", choices=list(BY_DEBIAN), default=X86_64.debian, help=f"{what} (default: amd64)"
    )


def add_all(parser: Options) -> None:
    parser.add_argument(
        "--all", action="store_true",
        help="show every rung, the functions of each difference, and what was measured",
    )  # fmt: skip


def add_top(parser: Options, about: str, default: int | None = None) -> None:
    parser.add_argument(
        "--top", type=number(1, 10000, "functions"), default=default, metavar="N", help=about
    )


def add_layers(parser: Options) -> None:
    add_file(parser, "layers", "use this table of layers instead of iopath's")
