#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# plant.sh FROM DIR CONFIG... [NAME=VALUE...]: put fairwq into a kernel tree, as
# Documentation/usage.rst tells users to do. Build it as user-mode Linux with fairwq in
# the kernel itself. The tree is DIR/tree, the kernel DIR/tree/objects/linux.
#
# FROM is a kernel's source, or the build folder of a kernel whose objects were kept
# (tools/kernel.sh). From a source all is compiled, from a build folder only what differs.
# Each CONFIG names a fragment in tests/configs. NAME=VALUE is for make.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage='usage: plant.sh FROM DIR CONFIG... [NAME=VALUE...]'
from=${1:?$usage}
dir=${2:?$usage}
shift 2
tree=$dir/tree
obj=$tree/objects
fragments=() values=()
for word in "$@"; do
	case $word in
	*=*) values+=("$word") ;;
	*) fragments+=("$top/tests/configs/$word.config") ;;
	esac
done

# Copy the tree by hard links to the cache. So a file that changes here must be replaced,
# as rsync and sed -i do, and never be written to. Objects are copied.
copy_tree() {
	local home=${from%/objects}
	cp -al "$home" "$tree" 2>/dev/null || { rm -rf "$tree" && cp -a "$home" "$tree"; } || return
	[ "$home" = "$from" ] || { rm -rf "$obj" && cp -a "$from" "$obj"; }
}

plant() {
	if [ "$(cat "$dir/from" 2>/dev/null)" != "$from" ]; then
		rm -rf "$tree"
		mkdir -p "$dir"
		copy_tree || return
		# shellcheck disable=SC2016 # for make
		sed -i '$a obj-$(CONFIG_FAIRWQ) += fairwq/' "$tree/lib/Makefile"
		sed -i '$a source "lib/fairwq/Kconfig"' "$tree/lib/Kconfig"
		echo "$from" >"$dir/from"
	fi
	copy_sources "$tree/lib/fairwq"
}

is_configured() {
	local of
	for of in "$tree/lib/fairwq/Kconfig" "${fragments[@]}"; do
		[ "$dir/configured" -nt "$of" ] || return
	done
	[ "$dir/configured" -nt "$dir/from" ]
}

configure() {
	mkdir -p "$obj"
	if [ "${from##*/}" = objects ]; then
		cp "$from/.config" "$obj/.config"
	else
		make -C "$tree" O="$obj" ARCH=um defconfig
	fi || return
	(cd "$obj" && ARCH=um "$tree/scripts/kconfig/merge_config.sh" -m -O "$obj" \
		.config "${fragments[@]}") &&
		make -C "$tree" O="$obj" ARCH=um olddefconfig &&
		check_config "$obj/.config" "${fragments[@]}" && touch "$dir/configured"
}

build() {
	make -C "$tree" O="$obj" ARCH=um -j"$jobs" "${values[@]}" linux
}

step "put fairwq into a kernel tree" plant
is_configured || step "configure it" configure
step "build the kernel" build
