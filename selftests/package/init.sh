#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# PID 1 of a Debian root: user.sh of its second disk is run, its standard output
# is the second serial port.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive
mountpoint -q /proc || mount -t proc proc /proc
mountpoint -q /sys || mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
mount -t tmpfs tmpfs /run
mount -t tracefs tracefs /sys/kernel/tracing
/lib/systemd/systemd-udevd --daemon
mount -o ro /dev/vdb /mnt
/mnt/user.sh >/dev/ttyS1 </dev/null
echo o >/proc/sysrq-trigger
sleep 60
