#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# stack.sh STACK COMMAND...: make two stacked devices of 8 MiB on blknull devices
# that hold data, run COMMAND with their paths in $DISKS, and take them apart
# again. The modules of the stack are loaded; MODULES is the folder of blknull.
#
# No device's data begins where its member does, so that nothing that goes to a
# member by mistake finds what it expects there.
set -eu

stack=$1
shift
MODULES=${MODULES:-/modules}
# There is no udev here to wait for.
export DM_DISABLE_UDEV=1 MDADM_NO_UDEV=1

# members NUMBER MIB [PARAMETERS...]: make that many.
members() {
	number=$1
	mib=$2
	shift 2
	insmod "$MODULES/blknull.ko" "nr_devices=$number" "size_mb=$mib" memory_backed=1 "$@"
}

# until_done COMMAND...: try until it succeeds, at most a minute.
until_done() {
	tries=600
	until "$@" 2>/dev/null; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] || "$@"
		sleep 0.1
	done
}

# md LEVEL MEMBERS OPTIONS...
md() {
	level=$1
	members 4 "$2"
	shift 2
	mkdir -p /run/mdadm
	for index in 0 1; do
		mdadm --create "/dev/md$index" --quiet --run --assume-clean --level="$level" \
			--raid-devices=2 --metadata=1.2 --data-offset=1M "$@" \
			"/dev/blknull$((2 * index))" "/dev/blknull$((2 * index + 1))" >&2
	done
	DISKS="/dev/md0 /dev/md1"
}

md_iostats() {
	for index in 0 1; do
		echo "$1" >"/sys/block/md$index/queue/iostats"
	done
}

# The superblocks are still there.
md_down() {
	mdadm --stop --quiet /dev/md0 /dev/md1
	for index in 0 1 2 3; do
		mdadm --examine "/dev/blknull$index" >/dev/null
	done
}

dm() {
	members 4 5
	for index in 0 1; do
		first=/dev/blknull$((2 * index)) second=/dev/blknull$((2 * index + 1))
		case $1 in
		linear)
			echo "0 8192 linear $first 2048"
			echo "8192 8192 linear $second 2048"
			;;
		striped)
			echo "0 16384 striped 2 128 $first 2048 $second 2048"
			;;
		esac | dmsetup create "stack$index"
	done
	DISKS="/dev/dm-0 /dev/dm-1"
}

bcache_state() {
	[ "$(cat "/sys/block/bcache$1/bcache/state")" = "$2" ]
}

# bcache none|attached|detached: what is with a cache.
bcache() {
	if [ "$1" = none ]; then
		members 2 9
		make-bcache --data_offset 2048 -B /dev/blknull0 /dev/blknull1 >/dev/null
	else
		members 3 9,9,96
		make-bcache --data_offset 2048 --bucket 64k -B /dev/blknull0 /dev/blknull1 \
			-C /dev/blknull2 >/dev/null
		echo /dev/blknull2 >/sys/fs/bcache/register
	fi
	for index in 0 1; do
		echo "/dev/blknull$index" >/sys/fs/bcache/register
		if [ "$1" = none ]; then
			until_done bcache_state "$index" "no cache"
			continue
		fi
		until_done bcache_state "$index" clean
		echo writeback >"/sys/block/bcache$index/bcache/cache_mode"
		echo 0 >"/sys/block/bcache$index/bcache/sequential_cutoff"
		[ "$1" = detached ] || continue
		echo 1 >"/sys/block/bcache$index/bcache/detach"
		until_done bcache_state "$index" "no cache"
	done
	DISKS="/dev/bcache0 /dev/bcache1"
}

bcache_down() {
	for stop in /sys/block/bcache[01]/bcache/stop /sys/fs/bcache/*-*/stop; do
		[ ! -e "$stop" ] || echo 1 >"$stop"
	done
}

# redirect "PARAMETERS OF BLKNULL" PARAMETERS...
redirect() {
	# shellcheck disable=SC2086 # they are words
	members 2 9 $1
	shift
	insmod "$MODULES/redirect.ko" lower=/dev/blknull0,/dev/blknull1 "$@"
	DISKS="/dev/redirect0 /dev/redirect1"
}

case $stack in
dm-linear) dm linear ;;
dm-stripe) dm striped ;;
md-linear) md linear 5 ;;
raid0) md 0 5 --chunk=64 && md_iostats 1 ;;
raid0-iostats0) md 0 5 --chunk=64 && md_iostats 0 ;;
raid1) md 1 9 --bitmap=none ;;
bcache) bcache attached ;;
bcache-none) bcache none ;;
bcache-detached) bcache detached ;;
redirect) redirect "" ;;
redirect-hook) redirect "" hook=1 ;;
redirect-later) redirect "mode=mq completion=timer" hook=1 ;;
*)
	echo "stack.sh: no stack '$stack'" >&2
	exit 2
	;;
esac

export DISKS
status=0
"$@" || status=$?

case $stack in
dm-*) dmsetup remove stack0 stack1 ;;
md-* | raid*) md_down ;;
bcache*) bcache_down ;;
redirect*) rmmod redirect ;;
esac
until_done rmmod blknull
# A failure of the command is no reason not to go on to the next stack.
echo "# ended with status $status"
