#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# torture-guest.sh: the torture's programs in the guest, /user/torture and /user/loads. Both
# print KTAP.
#
# The first runs fairwq_torture.ko with the parameters in /torture.args. Meanwhile it reads
# debugfs and sets its knobs, which only user space can do. The second loads and unloads
# all modules, as often as /loads.args says, while clients come and go.

pools=/sys/kernel/debug/fairwq
state=/sys/module/fairwq_torture/parameters/state

nr=0
# result NAME COMMAND...: print the result of a case, by the status of the command.
result() {
	name=$1
	shift
	nr=$((nr + 1))
	if "$@"; then echo "ok $nr $name"; else echo "not ok $nr $name"; fi
}

running() {
	[ "$(cat $state 2>/dev/null)" = running ]
}

# Read every file, and set knobs, as long as the torture runs. Their status does not
# matter, because the pool may be gone by then.
meddle() {
	i=0
	while running; do
		i=$((i + 1))
		# One process reads all, because under KASAN each takes a while.
		cat "$pools"/*/* >/dev/null 2>&1
		grep -hE '^(leaks|hung): *[1-9]' "$pools"/torture-*/summary 2>/dev/null
		for pool in "$pools"/torture-*; do
			echo $((i * 37 % 500 + 1)) >"$pool/slice_us"
			echo $((i % 6 + 1)) >"$pool/max_active"
			echo $((i * 11 % 199 + 2)) >"$pool/low_turns"
			echo $((60000 + i)) >"$pool/hung_ms"
			echo $((i / 2 % 2)) >"$pool/histograms"
			[ $((i % 16)) -ne 1 ] || echo 1 >"$pool/reset"
			case $((i % 8)) in
			3) echo fair_time >"$pool/policy" ;;
			5) echo round_robin >"$pool/policy" ;;
			esac
		done 2>/dev/null
		usleep 300000
	done >/tmp/noted
	echo "# debugfs was read $i times"
}

# Freeze all tasks and the freezable pools under full load, and thaw them a second later,
# as long as the torture runs. A freeze that takes 20 s fails.
freeze() {
	[ -w /sys/power/pm_test ] || return 0
	echo freezer >/sys/power/pm_test
	echo 1 >/sys/module/suspend/parameters/pm_test_delay
	while running; do
		echo freeze >/sys/power/state || echo "not frozen" >>/tmp/freeze.failed
		echo frozen >>/tmp/freeze.done
		sleep 2
	done 2>>/tmp/freeze.failed
}

torture() {
	echo "KTAP version 1"
	echo 1..5
	# shellcheck disable=SC2046 # to be split
	insmod /modules/fairwq_torture.ko $(cat /torture.args)
	meddle &
	freeze &
	while running; do sleep 1; done
	wait
	result "End of test: SUCCESS" [ "$(cat $state 2>/dev/null)" = success ]
	result "debugfs was readable" [ -e /tmp/noted ]
	sort -u /tmp/noted | head -n 3 | sed 's/^/# /'
	result "nothing has leaked or hung" [ ! -s /tmp/noted ]
	if [ -w /sys/power/pm_test ]; then
		echo "# frozen and thawed $(wc -l </tmp/freeze.done) times"
		[ ! -e /tmp/freeze.failed ] || sed 's/^/# /' /tmp/freeze.failed
		result "all could be frozen under load" [ -s /tmp/freeze.done -a ! -s /tmp/freeze.failed ]
	else
		nr=$((nr + 1))
		echo "ok $nr all could be frozen under load # SKIP a kernel without pm_test"
	fi
	result "the torture is unloaded" rmmod fairwq_torture
}

# Unload a module. Try again while it is in use.
unload_used() {
	tries=0
	until rmmod "$1" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 1000 ] || return 1
		usleep 2000
	done
}

load_once() {
	insmod /modules/fairhash.ko &&
		insmod /modules/fairwq_torture.ko seconds=0 progress=0 stutter=0 \
			threads=1 backlog=500 &&
		insmod /modules/fairwq_hello.ko &&
		insmod /modules/fairwq_resolver.ko &&
		insmod /modules/fairscan.ko &&
		usleep 20000 &&
		rmmod fairwq_hello &&
		rmmod fairwq_resolver &&
		rmmod fairscan &&
		rmmod fairwq_torture &&
		unload_used fairhash &&
		rmmod fairwq &&
		insmod /modules/fairwq.ko
}

# Start processes that use the modules. clients_go kills them in the middle of a call.
clients=
clients_come() {
	for seed in 1 2; do
		FUZZ_SEED=1$seed /user/fuzz clients &
		clients="$clients $!"
	done
}

clients_go() {
	for client in $clients; do
		kill -9 "$client"
		wait "$client"
	done 2>/dev/null
	clients=
}

kernel_kib() {
	awk '/^(SUnreclaim|VmallocUsed):/ {n += $2} END {print n}' /proc/meminfo
}

# Print the objects in each cache, and the objects of one slab. Shrink the caches before,
# so that they keep none for later use.
slab_counts() {
	sleep 1
	echo 3 >/proc/sys/vm/drop_caches
	for shrink in /sys/kernel/slab/*/shrink; do echo 1 >"$shrink"; done
	awk 'NR > 2 {print $1, $2, $5}' /proc/slabinfo
}

# Print caches that have grown by half an object or more for each of $1 loads, and by more
# than each CPU may keep. When a CPU has taken one object of a slab, the whole slab counts
# as used. So only hundreds of loads give a sure answer. Leave out the records of debug
# objects: the kernel keeps free ones in pools.
slabs_grown() {
	cpus=$(grep -c ^processor /proc/cpuinfo)
	awk -v loads="$1" -v cpus="$cpus" 'NR == FNR {before[$1] = $2; next}
		$1 == "debug_objects_cache" {next}
		{kept = cpus * $3 > 200 ? cpus * $3 : 200}
		$2 - before[$1] >= loads / 2 + kept {print $1 ": " before[$1] " -> " $2; bad = 1}
		END {exit !bad}' /tmp/slab.before /tmp/slab.after
}

# Load and unload all modules. Count memory after a tenth of the loads, when caches that
# are kept for later use are full.
loads() {
	todo=$(cat /loads.args)
	echo "KTAP version 1"
	echo 1..3
	done=0
	while [ "$done" -lt "$todo" ]; do
		if [ "$done" -eq $((todo / 10)) ]; then
			clients_go
			slab_counts >/tmp/slab.before 2>/dev/null
			before=$(kernel_kib)
		fi
		if [ $((done % 10)) -eq 0 ]; then
			clients_go
			clients_come
		fi
		load_once || break
		done=$((done + 1))
	done
	clients_go
	slab_counts >/tmp/slab.after 2>/dev/null
	grown=$(($(kernel_kib) - before))
	echo "# $done loads; the kernel's memory grew by $grown KiB"
	result "loaded and unloaded $todo times" [ "$done" -eq "$todo" ]
	# A page for each load would be a leak.
	result "memory is given back" [ "$grown" -lt $((1024 + todo * 4)) ]
	slabs_grown $((todo - todo / 10)) >/tmp/slab.grown
	sed 's/^/# /' /tmp/slab.grown
	if [ ! -s /tmp/slab.after ]; then
		echo "ok 3 no cache has grown # SKIP this kernel does not tell"
	elif [ "$todo" -lt 3 ]; then
		echo "ok 3 no cache has grown # SKIP too few loads to tell"
	else
		result "no cache has grown" [ ! -s /tmp/slab.grown ]
	fi
}

"${0##*/}"
