#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The guest of the ports: the original dm-crypt and the port, each on a RAM disk of
# its own, are asked in turns. Settings are in /ports.args, figures in /figures.

export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/mapper
rounds=0 seconds=0
. /ports.args

prepare() {
	[ -e /dev/mapper/control ] || mknod /dev/mapper/control c 10 236
	mount -t cgroup2 cgroup /cgroup && echo +io >/cgroup/cgroup.subtree_control &&
		mkdir /cgroup/flood /cgroup/modest || return
	for name in fairwq dm-crypt dm-crypt-fairwq; do
		insmod "/modules/$name.ko" || return
	done
	original=/dev/dm-$(crypt_client map original crypt /dev/ram0) &&
		port=/dev/dm-$(crypt_client map port fairwq-crypt /dev/ram1) &&
		crypt_client fill "$original" && crypt_client fill "$port"
}

# $1: a line's kind, original or port; $2: its device; $3: round; $4: read or write
ask() {
	for with in alone round eager; do
		line=$(crypt_client $with "$2" "$4" "$seconds") || return
		echo "$with $1 $3 $4 $line" | tee -a /figures >/dev/kmsg
	done
}

# What is asked first changes from round to round.
measure() {
	round=1
	while [ "$round" -le "$rounds" ]; do
		for mode in read write; do
			if [ $((round % 2)) = 1 ]; then
				ask original "$original" "$round" $mode &&
					ask port "$port" "$round" $mode || return
			else
				ask port "$port" "$round" $mode &&
					ask original "$original" "$round" $mode || return
			fi
		done
		round=$((round + 1))
	done
	sum=$(crypt_client sum "$original") && echo "sum original $sum" >>/figures &&
		sum=$(crypt_client sum "$port") && echo "sum port $sum" >>/figures &&
		cmp /dev/ram0 /dev/ram1
}

end=failed
! { prepare && measure; } 2>/dev/kmsg || end="done"
echo "end $end" >>/figures
poweroff -f
