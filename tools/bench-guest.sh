#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# bench-guest.sh: the first process of the bench's guest. It loads fairwq and the bench,
# unless they are in the kernel itself. Then it sets the parameters in /bench.args,
# measures, and powers off. The results are on the console.

export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t debugfs debugfs /sys/kernel/debug
parameters=/sys/module/fairwq_bench/parameters

report() {
	echo "fairwq-bench: $*" >/dev/kmsg
}

set_all() {
	while IFS="=" read -r name value; do
		printf %s "$value" >"$parameters/$name" || return
	done
}

# Tell the host's profiler that the guest is ready, and wait until it has begun: by files
# in /profiler. Ask the floor before, because the first run always asks it.
wait_for_profiler() {
	[ -e /profiler ] || return 0
	echo rows=floor | set_all && echo 1 >"$parameters/run" || return
	echo >/profiler/ready
	until [ -e /profiler/begun ]; do usleep 50000; done
}

measure() {
	for name in fairwq fairwq_bench; do
		[ ! -e /modules/$name.ko ] || insmod /modules/$name.ko || return
	done
	wait_for_profiler && set_all </bench.args || return
	echo 1 >"$parameters/run" || return
	for name in fairwq_bench fairwq; do
		[ ! -e /modules/$name.ko ] || rmmod $name || return
	done
}

end=failed
! measure 2>/dev/kmsg || end="done"
report "$end"
poweroff -f
