#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The guest of the bench: loads fairwq and the bench, whose parameters stand
# in /bench.args, unloads both, and goes. What was measured is on the console.

export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t debugfs debugfs /sys/kernel/debug

report() {
	echo "fairwq-bench: $*" >/dev/kmsg
}

measure() {
	insmod /modules/fairwq.ko &&
		xargs insmod /modules/fairwq_bench.ko </bench.args &&
		rmmod fairwq_bench &&
		rmmod fairwq
}

end=failed
! measure 2>/dev/kmsg || end="done"
report "$end"
poweroff -f
