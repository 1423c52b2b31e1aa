# SPDX-License-Identifier: GPL-2.0
"""What perf prints."""

from helpers.sampled import a_profile


def test_perf_shares_out_the_time() -> None:
    found = a_profile()
    assert {row.name: row.ns for row in found.functions} == {
        "biogen_io_submit": 500.0, "do_syscall_64": 250.0, "blknull_submit_bio": 250.0,
    }  # fmt: skip
    assert found.layers == {"driver": 250.0, "biogen": 500.0, "system call entry": 250.0}
    assert ("do_syscall_64;blknull_submit_bio [blknull]", 250.0) in found.stacks
    assert sum(part for _, part in found.stacks) == 1000.0
