#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# builtin.sh VERSION: put fairwq into a kernel tree, as Documentation/fairwq.rst
# says, build it in together with the clients in tests/builtin, and boot that
# kernel as user-mode Linux. Logs stay in build/builtin-VERSION.
#
# Exit: as check.sh.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=${1:?usage: builtin.sh VERSION}
dir=$top/build/builtin-$version
tree=$dir/tree
obj=$dir/obj

# The files are those of the cache, by hard link: each that is changed here has to
# be replaced, as rsync and sed -i do, and never written to.
plant() {
	if [ "$(cat "$dir/source" 2>/dev/null)" != "$source" ]; then
		rm -rf "$tree" "$obj"
		mkdir -p "$dir"
		cp -al "$source" "$tree" 2>/dev/null || { rm -rf "$tree" && cp -a "$source" "$tree"; }
		# shellcheck disable=SC2016 # for make
		sed -i '$a obj-$(CONFIG_FAIRWQ) += fairwq/' "$tree/lib/Makefile"
		sed -i '$a source "lib/fairwq/Kconfig"' "$tree/lib/Kconfig"
		echo "$source" >"$dir/source"
	fi
	copy_sources "$tree/lib/fairwq"
}

configure() {
	local fragment=$top/tests/configs line
	mkdir -p "$obj"
	make -C "$tree" O="$obj" ARCH=um defconfig &&
		(cd "$obj" && ARCH=um "$tree/scripts/kconfig/merge_config.sh" -m -O "$obj" \
			.config "$fragment/uml.config" "$fragment/builtin.config") &&
		make -C "$obj" ARCH=um olddefconfig || return
	for line in CONFIG_FAIRWQ=y CONFIG_FAIRWQ_BUILTIN_TEST=y CONFIG_DEBUG_FS=y; do
		grep -qx "$line" "$obj/.config" || { echo "not in the configuration: $line"; return 1; }
	done
}

build() {
	make -C "$obj" ARCH=um -j"$jobs" linux
}

fill_root() {
	local name
	rm -rf "$dir/root"
	mkdir -p "$dir/root"/{bin,dev,proc,sys,tmp}
	cp /bin/busybox "$dir/root/bin/"
	for name in $(/bin/busybox --list | grep -vx busybox); do
		ln -s busybox "$dir/root/bin/$name"
	done
	cp "$top/tests/init.sh" "$dir/root/init"
	chmod 755 "$dir/root/init"
	: >"$dir/root/plan"
	echo fairwq_builtin >"$dir/suites"
}

main() {
	local rc=0
	step "put fairwq into a tree of $version" plant || return 2
	[ "$obj/.config" -nt "$tree/lib/fairwq/Kconfig" ] &&
		[ "$obj/.config" -nt "$top/tests/configs/builtin.config" ] ||
		step "configure it" configure || return 2
	step "build it, 3 to 6 minutes on 2 cores" build || return 2
	fill_root
	"$top/tools/boot.sh" uml "$obj" "$dir"
	"$top/tools/verdict.py" "$dir" "$tree/tools/testing/kunit/kunit.py" >"$dir/verdict.log" ||
		rc=$?
	cat "$dir/verdict.log"
	return $rc
}

need_packages "${build_packages[@]}" busybox-static
source=$("$top/tools/fetch.sh" source "$version") || exit 2
locked "$dir.lock" main
