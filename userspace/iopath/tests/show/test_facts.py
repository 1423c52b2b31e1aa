# SPDX-License-Identifier: GPL-2.0
"""What is said of the kernels above the figures."""

import pytest

from helpers.examples import a_record, a_result
from helpers.pairs import PLAIN, two
from iopath.results.result import parse
from iopath.show.facts import facts


def test_the_heading_of_a_real_time_kernel_says_so() -> None:
    whole = two(PLAIN)
    whole["kernels"][1]["config"] |= {"PREEMPT_RT": "y", "PREEMPT_DYNAMIC": "y"}
    texts = dict(facts(parse(whole)))
    assert "; PREEMPT_RT, HZ=250" in texts["new"]
    assert "; PREEMPT, HZ=250" in texts["old"]


@pytest.mark.parametrize(
    ("on", "text"),
    [
        ({"dio.pread": "A", "raw.pread": "A", "mq.pread": "B"}, "A; for mq.*, B"),
        ({"mq.pread": "B", "mq.uring": "B"}, "B"),
        ({"nvme.pread": "B", "nvme.cmd": "C"}, "B; for nvme.cmd, C"),
        ({"syscall": None, "dio.pread": "A"}, "A"),
        ({"syscall": None}, "none"),
        ({"dio.pread": None}, "unknown"),
    ],
)
def test_the_device_is_what_the_rungs_do_io_on(on: dict[str, str | None], text: str) -> None:
    ops = {rung: "none" if rung == "syscall" else "read" for rung in on}
    records = [a_record("k", rung, op, 4096) for rung, op in ops.items()]
    for record in records:
        if device := on[record["rung"]]:
            record["on"] = device
    assert dict(facts(parse(a_result(records))))["device"] == text
