# SPDX-License-Identifier: GPL-2.0
"""What compare says about results, and when its gates open: on made-up results."""

from helpers.examples import a_record, a_result
from iopath.compare.compare import join
from iopath.compare.exact import compare
from iopath.results.layers import Layers
from iopath.results.result import parse


def test_kernels_that_are_measured_and_files_keep_their_order() -> None:
    """The others are compared with the first name, whether it is a file or not."""
    results = {
        name: parse(a_result([a_record(kernel, "x", "read", 512)]))
        for name, kernel in (("tree:b", "tree:b"), ("debian:a", "debian:a"), ("dir/c.json", "c"))
    }
    for names in (["tree:b", "dir/c.json", "debian:a"], ["dir/c.json", "debian:a", "tree:b"],
                  ["debian:a", "tree:b", "dir/c.json"]):  # fmt: skip
        whole = join([(name, results[name]) for name in names])
        found = whole.names
        assert found == [name if ":" in name else "c" for name in names]
        assert [record.kernel.name for record in whole.results] == found
        assert compare(whole, Layers()).base == found[0]
