#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scaling.sh: put the bench into one file that can be carried to a machine with more CPUs.
# That machine needs no kernel of its own, no compiler and no root: an x86-64 Linux with
# GNU tools and python 3.8. There
#
#   tar -xzf scaling.tar.gz && scaling/run
#
# boots user-mode Linux with as many CPUs as the machine has, and asks the rows of the
# bench that have 1 to 16 runners. It leaves table.txt and samples.txt in the folder
# scaling. The file is build/scaling.tar.gz.
#
# BENCH_ROUNDS  rounds in which every side is asked (7)
# BENCH_ROWS    rows to ask, with commas, by their names or by how these begin (runners)

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/scaling
carry=$dir/scaling
rounds=${BENCH_ROUNDS:-7} rows=${BENCH_ROWS:-runners}

fill_carry() {
	rm -rf "$carry" &&
		mkdir -p "$carry/tools" &&
		strip -o "$carry/linux" "$dir/tree/objects/linux" &&
		make_root "$carry/root" &&
		install -m 755 "$top/tools/bench-guest.sh" "$carry/root/init" &&
		printf '%s\n' "rounds=$rounds" "rows=$rows" >"$carry/root/bench.args" &&
		cp "$top"/tools/{lib.sh,boot.sh,guest.py,bench.py,verdict.py} "$carry/tools/" &&
		install -m 755 "$top/tools/scaling-run.sh" "$carry/run" &&
		tar -C "$dir" -czf "$dir.tar.gz" scaling
}

main() {
	"$top/tools/plant.sh" "$obj" "$dir" linked scaling CONFIG_FAIRWQ_BENCH=y || return
	step "put the bench into one file" fill_carry || return
	say "Copy build/scaling.tar.gz to a machine with more CPUs. Run there:"
	say "  tar -xzf scaling.tar.gz && scaling/run"
}

[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "BENCH_ROUNDS is a number, not $rounds"
[[ $rows =~ ^[a-z0-9_,]*$ ]] || die "BENCH_ROWS is a list of names, not $rows"
need_packages "${build_packages[@]}" busybox-static
obj=$("$top/tools/kernel.sh" 7.3 uml native) || exit 2
locked "$dir.lock" main
