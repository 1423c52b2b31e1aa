# SPDX-License-Identifier: GPL-2.0
"""The running machine: time, its counters, perf."""
