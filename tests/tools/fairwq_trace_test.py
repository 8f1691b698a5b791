#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""fairwq-trace on lines as tracefs has them: what becomes of them, and what is told when not."""
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree
from contextlib import redirect_stderr, redirect_stdout

from load import load

tool = load("fairwq-trace")


def line(us, event, thread="kworker/u4:1-25", cpu=0):
    """A line of the file "trace", at so many microseconds."""
    return f"{thread:>22}   [{cpu:03}] d..1. {us // 10**6:5}.{us % 10**6:06}: fairwq_{event}\n"


def queue(us, batch, work, pool="p", fn="hash"):
    """An item is queued."""
    return line(us, f"queue: pool={pool} batch={batch} work={work} fn={fn}", "client-90", 1)


def start(us, batch, work, pool="p", fn="hash", wait=0, runner=0, thread="kworker/u4:1-25"):
    """Its function begins."""
    return line(us, f"start: pool={pool} batch={batch} work={work} fn={fn} "
                    f"wait={wait} runner={runner}", thread)


def end(us, batch, work, pool="p", fn="hash", run=0, thread="kworker/u4:1-25"):
    """Its function has returned."""
    return line(us, f"end: pool={pool} batch={batch} work={work} fn={fn} run={run}", thread)


def slices(out, lane=None):
    """The slices of a timeline: (name, begin, length, name of the lane)."""
    names = {(event["pid"], event["tid"]): event["args"]["name"] for event in out
             if event["name"] == "thread_name"}
    return [(event["name"], event["ts"], event["dur"], names[event["pid"], event["tid"]])
            for event in out if event["ph"] == "X"
            and lane in (None, names[event["pid"], event["tid"]])]


class Reading(unittest.TestCase):
    """From lines to items."""

    def test_wait_and_run_come_from_the_lines(self):
        item, = tool.Trace([queue(100, "a", "1"), start(350, "a", "1", wait=249123),
                            end(400, "a", "1", run=50000)]).items
        self.assertEqual((item.wait, item.run, item.runner), (249123, 50000, "0"))

    def test_wait_is_from_the_queue_call_where_the_start_has_none(self):
        item, = tool.Trace([queue(100, "a", "1"), start(350, "a", "1")]).items
        self.assertEqual((item.wait, item.run), (250000, None))

    def test_wait_is_unknown_of_what_was_queued_before(self):
        item, = tool.Trace([start(350, "a", "1")]).items
        self.assertIsNone(item.wait)

    def test_work_that_queues_itself_while_it_runs_waits_from_then(self):
        items = tool.Trace([queue(0, "a", "1"), start(10, "a", "1"), queue(12, "a", "1"),
                            end(20, "a", "1", run=10000), start(30, "a", "1")]).items
        self.assertEqual([item.wait for item in items], [10000, 18000])

    def test_end_without_a_start_gives_an_item_by_its_run_time(self):
        trace = tool.Trace([end(500, "a", "1", run=200000)])
        self.assertEqual((trace.items[0].start, trace.first), (300000, 300000))

    def test_end_without_a_run_time_gives_none(self):
        self.assertEqual(len(tool.Trace([end(500, "a", "1")]).items), 0)

    def test_task_within_an_item_ends_before_it(self):
        outer, inner = tool.Trace([start(0, "a", "1"), start(5, "a", "2", fn="task"),
                                   end(8, "a", "2", fn="task"), end(20, "a", "1")]).items
        self.assertEqual((outer.run, inner.run), (20000, 3000))

    def test_items_of_two_threads_do_not_mix(self):
        one, two = tool.Trace([start(0, "a", "1", thread="x-1"), start(5, "b", "1", thread="y-2"),
                               end(8, "a", "1", thread="x-1"),
                               end(20, "b", "1", thread="y-2")]).items
        self.assertEqual((one.run, two.run), (8000, 15000))

    def test_names_may_have_spaces_and_equal_signs(self):
        item, = tool.Trace([start(0, "a = b work", "1", pool="my pool", fn="f [mod]")]).items
        self.assertEqual((item.pool, item.batch, item.fn), ("my pool", "a = b work", "f [mod]"))

    def test_thread_may_have_spaces_and_dashes(self):
        item, = tool.Trace([start(0, "a", "1", thread="my - task-7")]).items
        self.assertEqual(item.thread, "my - task-7")

    def test_lines_of_trace_cmd_are_read(self):
        item, = tool.Trace([" kworker/u4:1-25    [000] .....  4.520368: fairwq_start: "
                            "        pool=p batch=a work=0x12 fn=hash wait=5 runner=1\n"]).items
        self.assertEqual((item.runner, item.wait, item.start), ("1", 5, 4520368000))

    def test_lines_with_a_thread_group_are_read(self):
        item, = tool.Trace(["  client-90  (     90) [001] d..1.  1.000001: fairwq_start: "
                            "pool=p batch=a work=1 fn=f wait=5 runner=1\n"]).items
        self.assertEqual((item.thread, item.cpu), ("client-90", 1))

    def test_start_without_a_runner_is_read(self):
        item, = tool.Trace([line(1, "start: pool=p batch=a work=1 fn=f wait=5")]).items
        self.assertIsNone(item.runner)

    def test_lost_events_are_counted(self):
        trace = tool.Trace(["CPU:0 [LOST 12 EVENTS]\n", queue(0, "a", "1"),
                            "CPU:7 [100 EVENTS DROPPED]\n", "# lost-events: 30\n"])
        self.assertEqual(trace.lost, 142)

    def test_lost_events_in_a_name_are_none(self):
        lost = "CPU:0 [LOST 7 EVENTS]"
        trace = tool.Trace([start(0, lost, "1", thread="LOST 7 EVENTS-5"), end(5, lost, "1")])
        self.assertEqual((trace.lost, trace.items[0].batch), (0, lost))

    def test_other_events_are_passed_over(self):
        trace = tool.Trace(["# tracer: nop\n", " a-1 [000] d..1. 1.000000: sched_switch: x\n",
                            queue(0, "a", "1")])
        self.assertEqual((trace.first, trace.last), (0, 0))

    def test_no_event_at_all_is_said(self):
        with self.assertRaisesRegex(tool.Trouble, "no event of fairwq"):
            tool.Trace(["# tracer: nop\n"])


class Showing(unittest.TestCase):
    """From items to what is looked at."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def file(self, *lines):
        """A file with these lines."""
        path = os.path.join(self.root, "trace")
        pathlib.Path(path).write_text("".join(lines), encoding="utf-8")
        return path

    def call(self, *args):
        """(exit status, stdout, stderr) of the tool."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = tool.main(list(args))
        return status, out.getvalue(), err.getvalue()

    def timeline(self, *lines):
        """What the JSON has of these lines."""
        output = os.path.join(self.root, "json")
        status, _, err = self.call("json", self.file(*lines), "-o", output)
        self.assertEqual(status, 0, err)
        out = json.loads(pathlib.Path(output).read_text(encoding="utf-8"))["traceEvents"]
        self.assertEqual({type(event["pid"]) for event in out}, {int})
        return out

    # -- the timeline

    def test_item_is_a_slice_of_its_runner_and_of_its_batch(self):
        out = self.timeline(queue(100, "a", "1"), start(150, "a", "1", runner=3),
                            end(180, "a", "1"))
        self.assertEqual(slices(out), [("hash", 50, 30, "runner 3"), ("hash", 50, 30, "a")])

    def test_slice_says_how_long_the_item_has_waited(self):
        out = self.timeline(start(350, "a", "1", wait=249000))
        waits = [event["args"].get("wait_us") for event in out if event["ph"] == "X"]
        self.assertEqual(waits, [249, 249])

    def test_items_of_a_batch_that_overlap_have_lanes_of_their_own(self):
        out = self.timeline(start(0, "a", "1", thread="x-1", runner=0),
                            start(5, "a", "2", thread="y-2", runner=1),
                            end(10, "a", "1", thread="x-1"),
                            start(12, "a", "3", thread="x-1", runner=0),
                            start(14, "a", "4", thread="z-3", runner=2),
                            end(15, "a", "3", thread="x-1"), end(20, "a", "2", thread="y-2"))
        self.assertEqual([item[1] for item in slices(out, "a")], [0, 12])
        self.assertEqual([item[1] for item in slices(out, "a (2)")], [5])
        self.assertEqual([item[1] for item in slices(out, "a (3)")], [14])

    def test_item_that_has_not_ended_reaches_to_the_end(self):
        out = self.timeline(start(0, "a", "1"), queue(70, "a", "2"))
        self.assertEqual(slices(out, "a"), [("hash", 0, 70, "a")])
        ends = [event["args"].get("ended") for event in out if event["ph"] == "X"]
        self.assertEqual(set(ends), {"not in this trace"})

    def test_kick_is_an_arrow_to_the_next_item_of_its_runner(self):
        out = self.timeline(start(0, "a", "1", runner=2), end(5, "a", "1"),
                            line(10, "runner: pool=p runner=2 kick", "client-90", 1),
                            start(20, "b", "2", runner=1, thread="y-2"),
                            start(30, "c", "3", runner=2))
        begin, = [event for event in out if event["ph"] == "s"]
        finish, = [event for event in out if event["ph"] == "f"]
        self.assertEqual((begin["ts"], finish["ts"], begin["id"]), (10, 30, finish["id"]))
        runner, = [event for event in out if event["ph"] == "M"
                   and event["args"]["name"] == "runner 2"]
        self.assertEqual((finish["pid"], finish["tid"]), (runner["pid"], runner["tid"]))

    def test_kick_that_nothing_follows_is_no_arrow(self):
        out = self.timeline(start(0, "a", "1", runner=2),
                            line(10, "runner: pool=p runner=2 kick", "client-90", 1))
        self.assertEqual([event for event in out if event["ph"] in "sf"], [])
        self.assertIn("kick runner 2", [item[0] for item in slices(out)])

    def test_what_waits_is_counted(self):
        out = self.timeline(queue(0, "a", "1"), queue(5, "a", "2"), start(9, "a", "1"))
        self.assertEqual([event["args"]["items"] for event in out if event["ph"] == "C"],
                         [1, 2, 1])

    def test_batch_that_goes_is_a_mark(self):
        out = self.timeline(line(0, "batch: pool=p batch=a create"),
                            line(9, "batch: pool=p batch=a dispose"))
        self.assertEqual([(event["name"], event["ts"]) for event in out if event["ph"] == "i"],
                         [("create", 0), ("dispose", 9)])

    # -- the table

    def test_table_has_batches_and_functions(self):
        _, out, _ = self.call("waits", self.file(
            start(0, "a", "1", wait=1000), end(10, "a", "1"),
            start(20, "a", "2", wait=3000, fn="sum"), end(50, "a", "2", fn="sum"),
            start(60, "b", "3", wait=2000), end(70, "b", "3")))
        rows = {words[0]: words[1:] for words in map(str.split, out.splitlines()) if words}
        self.assertEqual(list(rows), ["batch", "p/a", "p/b", "function", "hash", "sum"])
        self.assertEqual(rows["p/a"], ["2", "1.0", "3.0", "3.0", "10.0", "30.0", "30.0"])
        self.assertEqual(rows["hash"], ["2", "1.0", "2.0", "2.0", "10.0", "10.0", "10.0"])

    def test_99_of_100_is_not_the_longest(self):
        lines = []
        for at in range(100):
            lines += start(at * 10, "a", "1", wait=(at + 1) * 1000), end(at * 10 + 5, "a", "1")
        _, out, _ = self.call("waits", self.file(*lines))
        self.assertIn("50.0       99.0      100.0", out)

    def test_table_of_one_pool_has_no_other(self):
        _, out, _ = self.call("waits", "--pool", "q",
                              self.file(start(0, "a", "1"), start(5, "b", "2", pool="q")))
        self.assertIn("q/b", out)
        self.assertNotIn("p/a", out)

    def test_unknown_time_is_a_dash(self):
        _, out, _ = self.call("waits", self.file(start(0, "a", "1")))
        self.assertEqual(out.splitlines()[1].split()[2:], ["-"] * 6)

    # -- the plot

    def test_shares_by_items_count_starts(self):
        trace = tool.Trace([start(500, "a", "1"), end(590, "a", "1"), start(591, "b", "2"),
                            end(592, "b", "2"), start(595, "b", "3"), end(600, "b", "3")])
        names, parts = tool.shares(trace, "p", 2, False)
        self.assertEqual(dict(zip(names, parts)), {"a": [100, 0], "b": [0, 100]})

    def test_shares_by_time_go_by_what_lies_in_each_step(self):
        trace = tool.Trace([start(0, "a", "1"), end(75, "a", "1"), start(75, "b", "2"),
                            end(100, "b", "2")])
        names, parts = tool.shares(trace, "p", 2, True)
        self.assertEqual(dict(zip(names, parts)), {"a": [100, 50], "b": [0, 50]})

    def test_waits_in_the_plot_are_those_of_one_batch_from_the_begin_on(self):
        trace = tool.Trace([start(500, "a", "1", wait=1000), end(501, "a", "1"),
                            start(510, "b", "2", wait=5000), end(511, "b", "2"),
                            start(1500, "a", "3", wait=7000), end(1501, "a", "3"),
                            start(1510, "a", "4", wait=9000, pool="q"), end(1511, "a", "4")])
        (seconds, waits), = tool.waits_of(trace, "p", ["a"])
        self.assertEqual((list(seconds), list(waits)), ([0, 0.001], [1, 7]))

    def test_plot_is_of_the_pool_with_most_items(self):
        trace = tool.Trace([start(0, "a", "1"), start(5, "b", "2", pool="q"),
                            start(6, "b", "3", pool="q")])
        self.assertEqual(tool.busiest(trace, None), "q")

    def test_plot_is_svg_and_names_pool_and_batches(self):
        output = os.path.join(self.root, "svg")
        lines = [text for at in range(0, 240, 20) for text in
                 (start(at, f"client-{at}", "1", wait=1000 * at), end(at + 9, f"client-{at}", "1"))]
        status, _, err = self.call("svg", "-o", output, self.file(*lines))
        self.assertEqual(status, 0, err)
        xml.etree.ElementTree.parse(output)
        text = pathlib.Path(output).read_text(encoding="utf-8")
        self.assertIn("pool p", text)
        self.assertIn("3 others", text)

    def test_missing_matplotlib_is_said(self):
        with unittest.mock.patch.dict(sys.modules, {"matplotlib": None}):
            status, _, err = self.call("svg", self.file(start(0, "a", "1")))
        self.assertEqual(status, 1)
        self.assertIn("apt install python3-matplotlib", err)

    # -- what goes wrong

    def test_unknown_pool_is_said_with_those_there_are(self):
        status, _, err = self.call("svg", "--pool", "x", self.file(start(0, "a", "1")))
        self.assertEqual(status, 1)
        self.assertIn("no item of pool x: there are p", err)

    def test_trace_without_items_is_said(self):
        status, _, err = self.call("svg", self.file(queue(0, "a", "1")))
        self.assertEqual(status, 1)
        self.assertIn("record for longer", err)

    def test_missing_file_is_said(self):
        status, _, err = self.call("waits", os.path.join(self.root, "none"))
        self.assertEqual(status, 1)
        self.assertIn("No such file", err)

    def test_lost_events_are_said(self):
        _, _, err = self.call("waits", self.file(start(0, "a", "1"), "# lost-events: 7\n"))
        self.assertIn("7 events are missing", err)


class Large(unittest.TestCase):
    """A million lines must take 300 MB at most, and no time that grows faster than they do."""

    LINES = 50000
    # Says how much memory it has needed at most, KiB, and how much time of a CPU, s. A plot
    # has as many dots less as there are lines less than a million.
    PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from load import load
tool = load("fairwq-trace")
tool.DOTS //= 20
tool.main(sys.argv[2:])
with open("/proc/self/status", encoding="ascii") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM:")), os.times()[0])
"""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    @staticmethod
    def usual(nr):
        """Items of 40 batches, three at a time."""
        for at in range(nr // 3):
            name, work = f"client-{at % 40}", f"{at:016x}"
            yield queue(3 * at, name, work)
            yield start(3 * at + 1, name, work, runner=at % 3, thread=f"x-{at % 3}")
            if at >= 3:
                yield end(3 * at + 2, f"client-{(at - 3) % 40}", f"{at - 3:016x}",
                          thread=f"x-{at % 3}")

    @staticmethod
    def starts(nr):
        """The beginning of each item only, as if the other events were off."""
        for at in range(nr):
            yield start(at, "a", f"{at:016x}", wait=at + 1, runner=at % 3)

    @staticmethod
    def flows(nr):
        """A batch for every three lines."""
        for at in range(nr // 3):
            yield line(3 * at, f"batch: pool=p batch=flow-{at:016x} create")
            yield start(3 * at + 1, f"flow-{at:016x}", f"{at:016x}", wait=9)
            yield end(3 * at + 2, f"flow-{at:016x}", f"{at:016x}")

    @staticmethod
    def queues(nr):
        """Items that all wait."""
        yield start(0, "a", "1", wait=9)
        for at in range(nr - 1):
            yield queue(at, f"client-{at % 40}", f"{at:016x}")

    @staticmethod
    def kicks(nr):
        """Kicks only, but for the first line."""
        yield start(0, "a", "1", wait=9)
        for at in range(nr - 1):
            yield line(at, f"runner: pool=p runner={at % 3} kick", f"x-{at % 100}")

    def used(self, way, lines, nr):
        """What the tool needs for so many lines: bytes, and seconds of a CPU."""
        path = os.path.join(self.root, "trace")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines(nr))
        args = [way, path] if way == "waits" else [way, path, "-o", path + ".out"]
        got = subprocess.run([sys.executable, "-c", self.PROGRAM, pathlib.Path(__file__).parent,
                              *args], capture_output=True, check=True, text=True)
        memory, seconds = got.stdout.split()[-2:]
        return 1024 * int(memory), float(seconds)

    def test_memory(self):
        for way in "waits", "json", "svg":
            for lines in self.usual, self.starts, self.queues, self.flows, self.kicks:
                few, many = (self.used(way, lines, nr)[0] for nr in (30, self.LINES))
                self.assertLess(few + (many - few) * 10**6 // self.LINES, 300 * 10**6,
                                (way, lines.__name__))

    def test_time_grows_as_the_lines_do(self):
        # 16 times as long for 4 times as many, if each were compared with each.
        few, many = (self.used("json", self.starts, nr)[1] for nr in (10000, 40000))
        self.assertLess(many, 8 * few)


class Recording(unittest.TestCase):
    """On a folder that looks like tracefs."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        self.output = os.path.join(self.root, "out")
        os.mkdir(os.path.join(self.root, "instances"))

    def record(self, text="", events=True, stats="overrun: 0\n", **patch):
        """(exit status, stderr, what was written to tracefs) of a recording."""
        written, made = [], []
        ready = pathlib.Path(self.root, "ready")
        (ready / "per_cpu/cpu0").mkdir(parents=True)
        if events:
            (ready / "events/fairwq").mkdir(parents=True)
        (ready / "trace").write_text(text, encoding="utf-8")
        (ready / "per_cpu/cpu0/stats").write_text(stats, encoding="utf-8")

        def mkdir(folder):
            """As in tracefs, where a new instance has all of its files at once."""
            made.append(folder)
            os.rename(ready, folder)

        def put(_, name, value):
            written.append((name, value))

        err = io.StringIO()
        with unittest.mock.patch.multiple(tool.os, mkdir=mkdir, rmdir=made.remove), \
                unittest.mock.patch.multiple(tool, put=put, **patch), redirect_stderr(err):
            status = tool.main(["record", "-s", "0.01", "-o", self.output, "--pool", "demo",
                                "--tracefs", self.root])
        self.assertEqual(made, [], "the instance is still there")
        return status, err.getvalue(), written

    def test_recording_is_written_and_the_instance_removed(self):
        text = "# tracer: nop\n" + start(0, "a", "1")
        status, err, written = self.record(text)
        self.assertEqual(status, 0)
        self.assertIn("1 events", err)
        self.assertEqual(pathlib.Path(self.output).read_text(encoding="utf-8"), text)
        self.assertIn(("filter", 'pool == "demo"'), written)
        self.assertEqual([value for name, value in written if name == "enable"], ["1", "0"])

    def test_lost_events_are_said_with_what_to_do(self):
        _, err, _ = self.record(start(0, "a", "1"), stats="entries: 1\noverrun: 30\n"
                                "commit overrun: 2\ndropped events: 1\nread events: 9\n")
        self.assertIn("33 older events found no room", err)
        self.assertIn("--buffer 32768", err)
        self.assertIn("# lost-events: 33", pathlib.Path(self.output).read_text(encoding="utf-8"))

    def test_no_event_is_said(self):
        self.assertIn("no event", self.record("# tracer: nop\n")[1])

    def test_kernel_without_fairwq_is_said(self):
        status, err, _ = self.record(events=False)
        self.assertEqual(status, 1)
        self.assertIn("modprobe fairwq", err)

    def test_interrupt_ends_the_recording_and_not_the_tool(self):
        pause = unittest.mock.Mock()
        pause.sleep.side_effect = KeyboardInterrupt
        status, _, written = self.record(start(0, "a", "1"), time=pause)
        self.assertEqual(status, 0)
        self.assertIn(("enable", "0"), written)
        self.assertTrue(os.path.exists(self.output))

    def test_missing_tracefs_is_said(self):
        err = io.StringIO()
        with redirect_stderr(err):
            status = tool.main(["record", "--tracefs", os.path.join(self.root, "none")])
        self.assertEqual(status, 1)
        self.assertRegex(err.getvalue(), "mount -t tracefs|try sudo")


if __name__ == "__main__":
    unittest.main()
