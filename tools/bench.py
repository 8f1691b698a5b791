#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Makes a table of what the bench printed, and result.txt for programs.

usage: bench.py DIR [NOTE...]
       bench.py --rst DIR

The second prints the tables of an earlier run as reStructuredText.

DIR holds console.log and status of the boot, and tbb.log, if oneTBB was asked. Written to DIR: samples.txt, the
lines as they came; table.txt, which is also printed; result.txt, key=value:

  cpus, rounds, built,
  items                         of the boot; so many were queued, also where nothing is
                                measured
  ROW.SIDE.FIGURE               the median of all samples. FIGURE says its unit:
                                ns (per item, unless ROWS below says otherwise;
                                of single calls the mean of the middle half),
                                p50_ns .. max_ns, items_s, bytes; off_percent, by
                                how much of its share a client missed it, the one
                                that did most; jain, 1 if none did
  ROW.SIDE.FIGURE.min, .max     the spread
  ROW.SIDE.ratio                how many times better the side's first figure is
                                than that of the row's yardstick: wq_unbound,
                                where a row has it. The median over the rounds
                                of the ratio within the round, in which both
                                sides were asked one right after the other
  ROW.SIDE.ratio.min, .max      its spread over the rounds
  ROW.SIDE.ratio.best           the ratio of the best sample of each: what a busy
                                machine disturbs least
  floor.PIECE.ns                what the pieces cost: the ground of all other figures
  budget.NAME                   a figure that has a budget, as BUDGETS puts it
  budget.NAME.want              the budget
  budget.NAME.holds             yes or no

No figure fails the run. Exit: 0 measured, 3 the guest crashed, warned or
did not finish, 124 it hung.
"""

import os
import re
import sys
from statistics import median

from verdict import BAD, read

# What each row asks; what ends in a number is found without it.
ROWS = {
    'size': 'bytes, and what kmalloc() makes of them',
    'floor': 'ns for the pieces, each with an indirect call; line_moves: from one CPU to the other; clock_step: the least time that the clock shows; wake_cpu: a call on a CPU that sleeps; interrupt_cpu: on one that reads the clock',
    'push': 'ns per queue call into a busy batch, its only runner held',
    'empty_1': 'ns per empty item, first call to last run; 1 producer, 1 batch',
    'empty_16': 'the same, 16 batches in rotation',
    'empty_16_p2': 'the same, 2 producers',
    'devices': 'the same, N clients, 1 producer: something of its own for each, or one for all',
    'runners': 'the same, 16 batches, N runners at most, on as many CPUs as the first line says',
    'runners_1us': 'the same, items of 1 us, 2 producers',
    'runners_10us': 'the same, items of 10 us, 2 producers',
    'trip': 'ns from queue call to wake-up, nothing else queued',
    'trip_rested': 'the same, after all CPUs have slept for 0.1 ms',
    'sleep': 'ns per item of 2 us that then sleeps for 100 us; N of them are queued at once',
    'behind': 'ns until 200 items of 2 us have run that came behind 20,000 of another batch',
    'quiet': 'ns that an item, one per ms, waits next to N busy batches, 16 items of 20 us each',
    'time_fair': 'items of 20 us and of 2 ms, always enough of both: what each gets of the time, in 1 s',
    'time_weights': 'the same with weights 1, 2, 5, whose items take 20 us, 2 ms, 0.2 ms',
    'pick': 'ns to choose among N nodes and charge, in the tree alone',
    'eligible': 'ns per empty item, one runner, N batches that all have items',
    'idle': 'ns per empty item, one runner, 2 batches, next to so many idle ones',
    'serial_add': 'ns per queue call for an object whose only item in flight is held',
    'serial': 'ns per empty item, N objects in rotation, the items of one never overlap; 1 producer',
    'objects': 'ns to set up the order of one of N objects; to take it down; bytes; how many it was',
    'pools': 'the same of N pools, or unbound workqueues, and all that they bring',
    'batches': 'the same of N batches in one pool, and all that they bring',
    'fork_join': 'ns per task of fib(25), whose tasks do nothing',
    'tree': 'ns for an uneven tree of 1,600 tasks, N ns of work in each',
    'tree_tiny': 'ns for a tree of 12 tasks and 1,000 ns, one after the other',
    'parallel_for': 'ns for a loop of 2.5 ms over numbers that cost more and more, grain N',
    'one_each': 'N threads, one item each: items/s; ns of the queue call. "own": a batch each',
}

# A side's word on itself.
SIDES = {
    'wq_unbound': 'queue_work() on one WQ_UNBOUND workqueue',
    'wq_percpu': 'queue_work() on one per-CPU workqueue',
    'wq_each': 'a WQ_UNBOUND workqueue per batch',
    'wq_ordered': 'an ordered workqueue per object',
    'mutex': 'a mutex per object, taken by plain items of one batch',
    'serial_inline': 'the same, a runner goes on with one for 50 us',
    'list': 'a list_head, a spinlock, and one work on a WQ_UNBOUND workqueue; no turns, no cancel',
    'kthread': 'a kthread_worker per batch',
    'fairwq': 'default attributes',
    'fairwq_each': 'a pool per batch',
    'fairwq_one': 'max_active 1',
    'fairwq_time': 'policy FAIR_TIME',
    'fairwq_sleep': 'default attributes, also where others have max_in_flight 1',
    'serial': 'a serializer per object, all items to one batch; or plain calls, with the tasks',
    'plain': 'plain calls, without the tasks',
    'fork_one': 'tasks, max_active 1',
    'fork_direct': 'the same, joined by fairwq_join_func()',
    'fork_all': 'tasks, default attributes',
    'tbb_serial': 'plain calls, in user space',
    'tbb_one': 'tbb::task_group or tbb::parallel_for, 1 thread, in user space',
    'tbb': 'the same, a thread for each CPU',
    'ideal': 'the items alone, twice as many, spread over the CPUs',
}
YARDSTICK = 'wq_unbound'
# Interrupts off and on: 9 ns where they cost what they cost on hardware, and 530 to 825
# on stock user-mode Linux.
DEAR_IRQ_NS = 50
# Steps of the clock: 1 to 40 ns on hardware, and 256 on stock user-mode Linux.
COARSE_CLOCK_NS = 100
# What runs plain calls, for the sides that make tasks of them.
PLAIN = {'fork_all': 'serial', 'tbb': 'tbb_serial'}

# Name, row, side, yardstick, how it is put, the budget. "times": yardstick /
# side; "of": side / yardstick; "over": side - yardstick; "gain": how many times
# better than plain calls, by how many times the yardstick is better than its own;
# a figure by its name: the figure itself. A yardstick may be of another row.
BUDGETS = (
    ('push', 'push', 'fairwq', YARDSTICK, 'times', '>= 1'),
    ('empty_1', 'empty_1', 'fairwq', YARDSTICK, 'times', '>= 4'),
    ('empty_1_percpu', 'empty_1', 'fairwq', 'wq_percpu', 'times', '>= 1'),
    ('empty_16', 'empty_16', 'fairwq', YARDSTICK, 'times', '>= 3.5'),
    ('empty_16_percpu', 'empty_16', 'fairwq', 'wq_percpu', 'times', '>= 1'),
    ('empty_16_p2', 'empty_16_p2', 'fairwq', YARDSTICK, 'times', '>= 2.5'),
    ('eligible_2', 'eligible_2', 'fairwq', YARDSTICK, 'times', '>= 1'),
    ('eligible_16', 'eligible_16', 'fairwq', YARDSTICK, 'times', '>= 1'),
    ('eligible_256', 'eligible_256', 'fairwq', YARDSTICK, 'times', '>= 1'),
    ('eligible_10000', 'eligible_10000', 'fairwq', 'eligible_2.fairwq', 'of', '<= 2'),
    ('trip', 'trip', 'fairwq', YARDSTICK, 'of', '<= 1.05'),
    ('one_each_2', 'one_each_2', 'fairwq', YARDSTICK, 'times', '>= 0.9'),
    ('one_each_8', 'one_each_8', 'fairwq', YARDSTICK, 'times', '>= 0.9'),
    ('sleep_16', 'sleep_16', 'fairwq_sleep', YARDSTICK, 'times', '>= 0.9'),
    ('sleep_256', 'sleep_256', 'fairwq_sleep', YARDSTICK, 'times', '>= 0.9'),
    ('behind', 'behind', 'fairwq', YARDSTICK, 'times', '>= 50'),
    ('behind_ideal', 'behind', 'fairwq', 'ideal', 'of', '<= 1.15'),
    ('serial_add', 'serial_add', 'serial', None, 'ns', '<= 20'),
    ('serial_item', 'serial_1', 'serial', None, 'ns', '<= 60'),
    ('serial_item_ordered', 'serial_1', 'serial', 'wq_ordered', 'times', '>= 1'),
    ('serial_1000', 'serial_1000', 'serial', None, 'ns', '<= 90'),
    ('idle_10000', 'idle', 'idle_10000', 'idle_0', 'of', '<= 1.02'),
    ('time_fair', 'time_fair', 'fairwq_time', None, 'jain', '>= 0.9999'),
    ('time_weights', 'time_weights', 'fairwq_time', None, 'off_percent', '<= 0.5'),
    ('fork_ns', 'fork_join', 'fork_one', None, 'ns', '<= 5'),
    ('fork_over', 'fork_join', 'fork_one', 'serial', 'over', '<= 3'),
    ('fork_direct_over', 'fork_join', 'fork_direct', 'plain', 'over', '<= 2'),
    ('fib_all_ns', 'fork_join', 'fork_all', None, 'ns', '<= 6'),
    ('fib_tbb', 'fork_join', 'fork_all', 'tbb', 'times', '>= 1'),
    ('tree_60', 'tree_60', 'fork_all', 'serial', 'times', '>= 1.8'),
    ('tree_500', 'tree_500', 'fork_all', 'serial', 'times', '>= 1.9'),
    ('tree_tiny', 'tree_tiny', 'fork_all', 'serial', 'of', '<= 1.2'),
    ('loop_1', 'parallel_for_1', 'fork_all', 'serial', 'times', '>= 1.9'),
    ('loop_10', 'parallel_for_10', 'fork_all', 'serial', 'times', '>= 1.9'),
    ('loop_100', 'parallel_for_100', 'fork_all', 'serial', 'times', '>= 1.9'),
    ('loop_1_tbb', 'parallel_for_1', 'fork_all', 'tbb', 'gain', '>= 1'),
    ('loop_10_tbb', 'parallel_for_10', 'fork_all', 'tbb', 'gain', '>= 1'),
    ('loop_100_tbb', 'parallel_for_100', 'fork_all', 'tbb', 'gain', '>= 1'),
    ('size_work', 'size', 'fairwq_work', None, 'bytes', '<= 56'),
    ('size_serializer', 'size', 'fairwq_serializer', None, 'bytes', '<= 56'),
    ('size_batch', 'size', 'fairwq_batch', None, 'bytes', '<= 512'),
    ('size_runner', 'size', 'fairwq_runner', None, 'bytes', '<= 8192'),
)

# Tables of --rst: title, rows, sides, and the figure, if not the first.
RST_TABLES = (
    ('Queue call and empty items, ns per item',
     ('push', 'empty_1', 'empty_16', 'empty_16_p2'),
     ('wq_unbound', 'wq_percpu', 'list', 'kthread', 'fairwq'), None),
    ('One item, there and back, ns', ('trip', 'trip_rested'),
     ('wq_unbound', 'wq_percpu', 'list', 'kthread', 'fairwq'), None),
    ('One item outstanding per thread, items a second',
     ('one_each_2', 'one_each_8', 'one_each_2_own', 'one_each_8_own'),
     ('wq_unbound', 'wq_percpu', 'wq_each', 'fairwq'), None),
    ('Order per object, ns per item', ('serial_add', 'serial_1', 'serial_1000'),
     ('wq_ordered', 'mutex', 'serial', 'serial_inline'), None),
    ('Devices, ns per empty item', ('devices_1', 'devices_8', 'devices_64'),
     ('wq_unbound', 'wq_each', 'fairwq', 'fairwq_each'), None),
    ('N runners, items of 0, 1 and 10 us, ns per item',
     tuple(f'runners{us}_{n}' for us in ('', '_1us', '_10us') for n in (1, 2, 4, 8, 16)),
     ('wq_unbound', 'fairwq'), None),
    ('One runner, N batches that all have items, ns per empty item',
     ('eligible_2', 'eligible_16', 'eligible_256', 'eligible_4096', 'eligible_10000'),
     ('wq_unbound', 'fairwq'), None),
    ('Items that sleep for 100 us, ns per item', ('sleep_16', 'sleep_256'),
     ('wq_unbound', 'wq_percpu', 'fairwq_sleep'), None),
    ('200 items behind 20,000, ns', ('behind',),
     ('ideal', 'wq_unbound', 'fairwq'), None),
    ('Forks: fib(25), ns per task', ('fork_join',),
     ('serial', 'plain', 'fork_one', 'fork_direct', 'fork_all', 'tbb_serial', 'tbb_one', 'tbb'),
     None),
    ('Forks: trees and loops, ns', ('tree_60', 'tree_500', 'tree_tiny', 'parallel_for_1',
                                    'parallel_for_10', 'parallel_for_100', 'parallel_for_1000'),
     ('serial', 'fork_one', 'fork_all', 'tbb_serial', 'tbb_one', 'tbb'), None),
    ('A short item beside N busy clients: how long it waits, median, ns',
     ('quiet_1', 'quiet_8', 'quiet_64'),
     ('wq_unbound', 'wq_each', 'kthread', 'fairwq'), 'p50_ns'),
    ('Time, 1:100 by item: how even it is (Jain)', ('time_fair', 'time_weights'),
     ('wq_unbound', 'fairwq', 'fairwq_time'), 'jain'),
    ('The same: by how much of its share a client misses it, percent',
     ('time_fair', 'time_weights'), ('wq_unbound', 'fairwq', 'fairwq_time'), 'off_percent'),
    ('To set one up, ns', ('objects_1000', 'pools_256', 'batches_10000'),
     ('wq_ordered', 'wq_each', 'mutex', 'serial', 'fairwq_each', 'fairwq'), None),
    ('To take one down, ns', ('objects_1000', 'pools_256', 'batches_10000'),
     ('wq_ordered', 'wq_each', 'mutex', 'serial', 'fairwq_each', 'fairwq'), 'destroy_ns'),
    ('Memory of one with all that it brings, bytes',
     ('objects_1000', 'pools_256', 'batches_10000'),
     ('wq_ordered', 'wq_each', 'mutex', 'serial', 'fairwq_each', 'fairwq'), 'bytes'),
)

SAMPLE = re.compile(r'fairwq-bench: row=(\S+) side=(\S+) round=(\d+) (.*)$')
FACT = re.compile(r'fairwq-bench: (?:cpus=\d+ rounds=\d+ built=\w+|'
                  r'items=\d+)$')


class Samples:
    """Every value by row, side, figure and round, in the order of the boot."""

    def __init__(self, lines):
        self.lines, self.facts, self.values = [], {}, {}
        for line in lines:
            if m := SAMPLE.search(line):
                self.lines.append(m[0])
                for pair in m[4].split():
                    figure, value = pair.split('=')
                    self.values.setdefault((m[1], m[2]), {}).setdefault(
                        figure, {}).setdefault(int(m[3]), []).append(float(value))
            elif m := FACT.search(line):
                self.facts.update(pair.split('=') for pair in m[0].split()[1:])

    def rows(self):
        return list(dict.fromkeys(row for row, _ in self.values))

    def sides(self, row):
        """In the order of SIDES; then those that only one row has."""
        found = [s for r, s in self.values if r == row]
        return [s for s in SIDES if s in found] + [s for s in found if s not in SIDES]

    def figures(self, row, side):
        return list(self.values.get((row, side), {}))

    def all(self, row, side, figure):
        return [v for r in self.values[row, side][figure].values() for v in r]

    def by_round(self, row, side):
        """The medians of the first figure."""
        first = next(iter(self.values.get((row, side), {'': {}}).values()))
        return {r: median(v) for r, v in first.items()}

    def quotients(self, row, side, base, base_row=None):
        """BASE / SIDE in each round; of what is better the more, SIDE / BASE."""
        ours, theirs = self.by_round(row, side), self.by_round(base_row or row, base)
        up = self.figures(row, side)[:1] == ['items_s']
        both = [(ours[r], theirs[r]) for r in ours if r in theirs]
        return [a / b if up else b / a for a, b in both if a and b]

    def differences(self, row, side, base):
        """SIDE - BASE in each round."""
        ours, theirs = self.by_round(row, side), self.by_round(row, base)
        return [ours[r] - theirs[r] for r in ours if r in theirs]

    def best_quotient(self, row, side, base):
        ours, theirs = ([v for v in self.by_round(row, s).values() if v] for s in (side, base))
        if not ours or not theirs:
            return None
        if self.figures(row, side)[:1] == ['items_s']:
            return max(ours) / max(theirs)
        return min(theirs) / min(ours)


def short(x):
    """With as many digits as can be meant."""
    if 0.99 <= x < 1:
        return f'{x:.5f}'
    if x >= 1000:
        return f'{x:,.0f}'
    return f'{x:.2f}' if x < 10 else f'{x:.1f}' if x < 100 else f'{x:.0f}'


def budget(samples, row, side, base, put):
    """The figure, or None if it was not measured."""
    if put not in ('times', 'of', 'over', 'gain'):
        figures = samples.values.get((row, side), {})
        return median(samples.all(row, side, put)) if put in figures else None
    if put == 'gain':
        ours, theirs = (samples.quotients(row, s, PLAIN[s]) for s in (side, base))
        return median(ours) / median(theirs) if ours and theirs else None
    if put == 'over':
        found = samples.differences(row, side, base)
        return median(found) if found else None
    base_row, _, base = base.rpartition('.')
    found = samples.quotients(row, side, base, base_row)
    if put == 'of':
        found = [1 / q for q in found]
    return median(found) if found else None


def missed_by(value, want):
    """In percent of the budget; 0: it holds."""
    how, limit = want.split()
    over = (value - float(limit)) / float(limit) * 100
    return max(over if how == '<=' else -over, 0)


def says_missed(percent):
    return f'missed by {short(percent)} %' if percent else 'holds'


def budgets(samples):
    """(name, text, value, want) of what was measured."""
    for name, row, side, base, put, want in BUDGETS:
        value = budget(samples, row, side, base, put)
        if value is not None:
            yield name, f'{row}, {side}, {put}' + (f' {base}' if base else ''), value, want


def result(samples):
    """The lines of result.txt."""
    yield from (f'{k}={v}' for k, v in samples.facts.items())
    for row in samples.rows():
        for side in samples.sides(row):
            key = f'{row}.{side}'
            for figure in samples.figures(row, side):
                yield from spread(f'{key}.{figure}', samples.all(row, side, figure))
            if side != YARDSTICK and (found := samples.quotients(row, side, YARDSTICK)):
                yield from spread(f'{key}.ratio', found)
                yield f'{key}.ratio.best={samples.best_quotient(row, side, YARDSTICK):.6g}'
    for name, _, value, want in budgets(samples):
        yield f'budget.{name}={value:.5g}'
        yield f'budget.{name}.want={want}'
        yield f'budget.{name}.holds={"no" if missed_by(value, want) else "yes"}'


def spread(key, values):
    yield f'{key}={median(values):.6g}'
    if len(values) > 1:
        yield f'{key}.min={min(values):.6g}'
        yield f'{key}.max={max(values):.6g}'


def says(row):
    """What a row asks, by its name or by the beginning of it."""
    stem = re.sub(r'_\d+(_own)?$', '', row)
    return ROWS.get(row) or ROWS.get(stem, '')


def cells(samples, row, side):
    """One line of the table."""
    figures = samples.figures(row, side)
    values = samples.all(row, side, figures[0])
    found = samples.quotients(row, side, YARDSTICK) if side != YARDSTICK else []
    more = [f'{f} {short(median(samples.all(row, side, f)))}' for f in figures[1:]]
    return [f'  {side}', short(median(values)),
            f'{short(min(values))}..{short(max(values))}' if len(values) > 1 else '',
            f'{short(median(found))}x' if found else '',
            f'{short(min(found))}..{short(max(found))}' if len(found) > 1 else '',
            f'{short(samples.best_quotient(row, side, YARDSTICK))}x' if found else '',
            '; '.join(more)]


def ground(samples):
    """What the pieces cost, in a line, and whether that is what hardware asks."""
    pieces = {p: median(samples.all('floor', p, 'ns')) for p in samples.sides('floor')}
    if not pieces:
        return
    yield 'ground, ns: ' + ', '.join(f'{p} {short(ns)}' for p, ns in pieces.items())
    if pieces['irq_off_on'] > DEAR_IRQ_NS:
        yield f'NOT AS ON HARDWARE: interrupts off and on cost {short(pieces["irq_off_on"])} ns.' \
            ' No figure below is one of speed.'
    if pieces.get('clock_step', 0) > COARSE_CLOCK_NS:
        yield f'NOT AS ON HARDWARE: the clock goes in steps of {short(pieces["clock_step"])} ns.' \
            ' Times of single items are coarse.'


def cut_short(samples):
    """Which rows had fewer rounds than asked for."""
    asked = int(samples.facts.get('rounds', 0))
    had = {row: min(len(samples.by_round(row, s)) for s in samples.sides(row))
           for row in samples.rows()}
    if few := [f'{row} {n}' for row, n in had.items() if n < asked]:
        yield 'Fewer rounds, as the machine is busy: ' + ', '.join(few)


def budget_lines(samples):
    for name, text, value, want in budgets(samples):
        missed = says_missed(missed_by(value, want))
        yield f'  {name:<16}{short(value):>10}  wanted {want:<10}{missed:<20}{text}'


def table(samples, notes):
    """The lines of table.txt."""
    yield f'{samples.facts.get("cpus", "?")} CPUs, {samples.facts.get("rounds", "?")} rounds; ' \
        'medians, and the least and the most of all samples'
    yield from ground(samples)
    yield from cut_short(samples)
    yield from notes
    width = (20, 14, 30, 8, 16, 9)
    head = ['', 'median', 'spread', 'ratio', 'spread', 'of best',
            f'ratio: times better than {YARDSTICK}']
    for row in samples.rows():
        yield ''
        yield f'{row}: {says(row)}'
        for line in ([head] if row == samples.rows()[0] else []) + [
                cells(samples, row, side) for side in samples.sides(row)]:
            first, *rest = line
            yield (first.ljust(width[0]) + ''.join(
                c.rjust(w) for c, w in zip(rest, width[1:])) + '  ' + rest[-1]).rstrip()
    if found := list(budget_lines(samples)):
        yield from ['', 'Budgets. "times" is how many times better, "of" is which part of.', *found]
    yield ''
    yield from (f'{side}: {text}' for side, text in SIDES.items()
                if any(side in samples.sides(row) for row in samples.rows()))


def rst_grid(lines):
    """A simple table of which the first line is the head."""
    width = [max(map(len, column)) for column in zip(*lines)]
    rule = '  '.join('=' * w for w in width)
    body = ['  '.join(c.ljust(w) for c, w in zip(line, width)).rstrip() for line in lines]
    return [rule, body[0], rule, *body[1:], rule, '']


def rst_cell(samples, row, side, figure):
    figures = samples.figures(row, side)
    if not figures or figure and figure not in figures:
        return '-'
    text = short(median(samples.all(row, side, figure or figures[0])))
    found = samples.quotients(row, side, YARDSTICK) if not figure and side != YARDSTICK else []
    return f'{text} ({short(median(found))}x)' if found else text


def rst(samples):
    """The tables of the documentation."""
    yield from [f'{samples.facts["cpus"]} CPUs, {samples.facts["rounds"]} rounds. '
                f'The ground, in ns:', '']
    yield from rst_grid([['piece', 'ns']] + [
        [p, short(median(samples.all('floor', p, 'ns')))] for p in samples.sides('floor')])
    for title, rows, sides, figure in RST_TABLES:
        sides = [s for s in sides if any(samples.figures(row, s) for row in rows)]
        rows = [r for r in rows if any(samples.figures(r, s) for s in sides)]
        if rows:
            yield from [title + ':', '']
            yield from rst_grid([['', *sides]] + [
                [r, *(rst_cell(samples, r, s, figure) for s in sides)] for r in rows])
    sizes = [[s, *(short(median(samples.all('size', s, f))) for f in samples.figures('size', s))]
             for s in samples.sides('size')]
    if sizes:
        yield from ['Sizes, and what kmalloc() makes of them, bytes:', '']
        yield from rst_grid([['', 'size', 'allocated']] + sizes)
    wanted = [[name, short(value), want, says_missed(missed_by(value, want))]
              for name, _, value, want in budgets(samples)]
    if wanted:
        yield from ['Budgets:', '']
        yield from rst_grid([['budget', 'is', 'wanted', 'it']] + wanted)


def write(path, lines):
    with open(path, 'w', encoding='utf-8') as f:
        f.writelines(line + '\n' for line in lines)


def logs(top):
    """What the guest has said, and what was asked in user space around it."""
    tbb = os.path.join(top, 'tbb.log')
    return read(os.path.join(top, 'console.log')) + (read(tbb) if os.path.exists(tbb) else [])


def complaints(console, status):
    """What makes the figures worth nothing."""
    yield from (line for line in console if BAD.search(line) or 'fairwq-bench: row' in line
                and 'failed' in line)
    if not any(line.endswith('fairwq-bench: done') for line in console):
        yield 'the guest did not get to its end'
    if status != '0':
        yield f'the machine ended with status {status}'


def main():
    if len(sys.argv) < 2 or sys.argv[1:] == ['--rst']:
        sys.exit(__doc__)
    if sys.argv[1] == '--rst':
        print('\n'.join(rst(Samples(logs(sys.argv[2])))))
        return
    top, notes = sys.argv[1], sys.argv[2:]
    console = read(os.path.join(top, 'console.log'))
    status = (read(os.path.join(top, 'status')) or ['none'])[0]
    samples = Samples(logs(top))
    lines = list(table(samples, notes))
    write(os.path.join(top, 'samples.txt'), samples.lines)
    write(os.path.join(top, 'table.txt'), lines)
    write(os.path.join(top, 'result.txt'), result(samples))
    print('\n'.join(lines))
    if bad := list(complaints(console, status)):
        print('\nNOT TO BE RELIED ON, see console.log:', *bad[:20], sep='\n  ')
        sys.exit(124 if status in ('124', '137') else 3)


if __name__ == '__main__':
    main()
