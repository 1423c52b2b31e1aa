# SPDX-License-Identifier: GPL-2.0
"""Kernels and rungs in, a result out."""
