#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Load the modules that were built here into the running kernel, with the
# parameters that iopath measures with, or unload them: load.sh load | unload
set -eu
cd "$(dirname "$0")/.."

die() {
	echo "iopath: $*" >&2
	exit 1
}

loaded() {
	[ -d "/sys/module/$1" ]
}

load() {
	for module in blknull biogen; do
		! loaded $module || die "$module is loaded already: make unload first"
		[ -f kernel/$module/$module.ko ] || die "kernel/$module/$module.ko is missing: make modules"
	done
	# A kernel without the module has it built in, or says so below.
	modprobe -q configfs || true
	insmod kernel/blknull/blknull.ko nr_devices=3 zero_fill=1,0,1 mode=bio,bio,mq \
		iostats=0,0,1 poll_queues=0,0,1 hw_queue_depth=64,64,10240 || refused blknull
	insmod kernel/biogen/biogen.ko device=/dev/blknull1 write=1 || {
		rmmod blknull
		refused biogen
	}
	tries=50
	for node in /dev/blknull0 /dev/blknull1 /dev/blknull2 /dev/biogen0; do
		while [ ! -e $node ]; do
			tries=$((tries - 1))
			[ $tries -gt 0 ] || die "the modules are loaded, but $node does not appear"
			sleep 0.1
		done
	done
	cat <<-END
	Loaded: /dev/blknull0, /dev/biogen0 on /dev/blknull1, and /dev/blknull2 in mode mq. What to do next:
	    build/bin/ioloop --filename=/dev/blknull0 --ioengine=sync --rw=read --runtime=5
	    build/bin/iopath measure host
	    make unload
	END
}

refused() {
	if [ -d /sys/firmware/efi ] && grep -qs '\[\(integrity\|confidentiality\)\]' /sys/kernel/security/lockdown; then
		die "the kernel takes signed modules only: see Documentation/install.rst"
	fi
	die "the kernel does not take $1.ko: see dmesg"
}

unload() {
	for module in biogen blknull; do
		! loaded $module || rmmod $module || die "$module is in use: see lsof /dev/blknull* /dev/biogen*"
	done
}

[ "$(id -u)" = 0 ] || die "loading modules takes root: sudo make ${1-load}"
case ${1-} in
load) load ;;
unload) unload ;;
*)
	echo "usage: load.sh load | unload" >&2
	exit 2
	;;
esac
