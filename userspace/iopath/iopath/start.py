# SPDX-License-Identifier: GPL-2.0
"""The entry point of the command. Ctrl-C ends it with one line, also during imports."""

import sys


def main() -> int:
    try:
        from iopath import cli

        return cli.main()
    except KeyboardInterrupt:
        print("iopath: interrupted", file=sys.stderr)
        return 130
