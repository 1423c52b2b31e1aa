#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Make sure that the distribution's packages are there which a job needs: as
# root install what is missing, otherwise print the command that does.
#
#	setup.sh userspace | measure | arm64 | riscv64 | check | deb | package | container
set -eu

build="gcc libc6-dev make"
measure="$build bubblewrap debian-archive-keyring dpkg kmod python3 python3-venv
	qemu-system-x86 tar util-linux xz-utils zstd"
arm64="$measure qemu-system-arm"
riscv64="$measure qemu-system-misc"
check="$arm64 b4 bc bison busybox-static chromium clang-format coccinelle cpio debhelper e2fsprogs fio flex
	fonts-dejavu-core fonts-liberation
	gcc-aarch64-linux-gnu git groff-base libarchive-tools libc6-dev-arm64-cross libc6-dbg libelf-dev
	mandoc mount ocaml perl rpm rsync shellcheck sparse strace systemd unifdef valgrind"
deb="$measure debhelper dh-dkms dpkg-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross"

case ${1-} in
userspace) wanted=$build ;;
measure) wanted=$measure ;;
arm64) wanted=$arm64 ;;
riscv64) wanted=$riscv64 ;;
check) wanted=$check ;;
deb) wanted=$deb ;;
package) wanted="$deb e2fsprogs lintian mmdebstrap mount qemu-system-arm qemu-system-x86 qemu-user-static" ;;
container) wanted="$deb buildah mmdebstrap podman runc util-linux" ;;
*)
	echo "usage: setup.sh userspace | measure | arm64 | riscv64 | check | deb | package | container" >&2
	exit 2
	;;
esac

missing=
for package in $wanted; do
	state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null) || state=
	[ "$state" = "ii " ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "missing packages; install them with:" >&2
	echo "    sudo apt-get install --no-install-recommends$missing" >&2
	exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive

# apt_get WORDS...: apt-get, which waits while another apt or dpkg has a lock. Its
# own DPkg::Lock::Timeout waits in silence, and not for the lock of the lists.
apt_get() {
	while ! said=$(LC_ALL=C apt-get -qq "$@" 2>&1 >/dev/null); do
		lock=$(echo "$said" | sed -n 's/^E: Could not get lock //p')
		if [ -z "$lock" ]; then
			echo "$said" >&2
			return 1
		fi
		[ "$lock" = "$waiting" ] || echo "waiting for the lock $lock"
		waiting=$lock
		sleep 1
	done
}

waiting=
# shellcheck disable=SC2086 # the list is meant to be split
apt_get install -y --no-install-recommends $missing 2>/dev/null || {
	# The lists may be old or absent.
	apt_get update
	apt_get install -y --no-install-recommends $missing
}
