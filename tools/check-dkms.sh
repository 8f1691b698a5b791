#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# check-dkms.sh: check dkms add, build and install for the distribution's kernel. They
# use folders of their own below build/. The machine is not changed, and loads no module.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/dkms
passed=0 failed=0

check() {
	local name=$1
	shift
	if step "$name" "$@"; then
		echo "ok   $name"
		passed=$((passed + 1))
	else
		echo "FAIL $name"
		failed=$((failed + 1))
	fi
}

private_dkms() {
	local action=$1
	shift
	dkms "$action" --dkmstree "$dir/tree" --sourcetree "$dir/src" \
		--installtree "$dir/lib/modules" --no-depmod "$@"
}

only_ours_installed() {
	local found
	found=$(find "$dir/lib/modules" -type f -name '*.ko*' -printf '%f\n')
	echo "installed: $found"
	[ "$found" = fairwq.ko ] && modinfo "$(find "$dir/lib/modules" -name fairwq.ko)"
}

main() {
	local version kernel
	version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$top/dkms.conf")
	kernel=$(find /lib/modules -mindepth 2 -maxdepth 2 -name build -printf '%P\n' |
		sed -n 's,/build$,,p' | grep '^6\.1\.' | sort -V | tail -n 1)
	rm -rf "$dir"
	mkdir -p "$dir/tree" "$dir/lib/modules/$kernel"
	copy_sources "$dir/src/fairwq-$version"
	check "dkms add" private_dkms add "fairwq/$version"
	check "dkms build for $kernel" private_dkms build "fairwq/$version" -k "$kernel"
	check "dkms install for $kernel" private_dkms install "fairwq/$version" -k "$kernel"
	check "fairwq.ko alone is installed" only_ours_installed
	check "what it exports is kept for clients" \
		grep fairwq_pool_create "$dir/tree/fairwq/kernel-$kernel-$(uname -m)/Module.symvers"
	check "dkms remove" private_dkms remove "fairwq/$version" --all
	echo "$passed passed, $failed failed"
	[ "$failed" -eq 0 ]
}

need_packages "${build_packages[@]}" dkms linux-headers-amd64
locked "$dir.lock" main
