#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# sim-many.sh [SOURCE]: build and run tests/sim/manycpu.c with tree.c, against the red-black
# tree of the kernel source in that folder (6.1 by default). Prints tables, of which
# Documentation/design.rst has the sum, and the result. Logs stay in build/sim-many.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/sim-many
sim=$top/tests/sim
src=${1:-}

build() {
	local include=(-isystem "$src/tools/include" -isystem "$src/tools/include/uapi") flags
	flags=(-O2 -g -std=gnu11 -fsanitize=undefined -fno-sanitize-recover=all)
	gcc "${flags[@]}" -w "${include[@]}" -c "$src/tools/lib/rbtree.c" -o "$dir/rbtree.o" || return
	flags+=(-Wall -Wextra -Werror -I"$sim/include" -I"$sim" -I"$top" -I"$top/core" "${include[@]}")
	gcc "${flags[@]}" -DPICKER=picker_sound -o "$dir/manycpu" \
		"$sim"/{picker,meter,manycpu}.c "$dir/rbtree.o"
}

main() {
	local rc=0
	rm -rf "$dir"
	mkdir -p "$dir"
	step "build the simulation of many CPUs" build || { echo "0 passed, 1 failed"; return 2; }
	cpu_limit 120 "$dir/manycpu" >"$dir/ktap.log" 2>&1 || rc=$?
	sed -n '/^#$/,$s/^# \?//p' "$dir/ktap.log"
	"$top/tools/verdict.py" --program manycpu "$dir/ktap.log" "$rc"
}

need_packages gcc libc6-dev python3
[ -n "$src" ] || src=$("$top/tools/fetch.sh" source 6.1)
locked "$dir.lock" main
