# SPDX-License-Identifier: GPL-2.0
"""What all rooms need: the cache, processes, architectures, progress, sources."""
