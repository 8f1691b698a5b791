#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# bench.sh: measure the cost of fairwq beside that of workqueues and kthreads. It boots
# 7.3 as user-mode Linux, where kernel code runs natively. Interrupts and barriers cost
# the same as on hardware (tests/configs/native.patch). fairwq and the bench are in the
# kernel itself, as workqueues are. One boot asks every row of every side.
#
# build/bench then has result.txt (key=value), table.txt, samples.txt (one line each) and
# console.log. tools/bench.py documents the keys. Figures never fail the run. If rows of
# forks are asked, oneTBB runs the same programs in user space: half of the rounds before
# the boot, half after.
#
# BENCH_ROUNDS  rounds in which every side is asked (7; fewer than 5 say little)
# BENCH_ROWS    rows to ask, with commas, by their names or by how these begin (all)
# BENCH_SIDES   sides to ask, with commas (all)
# BENCH_PROFILE 1: profile the time of an item by perf on the host, in profile.txt.
#               Figures of such a run include the time of perf. One row and one
#               side: empty_1 and fairwq, unless BENCH_ROWS and BENCH_SIDES are set
# BENCH_BUILT   linked, or modules: these call the kernel and each other through a
#               register on user-mode Linux
# BENCH_KERNEL  uml-native. uml: there each change of the interrupt flag is a system call
#               of the host, a hundred times too dear; as modules only
# BENCH_IDLE    poll: idle CPUs wait for work in a loop. sleep: they sleep in the host, and
#               a signal wakes them, twenty times too dear. (poll, if there are as many
#               real CPUs as virtual ones)
# BENCH_CPUS    virtual CPUs, 1 to 8 (2). With more of them than free real CPUs the
#               run measures the host's scheduler: the holder of a contended lock
#               loses its CPU, and the others spin
# FAIRWQ_APPEND more for the kernel's command line
# BENCH_LIMIT   seconds for the whole run, in which no CPU is taken from it (600)
#
# Exit: 0 measured, 2 the build failed, 3 the guest crashed, warned or did not
# finish, 124 it hung.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

dir=$top/build/bench
rounds=${BENCH_ROUNDS:-7}
profile=${BENCH_PROFILE:-}
rows=${BENCH_ROWS:-${profile:+empty_1}}
sides=${BENCH_SIDES:-${profile:+fairwq}}
cpus=${BENCH_CPUS:-2}
limit=${BENCH_LIMIT:-600}
kernel=${BENCH_KERNEL:-uml-native}
idle=${BENCH_IDLE:-$([ "$kernel" = uml ] || [ "$cpus" -gt "$jobs" ] && echo sleep || echo poll)}
built=${BENCH_BUILT:-$([ "$kernel" = uml ] && echo modules || echo linked)}

# Build the modules that users load, without tests and without code for tests.
build_modules() {
	make -C "$1" ARCH=um M="$dir/src" -j"$jobs" CONFIG_FAIRWQ_BENCH=m \
		KCFLAGS=-Werror modules
}

fill_root() {
	make_root "$dir/root" modules
	install -m 755 "$top/tools/bench-guest.sh" "$dir/root/init"
	[ "$built" = linked ] ||
		cp "$dir/src/fairwq.ko" "$dir/src/bench/fairwq_bench.ko" "$dir/root/modules/"
	printf '%s\n' "rounds=$rounds" "rows=$rows" "sides=$sides" >"$dir/root/bench.args"
	[ -z "$profile" ] || mkdir "$dir/root/profiler"
}

build() {
	if [ "$built" = linked ]; then
		"$top/tools/plant.sh" "$obj" "$dir" linked CONFIG_FAIRWQ_BENCH=y || return
		obj=$dir/tree/objects
		return
	fi
	# Remove a copy that was built against another kernel.
	[ "$(cat "$dir/obj" 2>/dev/null)" = "$obj" ] || rm -rf "$dir/src"
	echo "$obj" >"$dir/obj"
	copy_sources "$dir/src"
	step "build fairwq and the bench" build_modules "$obj"
}

# Boot the guest. A profile begins when the guest is ready, so that it does not have the
# boot. A sample of it stands for one period of CPU time.
period_ns=100000
boot() {
	local control=$dir/control wrap
	if [ -z "$profile" ]; then
		"$top/tools/boot.sh" uml "$obj" "$dir"
		return
	fi
	rm -f "$control" "$dir"/perf.data*
	mkfifo "$control"
	wrap="perf record -q -e cpu-clock -c $period_ns -D -1 --control fifo:$control"
	(
		until [ -e "$dir/root/profiler/ready" ]; do sleep 0.1; done
		echo enable >"$control"
		sleep 0.2
		touch "$dir/root/profiler/begun"
	) &
	FAIRWQ_WRAP="$wrap -o $dir/perf.data --" "$top/tools/boot.sh" uml "$obj" "$dir"
	kill $! 2>/dev/null || true
}

# Print the profile of all CPUs together. It includes the setup of the bench's samples.
# Rows of forks count no items.
say_profile() {
	local items unit="% of CPU time"
	items=$(sed -n 's/^items=//p' "$dir/result.txt")
	[ "$items" -eq 0 ] || unit="ns of CPU time per item, of $items items,"
	echo "$rows, $sides: $unit by function"
	perf report -i "$dir/perf.data" --stdio -q -g none -F sample,sym 2>/dev/null |
		awk -v each="$period_ns" -v items="$items" '
			$1 > 0 { sum += count[++n] = $1
				host = $2 == "[k]" ? "the host: " : ""; $1 = $2 = ""
				name[n] = host substr($0, 3) }
			END { unit = items ? each / items : 100 / sum
				for (i = 1; i <= n && i <= 30; i++)
					printf "%8.2f   %s\n", count[i] * unit, name[i]
				printf "%8.2f   all\n", sum * unit }'
}

# Check whether a row of forks is asked.
asks_forks() {
	local row
	[ -z "$sides$profile" ] || return
	[ -n "$rows" ] || return 0
	for row in fork_join tree_60 tree_500 tree_tiny parallel_for_1; do
		[[ ,$row == ,@(${rows//,/|})* ]] && return 0
	done
	return 1
}

# Run the programs of these rows with oneTBB; $1 and $2: first and last round.
ask_tbb() {
	"$dir/tbb" "$cpus" "$1" "$2" >>"$dir/tbb.log"
}

build_tbb() {
	need_packages g++ libtbb-dev
	g++ -O2 -o "$dir/tbb" "$top/bench/tbb.cpp" -ltbb
}

main() {
	local load notes=() half=$(((rounds + 1) / 2)) tbb=
	mkdir -p "$dir"
	rm -f "$dir"/{result,table,samples}.txt "$dir/tbb.log"
	build || return 2
	if asks_forks; then
		build_tbb || return 2
		tbb=yes
	fi
	step "put the guest together" fill_root || return 2
	load=$(cut -d' ' -f1-3 /proc/loadavg)
	[ -z "$tbb" ] || step "oneTBB, rounds 1 to $half" ask_tbb 1 "$half" || return 2
	FAIRWQ_CPUS=$cpus FAIRWQ_TIMEOUT=$((cpus * limit)) boot
	[ -z "$tbb" ] || step "oneTBB, rounds to $rounds" ask_tbb $((half + 1)) "$rounds" || return 2
	notes+=("kernel: $kernel; idle CPUs: $idle; fairwq and the bench: $built")
	[ "$cpus" -le "$jobs" ] || notes+=("more virtual CPUs than real ones: contended locks are slow")
	[ -z "$profile" ] || notes+=("UNDER A PROFILER: the figures are too dear")
	"$top/tools/bench.py" "$dir" "${notes[@]}" "load average of the host's $jobs CPUs: $load before," \
		"$(cut -d' ' -f1-3 /proc/loadavg) after (this run adds up to $cpus)" || return
	[ -z "$profile" ] || say_profile | tee "$dir/profile.txt"
}

[[ $cpus == [1-8] ]] || die "BENCH_CPUS is 1 to 8, not $cpus"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || die "BENCH_ROUNDS is a number, not $rounds"
[[ $rows =~ ^[a-z0-9_,]*$ ]] || die "BENCH_ROWS is a list of names, not $rows"
[[ $kernel =~ ^uml(-native)?$ ]] || die "BENCH_KERNEL is uml-native or uml, not $kernel"
[[ $idle =~ ^(poll|sleep)$ ]] || die "BENCH_IDLE is poll or sleep, not $idle"
[ "$idle" = sleep ] || append=nohlt
[ "$kernel" = uml ] || append="${append:-} nopvspin"	# fair locks, as on hardware
export FAIRWQ_APPEND="${append:-} ${FAIRWQ_APPEND:-}"
[[ $built == linked && $kernel != uml || $built == modules ]] ||
	die "BENCH_BUILT is linked or modules, and modules for BENCH_KERNEL=uml"
[[ $sides =~ ^[a-z0-9_,]*$ ]] || die "BENCH_SIDES is a list of names, not $sides"
need_packages "${build_packages[@]}" busybox-static ${profile:+linux-perf}
obj=$("$top/tools/kernel.sh" 7.3 ${kernel//-/ }) || exit 2
locked "$dir.lock" main
