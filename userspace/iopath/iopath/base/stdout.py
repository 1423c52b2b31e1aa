# SPDX-License-Identifier: GPL-2.0
"""The standard output, which is "-" where a file is named."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iopath.base.errors import NoOutput

NAME = Path("-")


@contextmanager
def writing() -> Iterator[None]:
    """What the block writes to the standard output arrives there, or NoOutput is raised."""
    if sys.stdout is None:
        raise NoOutput("standard output: it is closed")
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        # What Python still holds would be written again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise NoOutput(f"standard output: {error.strerror}") from None
