# SPDX-License-Identifier: GPL-2.0
"""Where the command begins: Ctrl-C ends it with one line, also while its parts are loaded."""

import sys


def main() -> int:
    try:
        from iopath import cli

        return cli.main()
    except KeyboardInterrupt:
        print("iopath: interrupted", file=sys.stderr)
        return 130
