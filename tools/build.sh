#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# build.sh OBJ ARCH DIR [NAME=VALUE...]: build the module, its tests and its samples
# against the kernel in OBJ, and the user-space tests, in a copy of the sources,
# DIR/src. DIR/root is then the file system of the guest.
#
# FAIRWQ_SUITES  the suites and programs to run, instead of all of them. The names of
#                tests/queue_kunit.c are queue, fairwq_queue and fairwq_queue_kunit

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

obj=${1:?usage: build.sh OBJ ARCH DIR [NAME=VALUE...]}
arch=${2:?usage: build.sh OBJ ARCH DIR [NAME=VALUE...]}
dir=${3:?usage: build.sh OBJ ARCH DIR [NAME=VALUE...]}
shift 3

build_modules() {
	make -C "$obj" ARCH="$arch" M="$dir/src" -j"$jobs" \
		CONFIG_FAIRWQ_KUNIT_TEST=m CONFIG_FAIRWQ_SAMPLES=m KCFLAGS=-Werror "$@" modules
}

# Print the names of the user-space tests that must run.
user_tests() {
	find "$top/tests/user" -name '*.c' -printf '%f\n' 2>/dev/null |
		sed 's/\.c$//' | sort | wanted
}

# Read names, and print those that must run.
wanted() {
	local name word
	while read -r name; do
		[ -n "${FAIRWQ_SUITES:-}" ] || echo "$name"
		for word in ${FAIRWQ_SUITES:-}; do
			case $name in "$word" | "${word}_kunit" | "fairwq_${word}_kunit") echo "$name" ;; esac
		done
	done
}

build_user() {
	local t
	for t in $(user_tests); do
		gcc -static -O1 -g -Wall -Wextra -Werror -pthread -I"$top" \
			-o "$dir/root/user/$t" "$top/tests/user/$t.c"
	done
}

# Make the guest's file system: busybox, its links, modules and tests.
fill_root() {
	make_root "$dir/root" modules user
	cp "$top/tests/init.sh" "$dir/root/init"
	chmod 755 "$dir/root/init"
	find "$dir/src" "$obj/lib/kunit" -name '*.ko' -exec cp -t "$dir/root/modules" {} +
	build_user
}

# Print the suite modules that must run.
modules() {
	suite_modules | wanted
}

# Print the steps of the guest, in order. init.sh does them and reports on each, and
# verdict.py expects each to succeed.
plan() {
	local c t need
	printf 'insmod %s\n' kunit fairwq
	# shellcheck disable=SC2046 # to be split
	suite_steps $(modules)
	load_each fairwq_hello fairwq_resolver fairscan
	for t in $(user_tests); do
		need=$(sed -n 's/.*Needs: *\([a-z0-9_ ]*\).*/\1/p; /\*\//q' "$top/tests/user/$t.c")
		for c in $need; do echo "insmod $c"; done
		echo "user $t"
		for c in $need; do echo "rmmod $c"; done
	done
	printf 'rmmod %s\n' fairwq kunit
	echo 'unloaded all'
}

# Print the names that verdict.py must see run: every suite of the sources, and the
# programs.
expected() {
	# shellcheck disable=SC2046 # to be split
	suites_in $(modules)
	user_tests
}

# Remove a copy that was built against another kernel.
[ "$(cat "$dir/obj" 2>/dev/null)" = "$obj" ] || rm -rf "$dir/src"
mkdir -p "$dir"
echo "$obj" >"$dir/obj"
copy_sources "$dir/src"
step "build fairwq and its tests" build_modules "$@"
step "put the guest together" fill_root
plan >"$dir/root/plan"
expected >"$dir/suites"
