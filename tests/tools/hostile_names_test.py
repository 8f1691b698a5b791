#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""
Every subcommand of fairwq-top and fairwq-trace on names that look like something else. Drivers
name their batches after clients, and each client chooses the name of its process.

Each name must be shown as it is, but for what a terminal would obey, and each item must count
for its own batch. The names here are bytes, as in a table of a module that cleans none.
"""
import collections
import contextlib
import io
import json
import os
import pathlib
import pty
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import xml.etree.ElementTree

from load import load

top, trace = load("fairwq-top"), load("fairwq-trace")
TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools/user"

EVENT = b"x-1 [000] d..1. 1.000001: fairwq_start: pool=p batch=victim work=1 fn=f wait=5 runner=1"
ROW = b"x idle normal 100 0 0 5 5 1 1.0 0 - - 7 - - 0 -"
NAMES = [
    # As a terminal sees them: escapes, their one-byte forms, directions, line ends, no UTF-8.
    b"\x1b[31mred", b"\x1b]0;title\x07", b"\x9b31m", b"\xc2\x9b31m", b"\xc2\x85", b"\x7f", b"\t",
    b"\r", b"\x0b\x0c\x1c", b"\xe2\x80\xae4321", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xff\xfe",
    b"\xc3", b"\xed\xa0\x80", b"\xef\xbf\xbe", b"\xc0\x80",
    # As a formula, a format, a shell, XML, JSON, a filter or Python sees them.
    b"$x^$", b"$\\frac{1}{2$", b"\\$x\\$", b"$$", b"$", b"\\", b"%s%n", b"`id`", b"$(id)", b"<b>",
    b"&amp;", b"]]>", b"--", b'"', b"'", b'"\'', b'x" || pool != "', b"{0}", b"{", b"None", b"\\n",
    # As the tools see them.
    b"LOST 7 EVENTS", b"CPU:0 [LOST 7 EVENTS]", b"CPU:0 [7 EVENTS DROPPED]", b"# lost-events: 7",
    b"x work=1 fn=f", b"x work=1 fn=f wait=5 runner=1", b"x work=1 fn=f run=5", b"x create", EVENT,
    b"x runner=1 kick", b"fairwq_end: ", ROW, b"5 " + ROW, b"2 x", b"-", b"#", b"number", b"a",
    b"a", b"a (2)", b"a#2", b"1 others", b"x [mod]", b"x/y", b"/", b"a: batches",
    # Names that hide, or are too long.
    b"", b" ", b"  two  words  ", b"_", b"_x", b"__", b"\xc2\xa0", b"\xe2\x80\x8b", b"0", b"-1",
    b"\xc2\xb2", b"9" * 5000, b"w" * 300, b"\xc3\xbc" * 100, b"\xe4\xb8\xad\xe6\x96\x87" * 20,
    b"\xe2\x98\x83", b"e\xcc\x81", b"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80",
]


def made_up(seed, number):
    """Names of pieces of the others, always the same ones."""
    dice = random.Random(seed)
    pieces = [name[:100] for name in NAMES]
    pieces += [b" ", b"=", b"-", b": ", b"pool=", b" batch=", b"[0]"]
    return [b"".join(dice.choices(pieces, k=dice.randint(2, 5))) for _ in range(number)]


ALL = NAMES + made_up(20, 60)
# What an option may say; argparse takes the two dashes for its own.
ASKED = [name for name in ALL if name != b"--"]


def shown(name, errors="replace"):
    """A name as it is to be shown."""
    return "".join(c if c.isprintable() else " " if c == "\t" else "?"
                   for c in name.decode("utf-8", errors))


def lines_of(pool, batch, thread, first, items):
    """The events of some items, one after the other, from so many microseconds on."""
    def line(number, event):
        """A line of the file "trace"."""
        at = first + number
        return (b"%16s-%-7d [%03d] d..1. %5d.%06d: fairwq_%s\n"
                % (thread, 25, 0, at // 10**6, at % 10**6, event))

    of_batch = b"pool=%s batch=%s" % (pool, batch)
    yield line(0, b"batch: %s create" % of_batch)
    yield line(1, b"runner: pool=%s runner=3 kick" % pool)
    for nth in range(items):
        of_item = b"%s work=%016x fn=hash [mod]" % (of_batch, nth)
        yield line(4 * nth + 2, b"queue: " + of_item)
        yield line(4 * nth + 3, b"start: %s wait=1000 runner=3" % of_item)
        yield line(4 * nth + 4, b"end: %s run=1000" % of_item)


class Case(unittest.TestCase):
    """A case with a folder of its own."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.file = os.path.join(self.root, "file")

    def call(self, tool, *args):
        """What a tool prints, which must be text that a terminal only shows; and its stderr."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = tool.main(list(args))
        self.assertEqual(status, 0, err.getvalue())
        for text in out.getvalue(), err.getvalue():
            self.assertTrue(text.replace("\n", "").isprintable(), ascii(text))
        return out.getvalue(), err.getvalue()


class Traces(Case):
    """fairwq-trace."""

    def write(self, *clients):
        """Write a trace of (pool, batch) with 1 to 7 items. Return how many each has."""
        nr = {client: nth % 7 + 1 for nth, client in enumerate(dict.fromkeys(clients))}
        at = 0
        with open(self.file, "wb") as file:
            for (pool, batch), items in nr.items():
                thread = (batch if pool == b"p" else pool)[:15]
                file.writelines(lines_of(pool, batch, thread, at, items))
                at += 4 * items + 10
        return nr

    def both(self):
        """A trace with hostile batches, and one with hostile pools."""
        yield self.write(*((b"p", name) for name in ALL))
        # This is what the module makes of such a name.
        yield self.write(*((name.replace(b" batch=", b" batch?"), b"b") for name in ALL))

    def expected(self, nr):
        """How many items the batches that look the same have together."""
        count = collections.Counter()
        for (pool, batch), items in nr.items():
            count[shown(pool), shown(batch)] += items
        return count

    def test_table(self):
        for nr in self.both():
            for way in self.file, "-":
                with open(self.file, encoding="ascii") as file, \
                        unittest.mock.patch.object(sys, "stdin", file):
                    out, err = self.call(trace, "waits", way)
                self.assertEqual(err, "")
                rows = [(line[:40].rstrip(), int(line[40:].split()[0]))
                        for line in out.split("\n\n", maxsplit=1)[0].splitlines()[1:]]
                self.assertEqual(sorted(rows), sorted(
                    (f"{pool}/{batch}"[:40].rstrip(), items)
                    for (pool, batch), items in self.expected(nr).items()))

    def test_table_of_one_pool(self):
        self.write(*((name.replace(b" batch=", b" batch?"), b"b") for name in ALL))
        for name in ASKED:
            out, _ = self.call(trace, "waits", "--pool=" + os.fsdecode(name.replace(
                b" batch=", b" batch?")), self.file)
            self.assertEqual(len(out.splitlines()), 6, name)

    def test_timeline(self):
        for nr in self.both():
            output = os.path.join(self.root, "json")
            _, err = self.call(trace, "json", self.file, "-o", output)
            self.assertEqual(len(err.splitlines()), 1)
            out = json.loads(pathlib.Path(output).read_bytes())["traceEvents"]
            groups = {event["pid"]: event["args"]["name"] for event in out
                      if event["name"] == "process_name" and event["ph"] == "M"}
            lanes = {event["tid"]: (groups[event["pid"]], event["args"]["name"]) for event in out
                     if event["name"] == "thread_name" and event["ph"] == "M"}
            slices = collections.Counter(lanes[event["tid"]] for event in out
                                         if event["ph"] == "X" and event["name"] == "hash [mod]")
            expected = collections.Counter()
            for (pool, batch), items in self.expected(nr).items():
                expected[f"{pool}: batches", batch] += items
                expected[f"{pool}: runners", "runner 3"] += items
            self.assertEqual(slices, expected)
            self.assertEqual(sum(event["ph"] == "f" for event in out), len(nr))
            self.assertTrue(all(shown(text.encode()) == text for lane in lanes.values()
                                for text in lane))

    def svg(self, *args):
        """The texts of a plot."""
        output = os.path.join(self.root, "svg")
        _, err = self.call(trace, "svg", self.file, "-o", output, *args)
        self.assertEqual(err, output + "\n")
        text = pathlib.Path(output).read_text(encoding="utf-8")
        self.assertTrue(text.replace("\n", "").isprintable())
        return [element.text for element in xml.etree.ElementTree.parse(output).iter()
                if element.tag.endswith("text")]

    def label(self, name):
        """A name as the plot has it: long ones would leave no room for it."""
        name = shown(name)
        return name if len(name) <= 40 else name[:39] + "\N{HORIZONTAL ELLIPSIS}"

    def test_plot_of_batches(self):
        for at in range(0, len(ALL), trace.SHOWN):
            names = list(dict.fromkeys(ALL[at:at + trace.SHOWN]))
            self.write(*((b"p", name) for name in names))
            texts = self.svg()
            for name in filter(None, names):
                self.assertIn(self.label(name), texts)

    def test_plot_of_pools(self):
        for name in ASKED[::14] + [b"$x^$"]:
            name = name.replace(b" batch=", b" batch?")
            self.write((name, b"_b"), (name, b"c"))
            texts = self.svg("--by", "time", "--pool=" + os.fsdecode(name))
            self.assertEqual({"pool " + self.label(name), "_b", "c"} - set(texts), set())

    def test_many_batches_of_a_plot_are_others(self):
        self.write(*((b"p", name) for name in NAMES))
        nr = len(set(map(shown, NAMES)))
        self.assertIn(f"{nr - trace.SHOWN} others", self.svg())

    def test_record(self):
        for name in ASKED:
            self.write((name, b"b"))
            filters, made = [], []
            source = os.path.join(self.root, "instances")
            folder = os.path.join(source, "now")
            os.makedirs(os.path.join(folder, "per_cpu"), exist_ok=True)
            os.makedirs(os.path.join(folder, "events/fairwq"), exist_ok=True)
            shutil.copy(self.file, os.path.join(folder, "trace"))

            def mkdir(path, folder=folder):
                os.rename(folder, path)
                made.append(path)

            def put(_, file, text):
                filters.extend([text] if file == "filter" else [])

            with unittest.mock.patch.multiple(trace.os, mkdir=mkdir, rmdir=lambda path: None), \
                    unittest.mock.patch.multiple(trace, put=put), \
                    contextlib.redirect_stderr(io.StringIO()) as err:
                status = trace.main(["record", "-s", "0.001", "-o", self.file + ".out",
                                     "--tracefs", self.root, "--pool=" + os.fsdecode(name)])
            shutil.rmtree(made[0])
            if b'"' in name and b"'" in name:
                self.assertEqual(status, 1)
                self.assertIn("both kinds of quotes", err.getvalue())
                continue
            # The kernel takes all from one quote to the next of its kind.
            before, quote, text = filters[0][:8], filters[0][8], filters[0][9:]
            self.assertEqual((status, before, text.index(quote)), (0, "pool == ", len(text) - 1))
            self.assertEqual(text[:-1], os.fsdecode(name))
            self.assertEqual(pathlib.Path(self.file + ".out").read_text(encoding="utf-8"),
                             pathlib.Path(self.file).read_text(encoding="utf-8", errors="replace"))

    def test_thread_with_a_line_end_hides_no_event(self):
        with open(self.file, "wb") as file:
            file.writelines(lines_of(b"p", b"b", b"x\ny", 0, 4))
        self.assertEqual(len(trace.read_trace(self.file).items), 4)

    def test_terminal_without_these_characters(self):
        self.write(*((b"p", name) for name in ALL))
        for encoding in "ascii", "latin-1", "utf-8":
            with open(self.file, "rb") as file:
                got = subprocess.run(
                    [sys.executable, TOOLS / "fairwq-trace", "waits", "-"], stdin=file,
                    env=os.environ | {"PYTHONIOENCODING": encoding}, capture_output=True,
                    check=False)
            self.assertEqual((got.returncode, got.stderr), (0, b""))


class Tables(Case):
    """fairwq-top."""

    def pool(self, folder, batches, runners=b""):
        """Write the tables of a pool."""
        path = os.path.join(os.fsencode(self.root), folder)
        os.mkdir(path)
        for file, text in (
                (b"summary", b"name: %s\npolicy: round_robin\nmax_active: 2\nasync: 0\n"
                             b"runners_active: 0\nrunners_asleep: 0\n"
                             b"service_high: 0\nservice_normal: 0\nservice_low: 0\n" % folder),
                (b"low_turns", b"64\n"), (b"slice_us", b"0\n"),
                (b"batches", " ".join(top.HEAD).encode() + b"\n" + batches),
                (b"runners", b"runner state    sincems batch function\n" + runners)):
            with open(os.path.join(path, file), "wb") as target:
                target.write(text)

    def batches(self, services):
        """The table of hostile batches that have these services."""
        return b"".join(
            b"%6d %-24s eligible normal    100        1       0 %10d %10d        1   12.5   999999"
            b"         3         -         -         7         -         -      0 %s\n"
            % (number, name, 1000 + number, service, b"%d" % (number - 1) if number % 2 else b"-")
            for (number, name), service in zip(enumerate(ALL), services))

    def tables(self):
        """A pool with hostile batches, and hostile pools. Return the names of these."""
        self.pool(b"demo", self.batches([5] * len(ALL)), b"".join(
                b"%6d running        9 %-24s hash_fn%s\n"
                % (number, name, b" [mod]" if number % 2 else b"")
                for number, name in enumerate(ALL)))
        pools = list(dict.fromkeys(
            name.replace(b"/", b"!")[:63] for name in ALL if name not in (b"", b".", b"..")))
        for name in pools:
            self.pool(name, b"")
        return pools

    def top(self, *args):
        """What fairwq-top prints."""
        out, err = self.call(top, "--root", self.root, "--interval", "0.001", *args)
        self.assertEqual(err, "")
        return out

    def test_text(self):
        pools = self.tables()
        lines = self.top("--once").splitlines()
        heads = [line for line in lines if " of 2 runners, " in line]
        self.assertEqual(sorted(head[:head.rindex(": round_robin, ")] for head in heads),
                         sorted([shown(name, "surrogateescape") for name in pools] + ["demo"]))
        rows = [line[:24] for line in lines if line[24:34] == " eligible "]
        seen = [shown(name).rstrip() for name in ALL]
        expected = [f"{name[:24 - len(behind)]}{behind}" for number, name in enumerate(seen)
                    for behind in [f"#{number}" if seen.count(name) > 1 else ""]]
        self.assertEqual(sorted(row.rstrip() for row in rows),
                         sorted(text.rstrip() for text in expected))

    def test_json(self):
        pools = self.tables()
        got = json.loads(self.top("--once", "--json"))["pools"]
        self.assertEqual(sorted(pool["pool"] for pool in got.values()),
                         sorted([shown(name, "surrogateescape") for name in pools] + ["demo"]))
        self.assertEqual(
            {number: (row["name"].rstrip(), row["done"], row["owner"], row["share"] is not None)
             for number, row in got["demo"]["batch"].items()},
            {str(number): (shown(name).rstrip(), 1000 + number,
                           number - 1 if number % 2 else None, True)
             for number, name in enumerate(ALL)})
        self.assertEqual([(runner["batch"].rstrip(), runner["func"])
                          for runner in got["demo"]["runner"]],
                         [(shown(name).rstrip(), "hash_fn" + " [mod]" * (number % 2))
                          for number, name in enumerate(ALL)])

    def test_check(self):
        pools = self.tables()
        path = pathlib.Path(self.root, "demo/batches")
        head = path.read_bytes().splitlines(keepends=True)[0]

        # Each batch without an owner but the first missed its share.
        after = head + self.batches([1005] + [7] * (len(ALL) - 1))
        clock = [1000]

        def sleep(seconds):
            clock[0] += seconds
            path.write_bytes(after)
        with unittest.mock.patch.multiple(top.time, sleep=sleep, monotonic=lambda: clock[0]), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            status = top.main(["--root", self.root, "--check", "1"])
        lines = out.getvalue().split("\n")
        self.assertTrue("".join(lines).isprintable())
        missed = [line for line in lines if " were due beside the 1000 of 0 " in line]
        number = range(2, len(ALL), 2)
        for line, at in zip(missed, number):
            name = shown(ALL[at]).rstrip()[:24]
            self.assertEqual(line.split(" (weight 100): had 2 turns, at least 997 were due")[0],
                             f"  {at} {name}")
        # A line for each pool and each that missed, the head, and the verdict.
        self.assertEqual((status, len(missed), len(lines)),
                         (1, len(number), len(number) + len(pools) + 1 + 3))
        self.assertRegex(lines[-2], r"^UNFAIR: \d+ clients and 0 priorities compared, \d+ beyond")

    def test_one_pool(self):
        for name in set(self.tables()) & set(ASKED):
            out = self.top("--once", "--pool=" + os.fsdecode(name))
            self.assertEqual(len(out.splitlines()), 2)
        with contextlib.redirect_stderr(io.StringIO()) as err:
            status = top.main(["--root", self.root, "--once", "--pool", "\x1b[31m\udc9b"])
        self.assertEqual(status, 1)
        self.assertTrue(err.getvalue().replace("\n", "").isprintable())

    def test_terminal_without_these_characters(self):
        self.tables()
        for encoding in "ascii", "latin-1", "utf-8":
            for args in ["--once"], ["--once", "--pool", "none"]:
                got = subprocess.run(
                    [sys.executable, TOOLS / "fairwq-top", "--root", self.root, "--interval",
                     "0.001", *args], env=os.environ | {"PYTHONIOENCODING": encoding},
                    capture_output=True, check=False)
                self.assertEqual(got.returncode, len(args) // 3)
                self.assertNotIn(b"Traceback", got.stderr)

    def screen(self, locale):
        """What the live table sends to a terminal that is large enough, and its exit status."""
        pid, terminal = pty.fork()
        if not pid:
            args = [sys.executable, str(TOOLS / "fairwq-top"), "--root", self.root,
                    "--interval", "0.01"]
            os.execve(sys.executable, args, os.environ | {
                "TERM": "xterm", "LC_ALL": locale, "LINES": "1000", "COLUMNS": "200"})
        text, asked, until = b"", False, time.monotonic() + 300
        while time.monotonic() < until and select.select([terminal], [], [], 300)[0]:
            try:
                text += os.read(terminal, 65536)
            except OSError:     # it has ended
                break
            if b"runner %d: hash_fn" % (len(ALL) - 1) in text and not asked:
                asked = bool(os.write(terminal, b"q"))
        os.close(terminal)          # that ends it, too
        return text, os.waitpid(pid, 0)[1]

    def test_screen(self):
        self.tables()
        for locale in "C.UTF-8", "C":
            text, status = self.screen(locale)
            self.assertEqual(status, 0, text[-2000:])
            for bad in b"\x1b[31m", b"\x1b]", b"\xc2\x9b", b"\xc2\x85", b"\xe2\x80\xae", b"\x9b31m":
                self.assertNotIn(bad, text)
            for good in b"LOST 7 EVENTS", b"$x^$":
                self.assertIn(good, text)


if __name__ == "__main__":
    unittest.main()
