#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""ports.py FIGURES [DRIVER]: print the table of the original and the port.

DRIVER is dm-crypt, which is the default, or ksmbd.

A line of FIGURES is: alone|round|eager SIDE ROUND MODE MIB_S REQUESTS_S MEAN P50 P99, in
microseconds, or: sum SIDE CHECKSUM. Medians of the rounds; the ratios are medians of
the ratios within each round. Exit 1 if a checksum differs.
"""
import statistics
import sys

COLUMNS = ("flood MiB/s", "reader/s", "mean us", "p50 us", "p99 us")
# How many times sooner the reader is to be served, and the least of the flood that is to
# be left, in percent.
BUDGETS = {"dm-crypt": (10, 95), "ksmbd": (5, 95)}
PLURAL = {"copy": "copies"}
FLOODERS = {"dm-crypt": 16, "ksmbd": 64}


def read(path):
    figures, sums = {}, {}
    with open(path, encoding="ascii") as lines:
        for words in map(str.split, lines):
            if words[0] == "sum":
                sums[words[1]] = words[2]
            elif words[0] in ("alone", "round", "eager"):
                what, side, number, mode = words[:4]
                figures.setdefault((what, mode, side), {})[int(number)] = [
                    float(word) for word in words[4:]]
    return figures, sums


def row(name, values):
    return f"  {name:<22}" + "".join(f"{value:>13}" for value in values)


def table(figures, what, mode, columns):
    sides = {side: figures[what, mode, side] for side in ("original", "port")}
    yield row("", COLUMNS[:columns])
    for side, rounds in sides.items():
        yield row(side, [f"{statistics.median(v[i] for v in rounds.values()):.1f}"
                         for i in range(columns)])
    for name, pick in (("port / original", statistics.median), ("  lowest", min),
                       ("  highest", max)):
        ratios = [[sides["port"][r][i] / sides["original"][r][i] for r in sides["port"]]
                  for i in range(columns)]
        yield row(name, [f"{pick(column):.3f}" for column in ratios])


def budgets(figures, mode, times, percent):
    sides = [figures["round", mode, side] for side in ("original", "port")]
    sooner = statistics.median(sides[0][r][3] / sides[1][r][3] for r in sides[0])
    kept = statistics.median(100 * sides[1][r][0] / sides[0][r][0] for r in sides[0])
    for text, value, least in ((f"p50 {sooner:.1f} times sooner", sooner, times),
                               (f"the flood keeps {kept:.1f} %", kept, percent)):
        yield f"  {text}: at least {least} {'holds' if value >= least else 'MISSED'}"


def main():
    figures, sums = read(sys.argv[1])
    driver = sys.argv[2] if len(sys.argv) > 2 else "dm-crypt"
    modes = list(dict.fromkeys(mode for _, mode, _ in figures))
    rounds = min(map(len, figures.values()))
    print(f"{driver} and its port, {rounds} rounds in turns in one boot:",
          "medians, and ratios by round")
    for mode in modes:
        floods = PLURAL.get(mode, mode + "s")
        print(f"\nA reader of 4 KiB and 1 ms of pause beside a flood of {floods},",
              f"{FLOODERS[driver]} at a time, of", "128 KiB:" if mode == "copy" else "1 MiB:")
        print("\n".join(table(figures, "round", mode, 5)))
        print("\n".join(budgets(figures, mode, *BUDGETS[driver])))
        print("The same, but the reader makes no pause, and so takes what is its share:")
        print("\n".join(table(figures, "eager", mode, 5)))
        print(f"The flood of {floods} alone:")
        print("\n".join(table(figures, "alone", mode, 1)))
    same = len(set(sums.values())) == 1 and len(sums) == 2
    print("\nChecksums of all data read back:", *(f"{k} {v}" for k, v in sums.items()),
          "(equal)" if same else "(DIFFERENT)")
    return not same


if __name__ == "__main__":
    sys.exit(main())
