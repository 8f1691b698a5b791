#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# check-deb-guest.sh STEP: the first process of check-deb.sh's guest. The guest has the
# stock kernel and the root in which the packages are installed. It reports on the second
# serial line, and ends with "guest: done" if all checks have passed.

export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
exec >/dev/ttyS1 2>&1 </dev/null

say() { echo "guest: $*"; }

# Load both modules by name, from the folder of DKMS.
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

# Lock the kernel down, as Secure Boot does. Tables must be readable, and knobs not. A
# module whose key the kernel does not know must be refused.
lock_down() {
	mount -t securityfs securityfs /sys/kernel/security &&
		echo integrity >/sys/kernel/security/lockdown &&
		cat /sys/kernel/debug/fairwq/hello/summary &&
		! cat /sys/kernel/debug/fairwq/hello/max_active &&
		modinfo -F signer fairwq && modprobe -r fairwq_hello && ! modprobe fairwq_hello
}

# Purge the packages as an operator does, after the modules were in use.
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
