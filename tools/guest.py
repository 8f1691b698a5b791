#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Runs a guest, and ends it if it hangs. Then it says what hung, and what to do.

usage: guest.py DIR REPORTS LIMIT TOTAL COMMAND...

COMMAND starts QEMU or user-mode Linux. DIR/console.log is the guest's console, and
REPORTS the file that it reports to. What COMMAND itself prints is in DIR/console.log
for user-mode Linux, whose uml_dir is DIR and whose umid is guest, and in DIR/qemu.log for
QEMU.

A guest hangs if it makes no progress for LIMIT seconds of its own time, or has not ended
after TOTAL of them. Progress is a line in REPORTS, a line of a test or a tool on the
console, or any line there before the first of these. A guest's own time is the time in
which its processes had a CPU, and that in which all of them slept. The time in which
they were stopped or waited for a CPU is not. So the limits are the same on a busy
machine as on a quiet one.

A process that has just ended is not seen, nor what it did since the last look. So too
little is counted rather than too much: a guest sleeps if all of its processes do, and none
came or went meanwhile, at two looks in a row.

Then the guest's kernel is told to print what its CPUs and tasks do, on the console.
DIR/hang says what hung.

FAIRWQ_STOPS=1 stops the guest for 0.1 to 2 s, over and over, as a busy host may.

Exit: the status of COMMAND, or 124 if the guest was ended.
"""

import bisect
import glob
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

LOOK_S = 1
# How much time of its own a guest has to print its stacks. After so long a silence it is done:
# a kernel that panics waits for its other CPUs in between.
SPEAK_S = 60
SILENT_S = 2
SILENT_IN_PANIC_S = 15
OURS = re.compile(rb'(^|\] ) *(ok |not ok |# |(fairwq-[a-z]+|demo|guest): )', re.M)
# Lines of registers and of memory.
NUMBERS = re.compile(rb'^.*(\b(R(?!IP)[A-Z0-9]{1,2}|[FC]S|CR\d|Code): |\] ( [0-9a-f]{8,16}){2,}|'
                     rb'Stack:).*\n', re.M)
TICK_S = 1 / os.sysconf('SC_CLK_TCK')


def read(path):
    try:
        with open(path, 'rb') as file:
            return file.read()
    except OSError:
        return b''


def stats(pattern):
    """The fields of each stat file that matches, from the state on."""
    for path in glob.iglob(pattern):
        if text := read(path):
            yield text.rpartition(b')')[2].split()


class Clock:
    """The time of a guest's own: see above. The guest is a process group."""

    def __init__(self, group):
        self.group = group
        self.cpu = self.idle = 0
        self.ticks, self.at, self.asleep = {}, time.monotonic(), False

    def members(self):
        """The guest's processes, each with the fields of its stat file."""
        for path in glob.iglob('/proc/[0-9]*/stat'):
            fields = read(path).rpartition(b')')[2].split()
            if fields and int(fields[2]) == self.group:
                yield int(path.split('/')[2]), fields

    def look(self):
        """Counts the time since the last look."""
        ticks, states = {}, []
        for pid, fields in self.members():
            ticks[pid] = sum(map(int, fields[11:13]))
            states += [s[0] for s in stats(f'/proc/{pid}/task/[0-9]*/stat')]
        asleep = states and all(s in b'SI' for s in states)
        # Any that was missed above is another one here.
        asleep = asleep and {pid for pid, _ in self.members()} == ticks.keys()
        now = time.monotonic()
        cpu = sum(t - self.ticks.get(pid, 0) for pid, t in ticks.items()) * TICK_S
        self.cpu += cpu
        was_asleep, self.asleep = self.asleep, asleep
        if was_asleep and self.asleep:
            # What is seen now may not hold for longer, if this process was kept from looking.
            self.idle += max(min(now - self.at, LOOK_S) - cpu, 0)
        self.ticks, self.at = ticks, now

    @property
    def own(self):
        return self.cpu + self.idle


class Guest:
    def __init__(self, folder, reports, command):
        self.folder, self.reports = folder, reports
        self.console = os.path.join(folder, 'console.log')
        self.is_qemu = os.path.basename(command[0]).startswith('qemu')
        log = os.path.join(folder, 'qemu.log') if self.is_qemu else self.console
        with open(log, 'wb') as out:
            self.process = subprocess.Popen(
                command + ['-monitor', 'stdio'] * self.is_qemu, start_new_session=True,
                stdin=subprocess.PIPE if self.is_qemu else subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT)
        self.log = log
        self.clock = Clock(self.process.pid)

    def progress(self):
        """What changes as long as the guest makes progress."""
        console = read(self.console)
        ours = len(OURS.findall(console))
        return len(read(self.reports)), ours, 0 if ours else len(console)

    def has_ended(self):
        try:
            self.process.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            self.clock.look()
            return False
        return True

    def watch(self, limit, total):
        """Waits until the guest has ended, or hangs. Returns why it is to be ended."""
        began, last = 0, None
        while not self.has_ended():
            if last != (last := self.progress()):
                began = self.clock.own
            if self.clock.own - began >= limit:
                return f'no progress for {self.clock.own - began:.0f} s'
            if self.clock.own >= total:
                return f'not at its end after {total} s'
        return ''

    def monitor(self, *commands):
        """Gives QEMU's monitor some commands, and returns what it says to them."""
        before = len(read(self.log))
        self.process.stdin.write(b''.join(c.encode() + b'\n' for c in commands))
        self.process.stdin.flush()
        time.sleep(0.5)
        return read(self.log)[before:].decode(errors='replace')

    def mconsole(self, *commands):
        """Gives user-mode Linux some commands; it answers on the console."""
        # By way of the folder, because a socket's name must be short.
        folder = os.open(os.path.join(self.folder, 'guest'), os.O_PATH)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            for command in commands:
                sock.sendto(struct.pack('III512s', 0xcafebabe, 2, len(command), command.encode()),
                            f'/proc/self/fd/{folder}/mconsole')

    def ask(self):
        """Has the guest print its stacks. Returns where its CPUs are, as far as that is known."""
        size = len(read(self.console))
        if not self.is_qemu:
            self.mconsole('sysrq l', 'sysrq t')
            self.listen(size, SILENT_S)
            return []
        found = [self.monitor('info registers -a') for _ in range(3)]
        # The kernel's parameters let it panic, with the stacks of all tasks.
        self.monitor('nmi')
        self.listen(size, SILENT_IN_PANIC_S)
        return places(found, self.symbols())

    def listen(self, size, silent):
        """Waits until the guest has ended, or has printed no more for a while."""
        asked = heard = self.clock.own
        while not self.has_ended() and self.clock.own < min(asked + SPEAK_S, heard + silent):
            if size != (size := len(read(self.console))):
                heard = self.clock.own

    def symbols(self):
        """The kernel's map, if it is known: sorted addresses, and names."""
        args = self.process.args
        path = args[args.index('-kernel') + 1].partition('/arch/')[0] + '/System.map'
        lines = [l.split() for l in read(path).decode().splitlines()]
        return [int(l[0], 16) for l in lines], [l[2] for l in lines]

    def stop_often(self):
        """Stops the guest for a while, and lets it run for a while, at random."""
        while self.process.poll() is None:
            for number in signal.SIGSTOP, signal.SIGCONT:
                self.signal(number)
                time.sleep(random.uniform(0.1, 2))

    def end(self, why):
        """Ends the guest, and writes what hung."""
        before, where = read(self.console), []
        try:
            where = self.ask()
        except OSError:
            pass
        self.kill()
        said = read(self.console)[len(before):]
        with open(os.path.join(self.folder, 'hang'), 'w', encoding='utf-8') as file:
            file.writelines(line + '\n' for line in self.story(why, before, said, where))

    def story(self, why, before, said, where):
        own = [l for l in before.splitlines() if OURS.search(l)]
        yield (f'The guest hangs: {why} of its own time '
               f'(in all, it ran for {self.clock.cpu:.0f} s and slept for '
               f'{self.clock.idle:.0f} s).')
        yield from part('the last reports', own[-4:])
        yield from part('the end of its console', before.splitlines()[-12:])
        yield from part('its CPUs, at three moments', where)
        cpus, *tasks = re.split(rb'^(?=.*\btask:)', NUMBERS.sub(b'', said), flags=re.M)
        yield from part('what its kernel says', cpus.splitlines()[:24])
        for task in [t for t in tasks if re.search(rb'state:[RD]', t)][:6]:
            yield from part('and a task that runs or is blocked', task.splitlines()[:14])

    def signal(self, number):
        """Sends a signal to all processes of the guest: user-mode Linux is several."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def kill(self):
        # On SIGTERM user-mode Linux tries to shut down, fails, and fills the console.
        self.signal(signal.SIGKILL)
        self.process.wait()
        while any(fields[0] not in b'ZX' for _, fields in self.clock.members()):
            time.sleep(0.05)


def part(title, lines):
    if lines:
        yield f'  {title}:'
        for line in lines:
            text = line if isinstance(line, str) else line.decode(errors='replace')
            yield '    ' + text.rstrip()


def places(found, symbols):
    """A line for each CPU: in which functions it was seen."""
    seen = {}
    for text in found:
        for cpu, rip in re.findall(r'CPU#(\d+).*?\b[RE]IP=([0-9a-f]+)', text, re.S):
            seen.setdefault(int(cpu), []).append(name_of(int(rip, 16), *symbols))
    return [f'CPU {cpu}: {", ".join(names)}' for cpu, names in sorted(seen.items())]


def name_of(address, addresses, names):
    i = bisect.bisect_right(addresses, address) - 1
    if i < 0 or address - addresses[i] > 1 << 16:
        return f'{address:#x}'
    return f'{names[i]}+{address - addresses[i]:#x}'


def main():
    folder, reports, limit, total, *command = sys.argv[1:]
    guest = Guest(folder, reports, command)

    def stop(number, _):
        guest.kill()
        sys.exit(128 + number)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(number, stop)
    if os.environ.get('FAIRWQ_STOPS'):
        threading.Thread(target=guest.stop_often, daemon=True).start()
    if why := guest.watch(int(limit), int(total)):
        guest.end(why)
        sys.exit(124)
    guest.kill()
    status = guest.process.returncode
    sys.exit(status if status >= 0 else 128 - status)


if __name__ == '__main__':
    main()
