# SPDX-License-Identifier: GPL-2.0
"""Where kernels come from: each file finds the kernels whose names begin with its own name."""
