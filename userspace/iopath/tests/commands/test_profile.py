# SPDX-License-Identifier: GPL-2.0
"""The command profile, where it refuses."""

import re

from helpers.command import Command


def test_a_profile_asks_for_a_rung(listed: Command) -> None:
    said = listed.fails("profile", "debian:6.1", status=2)
    assert re.match(r"iopath: profile: name a rung, e.g. --rung dio.pread: all 20 rungs are", said)
