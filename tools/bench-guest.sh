#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The guest of the bench: loads fairwq and the bench, unless they are in the kernel
# itself, sets the parameters that stand in /bench.args, measures, and goes. What
# was measured is on the console.

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

# In this folder guest and host tell each other how far they are. The floor is asked
# before, as it is once in every boot.
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
