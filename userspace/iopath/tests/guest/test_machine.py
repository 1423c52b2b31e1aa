# SPDX-License-Identifier: GPL-2.0
"""The emulator."""

from pathlib import Path

import pytest

from iopath.base.arch import X86_64
from iopath.base.errors import IopathError
from iopath.guest.machine import Qemu


def test_one_that_is_too_old_is_refused(tmp_path: Path) -> None:
    """It lacks the machines that guests run on."""
    program = tmp_path / "qemu"
    program.write_text("#!/bin/sh\necho QEMU emulator version 7.1.0\n")
    program.chmod(0o755)
    with pytest.raises(IopathError, match=r"is version 7\.1\.0: 7\.2 or newer is needed"):
        Qemu.started_by((str(program),), program, X86_64)
