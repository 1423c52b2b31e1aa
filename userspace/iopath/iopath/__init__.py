# SPDX-License-Identifier: GPL-2.0
"""What one I/O costs in the Linux kernel above the driver."""

__version__ = "0.2.0"
