#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""fairwq-top on tables in a folder: what it says when pools and batches come and go."""
import io
import json
import os
import pathlib
import shutil
import tempfile
import unittest
import zlib
from contextlib import redirect_stderr, redirect_stdout

from load import load

top = load("fairwq-top")

HEAD = ("number name state prio weight queued running done share% wait50us wait99us waitmaxus "
        "run50us run99us failed owner\n")


def number_of(name):
    """The number of the only batch of a name."""
    return zlib.crc32(name.encode()) % 100000


def row(name, done=0, state="eligible", prio="normal", weight=100, queued=1, owner=None,
        wait99="-", number=None):
    """A row as debugfs.c prints it."""
    number = number_of(name) if number is None else number
    owner = "-" if owner is None else number_of(owner)
    return (f"{number:6} {name:<24} {state:<8} {prio:<6} {weight:6} {queued:8} {0:7} {done:10} "
            f"{12:4}.{5} {'-':>9} {wait99:>9} {7:9} {'-':>9} {'-':>9} {0:6} {owner}\n")


def by_name(pool):
    """The rows of a pool. No two batches may have the same name."""
    return {row["name"]: row for row in pool["batch"].values()}


class Tables(unittest.TestCase):
    """A folder that looks like the one in debugfs."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def pool(self, *rows, name="demo", policy="round_robin", runners="", **counters):
        """Write the tables of a pool."""
        folder = os.path.join(self.root, name)
        os.makedirs(folder, exist_ok=True)
        summary = {"name": name, "policy": policy, "runners_active": 1, "max_active": 2,
                   "violations": 0, "starved": 0} | counters
        for file, text in (
                ("summary", "".join(f"{key}: {value}\n" for key, value in summary.items())),
                ("batches", HEAD + "".join(rows)),
                ("runners", "runner state    sincems batch function\n" + runners)):
            pathlib.Path(folder, file).write_text(text, encoding="utf-8")

    def watch(self, *rows, **more):
        """Watch a pool that has these rows now."""
        self.pool(*rows, **more)
        return top.Watch(self.root)

    def then(self, watch, *rows, name="demo", **more):
        """What the watch says of the pool when it has those rows, a second later."""
        self.pool(*rows, name=name, **more)
        watch.when -= 1
        return watch.sample()[name]

    def call(self, *args):
        """(exit status, stdout, stderr) of the tool."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = top.main(["--root", self.root, "--interval", "0.01", *args])
        return status, out.getvalue(), err.getvalue()

    # -- rates and shares

    def test_rate_and_share_are_of_the_interval(self):
        watch = self.watch(row("a", 1000), row("b", 5000))
        pool = self.then(watch, row("a", 1300), row("b", 5100))
        self.assertAlmostEqual(by_name(pool)["a"]["share"], 75)
        self.assertAlmostEqual(by_name(pool)["a"]["rate"], 300, delta=30)
        self.assertAlmostEqual(pool["rate"], 400, delta=40)

    def test_reset_is_no_negative_rate(self):
        watch = self.watch(row("a", 1000))
        self.assertEqual(by_name(self.then(watch, row("a", 5)))["a"]["items"], 5)

    def test_batch_that_is_new_counts(self):
        watch = self.watch(row("a", 10))
        pool = self.then(watch, row("a", 10), row("b", 8))
        self.assertEqual(by_name(pool)["b"]["items"], 8)

    def test_first_sample_has_no_rate(self):
        self.assertEqual(self.watch(row("a", 1000)).last["demo"]["rate"], 0)

    def test_batch_that_goes_is_not_shown(self):
        watch = self.watch(row("a", 10), row("b", 10))
        self.assertEqual(list(by_name(self.then(watch, row("b", 11)))), ["b"])

    def test_share_of_time_is_the_kernels(self):
        watch = self.watch(row("a", 10), policy="fair_time")
        pool = self.then(watch, row("a", 20), policy="fair_time")
        self.assertEqual(by_name(pool)["a"]["share"], 12.5)

    def test_counters_that_are_large(self):
        watch = self.watch(row("a", 2**63), row("b", 2**63))
        pool = self.then(watch, row("a", 2**64 - 1), row("b", 2**63 + 1))
        self.assertEqual(by_name(pool)["a"]["items"], 2**63 - 1)
        self.assertAlmostEqual(by_name(pool)["a"]["share"], 100)
        self.assertGreater(pool["rate"], 2**60)

    def test_no_time_between_two_samples(self):
        pool = top.read_pool(self.root, "none")
        self.assertIsNone(pool)
        self.pool(row("a", 5))
        pool = top.read_pool(self.root, "demo")
        top.compare(pool, None, 0)
        self.assertEqual(pool["rate"], 0)

    # -- what weights give

    def fair(self, *rows):
        """What weights give, by batch."""
        pool = self.then(self.watch(), *rows)
        return {name: row["fair"] for name, row in by_name(pool).items()}

    def test_fair_share_is_by_weight_of_the_busy(self):
        fair = self.fair(row("a", weight=100), row("b", weight=300),
                         row("c", state="idle", queued=0))
        self.assertEqual(fair, {"a": 0.25, "b": 0.75, "c": None})

    def test_owner_shares_with_its_batches(self):
        fair = self.fair(row("own", state="idle", queued=0), row("x", owner="own"),
                         row("y", owner="own"), row("z"))
        self.assertEqual(fair, {"own": None, "x": 0.25, "y": 0.25, "z": 0.5})

    def test_owner_below_an_owner(self):
        fair = self.fair(row("top", state="idle", queued=0), row("z"),
                         row("mid", state="idle", queued=0, owner="top"),
                         row("x", owner="mid"))
        self.assertEqual(fair, {"top": None, "z": 0.5, "mid": None, "x": 0.5})

    def test_owner_with_items_of_its_own(self):
        fair = self.fair(row("own"), row("x", owner="own"), row("z"))
        self.assertEqual(fair, {"own": 0.25, "x": 0.25, "z": 0.5})

    def test_lower_priority_has_none_beside_a_higher_one(self):
        fair = self.fair(row("a", prio="high"), row("b", prio="low"))
        self.assertEqual(fair, {"a": 1, "b": None})

    def test_owner_that_is_gone(self):
        self.assertEqual(self.fair(row("x", owner="gone"), row("z")), {"x": 0.5, "z": 0.5})

    # -- names

    def test_names_with_spaces_and_odd_letters(self):
        names = ["two words", "idle normal 5", "\N{SNOWMAN}", "a" * 40, "%s%n"]
        pool = self.then(self.watch(), *(row(name) for name in names))
        self.assertEqual(list(by_name(pool)), names)

    def test_two_of_a_name_are_two(self):
        watch = self.watch(row("a", 1000000, number=1), row("a", 500, number=2))
        pool = self.then(watch, row("a", 1000000, number=1), row("a", 600, number=2))
        self.assertEqual({number: row["items"] for number, row in pool["batch"].items()},
                         {1: 0, 2: 100})
        self.assertEqual([line.split()[0] for line, _ in top.lines(pool)][2:], ["a#2", "a#1"])

    def test_one_of_a_name_that_goes_is_not_the_other(self):
        watch = self.watch(row("a", 400, number=1), row("a", 1000000, number=2))
        pool = self.then(watch, row("a", 1000100, number=2))
        self.assertEqual(pool["batch"][2]["items"], 100)
        self.assertEqual([line.split()[0] for line, _ in top.lines(pool)][2:], ["a"])

    def test_owners_of_a_name_do_not_mix(self):
        rows = [row("own", state="idle", queued=0, number=number_of("1")),
                row("own", state="idle", queued=0, number=number_of("2")),
                row("x", owner="1"), row("y", owner="2"), row("z", owner="2")]
        pool = self.then(self.watch(), *rows)
        self.assertEqual([pool["batch"][number_of(name)]["fair"] for name in "xyz"],
                         [0.5, 0.25, 0.25])

    def test_number_in_a_long_name_is_seen(self):
        pool = self.then(self.watch(), row("a" * 40, number=12), row("a" * 40, number=13))
        self.assertIn("a" * 21 + "#12 ", next(line for line, _ in top.lines(pool) if "#12" in line))

    def test_pool_with_a_number_for_a_name(self):
        for name in "5", "\N{SUPERSCRIPT TWO}", "9" * 5000:
            self.pool(row("a"), name=name[:9])
            path = pathlib.Path(self.root, name[:9], "summary")
            path.write_text(f"name: {name}\npolicy: fifo\n", encoding="utf-8")
            self.assertEqual(top.read_pool(self.root, name[:9])["name"], name)

    def test_tables_of_another_version_are_said(self):
        self.pool(row("a"))
        path = pathlib.Path(self.root, "demo", "batches")
        text = path.read_text(encoding="utf-8").replace("number ", "", 1)
        path.write_text(text, encoding="utf-8")
        status, _, err = self.call("--once")
        self.assertEqual(status, 1)
        self.assertIn("another version", err)

    def test_name_that_a_terminal_would_obey(self):
        self.pool(row("\x1b[31mred"))
        self.assertIn("?[31mred", self.call("--once")[1])

    def test_pool_that_came_again(self):
        watch = self.watch(row("a", 10))
        os.rename(os.path.join(self.root, "demo"), os.path.join(self.root, "old"))
        pool = self.then(watch, row("a", 5000))
        self.assertEqual(pool["rate"], 0)

    def test_bytes_that_are_no_text(self):
        self.pool(row("a"))
        with open(os.path.join(self.root, "demo", "batches"), "ab") as file:
            file.write(row("b").encode().replace(b" b ", b" \xff\xfe "))
        self.assertEqual(len(top.read_pool(self.root, "demo")["batch"]), 2)

    def test_line_that_is_cut_short(self):
        pool = self.then(self.watch(), row("a"), row("b")[:40])
        self.assertEqual(list(by_name(pool)), ["a"])

    # -- the tool

    def test_many_batches(self):
        self.pool(*(row(f"b{i}", i, number=i) for i in range(1000)))
        status, out, _ = self.call("--once")
        self.assertEqual(status, 0)
        self.assertEqual(out.count("eligible"), 1000)

    def test_json(self):
        self.pool(row("a", wait99="12"), violations=3)
        status, out, _ = self.call("--once", "--json")
        pool = json.loads(out)["pools"]["demo"]
        self.assertEqual((status, pool["wrong"], pool["batch"][str(number_of("a"))]["wait99"]),
                         (0, {"violations": 3}, 12))

    def test_violations_are_shown(self):
        pool = self.then(self.watch(), row("a"), violations=2)
        self.assertIn(("violations 2", True),
                      [(text.split("  ")[-1], wrong) for text, wrong in top.lines(pool)])

    def test_runners_and_what_they_run(self):
        self.pool(row("two words"), runners="     2 running        9 two words"
                  + 15 * " " + " hash_fn [mod]\n     3 idle           - -"
                  + 23 * " " + " -\n")
        self.assertIn("runner 2: hash_fn [mod] of two words, for 9 ms", self.call("--once")[1])

    def test_why_a_batch_gets_nothing(self):
        self.pool(row("a", state="paused"), row("b", state="limited"))
        out = self.call("--once")[1]
        self.assertIn("its max_active", out)
        self.assertRegex(out, "a .*paused *\n")

    def test_sort_and_filter(self):
        self.pool(row("a", queued=1), row("b", queued=5), row("ab", queued=3))
        out = self.call("--once", "--sort", "queued", "--filter", "b")[1]
        self.assertEqual([line.split()[0] for line in out.splitlines()[2:]], ["b", "ab"])

    def test_pool_that_goes(self):
        watch = self.watch(row("a"))
        shutil.rmtree(os.path.join(self.root, "demo"))
        self.assertEqual(watch.sample(), {})

    def test_failures_say_what_to_do(self):
        def fails(*args):
            status, _, err = self.call(*args)
            self.assertEqual(status, 1)
            return err

        self.pool(row("a"))
        self.assertIn("there are demo", fails("--pool", "other"))
        self.assertIn("--once", fails())
        os.rename(self.root, self.root + ".away")
        self.assertIn("modprobe fairwq", fails("--once"))
        os.rename(self.root + ".away", self.root)

    def test_no_pool(self):
        self.assertEqual(self.call("--once"), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
