# SPDX-License-Identifier: GPL-2.0
"""What perf prints, and the profile of it."""

from pathlib import Path

from iopath.host import perf
from iopath.results.layers import Layers
from iopath.results.profiles import SampledProfile

# perf.


SCRIPT = """\
ioloop  500000
        ffffffff81000010 do_syscall_64+0x10 ([kernel.kallsyms])
                  401234 sync_loop_0+0x4 (/usr/bin/ioloop)

ioloop  500000
        ffffffffc0000010 blknull_submit_bio+0x3 ([blknull])
        ffffffff81000010 do_syscall_64+0x10 ([kernel.kallsyms])

swapper 500000
        ffffffff81000020 default_idle ([kernel.kallsyms])

biogen/1 1000000
        ffffffffc0001010 biogen_io_submit ([biogen])
"""


def a_profile() -> SampledProfile:
    stacks = list(perf._stacks(SCRIPT.splitlines()))
    return perf._profile("cpu-clock", Path("perf.data"), stacks, 1000.0, Layers())
