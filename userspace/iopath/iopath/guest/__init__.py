# SPDX-License-Identifier: GPL-2.0
"""One QEMU machine: start, save, resume, hand over, read."""
