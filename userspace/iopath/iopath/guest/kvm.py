# SPDX-License-Identifier: GPL-2.0
"""Whether guests can run by KVM."""

import errno
import os
from pathlib import Path

from iopath.base.errors import IopathError

NO_START = "--accel kvm: /dev/kvm exists, but guests do not start"
_START = 15  # seconds until the guest must have said something


def need() -> None:
    """Raise IopathError if there is no KVM. Whether it runs guests is only known once one
    starts."""
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        what = {
            errno.ENOENT: "there is no /dev/kvm: enable virtualisation in the firmware",
            errno.EACCES: "no permission for /dev/kvm: run as root, or join the group kvm",
        }.get(error.errno or 0, f"/dev/kvm: {error.strerror}")
        raise IopathError(f"--accel kvm: {what}; --accel tcg needs none") from error


def check_started(log: Path, seconds: float) -> None:
    """Raise IopathError if a guest should have printed something after *seconds* and has not."""
    said = log.read_text(errors="replace") if log.exists() else ""
    if "KVM internal error" in said or seconds > _START:
        errors = [line for line in said.splitlines() if "error" in line]
        raise IopathError(f"{NO_START}: {(errors or [f'no output for {_START} s'])[0]}")
