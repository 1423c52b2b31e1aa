# SPDX-License-Identifier: GPL-2.0
"""From a kernel's name to a built kernel and its modules."""
