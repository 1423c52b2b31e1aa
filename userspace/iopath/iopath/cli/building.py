# SPDX-License-Identifier: GPL-2.0
"""Options for how kernels of a git repository are built."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from iopath.base.arch import BY_DEBIAN, X86_64
from iopath.base.errors import UsageError
from iopath.cli.options import add_arch
from iopath.kernels import apt
from iopath.kernels import recipe as recipes

if TYPE_CHECKING:
    from iopath.kernels.built import Built
    from iopath.measure.session import Session


@dataclass(frozen=True)
class Building:
    """Debian's name of the architecture, the suite, the configuration, and further options."""

    arch: str
    suite: str
    config: str
    options: Sequence[str]

    @staticmethod
    def add(parser: argparse.ArgumentParser) -> None:
        group = parser.add_argument_group("kernels of a git repository")
        add_arch(group, "architecture to build them for")
        group.add_argument(
            "--suite", choices=list(apt.SUITES), default=recipes.SUITE, metavar="SUITE",
            help="suite of Debian whose compiler builds them (default: %(default)s)",
        )  # fmt: skip
        group.add_argument(
            "--config", default=recipes.MINIMAL, metavar="CONFIG",
            help="minimal (default), debian:SERIES without modules and debug information, a target"
            " of make like defconfig, or a file; +FILE merges a fragment over it",
        )  # fmt: skip
        group.add_argument(
            "--kconfig", action="append", default=[], metavar="FOO=y",
            help="also set this option; FOO=n leaves it out",
        )  # fmt: skip

    @classmethod
    def read(cls, args: argparse.Namespace) -> Self:
        return cls(args.arch, args.suite, args.config, args.kconfig)

    def check(self, names: Sequence[str]) -> None:
        """Refuse an architecture if no kernel *names* is built for it."""
        from iopath.kernels import finder  # what only lists loads no source

        if self.arch != X86_64.debian and not any(finder.has(one, "commit") for one in names):
            raise UsageError(
                f"--arch {self.arch}: only kernels of a git repository are built for it; Debian's"
                f" have it in their name, like debian:6.12-{self.arch}"
            )

    def recipe(self, session: "Session") -> recipes.Recipe:
        return recipe(session, self.suite, self.config, self.options, self.arch)


def recipe(
    session: "Session", suite: str, config: str, options: Sequence[str], arch: str
) -> recipes.Recipe:
    """How kernels are built with the compiler of a *suite*."""

    def build(name: str) -> "Built":
        with session.reporter.task(name) as step:
            return session.build(session.find(name), step)

    base, own = recipes.configuration(config, build)
    return recipes.recipe(suite, base, [*own, *options], BY_DEBIAN[arch])
