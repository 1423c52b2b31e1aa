# SPDX-License-Identifier: GPL-2.0
"""What differs between results, by how much, and why."""
