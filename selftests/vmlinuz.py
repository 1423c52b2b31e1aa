# SPDX-License-Identifier: GPL-2.0
"""Print the path of a kernel's image, for tests that boot one themselves: vmlinuz.py KERNEL"""

import sys

from rich.console import Console

from iopath.base.cache import Cache, cache_root
from iopath.base.progress import Reporter
from iopath.measure.session import Session

session = Session(Cache(cache_root()), Reporter(Console(stderr=True)))
kernel = session.find(sys.argv[1])
print(kernel.prepare(session.cache, session.apt, lambda what, part: None).vmlinuz)
