#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""ports.py FIGURES [DRIVER]: print the table of the original and the port.

DRIVER is dm-crypt, which is the default, ksmbd or btrfs.

A line of FIGURES is: alone|round|eager SIDE ROUND MODE MIB_S REQUESTS_S MEAN P50 P99, in
microseconds; or: umount SIDE ROUND MILLISECONDS; or: sum SIDE CHECKSUM, where btrfs has
the number of records that it has compared. Medians of the rounds; the ratios are medians
of the ratios within each round. Exit 1 if a checksum differs.
"""
import statistics
import sys

COLUMNS = ("flood MiB/s", "modest/s", "mean us", "p50 us", "p99 us")
# How many times sooner the modest client is to be served: at p50, and at p99 or None; the
# least of the flood that is to be left beside it, and alone or None, in percent; and how
# many ms longer it may take to unmount.
BUDGETS = {"dm-crypt": (10, None, 95, None, None), "ksmbd": (0.91, None, 95, None, None),
           "ksmbd copy": (5, None, 95, None, None), "btrfs": (50, 10, 97, 97, 50)}
PLURAL = {"copy": "copies"}
FLOODERS = {"dm-crypt": 16, "ksmbd": 64, "btrfs": 4}
MODEST = {"btrfs": ("writer of 16 KiB and fsync()", 20)}


def read(path):
    figures, sums = {}, {}
    with open(path, encoding="ascii") as lines:
        for words in map(str.split, lines):
            if words[0] == "sum":
                sums.setdefault(words[1], []).append(words[2])
            elif words[0] == "umount":
                figures.setdefault(("umount", None, words[1]), {})[int(words[2])] = [
                    float(words[3])]
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


def budgets(figures, mode, p50, p99, percent, percent_alone, later):
    def median(what, of, i):
        sides = [figures[what, None if what == "umount" else mode, side]
                 for side in ("original", "port")]
        return statistics.median(of(sides[0][r][i], sides[1][r][i]) for r in sides[0])

    def sooner(original, port):
        return original / port

    def kept(original, port):
        return 100 * port / original

    for text, what, of, i, least in (
            ("p50 {:.1f} times sooner", "round", sooner, 3, p50),
            ("p99 {:.1f} times sooner", "round", sooner, 4, p99),
            ("the flood keeps {:.1f} %", "round", kept, 0, percent),
            ("the flood alone keeps {:.1f} %", "alone", kept, 0, percent_alone)):
        if least:
            value = median(what, of, i)
            yield (f"  {text.format(value)}: at least {least} "
                   f"{'holds' if value >= least else 'MISSED'}")
    if later:
        value = median("umount", lambda original, port: port - original, 0)
        yield (f"  unmounts {value:.1f} ms later: at most {later} "
               f"{'holds' if value <= later else 'MISSED'}")


def main():
    figures, sums = read(sys.argv[1])
    driver = sys.argv[2] if len(sys.argv) > 2 else "dm-crypt"
    modes = list(dict.fromkeys(mode for _, mode, _ in figures if mode))
    modest, pause = MODEST.get(driver, ("reader of 4 KiB", 1))
    rounds = min(map(len, figures.values()))
    print(f"{driver} and its port, {rounds} rounds in turns in one boot:",
          "medians, and ratios by round")
    for mode in modes:
        budget = BUDGETS.get(f"{driver} {mode}", BUDGETS[driver])
        floods = PLURAL.get(mode, mode + "s")
        print(f"\nA {modest}, and {pause} ms of pause, beside a flood of {floods},",
              f"{FLOODERS[driver]} at a time, of", "128 KiB:" if mode == "copy" else "1 MiB:")
        print("\n".join(table(figures, "round", mode, 5)))
        print("\n".join(budgets(figures, mode, *budget)))
        print("The same without a pause, so the modest client takes what is its share:")
        print("\n".join(table(figures, "eager", mode, 5)))
        print(f"The flood of {floods} alone:")
        print("\n".join(table(figures, "alone", mode, 1)))
    if driver == "btrfs":
        print("To unmount, in ms:")
        print("\n".join(f"  {side:<22}{statistics.median(v[0] for v in times.values()):>13.1f}"
                        for (what, _, side), times in figures.items() if what == "umount"))
        print("\nRecords compared after a remount:",
              *(f"{side} {' '.join(numbers)}" for side, numbers in sums.items()))
        return {side: len(numbers) for side, numbers in sums.items()} != {
            "original": rounds, "port": rounds}
    same = len({tuple(numbers) for numbers in sums.values()}) == 1 and len(sums) == 2
    print("\nChecksums of all data read back:", *(f"{k} {v[0]}" for k, v in sums.items()),
          "(equal)" if same else "(DIFFERENT)")
    return not same


if __name__ == "__main__":
    sys.exit(main())
