# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: GPL-2.0
#
# ports-lib.sh: what ports.sh, ports-smb.sh and ports-btrfs.sh share. They set $dir and $obj.
#
# PORTS_ROUNDS   how often each side is asked (5)
# PORTS_SECONDS  seconds of one measurement (2)
#
# Exit of each: 0 measured and all data right, 1 the checksums differ, 2 a build failed, 3
# the guest crashed, warned, found wrong data or did not finish. Figures never fail the run.

rounds=${PORTS_ROUNDS:-5}
seconds=${PORTS_SECONDS:-2}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "PORTS_ROUNDS is a number, not $rounds"

# build_fairwq FOLDER...: build fairwq. The folders of $dir have what is built against it.
build_fairwq() {
	mkdir -p "$dir"
	# Remove copies that were built against another kernel.
	[ "$(cat "$dir/obj" 2>/dev/null)" = "$obj" ] || (cd "$dir" && rm -rf src "$@")
	echo "$obj" >"$dir/obj"
	copy_sources "$dir/src" || return
	step "build fairwq" \
		make -C "$obj" ARCH=um M="$dir/src" -j"$jobs" KCFLAGS=-Werror modules
}

# build_against FOLDER: build its modules against the kernel and fairwq.
build_against() {
	make -C "$obj" ARCH=um M="$1" -j"$jobs" \
		KBUILD_EXTRA_SYMBOLS="$dir/src/Module.symvers" modules
}

# add_client CLIENT SCRIPT FLOODERS [NAME=VALUE...]: put the client into the guest, with so
# many threads that flood, the guest's script as its init, and the arguments of that.
add_client() {
	gcc -static -O2 -Wall -Wextra -Werror -DFLOODERS="$3" \
		-o "$dir/root/bin/$1" "$top/ports/$1.c" || return
	install -m 755 "$top/ports/$2" "$dir/root/init"
	cp "$top/ports/guest-lib.sh" "$dir/root/"
	shift 3
	printf '%s\n' "rounds=$rounds" "seconds=$seconds" "$@" >"$dir/root/ports.args"
	: >"$dir/root/figures"
}

# measure [ARGUMENT...]: boot the guest, judge how it ended, and print the table. The caller
# sets what boot.sh takes from the environment. The arguments are those of ports.py.
measure() {
	"$top/tools/boot.sh" uml "$obj" "$dir"
	cp "$dir/root/figures" "$dir/figures"
	if ! grep -qx 'end done' "$dir/figures" ||
		grep -aqE '\] (WARNING|BUG|Oops|Kernel panic|INFO: task)|Call Trace:' "$dir/console.log"; then
		say "the guest did not finish, or warned; see ${dir#"$top"/}/console.log"
		tail -n 15 "$dir/console.log" >&2
		return 3
	fi
	"$top/tools/ports.py" "$dir/figures" "$@" | tee "$dir/table.txt"
}
