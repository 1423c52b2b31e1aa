#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What a person does with the modules by hand: load, make devices at run time,
# use them, unload. MODULES is the folder they are in, by default /modules;
# without it, modprobe finds them.

MODULES=${MODULES:-/modules}
CONFIGFS=/sys/kernel/config
number=0

# result NAME COMMAND...: the test NAME is whether COMMAND succeeds.
result() {
	name=$1
	shift
	number=$((number + 1))
	if said=$("$@" 2>&1); then
		echo "ok $number $name"
	else
		echo "# $said"
		echo "not ok $number $name"
	fi
}

# fails COMMAND...: it does.
fails() {
	! "$@"
}

load() {
	module=$1
	shift
	if [ -d "$MODULES" ]; then
		insmod "$MODULES/$module.ko" "$@"
	else
		modprobe --first-time "$module" "$@"
	fi
}

# is FILE TEXT: the file says just that.
is() {
	[ "$(cat "$1")" = "$2" ]
}

set_to() {
	echo "$2" >"$1"
}

# dd aligns buffers of a page or more.
reads() {
	dd if="$1" of=/dev/null bs=65536 count=2
}

writes() {
	dd if=/dev/zero of="$1" bs=65536 count=2 conv=notrunc
}

# skip REASON: end as kselftest wants it of a test that cannot run.
skip() {
	printf 'TAP version 13\n1..0 # SKIP %s\n' "$1"
	exit 4
}

[ "$(id -u)" -eq 0 ] || skip "must be run as root"
for module in blknull biogen; do
	[ -e "$MODULES/$module.ko" ] || modprobe -q -n "$module" 2>/dev/null ||
		skip "$module: there is no such module"
done

echo "TAP version 13"
echo "1..28"
mount -t configfs none $CONFIGFS 2>/dev/null

result blknull_loads load blknull nr_devices=2 size_mb=64
result two_devices test -b /dev/blknull0 -a -b /dev/blknull1
result no_third test ! -e /dev/blknull2
result size is /sys/block/blknull1/size 131072
result loaded_twice fails load blknull
result biogen_loads load biogen device=/dev/blknull0
result node test -c /dev/biogen0
result read reads /dev/biogen0
result not_written fails writes /dev/biogen0
result target_held fails rmmod blknull
result biogen_unloads rmmod biogen
result node_gone test ! -e /dev/biogen0

load biogen
cd /sys/module/biogen/parameters || exit 1
result no_device fails set_to device /dev/absent
result write set_to write 1
result device set_to device /dev/blknull1
result node_listed is device "biogen0 blknull1"
result write_now writes /dev/biogen0
result live fails set_to device /dev/blknull1
result removed set_to device -biogen0
result withdrawn test ! -e /dev/biogen0
result once fails set_to device -biogen0
cd /
result unloads rmmod biogen

result disk mkdir $CONFIGFS/blknull/y
result sized set_to $CONFIGFS/blknull/y/size_mb 32
result disk_on set_to $CONFIGFS/blknull/y/power 1
result third is /sys/block/blknull2/size 65536
result disk_gone rmdir $CONFIGFS/blknull/y
result blknull_unloads rmmod blknull
