# SPDX-License-Identifier: GPL-2.0
"""How many I/Os a program says it did: of programs whose reports are known."""

import re
from pathlib import PurePosixPath

# What each prints, in the standard output or error, as groups of numbers that add up.
_REPORTS = {
    "fio": (
        r"issued rwts: total=(\d+),(\d+),(\d+),",  # reads, writes and trims of a job
        r'"(?:read|write|trim)" : \{[^{}]*?"total_ios" : (\d+)',  # --output-format=json
    ),
    "dd": (r"^(\d+)\+(\d+) records in$",),
    "ioloop": (
        r"^ +\d+ +[\d-]+ +\S+ +(\d+) +[\d.]+ ",  # a job
        r'"ios": (\d+), "bytes":',  # --output-format=json
    ),
}


def ios(path: str, printed: str) -> int:
    """The I/Os by what the program of this *path* printed; 0 if it does not say them."""
    for pattern in _REPORTS.get(PurePosixPath(path).name, ()):
        if found := re.findall(pattern, printed, re.MULTILINE):
            rows = ((one,) if isinstance(one, str) else one for one in found)
            return sum(int(number) for row in rows for number in row)
    return 0
