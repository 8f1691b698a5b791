#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# builtin.sh VERSION: put fairwq into a kernel tree, as Documentation/usage.rst tells
# users to do. Build it in together with the clients in tests/builtin, and boot that
# kernel as user-mode Linux. Logs stay in build/builtin-VERSION.
#
# Exit: as check.sh.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version=${1:?usage: builtin.sh VERSION}
dir=$top/build/builtin-$version
tree=$dir/tree

fill_root() {
	make_root "$dir/root"
	cp "$top/tests/init.sh" "$dir/root/init"
	chmod 755 "$dir/root/init"
	: >"$dir/root/plan"
	echo fairwq_builtin >"$dir/suites"
}

main() {
	local rc=0
	"$top/tools/plant.sh" "$source" "$dir" uml builtin || return 2
	fill_root
	"$top/tools/boot.sh" uml "$tree/objects" "$dir"
	"$top/tools/verdict.py" "$dir" "$tree/tools/testing/kunit/kunit.py" >"$dir/verdict.log" ||
		rc=$?
	cat "$dir/verdict.log"
	return $rc
}

need_packages "${build_packages[@]}" busybox-static
source=$("$top/tools/fetch.sh" source "$version") || exit 2
locked "$dir.lock" main
