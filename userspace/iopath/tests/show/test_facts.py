# SPDX-License-Identifier: GPL-2.0
"""What is said of the kernels above the figures."""

from helpers.pairs import PLAIN, two
from iopath.results.result import parse
from iopath.show.facts import facts


def test_the_heading_of_a_real_time_kernel_says_so() -> None:
    whole = two(PLAIN)
    whole["kernels"][1]["config"] |= {"PREEMPT_RT": "y", "PREEMPT_DYNAMIC": "y"}
    texts = dict(facts(parse(whole)))
    assert "; PREEMPT_RT, HZ=250" in texts["new"]
    assert "; PREEMPT, HZ=250" in texts["old"]
