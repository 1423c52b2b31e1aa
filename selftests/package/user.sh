#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# What a user does in a Debian root, as root: load the modules from the sources;
# install the packages, load the modules, run loops, measure, attach perf, and
# remove all of it. Prints TAP.
cd /root || exit 1
log=/tmp/log
tests=0

# check NAME COMMAND...: whether the command succeeds
check() {
	local name=$1 status

	shift
	"$@" >$log 2>&1 </dev/null
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

# fails COMMAND...: whether it does
fails() {
	! "$@"
}

# whole COMMAND...: whether it succeeds and skips no test; prints what did not pass
whole() {
	"$@" >/tmp/said 2>&1
	local status=$?

	grep -E "^not ok|^Bail|^#|# SKIP" /tmp/said
	[ $status -eq 0 ] && ! grep -q "# SKIP" /tmp/said
}

# Where nothing is installed. The loop in the file is of the machine that runs the guest.
bundle=/mnt/iopath-host.sh
if [ -e $bundle ]; then
	check "one file measures this machine" says "measuring: 6 samples of each rung" \
		sh -c "sh $bundle >bundled.tar"
	check "it built and loaded the modules" fails grep -qE "cannot|without" /tmp/said
	check "and unloaded them" test ! -e /sys/module/biogen -a ! -e /sys/module/blknull
fi
# From the sources.
tar -xf /mnt/iopath_*.tar.xz
sampled=cpu-clock
# make check runs these on the machine that runs the guests.
if [ "$(uname -m)" != x86_64 ]; then
	sampled="(cpu-clock|cycles)" # QEMU has a PMU there
	modprobe loop
	check "the tests of the loops" whole iopath-*/userspace/ioloop/tests/run.sh /root
fi
check "make load" says "^Loaded: /dev/blknull0, /dev/biogen0 on /dev/blknull1," make -s -C iopath-* load
check "a loaded module is not loaded twice" says "loaded already" fails make -s -C iopath-* load
check "what make load promises is there" test -b /dev/blknull0 -a -c /dev/biogen0
check "make unload" make -s -C iopath-* unload
check "the modules are gone" test ! -e /sys/module/biogen -a ! -e /sys/module/blknull
# From the packages.
check "install" dpkg -i /mnt/iopath_*.deb /mnt/iopath-dkms_*.deb
check "the tutorial and its configuration" \
	test -f /usr/share/doc/iopath/tutorial.rst* -a -f /usr/share/iopath/minimal.config
[ ! -e $bundle ] ||
	check "its result is read" says "^dio.pread " iopath measure host --from bundled.tar
check "DKMS built the modules" says "installed" dkms status
cp /usr/share/doc/iopath-dkms/examples/iopath.conf /etc/modprobe.d
check "modprobe loads both" modprobe biogen
check "udev is done" udevadm settle
for node in /dev/blknull0 /dev/blknull1; do
	check "$node is root's and the disk group's" \
		says "root disk 660" stat -c "%U %G %a" $node
done
check "/dev/biogen0 is root's alone" says "root root 600" stat -c "%U %G %a" /dev/biogen0
check "a loop on blknull" says "us/I/O" \
	ioloop --filename=/dev/blknull0 --ioengine=libaio --direct=1 --rw=write \
	--time_based --runtime=200ms
check "a loop on biogen" says "us/I/O" \
	ioloop --filename=/dev/biogen0 --ioengine=sync --rw=read \
	--time_based --runtime=200ms
# All that host.rst and the README say of the running machine.
while read -r line; do
	check "$line" sh -c "$line"
	cat $log >>said
done </mnt/commands
check "that there is no PMU was said" grep -q "no PMU that counts this" said
check "a comparison had a verdict" grep -qE ": 3 rungs: [0-9]+ (longer|shorter|the same)" said
check "perf sampled" grep -qE "samples of $sampled in perf.data" said
check "perf saw the path" grep -qE "blkdev_|iov_iter_|gup_" said
check "the path of one I/O was shown" grep -qE "\| +blknull_" said
check "tracing is as it was" says "^nop$" cat /sys/kernel/tracing/current_tracer
check "two CPUs were measured" grep -qE "^total +" said
check "the modules unload" modprobe -r biogen blknull
check "remove" dpkg --purge iopath iopath-dkms
check "nothing is left of the packages" \
	says "^0$" sh -c 'find /usr /etc /var/lib/dkms /opt -path "*iopath*" ! -path "*/modprobe.d/*" | tee /dev/stderr | wc -l'
check "nor of the modules" \
	says "^0$" sh -c 'find /lib/modules/ -name "biogen.ko*" -o -name "blknull.ko*" | wc -l'
check "the kernel has nothing to complain of" \
	says "^0$" sh -c 'dmesg | grep -cE "WARNING:|BUG:|Oops|blocked for more" || true'
echo "1..$tests"
