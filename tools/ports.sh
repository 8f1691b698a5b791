#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ports.sh: measure what a driver gains by fairwq. It builds the kernel's own dm-crypt and
# a port of it (ports/dm-crypt.patch) with the same flags. One boot of 7.3 as user-mode
# Linux with 2 CPUs loads both, and measures them by turns: a modest reader beside a flood,
# in two cgroups. build/ports has table.txt, figures (a line each) and console.log.
#
# PORTS_ROUNDS   how often each is asked (5)
# PORTS_SECONDS  seconds of one measurement (2)
#
# Exit: 0 measured and all data right, 1 the checksums differ, 2 the build failed, 3 the
# guest crashed, warned, found wrong data or did not finish. Figures never fail the run.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/ports
rounds=${PORTS_ROUNDS:-5}
seconds=${PORTS_SECONDS:-2}
disk_mib=64

build_fairwq() {
	make -C "$obj" ARCH=um M="$dir/src" -j"$jobs" KCFLAGS=-Werror modules
}

# Build the original and the port, both out of tree and with the same flags.
build_drivers() {
	local md
	md=$(readlink -f "$obj/source")/drivers/md
	mkdir -p "$dir/drivers"
	cp "$md/dm-crypt.c" "$dir/drivers/dm-crypt.c" &&
		cp "$md/dm-crypt.c" "$dir/drivers/dm-crypt-fairwq.c" &&
		patch -s --no-backup-if-mismatch "$dir/drivers/dm-crypt-fairwq.c" \
			"$top/ports/dm-crypt.patch" || return
	printf '%s\n' 'obj-m := dm-crypt.o dm-crypt-fairwq.o' "ccflags-y := -I$md -I$dir/src" \
		>"$dir/drivers/Kbuild"
	make -C "$obj" ARCH=um M="$dir/drivers" -j"$jobs" \
		KBUILD_EXTRA_SYMBOLS="$dir/src/Module.symvers" modules
}

fill_root() {
	local name
	rm -rf "$dir/root"
	mkdir -p "$dir/root"/{bin,dev,proc,sys,tmp,cgroup,modules}
	cp /bin/busybox "$dir/root/bin/"
	for name in $(/bin/busybox --list | grep -vx busybox); do
		ln -s busybox "$dir/root/bin/$name"
	done
	gcc -static -O2 -Wall -Wextra -Werror -o "$dir/root/bin/crypt_client" \
		"$top/ports/crypt_client.c" || return
	install -m 755 "$top/ports/guest.sh" "$dir/root/init"
	cp "$dir/src/fairwq.ko" "$dir"/drivers/*.ko "$dir/root/modules/"
	printf '%s\n' "rounds=$rounds" "seconds=$seconds" >"$dir/root/ports.args"
	: >"$dir/root/figures"
}

main() {
	mkdir -p "$dir"
	# Remove a copy that was built against another kernel.
	[ "$(cat "$dir/obj" 2>/dev/null)" = "$obj" ] || rm -rf "$dir/src" "$dir/drivers"
	echo "$obj" >"$dir/obj"
	copy_sources "$dir/src"
	step "build fairwq" build_fairwq || return 2
	step "build dm-crypt and its port" build_drivers || return 2
	step "put the guest together" fill_root || return 2
	FAIRWQ_CPUS=2 FAIRWQ_TIMEOUT=800 \
		FAIRWQ_APPEND="brd.rd_nr=2 brd.rd_size=$((disk_mib << 10))" \
		"$top/tools/boot.sh" uml "$obj" "$dir"
	cp "$dir/root/figures" "$dir/figures"
	if ! grep -qx 'end done' "$dir/figures" ||
		grep -aqE '\] (WARNING|BUG|Oops|Kernel panic|INFO: task)|Call Trace:' "$dir/console.log"; then
		say "the guest did not finish, or warned; see ${dir#"$top"/}/console.log"
		tail -n 15 "$dir/console.log" >&2
		return 3
	fi
	"$top/tools/ports.py" "$dir/figures" | tee "$dir/table.txt"
}

[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "PORTS_ROUNDS is a number, not $rounds"
need_packages "${build_packages[@]}" busybox-static
obj=$("$top/tools/kernel.sh" 7.3 uml native ports) || exit 2
locked "$dir.lock" main
