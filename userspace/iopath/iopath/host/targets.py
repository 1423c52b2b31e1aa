# SPDX-License-Identifier: GPL-2.0
"""Check the devices of the running machine before they are measured."""

import fcntl
import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

from iopath.base.errors import UsageError
from iopath.rungs.builtin import BIOGEN
from iopath.rungs.runs import Run

# struct biogen_info and the command that fills it (kernel/include/uapi/biogen.h).
_INFO = struct.Struct("=QIII20x")
_BIOGEN_INFO = 2 << 30 | _INFO.size << 16 | 0xBF << 8 | 2
_WRITE = 1


def check(runs: Sequence[Run]) -> None:
    """Check that the devices of *runs* exist and are blknull's: data on others would be lost."""
    for device in dict.fromkeys(path for run in runs for path in run.rung.paths):
        writing = any(run.op == "write" for run in runs if device in run.rung.paths)
        try:
            mode = Path(device).stat().st_mode
        except OSError:
            raise UsageError(
                f"{device} does not exist: load the modules with `make load`, or with `modprobe"
                " blknull nr_devices=3 zero_fill=1,0,1 mode=bio,bio,mq; modprobe biogen"
                " device=/dev/blknull1 write=1`"
            ) from None
        if not os.access(device, os.R_OK | (os.W_OK if writing else 0)):
            raise UsageError(f"cannot open {device}: run as root, or join the group disk")
        if device == BIOGEN:
            _check_biogen(writing)
        elif not stat.S_ISBLK(mode):
            raise UsageError(f"{device} is not a block device")


def _check_biogen(writing: bool) -> None:
    try:
        with Path(BIOGEN).open("rb", buffering=0) as file:
            answer = fcntl.ioctl(file, _BIOGEN_INFO, bytes(_INFO.size))
    except OSError as error:
        raise UsageError(f"{BIOGEN}: {error.strerror}") from error
    _, flags, _, number = _INFO.unpack(answer)
    target = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve().name
    if not target.startswith("blknull"):
        raise UsageError(
            f"{BIOGEN} is bound to {target}, whose data would be lost: bind it to a blknull device"
        )
    if writing and not flags & _WRITE:
        raise UsageError(f"{BIOGEN} is read-only: load biogen with write=1, or add --op read")
