#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of tools/verdict.py: each spoils the log of a good run in one way.

The good runs are those of two small suites and one program, as 6.1 in QEMU
and 7.3 as user-mode Linux print them; both contain one announced splat.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
VERDICT = os.path.join(HERE, '..', '..', 'tools', 'verdict.py')


def sub(pattern, new):
    """An edit that must change something, or the test tests nothing."""
    def edit(text):
        text, n = re.subn(pattern, new, text, count=1, flags=re.M | re.S)
        if not n:
            sys.exit(f'a test of the verdict is out of date: no {pattern!r}')
        return text
    return edit


BOOT = ('=====\nWARNING: suspicious RCU usage\n'
        'kernel/rcu/tree.c:1 Callback enqueued on offline CPU!!\nCall Trace:\n'
        ' [<60074f7b>] uml_start_secondary+0x29e/0x2ad\n')
WARN = ('------------[ cut here ]------------\nWARNING: at foo+0x1/0x2\n'
        'Call Trace:\n---[ end trace 0000000000000000 ]---\n')


def race(one, other):
    """What KCSAN says of two accesses, by the frames at the top of their stacks."""
    stack = ''.join(f'\n{kind} to 0xffff888 of 8 bytes by task {i} on cpu {i}:\n' +
                    (frames and frames + ' process_one_work+0x3/0x4\n') for i, (kind, frames) in
                    enumerate((('read-write', one), ('read', other))))
    return ('=' * 66 + f'\nBUG: KCSAN: data-race in a / b\n{stack}\n'
            'value changed: 0x1 -> 0x2\n\nReported by Kernel Concurrency Sanitizer on:\n'
            + '=' * 66 + '\n')


OURS = ' fairwq_run+0x1/0x2 [fairwq]\n'
THEIRS = ' insert_work+0x1/0x2\n'
HELPER = ' llist_add_batch+0x1/0x2\n'
# name, file to spoil, how, expected exit status, expected in the output
TESTS = [
    ('good', None, None, 0, '20 passed, 0 failed'),
    ('line that is printed again', 'console.log', sub(
        r'^([^\n]*)    ok 1 adds', r'\1    ok 1 a\n** replaying previous printk message **\n\g<0>'),
     0, '20 passed, 0 failed'),
    ('line that was not printed before', 'console.log', sub(
        r'^    ok 2 params', r'** replaying previous printk message **\n\g<0>'),
     0, '20 passed, 0 failed'),
    ('empty console', 'console.log', lambda t: '', 1, 'suite fairwq: ran 0 times'),
    ('truncated in a suite', 'console.log', sub(r'^    ok 2 params.*', ''), 1,
     'planned 3 cases, reported 1'),
    ('suite without end', 'console.log', sub(r'^ok 2 fairwq_two\n', ''), 1,
     'suite fairwq_two: did not end'),
    ('failed case', 'console.log', sub(r'^    ok 1 adds_one',
     '    # adds_one: EXPECTATION FAILED at x.c:1\n    not ok 1 adds_one'), 1,
     'EXPECTATION FAILED at x.c:1'),
    ('failed suite, good cases', 'console.log', sub(r'^ok 1 fairwq$', 'not ok 1 fairwq'),
     1, 'ended as not ok'),
    ('failed parameter only', 'console.log', sub(r'^    ok 2 params',
     '    not ok 2 params'), 1, 'fairwq.params: not ok'),
    ('missing case', 'console.log', sub(r'^    ok 1 adds_one\n', ''), 1,
     'planned 3 cases, reported 2'),
    ('missing plan', 'console.log', sub(r'^    1\.\.3\n', ''), 1, 'has no plan'),
    ('suite that never ran', 'suites', lambda t: t + 'fairwq_third\n', 1,
     'suite fairwq_third: ran 0 times'),
    ('suite that ran twice', 'console.log', lambda t: t + t, 1, 'ran 2 times'),
    ('WARNING in a passing log', 'console.log', sub(r'^ok 2 fairwq_two', WARN + r'\g<0>'),
     3, 'WARNING: at foo'),
    ('WARNING after the last line', 'console.log', lambda t: t + WARN, 3, 'WARNING: at foo'),
    ('lockdep', 'console.log', sub(r'^ok 2', 'WARNING: possible recursive locking detected\n'
     r'\g<0>'), 3, 'recursive'),
    ('torture says so', 'console.log', lambda t: t + 'fairwq: !!! lost an item\n', 3, '!!!'),
    ('panic', 'console.log', sub(r'^ok 2.*', 'Kernel panic - not syncing: x\n'), 3, 'panic'),
    ('stall', 'console.log', lambda t: t + 'rcu: INFO: rcu_sched self-detected stall on CPU\n',
     3, 'stall'),
    ('lockup', 'console.log', lambda t: t + 'BUG: workqueue lockup - pool cpus=0\n', 3,
     'lockup'),
    ('hung task', 'console.log', lambda t: t + 'INFO: task x:1 blocked for more than 30 '
     'seconds.\n', 3, 'blocked'),
    ('leak', 'console.log', lambda t: t + 'unreferenced object 0x1 (size 64):\n', 3,
     'unreferenced'),
    ('splat of another text than announced', 'console.log',
     sub(r'begin expected\. thing', 'begin another thing'), 3, 'announced and not seen'),
    ('second splat where one is announced', 'console.log',
     sub(r'^    # expected: # expect-splat end', WARN + r'\g<0>'), 3, 'WARNING: at foo'),
    ('splat not announced', 'console.log', sub(r'# expect-splat begin', '#'), 3, 'WARNING'),
    ('announced splat without end', 'console.log', sub(r'# expect-splat end', '#'), 3,
     'has no end'),
    ('known splat of the kernel', 'console.log', 
     lambda t: BOOT + 'smp: Brought up 1 node\n' + t, 0, '20 passed, 0 failed'),
    ('known splat with a frame of ours', 'console.log',
     lambda t: BOOT + ' [<0>] fairwq_queue+1\nsmp: Brought up 1 node\n' + t, 3,
     'suspicious RCU'),
    ('race with one unknown', 'console.log', lambda t: race('', THEIRS) + t, 0,
     "1 splats that are none of fairwq's"),
    ('race of ours with one unknown', 'console.log', lambda t: race('', OURS) + t, 3,
     'KCSAN: data-race'),
    ('race of two unknown', 'console.log', lambda t: race('', '') + t, 3, 'KCSAN: data-race'),
    ('race of ours', 'console.log', lambda t: race(OURS, OURS) + t, 3, 'KCSAN: data-race'),
    ('race of ours with the kernel', 'console.log', lambda t: race(THEIRS, OURS) + t, 3,
     'KCSAN: data-race'),
    ('race in a helper of ours', 'console.log', lambda t: race(THEIRS, HELPER + OURS) + t,
     3, 'KCSAN: data-race'),
    ("race of the kernel's", 'console.log',
     lambda t: race(THEIRS + OURS, HELPER + THEIRS + OURS) + t, 0,
     "1 splats that are none of fairwq's"),
    ('race without a stack', 'console.log', lambda t: 'BUG: KCSAN: data-race in a / b\n' + t,
     3, 'KCSAN: data-race'),
    ('hung guest', 'status', lambda t: '124\n', 124, 'it hung'),
    ('crash of the machine', 'status', lambda t: '134\n', 1, 'ended with status 134'),
    ('no done line', 'result.log', sub(r'^done\n', ''), 1, 'not "done"'),
    ('something after done', 'result.log', lambda t: t + 'more\n', 1, 'not "done"'),
    ('no report at all', 'result.log', lambda t: '', 1, 'not "done" but "nothing"'),
    ('module that does not load', 'result.log', sub(r'insmod fairhash rc=0',
     'insmod: cannot insert\ninsmod fairhash rc=1'), 1, 'cannot insert'),
    ('module that does not unload', 'result.log', sub(r'rmmod fairwq rc=0',
     'rmmod fairwq rc=1'), 1, '"rmmod fairwq": exit 1'),
    ('something still loaded', 'result.log', sub(r'unloaded all rc=0', 'unloaded all rc=1'),
     1, '"unloaded all": exit 1'),
    ('step left out', 'result.log', sub(r'rmmod fairwq rc=0\n', ''), 1,
     '"rmmod fairwq" not done'),
    ('program that fails', 'result.log', sub(r'ok 1 one', 'not ok 1 one'), 1,
     'device_test.one: not ok'),
    ('program that fails unsaid', 'result.log', sub(r'user device_test rc=0',
     'user device_test rc=1'), 1, '"user device_test": exit 1'),
    ('program that dies early', 'result.log', sub(r'ok 2 two[^\n]*\n', ''), 1,
     'planned 2 cases, reported 1'),
]


def run(good, file, edit):
    """Exit status and output of the verdict on GOOD with FILE edited."""
    with tempfile.TemporaryDirectory() as tmp:
        top = os.path.join(tmp, 'run')
        shutil.copytree(good, top)
        if file:
            with open(os.path.join(top, file), 'r+', encoding='utf-8') as f:
                text = edit(f.read())
                f.seek(0)
                f.truncate()
                f.write(text)
        done = subprocess.run([sys.executable, VERDICT, top], text=True, check=False,
                              capture_output=True)
        return done.returncode, done.stdout + done.stderr


def main():
    passed = failed = 0
    for version in '6.1', '7.3':
        for name, file, edit, status, text in TESTS:
            rc, out = run(os.path.join(HERE, 'good-' + version), file, edit)
            if rc == status and text in out:
                passed += 1
                continue
            failed += 1
            print(f'  FAILED verdict on "{name}" ({version}): exit {rc}, '
                  f'wanted {status} and {text!r}')
            print(''.join(f'      {line}\n' for line in out.splitlines()), end='')
    print(f'{passed} passed, {failed} failed')
    sys.exit(failed > 0)


if __name__ == '__main__':
    main()
