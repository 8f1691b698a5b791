#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# demo-guest.sh: the first process of the demo's guest, on a stock kernel. Two clients
# of /dev/fairhash hash real files, three times over:
#
#   alone        the modest client, with none beside it
#   fifo         beside a greedy one, first come first served
#   round_robin  beside a greedy one, in turns
#
# The greedy client uses 64 descriptors at once, the modest one a single one. The pool
# hashes one block at a time (max_active=1), so that both clients wait for the pool, and
# each turn counts.
#
# Both clients run once more while the operator's tools watch.
#
# Then /dev/fairscan scans an image of real files and a hole, as one item, as two
# equal parts, and by fork and join.
#
# With demo_shell=1 on the kernel's command line there is a prompt instead, while both
# clients run.
#
# The results go to the second serial line, one a line. Lines that begin with "demo:"
# report the progress.

export PATH=/bin:/usr/bin:/usr/sbin
descriptors=64
block=32768
# Four blocks: a client counts its writes, and these are ahead of what is done.
backlog=131072
# About how long the run under FIFO must take.
fifo_seconds=35

mount_all() {
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t debugfs debugfs /sys/kernel/debug
	mount -t tracefs tracefs /sys/kernel/tracing
	mount -t devtmpfs dev /dev 2>/dev/null
	mount -t tmpfs tmp /tmp
}

report() { echo "$*" >&3; }

# End the guest, also after an error.
finish() {
	report "demo: $*"
	echo "demo: $*" >/dev/kmsg
	exec 3>&-
	reboot -f
}

must() {
	"$@" >/tmp/must.out 2>&1 && return
	echo "demo: failed: $*" >/dev/kmsg
	head -n 20 /tmp/must.out >/dev/kmsg
	finish "failed: $*"
}

load() {
	one_queue=0
	[ "$1" != fifo ] || one_queue=1
	must insmod /modules/fairhash.ko one_queue=$one_queue max_active=1 max_backlog=$backlog
	echo 1 >/sys/kernel/debug/fairwq/fairhash/histograms
}

value() { sed -n "s/^$2=//p" "$1"; }

# Find the number of bytes for which FIFO takes that long. The modest client has one turn
# in 65 there.
calibrate() {
	must modest -b $block "$(find files -type f | sort | head -n 1)"
	want=$(awk -v b="$(value /tmp/must.out bytes)" -v s="$(value /tmp/must.out seconds)" \
		-v t=$fifo_seconds -v d=$descriptors \
		'BEGIN { printf "%d", b / s * t / (d + 1) }')
}

# Make the modest client's one file: an archive of the files, from the first one on, and
# over again if there are too few of them.
make_archive() {
	find files -type f | sort | xargs ls -l | awk -v want="$want" '
		{ size[NR] = $5; name[NR] = $NF }
		END { while (sum < want) { i = n++ % NR + 1; sum += size[i]; print name[i] } }' \
		>/tmp/members
	# shellcheck disable=SC2046 # to be split
	must tar -cf modest.tar $(cat /tmp/members)
	sha256sum modest.tar >>/tmp/reference
}

# Run the modest client, and sample it. $1: run, $2: milliseconds between samples.
run_modest() {
	fairhash_monitor "$2" modest=/tmp/count.modest greedy=/tmp/count.greedy \
		>"/tmp/$1.samples" 2>/dev/null &
	monitor=$!
	modest -b $block -c /tmp/count.modest modest.tar >"/tmp/$1.modest" 2>"/tmp/$1.modest.err" ||
		{ cat "/tmp/$1.modest.err" >/dev/kmsg; finish "failed: modest, $1"; }
	kill $monitor
	rm -f /tmp/count.*
	[ "$(wc -l <"/tmp/$1.modest")" -eq 1 ] || finish "failed: modest lost a file, $1"
}

start_greedy() {
	greedy -d $descriptors -b $block -c /tmp/count.greedy -r files/* >"/tmp/$1.greedy" 2>"/tmp/$1.greedy.err" &
	greedy=$!
	until grep -qs '^all descriptors' "/tmp/$1.greedy.err"; do
		kill -0 $greedy || finish "failed: greedy did not start, $1"
		usleep 10000
	done
}

stop_greedy() {
	kill -TERM $greedy
	wait $greedy || { cat "/tmp/$1.greedy.err" >/dev/kmsg; finish "failed: greedy, $1"; }
}

# Run both clients. $1: policy, $2: milliseconds between samples
run_both() {
	load "$1"
	start_greedy "$1"
	run_modest "$1" "$2"
	stop_greedy "$1"
	rmmod fairhash || finish "failed: rmmod, $1"
}

# Start both clients, without an end. $1: the modest client's file
start_both() {
	load round_robin
	start_greedy watched
	modest -b $block -r "$1" >/tmp/watched.modest 2>/tmp/watched.modest.err &
	modest=$!
}

# Print the output of the operator's tools. They take CPU time, so this run has no figures.
watch() {
	start_both modest.tar
	must fairwq-top --once --interval 2
	sed 's/^/top /' /tmp/must.out >&3
	must fairwq-top --once --json --interval 2
	sed 's/^/top-json /' /tmp/must.out >&3
	must fairwq-trace record -s 0.5 -o /tmp/trace
	gzip -c /tmp/trace | base64 | sed 's/^/trace /' >&3
	kill -TERM $modest
	wait $modest || { cat /tmp/watched.modest.err >/dev/kmsg; finish "failed: modest, watched"; }
	stop_greedy watched
	rmmod fairhash || finish "failed: rmmod, watched"
}

prompt() {
	cat files/* >/tmp/all
	start_both /tmp/all
	# shellcheck disable=SC2154 # from the kernel's command line
	stty -F /dev/console rows "${demo_size%x*}" cols "${demo_size#*x}"
	cd /sys/kernel/debug/fairwq/fairhash || finish "failed: no tables"
	cat >/dev/console <<-END

		Two clients hash files through /dev/fairhash: greedy over 64 descriptors, modest over one.

		  fairwq-top            what each of them gets; q ends it
		  cat batches           the same as a table; this folder has more
		  echo fair_time > policy
		                        count the time of their items in place of turns
		  fairwq-trace record -s 1 -o /tmp/trace && fairwq-trace waits /tmp/trace
		  insmod /modules/fairwq_hello.ko; sleep 1; dmesg | grep hello
		                        the smallest driver: anna queues four items, and then bert one
		  exit                  the end

	END
	setsid cttyhack sh
	finish "prompt left"
}

# Print the figures of a client. $1: run, $2: client
report_client() {
	sed -n "s/^\([a-z0-9_]*=\)/$1_$2_\1/p" "/tmp/$1.$2.err" >&3
	awk -v run="$1_$2" '
		NR == FNR { want[$2] = $1; next }
		{ checked++; wrong += $1 != want[$2] }
		END { print run "_digests=" checked + 0; print run "_wrong=" wrong + 0 }' \
		/tmp/reference "/tmp/$1.$2" >&3
}

report_run() {
	report_client "$1" modest
	[ ! -e "/tmp/$1.greedy" ] || report_client "$1" greedy
	sed -n "/ default/d; s/^/sample $1 /p" "/tmp/$1.samples" >&3
}

run_scan() {
	must insmod /modules/fairscan.ko
	{ cat image >&4 && cat <&4 >/tmp/scan; } 4<>/dev/fairscan ||
		finish "failed: scan"
	sed 's/^/scan /' /tmp/scan >&3
	sed -n 's/^stolen: /scan stolen /p' /sys/kernel/debug/fairwq/fairscan/summary >&3
	rmmod fairscan || finish "failed: rmmod fairscan"
}

# Kill a client, which leaves a backlog. Then the module must unload.
kill_and_unload() {
	load round_robin
	start_greedy killed
	kill -KILL $greedy
	wait $greedy
	rmmod fairhash || finish "failed: rmmod with a backlog"
}

mount_all
stty -F /dev/ttyS1 -opost
exec 3>/dev/ttyS1
cd / || exit
while read -r module; do
	must insmod "/modules/$module"
done </modules/order
report "kernel=$(uname -r)"
report "descriptors=$descriptors"
report "block=$block"
report "demo: booted"
# shellcheck disable=SC2154 # from the kernel's command line
[ -z "$demo_shell" ] || prompt
sha256sum files/* >/tmp/reference || finish "failed: sha256sum"
report "demo: reference"
load round_robin
calibrate
make_archive
run_modest alone 20
rmmod fairhash || finish "failed: rmmod"
report_run alone
report "demo: alone"
run_both fifo 250
report_run fifo
report "demo: fifo"
run_both round_robin 20
report_run round_robin
report "demo: round_robin"
watch
report_client watched modest
report_client watched greedy
report "demo: watched"
run_scan
report "demo: scanned"
kill_and_unload
rmmod fairwq || finish "failed: rmmod fairwq"
finish "finished"
