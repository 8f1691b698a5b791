#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scaling.sh: put the bench into one file that can be carried to a machine with more CPUs.
# That machine needs no kernel of its own, no compiler and no root: an x86-64 Linux, bash
# and python3. There
#
#   tar -xzf scaling.tar.gz && scaling/run
#
# boots user-mode Linux with as many CPUs as the machine has, and asks the rows of the
# bench that have 1 to 16 runners. It takes less than five minutes, and leaves table.txt
# and samples.txt in the folder scaling. The file is build/scaling.tar.gz.
#
# BENCH_ROUNDS  rounds in which every side is asked (7)
# BENCH_ROWS    rows to ask, with commas, by their names or by how these begin (runners)

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/scaling
carry=$dir/scaling

fill_carry() {
	local file
	rm -rf "$carry"
	mkdir -p "$carry/tools"
	strip -o "$carry/linux" "$dir/tree/objects/linux" || return
	make_root "$carry/root"
	install -m 755 "$top/tools/bench-guest.sh" "$carry/root/init"
	printf '%s\n' "rounds=${BENCH_ROUNDS:-7}" "rows=${BENCH_ROWS:-runners}" \
		>"$carry/root/bench.args"
	for file in lib.sh boot.sh guest.py bench.py verdict.py; do
		cp "$top/tools/$file" "$carry/tools/"
	done
	install -m 755 "$top/tools/scaling-run.sh" "$carry/run"
	tar -C "$dir" -czf "$dir.tar.gz" scaling
}

main() {
	"$top/tools/plant.sh" "$obj" "$dir" linked scaling CONFIG_FAIRWQ_BENCH=y || return
	step "put the bench into one file" fill_carry || return
	say "Copy build/scaling.tar.gz to a machine with more CPUs. Run there:"
	say "  tar -xzf scaling.tar.gz && scaling/run"
}

need_packages "${build_packages[@]}" busybox-static
obj=$("$top/tools/kernel.sh" 7.3 uml native) || exit 2
locked "$dir.lock" main
