#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Says whether a boot of the test kernel was clean; believes nothing by halves.

usage: verdict.py DIR [KUNIT_PY]
       verdict.py --program NAME LOG STATUS

DIR holds what tools/build.sh planned (suites, root/plan) and tools/boot.sh
left (console.log, result.log, status). A run is clean if every expected suite
is complete and ok, kunit.py thinks so too, every step of the guest succeeded,
its last line is "done", the machine ended by itself, and the console shows
nothing that a healthy kernel does not print.

A test that provokes a splat announces it on the console:
    # expect-splat begin TEXT
    # expect-splat end
Between the two, splats and lines that contain TEXT are tolerated, and TEXT
must appear; anything else counts as ever.

The second form judges a program that ran outside of the guest: the KTAP in
LOG, and the status that it ended with.

Exit: 0 clean, 1 a test failed, 3 crash or warning, 124 the guest hung.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field

# No healthy kernel prints these. Case matters: the names of test cases are in
# lower case and may well speak of a bug or a stall.
BAD = re.compile(
    r'\bWARNING\b|\bBUG\b|\bOops\b|Kernel panic|Call Trace:|\[ cut here \]'
    r'|\bINFO: |!!!|detected stalls?\b|stall on CPU|\bstalls on\b|lockup'
    r'|KASAN|KCSAN|KFENCE|UBSAN|ODEBUG|DEBUG_LOCKS_WARN'
    r'|kmemleak: \d+ new|unreferenced object'
    r'|blocked for more than|hogged CPU'
    r'|general protection|[Uu]nable to handle|segfault at|traps: '
    r'|possible (recursive|circular|irq)|suspicious RCU'
    r'|scheduling while atomic|sleeping function called'
    r'|leaked (lock|atomic)|bad: scheduling|held lock freed'
    r'|list_(add|del) corruption|refcount_t:|page_alloc: bad|Bad page'
    r'|Out of memory|page allocation failure|invoked oom-killer')
# These belong to the bad line before them.
MORE = re.compile(r'Call Trace:|Modules linked in|\[ end trace|\bOops\b|^#PF'
                  r'|Kernel panic')
END = re.compile(r'\[ end trace|\[ end Kernel panic|</TASK>')
SPLAT_LINES = 80
# What a kernel says about itself while it boots: the head, and a frame that must
# be among those that follow; of fairwq there must be none.
KNOWN = (
    # User-mode Linux with SMP, lockdep and kmemleak.
    ('suspicious RCU usage', 'Callback enqueued on offline CPU', 'uml_start_secondary+'),
)
SHOWN = 5
# Functions at the top of a stack that act for their caller: they handle the caller's
# own data.
HELPER = re.compile(r'^ *(\[<[0-9a-f]+>\] )?(__)?(llist_|list_|rb_|latch_tree_|mem|str|kref_|'
                    r'kcsan_|tsan_|asan_|refcount_|bitmap_|find_|xa_|xas_|kfree|print_report)')
OURS = re.compile(r'\[fair(wq|hash)\w*\]$')

STAMP = re.compile(r'^(<\d+>)?(\[ *\d+\.\d+\](\[ *[TC]\d+\])? )?')
REPLAY = '** replaying previous printk message **'
SUBTEST = re.compile(r'^    # Subtest: (\S+)')
PLAN = re.compile(r'^    1\.\.(\d+)\s*$')
CASE = re.compile(r'^    (ok|not ok) (\d+) (?:- )?(\S.*?)(?: # (SKIP.*))?\s*$')
CLOSE = re.compile(r'^(ok|not ok) \d+ (?:- )?(\S+)')
STEP = re.compile(r'^(.+) rc=(\d+)$')


@dataclass
class Case:
    number: int
    name: str
    state: str                  # ok, not ok, skip
    notes: list


@dataclass
class Suite:
    name: str
    plan: int = -1
    cases: list = field(default_factory=list)
    closed: str = ''
    rest: list = field(default_factory=list)    # what was said after the last case

    def count(self, state):
        return sum(c.state == state for c in self.cases)

    def problems(self):
        """What is wrong beyond failed cases."""
        numbers = [c.number for c in self.cases]
        last = self.cases[-1].name if self.cases else 'none'
        if self.plan < 0:
            yield 'has no plan'
        elif numbers != list(range(1, self.plan + 1)):
            yield (f'planned {self.plan} cases, reported {len(numbers)}, '
                   f'the last: {last}')
        elif self.plan == 0:
            yield 'has no case'
        if not self.closed:
            yield 'did not end'
        elif self.closed != 'ok' and not self.count('not ok'):
            yield 'ended as not ok'


class Tally:
    """Counts, and prints what failed as it is found."""

    def __init__(self):
        self.passed = self.failed = self.splats = 0

    def check(self, name, problems, notes=()):
        problems = list(problems)
        self.passed += not problems
        self.failed += len(problems)
        for problem in problems[:2 * SHOWN]:
            print(f'  FAILED {name}: {problem}')
        if len(problems) > 2 * SHOWN:
            print(f'      and {len(problems) - 2 * SHOWN} more')
        for note in notes if problems else ():
            print(f'      {note}')


def read_whole(path):
    """The lines of a file, without what the kernel has printed of a line that it prints again."""
    try:
        with open(path, encoding='utf-8', errors='replace') as f:
            lines = [line.rstrip('\r\n') for line in f]
    except FileNotFoundError:
        return []
    return [line for line, after, again in zip(lines, lines[1:] + [''], lines[2:] + ['', ''])
            if line != REPLAY and not (after == REPLAY and again.startswith(line))]


def read(path):
    return [STAMP.sub('', line) for line in read_whole(path)]


def parse_ktap(lines):
    """The suites in LINES, in order."""
    suites, suite, notes = [], None, []
    for line in lines:
        if m := SUBTEST.match(line):
            suite, notes = Suite(m[1]), []
            suites.append(suite)
        elif suite is None:
            continue
        elif m := PLAN.match(line):
            suite.plan, notes = int(m[1]), []
        elif m := CASE.match(line):
            state = 'skip' if m[4] else m[1]
            suite.cases.append(Case(int(m[2]), m[3], state, [m[4]] if m[4] else notes))
            notes = []
        elif (m := CLOSE.match(line)) and m[2] == suite.name:
            suite.closed, suite.rest, suite = m[1], [], None
        else:
            notes.append(line)
            suite.rest = notes
    return suites


def user_suites(result):
    """What the programs in user space printed, as suites of their names."""
    lines, name = [], None
    for line in result:
        if line.startswith('user-begin '):
            name = line.split()[1]
            lines.append(f'    # Subtest: {name}')
        elif line.startswith('user-end '):
            lines.append(f'ok 1 {name}')
            name = None
        elif name:
            lines.append('    ' + line)
    return parse_ktap(lines)


def said(notes):
    """Of the lines around a case those that the case printed: no splats."""
    return [n for n in notes if n.startswith('    ')][-25:]


def judge_suite(tally, suite):
    counts = f'{suite.count("ok")} passed, {suite.count("not ok")} failed'
    if suite.count('skip'):
        counts += f', {suite.count("skip")} skipped'
    print(f'suite {suite.name}: {counts}')
    tally.passed += suite.count('ok')
    for case in suite.cases:
        if case.state == 'not ok':
            tally.check(f'{suite.name}.{case.name}', ['not ok'], said(case.notes))
        elif case.state == 'skip':
            print(f'  skipped {suite.name}.{case.name}: {case.notes[0]}')
    if problems := list(suite.problems()):
        tally.check(f'suite {suite.name}', problems, said(suite.rest))


def judge_suites(tally, suites, expected):
    for suite in suites:
        judge_suite(tally, suite)
    for name in expected:
        found = [s for s in suites if s.name == name]
        if len(found) != 1:
            tally.check(f'suite {name}', [f'ran {len(found)} times'])


def judge_kunit_py(tally, kunit_py, console):
    """A second opinion on the KTAP; it says nothing about the rest."""
    run = subprocess.run([sys.executable, kunit_py, 'parse'],
                         input='\n'.join(read_whole(console)), capture_output=True,
                         text=True, check=False)
    if run.returncode == 0 or tally.failed == 0:
        tally.check('kunit.py', [f'exit {run.returncode}'] * bool(run.returncode),
                    run.stdout.splitlines()[-15:])


def find_splats(lines):
    """(first, last) of each splat: from a bad line to its end, if it has one."""
    i = 0
    while i < len(lines):
        if not BAD.search(lines[i]) or '# expect-splat' in lines[i]:
            i += 1
            continue
        last = i
        for j in range(i, min(i + SPLAT_LINES, len(lines))):
            if 'expect-splat' in lines[j] or (
                    j > last + 1 and '[ cut here ]' in lines[j]):
                break
            if MORE.search(lines[j]) or (j == last + 1 and BAD.search(lines[j])):
                last = j
            if END.search(lines[j]):
                last = j
                if '</TASK>' not in lines[j]:
                    break
        yield i, last
        i = last + 1


def is_known(lines, first):
    """The splat is none of fairwq's: the kernel, without it, has it too."""
    if 'KCSAN: data-race' in lines[first]:
        return is_others_race(lines[first:first + 10 * SPLAT_LINES])
    frames = '\n'.join(lines[first:first + SPLAT_LINES])
    frames = frames[:frames.find('\nsmp: Brought up') + 1 or None]
    return 'fairwq' not in frames and any(
        head in lines[first] and all(word in frames for word in words)
        for head, *words in KNOWN)


def is_others_race(lines):
    """
    A data race in which neither access is of fairwq's code, or for it. Of one of the
    two the kernel may not know where it was: then the other one says whose memory it is.
    """
    stacks, frames = [], None
    for line in lines[1:]:
        if line.startswith('====='):
            break
        if re.search(r' of \d+ bytes by ', line):
            frames = []
            stacks.append(frames)
        elif not line.startswith(' '):
            frames = None
        elif frames is not None:
            frames.append(line)
    known = [[f for f in s if not HELPER.match(f)] for s in stacks if s]
    return known != [] and all(s and not OURS.search(s[0].rstrip()) for s in known)


def announced(lines):
    """(first, last, text) of each announced splat; last None: never closed."""
    begin = None
    for i, line in enumerate(lines):
        if m := re.search(r'# expect-splat begin (.*\S)', line):
            begin = (i, m[1])
        elif begin and '# expect-splat end' in line:
            yield begin[0], i, begin[1]
            begin = None
    if begin:
        yield begin[0], None, begin[1]


def judge_console(tally, lines):
    regions, problems, others = [], [], 0
    for first, last, text in announced(lines):
        if last is None:
            problems.append(f'line {first + 1}: announced splat has no end: {text}')
        elif not any(text in line for line in lines[first + 1:last]):
            problems.append(f'line {first + 1}: announced and not seen: {text}')
        else:
            regions.append((first, last, text))
    for first, last in find_splats(lines):
        block = lines[first:last + 1]
        if any(a < first and last < b and any(text in line for line in block)
               for a, b, text in regions):
            continue
        if is_known(lines, first):
            others += 1
            continue
        head = next((l for l in block if re.search('WARNING|BUG|Oops', l)), block[0])
        problems.append(f'line {first + 1}: {head.strip()}')
        if len(problems) <= SHOWN:
            print(''.join(f'      | {line}\n' for line in block[:25]), end='')
    if others:
        print(f'console: {others} splats that are none of fairwq\'s')
    tally.splats = len(problems)
    tally.check('console', problems)


def judge_steps(tally, plan, result):
    reports, notes, quiet = {}, [], False
    for line in result:
        quiet = line.startswith('user-begin ') or (
            quiet and not line.startswith('user-end '))
        if quiet or line.startswith('user-end '):
            continue
        if m := STEP.match(line):
            reports.setdefault(m[1], []).append((m[2], notes))
            notes = []
        else:
            notes.append(line)
    missing = []
    for step in plan:
        if not reports.get(step):
            missing.append(step)
            continue
        rc, notes = reports[step].pop(0)
        tally.check('guest', [f'"{step}": exit {rc}'] * (rc != '0'), notes[-25:])
    if missing:
        tally.check('guest', [f'"{missing[0]}" not done, nor {len(missing) - 1} other steps'])
    last = result[-1] if result else 'nothing'
    tally.check('guest', [f'its last line is not "done" but "{last}"'] * (last != 'done'))


def judge_program(name, log, status):
    tally = Tally()
    lines = [f'user-begin {name}', *read(log), f'user-end {name}']
    judge_suites(tally, user_suites(lines), [name])
    tally.check(name, [f'exit {status}'] * (status != '0'), read(log)[-10:])
    print(f'{tally.passed} passed, {tally.failed} failed')
    sys.exit(tally.failed > 0)


def main():
    if len(sys.argv) == 5 and sys.argv[1] == '--program':
        judge_program(*sys.argv[2:])
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    top = sys.argv[1]
    console = os.path.abspath(os.path.join(top, 'console.log'))
    lines, result = read(console), read(os.path.join(top, 'result.log'))
    status = (read(os.path.join(top, 'status')) or ['none'])[0]
    tally = Tally()
    judge_suites(tally, parse_ktap(lines) + user_suites(result),
                 read(os.path.join(top, 'suites')))
    if len(sys.argv) == 3:
        judge_kunit_py(tally, sys.argv[2], console)
    judge_console(tally, lines)
    judge_steps(tally, read(os.path.join(top, 'root', 'plan')), result)
    hung = status == '124'
    tally.check('machine', [f'ended with status {status}' + ': it hung' * hung] * (status != '0'),
                read(os.path.join(top, 'hang'))[:1])
    print(f'{tally.passed} passed, {tally.failed} failed')
    sys.exit(124 if hung else 3 if tally.splats else 1 if tally.failed else 0)


if __name__ == '__main__':
    main()
