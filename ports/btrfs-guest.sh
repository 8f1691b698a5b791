#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The guest of tools/ports-btrfs.sh: the original btrfs and the port are loaded in turns,
# each with a new file system on the same RAM disk. After each turn the file system is
# mounted again, all data compared, scrubbed and checked.

# shellcheck source=guest-lib.sh
. /guest-lib.sh

# The disk gets its memory now, and not when one side is measured.
prepare() {
	dd if=/dev/zero of=/dev/ram0 bs=1M count="$disk_mib" 2>/dev/null && sync || return
	mkdir -p /mnt /var/lib/btrfs
	for name in fairwq libblake2b xor raid6_pq; do
		insmod "/modules/$name.ko" || return
	done
}

# $1: original or port; $2: round
unmount() {
	ms=$(btrfs_client umount /mnt) || return
	figure "umount $1 $2 $ms"
}

# It warns that it has no socket for its progress, because the kernel has no network.
scrub() {
	btrfs scrub start -B /mnt >/tmp/scrub 2>&1 && return
	cat /tmp/scrub >&2
	return 1
}

# $1: original or port
verify() {
	mount -t btrfs -o compress=zstd /dev/ram0 /mnt && records=$(btrfs_client check /mnt) &&
		scrub && umount /mnt &&
		btrfs check /dev/ram0 >/dev/kmsg 2>&1 && echo "sum $1 $records" >>/figures
}

# $1: original or port; $2: round
turn() {
	insmod "/modules/$1/btrfs.ko" && mkfs.btrfs -q -f -K /dev/ram0 &&
		mount -t btrfs -o compress=zstd /dev/ram0 /mnt && btrfs_client make /mnt || return
	ask "$1" "$2" write btrfs_client /mnt "$seconds" && unmount "$1" "$2" &&
		verify "$1" && rmmod btrfs
}

guest_main
