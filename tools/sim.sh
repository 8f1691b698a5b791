#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# sim.sh [SOURCE]: build tests/sim, pick.c in user space, against the red-black
# tree of the kernel source in that folder (6.1, if none is given), run it, and
# say how it went. SEED=N: other numbers. Logs stay in build/sim.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/sim
sim=$top/tests/sim
src=${1:-}

# picker NAME OPTION...: pick.c once more; of its symbols one table is seen.
picker() {
	local name=$1
	shift
	gcc "${flags[@]}" -DPICKER="picker_$name" "$@" -c "$sim/picker.c" -o "$dir/picker_$name.o" &&
		objcopy --keep-global-symbol="picker_$name" "$dir/picker_$name.o"
}

build() {
	local include=(-isystem "$src/tools/include" -isystem "$src/tools/include/uapi") f
	flags=(-O2 -g -std=gnu11 -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all)
	gcc "${flags[@]}" -w "${include[@]}" -c "$src/tools/lib/rbtree.c" -o "$dir/rbtree.o" || return
	flags+=(-Wall -Wextra -Werror -I"$sim/include" -I"$sim" -I"$top" "${include[@]}")
	picker sound &&
		picker old_pointer -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_PICK_FROM_OLD_POINTER &&
		picker saved_credit -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_SAVED_CREDIT &&
		picker weight_ignored -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_WEIGHT_IGNORED &&
		picker estimate_kept -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_ESTIMATE_KEPT &&
		picker newcomer_first -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_NEWCOMER_FIRST &&
		picker old_debt_kept -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_OLD_DEBT_KEPT &&
		picker place_lost -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_PLACE_LOST &&
		picker low_by_turns -DFAIRWQ_MUTANT=FAIRWQ_MUTANT_LOW_BY_TURNS &&
		picker linear -DPICKER_LINEAR &&
		picker impatient -DPICKER_PATIENCE=640 || return
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
	timeout 120 "$dir/fairwq_sim" >"$dir/ktap.log" 2>&1 || rc=$?
	"$top/tools/verdict.py" --program fairwq_sim "$dir/ktap.log" "$rc"
}

need_packages gcc binutils libc6-dev python3
[ -n "$src" ] || src=$("$top/tools/fetch.sh" source 6.1)
locked "$dir.lock" main
