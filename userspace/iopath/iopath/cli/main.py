# SPDX-License-Identifier: GPL-2.0
"""The command iopath: parse the command line, run the command, and end with its exit status."""

import itertools
import signal
import sys
from collections.abc import Sequence

from iopath.base import stdout
from iopath.base.errors import IopathError, Regressed, Stopped, UsageError
from iopath.cli import parser
from iopath.cli.work import Work

CANNOT_TELL = 125  # exit status: git bisect run skips the commit


def _interrupted(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _judges(argv: Sequence[str]) -> bool:
    """Whether an exit status of 1 or 2 could be mistaken for a verdict, also if the option that
    asks for a verdict is abbreviated, which is an error."""
    own = itertools.takewhile(lambda word: word != "--", argv)  # what follows is a program's
    words = [word.partition("=")[0] for word in own]
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
        with stdout.writing():
            args = parser.parser().parse_args(argv)
        signal.signal(signal.SIGTERM, _interrupted)
        taken = stdout.NAME in vars(args).values()
        return parser.load(args.command).run(args, Work(argv, quiet=args.quiet, taken=taken))
    except SystemExit as exit_:
        if judging and exit_.code == UsageError.status:
            return CANNOT_TELL
        raise
    except Regressed as error:
        print(f"iopath: {error}", file=sys.stderr)
        return error.status
    except IopathError as error:
        print(f"iopath: {error}", file=sys.stderr)
        return CANNOT_TELL if judging else error.status
    except (KeyboardInterrupt, Stopped):
        print("iopath: interrupted", file=sys.stderr)
        return 130
    except Exception:
        if not judging:
            raise
        import traceback

        traceback.print_exc()
        return CANNOT_TELL
