#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""ports_plot.py SVG FIGURES DRIVER [FIGURES DRIVER]...: plot how long a modest reader waits.

For each driver and flood: the median and p99 of the reader's latency, and the flood's
throughput, of the original and of the port. Medians of the rounds, as in ports.py.
"""
import statistics
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot       # noqa: E402 pylint: disable=wrong-import-position
from ports import PLURAL, read      # noqa: E402 pylint: disable=wrong-import-position

COLOUR = {"original": "#b0b8c4", "port": "#2e7d32"}
# Of a line of figures: the panel's title, what it shows, and on which scale.
PANELS = (("reader, median", 3, "log"), ("reader, 99 of 100", 4, "log"), ("flood", 0, "linear"))


def collect(pairs):
    """[(label, {side: medians})], a line for each driver and flood."""
    rows = []
    for path, driver in pairs:
        figures, _ = read(path)
        for mode in dict.fromkeys(mode for what, mode, _ in figures if what == "round"):
            rows.append((f"{driver}: {PLURAL.get(mode, mode + 's')}", {
                side: [statistics.median(column) for column in
                       zip(*figures["round", mode, side].values())] for side in COLOUR}))
    return rows


def main():
    """Write the plot."""
    target, *rest = sys.argv[1:]
    rows = collect(zip(rest[::2], rest[1::2]))
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = "fairwq"      # the same figures give the same file
    figure, panels = pyplot.subplots(1, len(PANELS), sharey=True, figsize=(9, 0.6 * len(rows) + 1))
    for axes, (title, index, scale) in zip(panels, PANELS):
        for nth, side in enumerate(COLOUR):
            # The flood's part of what it gets from the original, because drivers differ.
            values = [sides[side][index] if index else 100 * sides[side][0] / sides["original"][0]
                      for _, sides in rows]
            bars = axes.barh([at + 0.38 * nth for at in range(len(rows))], values, 0.38,
                             color=COLOUR[side], label=side)
            axes.bar_label(bars, [f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
                                  for value in values], padding=2, fontsize=7)
        axes.set(title=title, xscale=scale, xlabel="us" if index else "% of the original's")
        axes.margins(x=0.3)
        axes.tick_params(labelsize=8)
    panels[0].set_yticks([at + 0.19 for at in range(len(rows))], [label for label, _ in rows])
    panels[0].invert_yaxis()
    panels[0].legend(fontsize=7, loc="lower right")
    figure.tight_layout()
    figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    main()
