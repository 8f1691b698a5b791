#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# sim.sh [SOURCE]: build and run tests/sim, which is tree.c in user space, against the
# red-black tree of the kernel source in that folder (6.1 by default). Prints the result.
# SEED=N sets the seed of all random numbers. Logs stay in build/sim.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/sim
sim=$top/tests/sim
src=${1:-}
bugs=(PICK_FROM_OLD_POINTER SAVED_CREDIT WEIGHT_IGNORED ESTIMATE_KEPT NEWCOMER_FIRST
	OLD_DEBT_KEPT LOW_BY_TURNS PLACE_LOST)

# picker NAME [OPTION...]: compile tree.c again, and hide its symbols except one table.
picker() {
	local name=$1
	shift
	gcc "${flags[@]}" -DPICKER="picker_$name" -DTREE_C="\"$dir/$name/core/tree.c\"" "$@" \
		-c "$sim/picker.c" -o "$dir/picker_$name.o" &&
		objcopy --keep-global-symbol="picker_$name" "$dir/picker_$name.o"
}

# sources NAME [BUG]: copy the sources of the picker, and plant the bug.
sources() {
	mkdir -p "$dir/$1/core"
	cp "$top/core/tree.c" "$dir/$1/core"
	[ $# -eq 1 ] || plant_bug "$2" "$dir/$1"
}

# picker_with BUG: compile a picker with the bug, named after it.
picker_with() {
	sources "${1,,}" "$1" && picker "${1,,}" -Wno-unused -Wno-unused-parameter
}

build() {
	local include=(-isystem "$src/tools/include" -isystem "$src/tools/include/uapi") f
	flags=(-O2 -g -std=gnu11 -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all)
	gcc "${flags[@]}" -w "${include[@]}" -c "$src/tools/lib/rbtree.c" -o "$dir/rbtree.o" || return
	flags+=(-Wall -Wextra -Werror -I"$sim/include" -I"$sim" -I"$top" -I"$top/core" "${include[@]}")
	for f in sound linear impatient; do sources "$f"; done
	for f in "${bugs[@]}"; do picker_with "$f" || return; done
	picker sound &&
		picker linear -DPICKER_LINEAR &&
		picker impatient -DPICKER_STARVE_LIMIT=640 || return
	for f in meter judge sim adversary fairwq_sim; do
		gcc "${flags[@]}" -c "$sim/$f.c" -o "$dir/$f.o" || return
	done
	gcc "${flags[@]}" -o "$dir/fairwq_sim" "$dir"/*.o -lm
}

main() {
	local rc=0
	rm -rf "$dir"
	mkdir -p "$dir"
	step "build the simulator" build || { echo "0 passed, 1 failed"; return 2; }
	cpu_limit 120 "$dir/fairwq_sim" >"$dir/ktap.log" 2>&1 || rc=$?
	"$top/tools/verdict.py" --program fairwq_sim "$dir/ktap.log" "$rc"
}

need_packages gcc binutils libc6-dev python3
[ -n "$src" ] || src=$("$top/tools/fetch.sh" source 6.1)
locked "$dir.lock" main
