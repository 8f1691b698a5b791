#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The guest of tools/ports.sh: the original dm-crypt and the port, each on a RAM disk of
# its own, are asked in turns.

# shellcheck source=guest-lib.sh
. /guest-lib.sh

# $1: original or port; $2: its target; $3: its RAM disk
map() {
	number=$(crypt_client map "$1" "$2" "$3") && ln -s "dm-$number" "/dev/$1" &&
		crypt_client fill "/dev/$1"
}

prepare() {
	mkdir -p /dev/mapper
	[ -e /dev/mapper/control ] || mknod /dev/mapper/control c 10 236
	mount -t cgroup2 cgroup /cgroup && echo +io >/cgroup/cgroup.subtree_control &&
		mkdir /cgroup/flood /cgroup/modest || return
	for name in fairwq dm-crypt dm-crypt-fairwq; do
		insmod "/modules/$name.ko" || return
	done
	map original crypt /dev/ram0 && map port fairwq-crypt /dev/ram1
}

both() {
	for mode in read write; do
		for side in "$1" "$2"; do
			ask "$side" "$3" $mode crypt_client "/dev/$side" $mode "$seconds" || return
		done
	done
}

compare() {
	for side in original port; do
		sum=$(crypt_client sum "/dev/$side") && echo "sum $side $sum" >>/figures || return
	done
	cmp /dev/ram0 /dev/ram1
}

guest_main
