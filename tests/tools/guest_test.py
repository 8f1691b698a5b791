#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Tests of tools/guest.py, with programs in place of guests."""

import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'tools', 'guest.py')
LIMIT = 2
SPIN = 'while :; do :; done'
# Run for three times as long as a guest may be silent: one process, and many short ones.
BUSY = f'python3 -c "import time as t\ne = t.time() + {3 * LIMIT}\nwhile t.time() < e: pass"'
SHORT = f'end=$(($(date +%s) + {3 * LIMIT})); while [ $(date +%s) -lt $end ]; do :; done'


class GuestTest(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def path(self, name):
        return os.path.join(self.tmp.name, name)

    def read(self, name):
        with open(self.path(name), encoding='utf-8') as file:
            return file.read()

    def start(self, script, total=60, **env):
        """Starts a guest that is a shell script; $reports is the file for its reports."""
        return subprocess.Popen(
            [sys.executable, GUEST, self.tmp.name, self.path('reports'), str(LIMIT), str(total),
             'sh', '-c', script], env={**os.environ, 'reports': self.path('reports'), **env})

    def run_guest(self, script, **limits):
        return self.start(script, **limits).wait()

    def members(self):
        """The guest's group, once it has printed its number."""
        while not os.path.exists(self.path('console.log')) or not self.read('console.log'):
            time.sleep(0.1)
        return int(self.read('console.log').split()[0])

    @staticmethod
    def state(path):
        """The state of a process, and its group."""
        try:
            with open(path, encoding='utf-8') as file:
                state, _, group = file.read().rpartition(')')[2].split()[:3]
                return state, int(group)
        except OSError:
            return 'X', 0

    def assert_gone(self, group):
        """None is left but those that have ended, and that nothing has waited for yet."""
        for path in glob.iglob('/proc/[0-9]*/stat'):
            state, of = self.state(path)
            self.assertFalse(of == group and state not in 'ZX', path)

    def test_passes_the_status_on(self):
        self.assertEqual(self.run_guest('exit 3'), 3)
        self.assertEqual(self.run_guest('kill -KILL $$'), 137)

    def test_console_is_kept(self):
        self.assertEqual(self.run_guest('echo said; echo loudly >&2'), 0)
        self.assertEqual(self.read('console.log'), 'said\nloudly\n')

    def test_ends_an_idle_guest(self):
        self.assertEqual(self.run_guest('echo "# the case"; sleep 1000 & sleep 1000'), 124)
        self.assertIn('no progress for', self.read('hang'))
        self.assertIn('# the case', self.read('hang'))

    def test_ends_a_busy_guest(self):
        self.assertEqual(self.run_guest(SPIN), 124)
        self.assertIn('no progress for', self.read('hang'))

    def test_ends_all_processes(self):
        guest = self.start(f'echo $$; sleep 1000 & {SPIN}')
        group = self.members()
        self.assertEqual(guest.wait(), 124)
        self.assert_gone(group)

    def test_a_report_is_progress(self):
        self.assertEqual(self.run_guest(
            'for i in 1 2 3; do sleep 1.2; echo "step $i" >>$reports; done'), 0)

    def test_a_case_is_progress(self):
        self.assertEqual(self.run_guest(
            'for i in 1 2 3; do sleep 1.2; echo "[ 1.0]     ok $i case"; done'), 0)

    def test_a_boot_is_progress(self):
        self.assertEqual(self.run_guest(
            'for i in 1 2 3; do sleep 1.2; echo "[ 1.0] pci $i"; done'), 0)

    def test_a_complaint_is_no_progress(self):
        self.assertEqual(self.run_guest(
            'echo "    ok 1 case"; while sleep 0.2; do echo "[ 1.0] BUG: [fairwq]"; done'), 124)

    def test_ends_a_guest_that_goes_on_for_ever(self):
        self.assertEqual(self.run_guest(
            'while sleep 0.2; do echo "# more"; done', total=3), 124)
        self.assertIn('not at its end after 3 s', self.read('hang'))

    def test_a_stopped_guest_does_not_hang(self):
        guest = self.start('echo $$; sleep 1; sleep 1; exit 5')
        group = self.members()
        os.killpg(group, signal.SIGSTOP)
        time.sleep(3 * LIMIT)
        self.assertIsNone(guest.poll())
        os.killpg(group, signal.SIGCONT)
        self.assertEqual(guest.wait(), 5)

    def test_stops_a_guest_and_lets_it_run(self):
        guest = self.start('echo $$; for i in 1 2 3 4 5 6; do sleep 1; echo "# $i"; done; exit 5',
                           FAIRWQ_STOPS='1')
        group, states = self.members(), ''
        while guest.poll() is None:
            state = self.state(f'/proc/{group}/stat')[0]
            states += state if state != states[-1:] else ''
            time.sleep(0.02)
        self.assertEqual(guest.wait(), 5)
        self.assertRegex(states, 'ST.*ST')

    def assert_goes_on_without_cpu(self, script):
        """It is silent for longer than a guest may be, but 16 loops have its CPU, too."""
        mask = os.sched_getaffinity(0)
        cpu = min(mask)
        os.sched_setaffinity(0, {cpu})
        loops = [subprocess.Popen(['sh', '-c', SPIN], start_new_session=True) for _ in range(16)]
        try:
            if self.run_guest(script):
                self.fail(self.read('hang'))
        finally:
            os.sched_setaffinity(0, mask)
            for loop in loops:
                loop.kill()
                loop.wait()

    def test_a_guest_that_gets_no_cpu_does_not_hang(self):
        self.assert_goes_on_without_cpu(BUSY)

    def test_nor_does_one_of_short_processes(self):
        self.assert_goes_on_without_cpu(SHORT)

    def test_ends_its_guest_when_it_is_ended(self):
        guest = self.start('echo $$; sleep 1000')
        group = self.members()
        guest.terminate()
        self.assertEqual(guest.wait(), 128 + signal.SIGTERM)
        self.assert_gone(group)


if __name__ == '__main__':
    unittest.main()
