#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The init of the guest: do the steps of /plan one by one, report on each, and end the
# machine. The reports go to a channel of their own, where no kernel message can come
# between them. The console gets a copy, so that its log can be read alone.

export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t debugfs debugfs /sys/kernel/debug
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp

# Charge the suites to a memory cgroup of their own, if the kernel has such cgroups, because
# charges to the root cgroup are not counted.
if mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null &&
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
	mkdir /sys/fs/cgroup/suites
	echo $$ >/sys/fs/cgroup/suites/cgroup.procs
fi

# insmod waits until the cases of a suite have ended. On a busy host the kernel takes it for
# hung then, by the clock. guest.py knows better what hangs.
hung=/proc/sys/kernel/hung_task_timeout_secs
[ ! -e "$hung" ] || echo 3600 >"$hung"

channel=/result.log
[ ! -e /dev/ttyS1 ] || [ -e "$channel" ] || channel=/dev/ttyS1
exec 3>"$channel"
[ "$channel" = /result.log ] || stty -F "$channel" -opost

report() {
	echo "$*" >&3
	echo "fairwq-guest: $*" >/dev/kmsg
}

# Each case is reported as soon as it has ended, because that is progress: see guest.py.
do_user() {
	echo "user-begin $1" >&3
	"/user/$1" >&3 2>&1
	rc=$?
	echo "user-end $1" >&3
	return $rc
}

# load NAME [PARAMETER=VALUE...]
load() {
	module=/modules/$1.ko
	shift
	insmod "$module" "$@" || return
	# KUnit ends a case by the clock, also on a busy host. guest.py knows better what hangs.
	timeout=/sys/module/kunit/parameters/timeout
	[ ! -e $timeout ] || echo 3600 >$timeout
}

do_step() {
	# shellcheck disable=SC2086 # $2 may have parameters, and must be split
	case $1 in
	insmod) load $2 ;;
	rmmod) rmmod "$2" ;;
	user) do_user "$2" ;;
	unloaded) lsmod && [ "$(wc -l </proc/modules)" -eq 0 ] ;;
	esac >/tmp/step.out 2>&1
	echo $? >/tmp/step.rc
}

# Set up fault injection: allocations fail in a task that asks for it, also if they may
# sleep. See tests/alloc_kunit.c.
let_allocations_fail() {
	for fault in /sys/kernel/debug/failslab /sys/kernel/debug/fail_page_alloc; do
		cd "$fault" 2>/dev/null || continue
		echo Y >task-filter
		echo 0 >verbose
		echo -1 >./times
		echo 100 >probability
		echo N >ignore-gfp-wait
	done
	cd / || exit
}

has_failed() {
	dmesg | grep -qE 'not ok |(ASSERTION|EXPECTATION) FAILED'
}

# Do a step. If FAIRWQ_STOP is set on the kernel's command line, the first case that fails ends
# the run, also if the step hangs after that. Return: false if so.
run_step() {
	echo "fairwq-guest: begin $*" >/dev/kmsg
	do_step "$@" &
	pid=$!
	while [ -n "$FAIRWQ_STOP" ] && kill -0 $pid 2>/dev/null && [ ! -s /tmp/step.rc ]; do
		if has_failed; then
			report "stopped at the first failure"
			return 1
		fi
		usleep 50000
	done
	wait $pid
	[ "$(cat /tmp/step.rc)" = 0 ] || cat /tmp/step.out >&3
	report "$* rc=$(cat /tmp/step.rc)"
	rm -f /tmp/step.rc
}

# Scan for leaks after all modules were unloaded. Before the scans, shrink the slabs, because
# their lists of free objects may still refer to a leaked one. Scan twice, because the first
# scan does not report young objects.
leak_scan() {
	[ -w /sys/kernel/debug/kmemleak ] || return 0
	for shrink in /sys/kernel/slab/*/shrink; do
		[ ! -w "$shrink" ] || echo 1 >"$shrink"
	done
	echo scan >/sys/kernel/debug/kmemleak
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	# Line by line: the log takes no more than one kilobyte at a time.
	while IFS= read -r line; do
		echo "$line" >/dev/kmsg
	done </sys/kernel/debug/kmemleak
}

let_allocations_fail
while read -r action name; do
	run_step "$action" "$name" || break
	[ -z "$FAIRWQ_STOP" ] || ! has_failed || break
done </plan
leak_scan
report "done"
exec 3>&-
sync
# The kernel's command line may set FAIRWQ_END, the command that ends this kind of machine.
"${FAIRWQ_END:-reboot}" -f
