# SPDX-License-Identifier: GPL-2.0
"""userspace/setup.sh waits while another apt is at work. Its apt has folders of its own, in which
the package make is missing, and only downloads it."""

import fcntl
import os
import re
import subprocess
from pathlib import Path
from typing import TextIO

import pytest

from iopath.base.sources import source_root

CONFIG = """\
Dir::State::status "{0}/status";
Dir::State::lists "{0}/lists";
Dir::Cache "{0}/cache";
APT::Sandbox::User "root";
APT::Get::Download-Only "true";
"""


def held(path: Path) -> TextIO:
    """The file *path*, locked as apt does it."""
    file = path.open("a")
    fcntl.lockf(file, fcntl.LOCK_EX)
    return file


@pytest.mark.skipif(os.geteuid() != 0, reason="apt needs root")
def test_locks_are_waited_for(tmp_path: Path) -> None:
    """dpkg's, and that of the lists, which are empty at first."""
    known = Path("/var/lib/dpkg/status").read_text()
    assert "\nPackage: make\n" in known
    (tmp_path / "status").write_text(re.sub(r"(?m)^Package: make\n(.+\n)+\n", "", known))
    for folder in ("lists/partial", "cache/archives/partial"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(CONFIG.format(tmp_path))
    places = {"APT_CONFIG": f"{tmp_path}/apt.conf", "DPKG_ADMINDIR": f"{tmp_path}"}
    locks = [held(tmp_path / name) for name in ("lock-frontend", "lists/lock")]
    with subprocess.Popen(
        [source_root() / "userspace/setup.sh", "userspace"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | places,
    ) as setup:  # fmt: skip
        assert setup.stdout
        assert setup.stdout.readline() == "installing: make\n"
        for lock in locks:
            waits = f"waiting for the lock {lock.name}. It is held by process "
            assert setup.stdout.readline().startswith(waits)
            lock.close()
        assert setup.stdout.read() == ""
    assert setup.returncode == 0
    assert list((tmp_path / "cache/archives").glob("make_*.deb"))
