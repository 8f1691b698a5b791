#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The guest: does the steps of /plan one by one, reports on each, and goes.
# What it says goes to a channel of its own, so that no kernel message can
# get in between; the console gets a copy, so that its log can be read alone.

export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t debugfs debugfs /sys/kernel/debug
mount -t devtmpfs dev /dev 2>/dev/null
mount -t tmpfs tmp /tmp

# Charge the suites to a memory cgroup of their own, where there is such a thing: what is
# charged to the root cgroup is not counted.
if mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null &&
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
	mkdir /sys/fs/cgroup/suites
	echo $$ >/sys/fs/cgroup/suites/cgroup.procs
fi

# From the kernel's command line: FAIRWQ_LIMIT, seconds for one step, and
# FAIRWQ_STOP, if the first case that fails is to end it all.
limit=${FAIRWQ_LIMIT:-60}
channel=/result.log
[ ! -e /dev/ttyS1 ] || [ -e "$channel" ] || channel=/dev/ttyS1
exec 3>"$channel"
[ "$channel" = /result.log ] || stty -F "$channel" -opost

report() {
	echo "$*" >&3
	echo "fairwq-guest: $*" >/dev/kmsg
}

do_user() {
	"/user/$1" >"/tmp/$1.out" 2>&1
	echo $? >/tmp/rc
	echo "user-begin $1" >&3
	cat "/tmp/$1.out" >&3
	echo "user-end $1" >&3
	return "$(cat /tmp/rc)"
}

# load NAME [PARAMETER=VALUE...]
load() {
	module=/modules/$1.ko
	shift
	insmod "$module" "$@"
}

do_step() {
	# shellcheck disable=SC2086 # to be split
	case $1 in
	insmod) load $2 ;;
	rmmod) rmmod "$2" ;;
	user) do_user "$2" ;;
	unloaded) lsmod && [ "$(wc -l </proc/modules)" -eq 0 ] ;;
	esac >/tmp/step.out 2>&1
	echo $? >/tmp/step.rc
}

# Where everything is that sleeps and cannot be woken.
stuck_tasks() {
	for task in /proc/[0-9]*; do
		grep -q '^State:.D' "$task/status" || continue
		{ echo "stuck: $(cat "$task/comm")" && cat "$task/stack"; } |
			while read -r line; do echo "$line" >/dev/kmsg; done
	done
}

# An allocation may fail, also one that may sleep, in a task that asks for it.
# See tests/alloc_kunit.c.
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

uptime_s() {
	read -r up _ </proc/uptime
	echo "${up%.*}"
}

has_failed() {
	dmesg | grep -qE 'not ok |(ASSERTION|EXPECTATION) FAILED'
}

# In the background: a step that never ends must end the run, not hang it.
# Returns false when time was up.
timed_step() {
	begin=$(uptime_s)
	do_step "$@" &
	pid=$!
	while kill -0 $pid 2>/dev/null && [ ! -s /tmp/step.rc ]; do
		if [ $(($(uptime_s) - begin)) -ge "$limit" ]; then
			stuck_tasks 2>/dev/null
			report "$* timeout after $limit s"
			return 1
		fi
		if [ -n "$FAIRWQ_STOP" ] && has_failed; then
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

# After everything was unloaded and before the last line: what is still
# allocated now has no owner. Two scans, as the first sees young objects; and
# before that, the lists of free objects that still name what was taken from them.
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
	timed_step "$action" "$name" || break
	[ -z "$FAIRWQ_STOP" ] || ! has_failed || break
done </plan
leak_scan
report "done"
exec 3>&-
sync
# From the command line as well: what ends this kind of machine.
"${FAIRWQ_END:-reboot}" -f
