#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The guest of tools/ports-btrfs.sh: the original btrfs and the port are loaded in turns,
# each with a new file system on the same RAM disk. After each turn the file system is
# mounted again, all data compared, scrubbed and checked.
# Settings are in /ports.args, figures in /figures.

export PATH=/bin:/sbin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
rounds=0 seconds=0 disk_mib=0
. /ports.args

# The disk gets its memory now, and not when one side is measured.
prepare() {
	dd if=/dev/zero of=/dev/ram0 bs=1M count="$disk_mib" 2>/dev/null && sync || return
	mkdir -p /mnt /var/lib/btrfs
	for name in fairwq libblake2b xor raid6_pq; do
		insmod "/modules/$name.ko" || return
	done
}

# $1: original or port; $2: round; $3: how the modest writer writes
ask() {
	line=$(btrfs_client "$3" /mnt "$seconds") || return
	echo "$3 $1 $2 write $line" | tee -a /figures >/dev/kmsg
}

# $1: original or port; $2: round
unmount() {
	ms=$(btrfs_client umount /mnt) || return
	echo "umount $1 $2 $ms" | tee -a /figures >/dev/kmsg
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
	for with in alone round eager; do ask "$1" "$2" $with || return; done
	unmount "$1" "$2" && verify "$1" && rmmod btrfs
}

# What is asked first changes from round to round.
measure() {
	round=1
	while [ "$round" -le "$rounds" ]; do
		if [ $((round % 2)) = 1 ]; then
			turn original "$round" && turn port "$round" || return
		else
			turn port "$round" && turn original "$round" || return
		fi
		round=$((round + 1))
	done
}

end=failed
! { prepare && measure; } 2>/dev/kmsg || end="done"
echo "end $end" >>/figures
poweroff -f
