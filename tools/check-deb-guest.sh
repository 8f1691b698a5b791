#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# check-deb-guest.sh STEP: the first process of check-deb.sh's guest, on the stock
# kernel and on the root to which the packages were installed. Says what it sees on
# the second serial line, and "guest: done" if all of it was as it must be.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
exec >/dev/ttyS1 2>&1 </dev/null

say() { echo "guest: $*"; }

# Both modules come from where DKMS has put them, by their names alone.
module_and_client() {
	modprobe -v fairwq && modprobe -v fairwq_hello || return
	say "module $(cat /sys/module/fairwq/version)"
	say "used by $(ls /sys/module/fairwq/holders)"
	say "greetings $(dmesg | grep -c 'hello from')"
	say "debugfs $(cat /sys/kernel/debug/fairwq/version)"
}

man_and_tools() {
	man -w fairwq_queue fairwq-top && fairwq-top --once
}

# As under Secure Boot: tables can be read, knobs not, and what is signed with a key that
# the kernel does not know is not loaded again.
lock_down() {
	mount -t securityfs securityfs /sys/kernel/security &&
		echo integrity >/sys/kernel/security/lockdown &&
		cat /sys/kernel/debug/fairwq/hello/summary &&
		! cat /sys/kernel/debug/fairwq/hello/max_active &&
		modinfo -F signer fairwq && modprobe -r fairwq_hello && ! modprobe fairwq_hello
}

# As an operator does it, with the module in use until then.
purge() {
	modprobe -r fairwq_hello && dkms remove fairwq-hello/1.0 --all &&
		rm -r /usr/src/fairwq-hello-1.0 && modprobe -r fairwq &&
		apt-get purge -qy -o Dpkg::Use-Pty=0 'fairwq-*' && ! modinfo fairwq 2>/dev/null
}

mount -t debugfs debugfs /sys/kernel/debug
case $1 in
use) module_and_client && man_and_tools && lock_down ;;
purge) module_and_client && purge ;;
*) false ;;
esac && say "done"
sync
echo o >/proc/sysrq-trigger
while :; do :; done
