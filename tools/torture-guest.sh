#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# In the guest, as /user/torture and /user/loads: the first lets
# fairwq_torture.ko run with the parameters in /torture.args, and meanwhile
# does what only user space can do: reads and turns what is in debugfs, takes
# CPUs away and brings them back. The second loads and unloads all modules as
# often as /loads.args says. Both print KTAP.

pools=/sys/kernel/debug/fairwq
state=/sys/module/fairwq_torture/parameters/state

nr=0
# result NAME COMMAND...: the case is ok if the command is.
result() {
	name=$1
	shift
	nr=$((nr + 1))
	if "$@"; then echo "ok $nr $name"; else echo "not ok $nr $name"; fi
}

running() {
	[ "$(cat $state 2>/dev/null)" = running ]
}

# Every file is read, and knobs are turned; what they answer does not matter:
# the pool may be gone by then.
meddle() {
	i=0
	while running; do
		i=$((i + 1))
		for file in "$pools"/*/*; do
			cat "$file" >/dev/null 2>&1
		done
		for pool in "$pools"/torture-*; do
			grep -h '^violations: *[1-9]' "$pool/summary" 2>/dev/null
			echo $((i * 37 % 500 + 1)) >"$pool/slice_us"
			echo $((i % 6 + 1)) >"$pool/max_active"
			case $((i % 8)) in
			0) echo fifo >"$pool/policy" ;;
			3) echo fair_time >"$pool/policy" ;;
			5) echo round_robin >"$pool/policy" ;;
			esac
		done 2>/dev/null
		usleep 300000
	done >/tmp/violations
	echo "# debugfs was read $i times"
}

# All CPUs but the first go and come back, one by one.
hotplug() {
	cycles=0
	while running; do
		for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
			[ -w "$cpu" ] || continue
			echo 0 >"$cpu" && usleep 100000
			echo 1 >"$cpu" && cycles=$((cycles + 1))
			usleep 50000
		done
		usleep 50000
	done
	echo "$cycles" >/tmp/cycles
	echo "# CPUs went and came back $cycles times"
}

cpus_come_and_go() {
	ls /sys/devices/system/cpu/cpu[1-9]*/online >/dev/null 2>&1
}

torture() {
	echo "KTAP version 1"
	if cpus_come_and_go; then echo 1..4; else echo 1..3; fi
	# shellcheck disable=SC2046 # to be split
	insmod /modules/fairwq_torture.ko $(cat /torture.args)
	meddle &
	if cpus_come_and_go; then hotplug & fi
	while running; do sleep 1; done
	wait
	result "End of test: SUCCESS" [ "$(cat $state 2>/dev/null)" = success ]
	# Only shown: the knobs were turned meanwhile.
	result "debugfs was readable" [ -e /tmp/violations ]
	sort -u /tmp/violations | head -n 3 | sed 's/^/# /'
	if cpus_come_and_go; then
		result "CPUs went and came back" [ "$(cat /tmp/cycles)" -gt 0 ]
	fi
	result "the torture is unloaded" rmmod fairwq_torture
}

load_once() {
	insmod /modules/fairwq_torture.ko seconds=0 progress=0 stutter=0 \
		threads=1 backlog=500 &&
		insmod /modules/fairwq_hello.ko &&
		usleep 20000 &&
		rmmod fairwq_hello &&
		rmmod fairwq_torture &&
		rmmod fairwq &&
		insmod /modules/fairwq.ko
}

kernel_kib() {
	awk '/^(SUnreclaim|VmallocUsed):/ {n += $2} END {print n}' /proc/meminfo
}

# A tenth of it first, so that what is kept for later use is there.
loads() {
	todo=$(cat /loads.args)
	echo "KTAP version 1"
	echo 1..2
	done=0
	before=0
	while [ "$done" -lt "$todo" ]; do
		[ "$done" -ne $((todo / 10)) ] || before=$(kernel_kib)
		load_once || break
		done=$((done + 1))
	done
	sleep 1
	grown=$(($(kernel_kib) - before))
	echo "# $done loads; the kernel's memory grew by $grown KiB"
	result "loaded and unloaded $todo times" [ "$done" -eq "$todo" ]
	# A page for each load would be a leak.
	result "memory is given back" [ "$grown" -lt $((1024 + todo * 4)) ]
}

"${0##*/}"
