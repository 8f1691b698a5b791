#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The guest of tools/ports-smb.sh: the original ksmbd and the port are loaded in turns,
# and serve the same kind of files, in memory, to the same clients over the loopback
# device. Each mount has a connection of its own: four of the flood and one of the modest
# reader, and the same again, encrypted.

# shellcheck source=guest-lib.sh
. /guest-lib.sh
mounts="flood0 flood1 flood2 flood3 modest"
mounts="$mounts sealed-flood0 sealed-flood1 sealed-flood2 sealed-flood3 sealed-modest"

# try SECONDS COMMAND...: until it succeeds.
try() {
	left=$(($1 * 5))
	shift
	until "$@" 2>/dev/null; do
		left=$((left - 1))
		[ $left -gt 0 ] || { echo "never came true: $*" >&2; return 1; }
		sleep 0.2
	done
}

prepare() {
	mkdir -p /share /mnt /run /tmp
	mount -t debugfs debug /sys/kernel/debug &&
		mount -t tmpfs -o size=512m share /share && mount -t tmpfs run /run &&
		mount -t tmpfs tmp /tmp || return
	for name in $mounts; do mkdir -p "/mnt/$name"; done
	for side in original port; do
		truncate -s 64M "/share/$side-flood" && truncate -s 8M "/share/$side-modest" || return
	done
	chmod -R a+rwX /share
	ksmbd.adduser -a root -p fair >/dev/kmsg 2>&1 || return
	if [ -z "$shared" ]; then
		echo 2 >/sys/devices/virtual/workqueue/cpumask && taskset -p 1 $$ >/dev/kmsg || return
	fi
	ip link set lo up && insmod /modules/fairwq.ko
}

# $1: original or port
start() {
	insmod "/modules/ksmbd-$1.ko" || return
	ksmbd.mountd -n >/dev/kmsg 2>&1 &
	try 20 grep -q running /sys/class/ksmbd-control/stats || return
	for name in $mounts; do
		options=ip=127.0.0.1,username=root,password=fair,vers=3.1.1,nosharesock,cache=none
		case $name in sealed-*) options=$options,seal ;; esac
		mount -t cifs -o $options //127.0.0.1/share "/mnt/$name" || return
	done
}

# Leave the first CPU to the clients, which are other machines elsewhere, and the second
# one to the server.
part() {
	[ -z "$shared" ] || return 0
	for task in /proc/[0-9]*; do
		case $(cat "$task/comm" 2>/dev/null) in
		cifsd) taskset -p 1 "${task#/proc/}" ;;
		ksmbd*) taskset -p 2 "${task#/proc/}" ;;
		esac >/dev/kmsg
	done
	# A seat for each CPU of the server, as by default where it has them all.
	for seats in /sys/kernel/debug/fairwq/*/max_active; do
		[ ! -e "$seats" ] || echo 1 >"$seats" || return
	done
}

# The module goes when the last connection has gone.
stop() {
	for name in $mounts; do umount "/mnt/$name" || return; done
	ksmbd.control -s >/dev/kmsg 2>&1
	killall -q ksmbd.mountd ksmbd.tools
	try 30 rmmod "ksmbd-$1"
}

# The files of both sides hold the same when they have been filled.
fill() {
	crypt_client fill "/mnt/flood0/$1-flood" && crypt_client fill "/mnt/modest/$1-modest"
}

# $1: original or port; $2: round; $3: the flood's mode, as sealed-read
ask_for() {
	case $3 in
	sealed-*) seal=sealed- ;;
	*) seal= ;;
	esac
	ask "$1" "$2" "$3" crypt_client "/mnt/${seal}flood@/$1-flood" "${3#sealed-}" "$seconds" \
		"/mnt/${seal}modest/$1-modest"
}

# $1: original or port; $2: round
turn() {
	start "$1" && part || return
	[ "$2" != 1 ] || fill "$1" || return
	for mode in $modes; do ask_for "$1" "$2" "$mode" || return; done
	if [ "$2" = "$rounds" ]; then
		sum=$(crypt_client sum "/mnt/flood0/$1-flood") &&
			sum=$sum-$(crypt_client sum "/mnt/sealed-modest/$1-modest") &&
			echo "sum $1 $sum" >>/figures || return
	fi
	stop "$1"
}

compare() {
	cmp /share/original-flood /share/port-flood &&
		cmp /share/original-modest /share/port-modest
}

guest_main
