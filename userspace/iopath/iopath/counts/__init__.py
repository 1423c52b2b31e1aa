# SPDX-License-Identifier: GPL-2.0
"""From the plugin's output and the guest's memory to functions, layers and lines."""
