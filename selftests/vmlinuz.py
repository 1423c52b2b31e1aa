# SPDX-License-Identifier: GPL-2.0
"""Print where the image of a kernel is, for tests that boot one by themselves: vmlinuz.py KERNEL"""

import sys

from rich.console import Console

from iopath.build import build
from iopath.cache import Cache, cache_root
from iopath.measure import Session
from iopath.progress import Reporter

session = Session(Cache(cache_root()), Reporter(Console(stderr=True)))
kernel = session.find(sys.argv[1])
print(build(kernel, session.cache, session.apt, lambda what, part: None).vmlinuz)
