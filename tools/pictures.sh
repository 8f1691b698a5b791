#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# pictures.sh: the pictures of README and Documentation, from a run of the demo: its plot
# of shares, and fairwq-top on a terminal of tmux in the demo's guest.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

to=$top/Documentation/pictures
run_limit=600
columns=116
# The table, and two lines for the keys.
rows=13

in_tmux() { tmux -L fairwq-pictures -f /dev/null "$@"; }

screen() { in_tmux capture-pane -p -t demo; }

# $1: what the screen must show. Until it does.
await() {
	local end=$((SECONDS + run_limit))
	until screen | grep -q "$1"; do
		sleep 0.5
		[ "$SECONDS" -lt "$end" ] || { screen; return 1; }
	done
}

photograph() {
	trap 'in_tmux kill-server 2>/dev/null || :' EXIT
	in_tmux new-session -d -x "$columns" -y "$rows" -s demo \
		"make -C '$top' demo SHELL=1; sleep $run_limit" || return
	await '^  exit  ' || return
	in_tmux send-keys -t demo 'clear; fairwq-top' Enter
	# A few intervals on, the start is forgotten.
	await '^greedy' && sleep 6 || return
	in_tmux capture-pane -e -p -t demo >"$top/build/demo/screen"
	in_tmux send-keys -t demo q
	sleep 1
	in_tmux send-keys -t demo 'exit' Enter
}

# Without the font that rich would have the reader's browser fetch from far away.
draw() {
	/usr/bin/python3 - "$columns" "$top/build/demo/screen" "$to/fairwq-top.svg" <<-'END'
		import io, re, sys
		from rich.console import Console
		from rich.text import Text
		columns, source, target = int(sys.argv[1]), *sys.argv[2:]
		console = Console(record=True, width=columns, file=io.StringIO())
		with open(source, encoding="utf-8") as file:
		    console.print(Text.from_ansi(file.read().rstrip()))
		text = console.export_svg(title="fairwq-top", unique_id="top")
		text = re.sub(r"@font-face {.*?}\n|<!--.*?-->\s*", "", text, flags=re.S)
		with open(target, "w", encoding="utf-8") as file:
		    file.write(text.replace("Fira Code, monospace", "monospace"))
	END
}

need_packages tmux python3-rich python3-matplotlib
mkdir -p "$to"
step "the demo on a terminal, and fairwq-top in it" photograph
step "fairwq-top as a picture" draw
cp "$top/build/demo/shares.svg" "$to/"
say "Look at them, then commit: ${to#"$top/"}"
