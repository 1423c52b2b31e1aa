#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a user does with the Debian packages, in a Debian root as root: install
# them, load the modules, run loops, measure, attach perf, and remove all of it.
# Prints TAP.
cd /root || exit 1
log=/tmp/log
tests=0

# check NAME COMMAND...: whether the command succeeds
check() {
	local name=$1 status

	shift
	"$@" >$log 2>&1
	status=$?
	tests=$((tests + 1))
	if [ $status -eq 0 ]; then
		echo "ok $tests - $name"
	else
		echo "not ok $tests - $name"
		echo "# $* ended with $status"
		tail -n 25 $log | sed 's/^/# /'
	fi
}

# says TEXT COMMAND...: whether the command succeeds and prints TEXT
says() {
	local text=$1

	shift
	"$@" >/tmp/said 2>&1
	local status=$?

	cat /tmp/said
	[ $status -eq 0 ] && grep -q -- "$text" /tmp/said
}

packages="iopath iopath-dkms"
check "install" dpkg -i /mnt/iopath_*.deb /mnt/iopath-dkms_*.deb
check "DKMS built the modules" says "installed" dkms status
cp /usr/share/doc/iopath-dkms/examples/iopath.conf /etc/modprobe.d
check "modprobe loads both" modprobe biogen
check "udev is done" udevadm settle
for node in /dev/blknull0 /dev/blknull1 /dev/biogen0; do
	check "$node is root's and the disk group's" \
		says "root disk 660" stat -c "%U %G %a" $node
done
check "a loop on blknull" says "us/I/O" \
	ioloop --filename=/dev/blknull0 --ioengine=libaio --rw=write --runtime=200ms
check "a loop on biogen" says "us/I/O" \
	ioloop --filename=/dev/biogen0 --ioengine=sync --rw=read --runtime=200ms
check "run" says "us/I/O" iopath run host --rung dio.uring --op read --seconds 1
rungs="--rung syscall --rung gen.sync --rung raw.pread --rung dio.pread --op read --passes 6"
# shellcheck disable=SC2086 # the list is meant to be split
check "measure" says "no PMU" iopath measure host $rungs --json a.json --quiet
# shellcheck disable=SC2086
check "measure again" iopath measure host $rungs --json b.json --quiet
check "compare" says "same\|longer\|shorter" iopath compare a.json b.json
check "perf" says "samples of cpu-clock" \
	iopath profile host --rung dio.pread --op read --data /tmp/perf.data --folded stacks
check "perf saw the path" grep -q "pread.*vfs_read.*blkdev" stacks
check "perf's own record" says "ioloop" perf report -i /tmp/perf.data --stdio
check "the path of one I/O" says "blknull_.*submit_bio" \
	iopath trace host --rung dio.pread --op read
check "tracing is as it was" says "^nop$" cat /sys/kernel/tracing/current_tracer
check "scaling" says "generator *shared *2" iopath scale host --svg scale.svg --quiet
check "the chart" grep -q "</svg>" scale.svg
# shellcheck disable=SC2086
check "remove" dpkg --purge $packages
check "the modules unload" modprobe -r biogen blknull
check "nothing is left of the packages" \
	says "^0$" sh -c 'find / -xdev -path /proc -prune -o -path "*iopath*" ! -path "/root/*" ! -path "/mnt/*" ! -path /etc/modprobe.d/iopath.conf ! -path "/var/cache/*" ! -path "/tmp/*" -print | tee /dev/stderr | wc -l'
check "nor of the modules" \
	says "^0$" sh -c 'find /lib/modules/ -name "biogen.ko*" -o -name "blknull.ko*" | wc -l'
check "the kernel has nothing to complain of" \
	says "^0$" sh -c 'dmesg | grep -cE "WARNING:|BUG:|Oops|blocked for more" || true'
echo "1..$tests"
