#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# layers.sh DIR: check that calls only go down. An object in DIR may use the symbols of the
# objects before it in Kbuild. Prints a line for each symbol that an object below uses.
# Fails if there is one, or if an object is missing.

. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "${1:?usage: layers.sh DIR}" || exit 2
mapfile -t order < <(grep '^fairwq-y' "$top/Kbuild" | grep -oE '[a-z_/]+\.o')
[ ${#order[@]} -gt 1 ] || die "no objects found in Kbuild"

declare -A floor
for i in "${!order[@]}"; do
	for symbol in $(nm --defined-only -g "${order[i]}" | awk '$2 ~ /[BDRTV]/ {print $3}'); do
		floor[$symbol]=$i
	done
done
[ ${#floor[@]} -gt 0 ] || die "no symbols found"

up=0
for i in "${!order[@]}"; do
	for symbol in $(nm -u "${order[i]}" | awk '{print $2}'); do
		at=${floor[$symbol]:--1}
		[ "$at" -gt "$i" ] || continue
		echo "up: ${order[i]} uses $symbol of ${order[at]}"
		up=$((up + 1))
	done
done
echo "$up calls up"
[ "$up" -eq 0 ]
