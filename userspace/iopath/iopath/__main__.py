# SPDX-License-Identifier: GPL-2.0
"""The entry point of the command. Ctrl-C ends it with one line, also during imports."""

import gc
import sys

_ALLOCATIONS = 500_000  # between two looks for garbage: profiles are large, and stay


def main() -> int:
    gc.set_threshold(_ALLOCATIONS)
    try:
        from iopath.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("iopath: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
