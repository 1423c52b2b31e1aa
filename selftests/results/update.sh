#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Repeat the results that Documentation/results and the README show, all or those that are named:
#
#	make results
#	selftests/results/update.sh ladder features track
#
# What is large, the page of five kernels, the sites of track and the charts that the README does
# not show, is in build/results, to be published with a release. Together it takes some hours of two
# processors.
set -eu
cd "$(dirname "$0")/../.."
make -s userspace
iopath=build/bin/iopath
pages=Documentation/results
large=build/results
mkdir -p $large

ladder() {
	$iopath compare debian:5.10 debian:6.1 debian:6.12 debian:7.2 debian:7.3 \
		--json $large/five-kernels.json \
		--html $large/five-kernels.html \
		--markdown $pages/five-kernels.md \
		--svg $large/ladder.svg \
		--history $large/history.svg >/dev/null
	build/venv/bin/python selftests/results/picture.py \
		$large/five-kernels.json $pages/ladder.svg
}

features() {
	$iopath features debian:6.1 debian:6.12 debian:7.2 --boots 2 \
		--markdown $pages/features.md \
		--svg $large/features.svg >/dev/null
}

# From an empty cache: it takes a kernel's build and some ladders.
takes() {
	repository
	page takes
}

page() {
	build/venv/bin/python selftests/results/"$1".py
}

# Many kernels that nothing else needs: they have a cache of their own.
track() {
	rm -f $large/track/steps.json
	IOPATH_CACHE=build/track-cache $iopath track $pages/track.toml \
		--output $large/track --mail $pages/track.txt
	cp $large/track/points.json $pages/track.json
}

# The page of these points. It takes a second, and no kernel.
site() {
	build/venv/bin/python selftests/results/site.py \
		$pages/track.json $large/debian.html
}

# A repository of a kernel.
repository() {
	[ -d build/rt ] || build/venv/bin/python selftests/results/rt.py build/rt
}

# Each of the commits is built: the first in some minutes.
rt() {
	repository
	rm -f $large/rt/steps.json
	$iopath track $pages/rt.toml --output $large/rt --mail $pages/rt.txt
}

drivers() {
	page drivers
	$iopath compare debian:6.1 debian:6.12 debian:7.2 debian:7.3 --boots 2 --op read \
		--rung dio.pread --rung nvme.pread --rung virtio.pread --rung scsi.pread --rung ahci.pread \
		--svg $pages/drivers.svg >/dev/null
}

# Write what commands print in $1 columns to $2. The commands are on the standard input.
say() {
	said=build/$(basename "$2")
	while read -r command; do
		echo "\$ iopath $command"
		echo
		# Words of a command have no blanks.
		# shellcheck disable=SC2086
		COLUMNS=$1 $iopath ${command%% *} --quiet ${command#* } </dev/null
		echo
	done >"$said"
	sed 's/[[:space:]]*$//' "$said" >"$2"
}

# What the other texts show of commands.
shown() {
	dd="dd if=/dev/blknull0 of=/dev/null bs=4k count=1000 iflag=direct"
	say 100 $pages/shown.txt <<-END
		measure debian:6.12 --rung dm-crypt.pread --op write
		profile debian:6.1 --rung dio.pread --op read --all --top 4
		profile debian:6.1 --rung dio.pread --op read --model --top 4
		compare debian:6.1 debian:7.2 --rung dio.pread --op read --all
		run debian:6.1 -- $dd
		run debian:6.1 debian:7.2 -- $dd
		run debian:6.1 --boots 2 -- $dd
	END
}

# What questions.rst shows.
questions() {
	repository
	say 80 $pages/questions.txt <<-END
		compare git:build/rt@rt~39 git:build/rt@rt~38 --kconfig PREEMPT_RT=y --rung dio.pread --op read
		series git:build/rt@rt~41..rt~37 --kconfig PREEMPT_RT=y --rung dio.pread --op read --boots 6
		bisect git:build/rt@rt~41 git:build/rt@rt~37 --kconfig PREEMPT_RT=y --rung dio.pread --op read
		compare debian:6.1 debian:7.2 --rung dio.pread --op read
		compare debian:6.1 debian:6.12 debian:7.2 --rung dio.uring --op read
		compare git:build/rt@base debian:6.1 --rung dio.pread --op read
		features debian:7.2 --feature mq-deadline --cpus 2 --boots 1
		features debian:7.2 --feature io.max --feature trace.block --feature mitigations --boots 1
		compare debian:6.1 debian:7.2 --rung nvme.uring.fixed --rung nvme.cmd.fixed --op read
		run debian:6.1 debian:7.2 -- dd if=/dev/blknull0 of=/dev/null bs=4k count=1000 iflag=direct
	END
}

# What the README shows between its marks.
readme() {
	COLUMNS=110 $iopath compare debian:6.1 debian:7.2 --rung dio.pread --op read --top 8 --quiet >build/said
	sed 's/[[:space:]]*$//; s/^\(.\)/    \1/' build/said >build/shown
	awk '
		$0 == "<!-- compare -->" { print; print ""; while ((getline line < "build/shown") > 0) print line; inside = 1 }
		$0 == "<!-- end -->" { if (inside) print ""; inside = 0 }
		!inside && $0 != "<!-- compare -->" { print }
	' README.md >build/README
	cat -s build/README >README.md
}

for part in modules ancestors emulators peak claims clang findings; do
	eval "$part() { page $part; }"
done

parts="ladder modules features drivers findings ancestors emulators peak claims clang shown questions track site rt takes readme"
# The names of parts have no blanks.
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $parts
for part; do
	case " $parts " in
	*" $part "*) "$part" ;;
	*)
		echo "update.sh: unknown part '$part': must be one of $parts" >&2
		exit 2
		;;
	esac
done
