#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""fairwq-top on tables in a folder: what it says when pools and batches come and go."""
import io
import json
import os
import pathlib
import re
import shutil
import tempfile
import unittest
import unittest.mock
import zlib
from contextlib import redirect_stderr, redirect_stdout

from load import load

top = load("fairwq-top")

HEAD = ("number name state prio weight queued running done service longest share% stay "
        "oldestus wait50us wait99us waitmaxus run50us run99us failed owner\n")


def number_of(name):
    """The number of the only batch of a name."""
    return zlib.crc32(name.encode()) % 100000


def row(name, done=0, state="eligible", prio="normal", weight=100, queued=1, owner=None,
        wait99="-", number=None, service=0, longest=1, stay=7):
    """A row as debugfs.c prints it."""
    number = number_of(name) if number is None else number
    owner = "-" if owner is None else number_of(owner)
    return (f"{number:6} {name:<24} {state:<8} {prio:<6} {weight:6} {queued:8} {0:7} {done:10} "
            f"{service:10} {longest:8} {12:4}.{5} {stay:9} {3:9} {'-':>9} {wait99:>9} {7:9} "
            f"{'-':>9} {'-':>9} {0:6} {owner}\n")


def by_name(pool):
    """The rows of a pool. No two batches may have the same name."""
    return {row["name"]: row for row in pool["batch"].values()}


class Tables(unittest.TestCase):
    """A folder that looks like the one in debugfs."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def pool(self, *rows, name="demo", policy="round_robin", runners="", low_turns=64,
             slice_us=0, **counters):
        """Write the tables of a pool."""
        folder = os.path.join(self.root, name)
        os.makedirs(folder, exist_ok=True)
        summary = {"name": name, "policy": policy, "runners_active": 1, "max_active": 2,
                   "async": 0, "runners_asleep": 0, "leaks": 0, "hung": 0}
        summary |= {f"service_{prio}": 0 for prio in top.RANKS}
        for match in filter(None, map(top.ROW.match, rows)):
            if match["owner"] == "-":
                summary[f"service_{match['prio']}"] += int(match["service"])
        summary |= counters
        for file, text in (
                ("summary", "".join(f"{key}: {value}\n" for key, value in summary.items())),
                ("batches", HEAD + "".join(rows)),
                ("low_turns", f"{low_turns}\n"), ("slice_us", f"{slice_us}\n"),
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

    def call(self, *args, out=None):
        """(exit status, stdout, stderr) of the tool."""
        out, err = out or io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = top.main(["--root", self.root, "--interval", "0.01", *args])
        return status, out.getvalue(), err.getvalue()


class Shown(Tables):
    """What is shown of two samples."""

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
        text = path.read_text(encoding="utf-8").replace(" stay", "", 1)
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
        self.pool(row("a", wait99="12"), leaks=3)
        status, out, _ = self.call("--once", "--json")
        pool = json.loads(out)["pools"]["demo"]
        self.assertEqual((status, pool["wrong"], pool["batch"][str(number_of("a"))]["wait99"]),
                         (0, {"leaks": 3}, 12))

    def test_leaks_are_shown(self):
        pool = self.then(self.watch(), row("a"), leaks=2)
        self.assertIn(("leaks 2", True),
                      [(text.split("  ")[-1], wrong) for text, wrong in top.lines(pool)])

    def test_runners_and_what_they_run(self):
        self.pool(row("two words"), runners="     2 running        9 two words"
                  + 15 * " " + " hash_fn [mod]\n     3 asleep         7 a"
                  + 23 * " " + " read_fn\n")
        out = self.call("--once")[1]
        self.assertIn("runner 2: hash_fn [mod] of two words, for 9 ms", out)
        self.assertIn("runner 3: read_fn of a, asleep, for 7 ms", out)

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


class Judgement(Tables):
    """A judge on tables, with 2 runners: the bound of two batches is 3 turns."""

    def judge(self, *tables, **more):
        """A judge that has seen these tables, each a list of rows or (rows, what pool() takes)."""
        judge = top.Judge()
        for table in tables:
            rows, changed = table if isinstance(table, tuple) else (table, {})
            self.pool(*rows, **(more | changed))
            judge.look(top.read_pool(self.root, "demo"))
        return judge

    def between(self, before, after, **more):
        """(clients compared, missed ones, priorities judged)."""
        clients, _, prios, missed = self.judge(before, before, after, after, **more).verdict()
        return clients, [line.split()[1] for line in missed], prios

    def gains(self, *batches, **more):
        """The same for (name, gain, what row() takes), from a service of 100 on."""
        return self.between([row(name, service=100, **how) for name, _, how in batches],
                            [row(name, service=100 + gain, **how) for name, gain, how in batches],
                            **more)

    # -- clients of one priority

    def test_pair_within_the_bound(self):
        self.assertEqual(self.gains(("a", 50, {}), ("b", 53, {})), (2, [], 0))
        self.assertEqual(self.gains(("a", 53, {}), ("b", 50, {})), (2, [], 0))

    def test_pair_beyond_the_bound(self):
        self.assertEqual(self.gains(("a", 50, {}), ("b", 54, {})), (2, ["a"], 0))
        self.assertEqual(self.gains(("a", 54, {}), ("b", 50, {})), (2, ["b"], 0))

    def test_bound_grows_with_runners(self):
        for gain, missed in (508, []), (509, ["a"]):
            self.assertEqual(self.gains(("a", 500, {}), ("b", gain, {}), max_active=7)[1], missed)

    def test_most_runners_of_all_looks_count(self):
        before = [row("a"), row("b")]
        after = [row("a", service=50), row("b", service=58)]
        for most, missed in (7, 0), (6, 1):
            judge = self.judge(before, before, (before, {"max_active": most}), after, after)
            self.assertEqual(len(judge.verdict()[3]), missed)

    def test_bound_grows_with_turns_that_go_on_or_sleep(self):
        # Those that are active count beyond max_active.
        for key, nr in ("async", 97), ("runners_asleep", 97), ("runners_active", 99):
            for gain, missed in (100, []), (101, ["b"]):
                self.assertEqual(self.gains(("a", gain, {}), ("b", 0, {}), **{key: nr})[1],
                                 missed)

    def test_weights_divide_the_service(self):
        light, heavy = {"weight": 100}, {"weight": 300}
        # 3 turns of the lighter one.
        for gain, missed in (309, []), (310, ["a"]), (291, []), (290, ["b"]):
            self.assertEqual(self.gains(("a", 100, light), ("b", gain, heavy))[1], missed)

    def test_weights_do_not_round(self):
        large = 2**62
        for more, missed in (9, []), (10, ["a"]):
            self.assertEqual(self.gains(("a", large, {"weight": 1}),
                                        ("b", 3 * large + more, {"weight": 3}))[1], missed)

    def test_each_that_missed_is_named_once(self):
        self.assertEqual(self.gains(("a", 10, {}), ("b", 500, {}), ("c", 400, {}), ("d", 498, {})),
                         (4, ["a", "c"], 0))

    def test_line_says_what_was_due(self):
        before = [row("a", number=1), row("b", number=2, weight=200)]
        after = [row("a", number=1, service=50), row("b", number=2, weight=200, service=1000)]
        self.assertEqual(self.judge(before, before, after, after).verdict()[3],
                         ["  1 a (weight 100): had 50 turns, at least 497 were due beside the 1000 "
                          "of 2 b (weight 200)"])

    def test_worst_lag_is_of_the_bound(self):
        before = [row("a"), row("b"), row("c")]
        after = [row("a", service=50), row("b", service=52), row("c", service=51)]
        worst = self.judge(before, before, after, after).verdict()[1]
        self.assertEqual(worst * 3, 2)

    def test_leader_may_have_shorter_turns(self):
        # b is furthest ahead, but its turns are long. c is less far ahead and beyond its bound.
        self.assertEqual(self.gains(("a", 100, {}), ("b", 150, {"longest": 50}), ("c", 110, {})),
                         (3, ["a"], 0))

    def test_longer_turns_of_a_burst(self):
        # (2 + 1) * (1 + 4)
        for gain, missed in (65, []), (66, ["a"]):
            self.assertEqual(self.gains(("a", 50, {}), ("b", gain, {"longest": 4}))[1], missed)

    def test_longest_turn_of_all_looks_counts(self):
        before, after = [row("a"), row("b")], [row("a", service=50), row("b", service=65)]
        longer = [row("a"), row("b", longest=4)]
        for meanwhile, missed in (longer, 0), (before, 1):
            judge = self.judge(before, before, meanwhile, after, after)
            self.assertEqual(len(judge.verdict()[3]), missed)

    def test_bound_of_time(self):
        # 1000 of a are 2000 of b, and (2 + 1) * (2 * 100 + 300) more are allowed.
        for gain, missed in (3500, []), (3501, ["a"]):
            self.assertEqual(self.gains(("a", 1000, {"longest": 100}),
                                        ("b", gain, {"longest": 300, "weight": 200}),
                                        policy="fair_time")[1], missed)

    def test_slice_is_the_least_turn_of_time(self):
        for slice_us, most in (0, 300), (60, 360):
            for gain, missed in (most, []), (most + 1, ["a"]):
                self.assertEqual(self.gains(("a", 0, {}), ("b", gain, {}), policy="fair_time",
                                            slice_us=slice_us)[1], missed)

    def test_bound_of_cost(self):
        for gain, missed in (42, []), (43, ["a"]):
            self.assertEqual(self.gains(("a", 0, {"longest": 5}), ("b", gain, {"longest": 9}),
                                        policy="fair_cost")[1], missed)

    def test_owner_is_compared_beside_others(self):
        rows = [("own", 50, {}), ("x", 25, {"owner": "own"}), ("y", 25, {"owner": "own"})]
        self.assertEqual(self.gains(*rows, ("z", 50, {})), (4, [], 0))
        self.assertEqual(self.gains(*rows, ("z", 54, {})), (4, ["own"], 0))

    def test_batches_of_an_owner_are_compared(self):
        self.assertEqual(self.gains(("own", 50, {}), ("x", 23, {"owner": "own"}),
                                    ("y", 27, {"owner": "own"}), ("z", 50, {}))[1], ["x"])

    def test_batches_of_two_owners_are_not_compared(self):
        self.assertEqual(self.gains(("own", 50, {}), ("x", 50, {"owner": "own"}), ("z", 50, {})),
                         (2, [], 0))

    def test_owners_in_a_circle_end(self):
        self.assertEqual(self.gains(("x", 5, {"owner": "y"}), ("y", 5, {"owner": "x"})), (0, [], 0))

    def test_batch_that_joined_between_is_not_judged(self):
        for stay in range(4):
            tables = [[row("a", stay=8 if nth > stay else 0), row("b", service=500 * nth)]
                      for nth in range(4)]
            self.assertEqual(self.judge(*tables).verdict()[::3], (0, []))

    def test_batch_with_a_break_is_not_judged(self):
        before, after = [row("a", stay=7), row("b")], [row("a", stay=8), row("b", service=500)]
        self.assertEqual(self.between(before, after), (0, [], 0))

    def test_batch_that_is_new_is_not_judged(self):
        self.assertEqual(self.between([row("b")], [row("a"), row("b", service=500)]), (0, [], 0))

    def test_batch_of_another_weight_is_not_judged(self):
        before, after = [row("a", weight=50), row("b")], [row("a"), row("b", service=500)]
        self.assertEqual(self.between(before, after), (0, [], 0))

    def test_rows_are_read_one_after_the_other(self):
        # b has a turn for each of a, and had 200 while the first table was read, and the last one.
        tables = [[row("a", service=a), row("b", service=b)]
                  for a, b in ((0, 200), (200, 201), (1000, 1001), (1001, 1200))]
        self.assertEqual(self.judge(*tables).verdict()[3], [])
        # That explains no more than so many.
        tables[2:] = [[row("a", service=a), row("b", service=b)]
                      for a, b in ((1000, 1205), (1000, 1205))]
        self.assertEqual(len(self.judge(*tables).verdict()[3]), 1)

    def test_row_counts_by_what_it_may_have_had(self):
        for of_a, of_b in (((0, 0, 900, 900), (0, 200, 1000, 1200)),
                           ((0, 200, 800, 1000), (0, 0, 1000, 1000))):
            tables = [[row("a", service=a), row("b", service=b)] for a, b in zip(of_a, of_b)]
            self.assertEqual(self.judge(*tables).verdict()[3], [])

    # -- priorities

    HIGH, LOW = {"prio": "high"}, {"prio": "low"}

    def test_low_priority_has_its_part(self):
        self.assertEqual(self.gains(("a", 63000, self.HIGH), ("b", 1000, self.LOW)), (0, [], 1))

    def test_low_priority_is_starved(self):
        # Four times 64 + 2 turns are allowed for.
        for high, missed in (63000 + 264, []), (63000 + 265, ["priority:"]):
            self.assertEqual(self.gains(("a", high, self.HIGH), ("b", 1000, self.LOW))[1], missed)

    def test_low_priority_has_too_much(self):
        for high, missed in (63000 - 264, []), (63000 - 265, ["priority:"]):
            self.assertEqual(self.gains(("a", high, self.HIGH), ("b", 1000, self.LOW))[1], missed)

    def test_each_priority_has_its_part_of_all(self):
        # One in 64 for each, also if a middle one has no more than the lowest.
        rows = ("a", 62000, self.HIGH), ("b", 1000, {}), ("c", 1000, self.LOW)
        self.assertEqual(self.gains(*rows), (0, [], 2))
        thirds = ("a", 1000, self.HIGH), ("b", 1000, {}), ("c", 1000, self.LOW)
        self.assertEqual(self.gains(*thirds, low_turns=2), (0, [], 2))

    def test_priority_without_a_backlog_is_not_starved(self):
        self.assertEqual(self.gains(("a", 63000, self.HIGH), ("b", 5, self.LOW | {"stay": 0})),
                         (0, [], 1))

    def test_priority_alone_has_all(self):
        self.assertEqual(self.gains(("a", 0, self.HIGH | {"stay": 0}), ("b", 5000, self.LOW)),
                         (0, [], 0))
        # The high one had turns, and no backlog all the time.
        self.assertEqual(self.gains(("a", 900, self.HIGH | {"stay": 0}), ("b", 900, self.LOW)),
                         (0, [], 1))

    def test_strict(self):
        for low, missed in (3, []), (4, ["priority:"]):
            self.assertEqual(self.gains(("a", 900, self.HIGH), ("b", low, self.LOW), low_turns=0),
                             (0, missed, 1))

    def test_batch_that_is_new_counts_for_its_priority(self):
        before = [row("a", prio="high", number=1), row("b", prio="low", number=2)]
        after = [row("a", prio="high", number=1, service=1000),
                 row("b", prio="low", number=2, service=1000)]
        new = row("c", prio="high", number=3, service=62000, stay=0)
        self.assertEqual(self.between(before, after + [new])[1:], ([], 1))
        self.assertEqual(self.between(before, after)[1:], (["priority:"], 1))

    def test_batch_that_goes_counts_for_its_priority(self):
        before = [row("a", prio="high", number=1), row("b", prio="low", number=2)]
        after = [row("a", prio="high", number=1, service=1000),
                 row("b", prio="low", number=2, service=1000)]
        self.assertEqual(self.between(before, after)[1:], (["priority:"], 1))
        # Also one that came and went between two looks.
        all_of_high = {"service_high": 63000}
        self.assertEqual(self.between(before, (after, all_of_high))[1:], ([], 1))
        short = row("c", prio="high", number=3)
        self.assertEqual(self.between(before + [short], (after, all_of_high))[1:], ([], 1))

    def test_batch_whose_owner_has_gone_counts_once(self):
        before = [row("kid", prio="high", owner="gone"), row("b", prio="low")]
        after = [row("kid", prio="high", owner="gone", service=63000),
                 row("b", prio="low", service=1000)]
        self.assertEqual(self.between(before, (after, {"service_high": 63000})), (0, [], 1))

    def test_owner_counts_once_for_its_priority(self):
        self.assertEqual(self.gains(("own", 63000, self.HIGH),
                                    ("x", 63000, self.HIGH | {"owner": "own"}),
                                    ("b", 1000, self.LOW)), (0, [], 1))

    # -- pools that are not judged

    def why(self, *tables, **more):
        """Why a pool is not judged. It has no findings then."""
        judge = self.judge(*tables, **more)
        self.assertEqual(judge.verdict(), (0, None, 0, []))
        return judge.why

    UNFAIR = [row("a", service=100), row("b", service=100)], [row("a", service=100),
                                                              row("b", service=900)]

    def test_change_of_a_knob_is_not_judged(self):
        before, after = self.UNFAIR
        for knob, value in ("policy", "fair_time"), ("policy", "fifo"), ("low_turns", 0):
            changed = after, {knob: value}
            self.assertEqual(self.why(before, before, changed, changed), f"{knob} was changed")
            self.assertEqual(self.why(before, before, changed, after, after), f"{knob} was changed")

    def test_first_come_first_served_is_not_judged(self):
        before, after = self.UNFAIR
        self.assertEqual(self.why(before, before, after, after, policy="fifo"),
                         "fifo: nothing is promised")

    def test_counters_that_began_anew_are_not_judged(self):
        before, after = self.UNFAIR
        self.assertEqual(self.why(before, before, [row("a"), row("b")], after, after),
                         "its counters began anew")

    def test_charge_that_is_given_back_is_judged(self):
        before = [row("a", service=1000, longest=100), row("b", service=1000)]
        after = [row("a", service=700, longest=100), row("b", service=1000)]
        self.assertEqual(self.between(before, after, policy="fair_time"), (2, [], 0))

    def test_pool_that_went_is_not_judged(self):
        judge = self.judge(*self.UNFAIR)
        judge.look(None)
        self.assertEqual((judge.why, judge.verdict()), ("the pool is gone", (0, None, 0, [])))

    def test_pool_that_came_again_is_not_judged(self):
        before, after = self.UNFAIR
        judge = self.judge(before, before)
        os.rename(os.path.join(self.root, "demo"), os.path.join(self.root, "old"))
        self.pool(*after)
        judge.look(top.read_pool(self.root, "demo"))
        self.assertEqual((judge.why, judge.verdict()),
                         ("the pool was made anew", (0, None, 0, [])))

    # -- the tool

    def check(self, *changes, args=()):
        """What the tool says if each change is made after another second."""
        clock, changes = [1000], list(changes)

        def sleep(seconds):
            clock[0] += seconds
            changes.pop(0)()
        with unittest.mock.patch.multiple(top.time, sleep=sleep, monotonic=lambda: clock[0]):
            return self.call("--check", str(len(changes)), *args)

    def rows(self, *services, **more):
        """A pool of batches that have these services."""
        self.pool(*(row(f"c{nth}", number=nth, service=service)
                    for nth, service in enumerate(services)), **more)

    def test_check_of_a_fair_pool(self):
        self.rows(5, 5)
        status, out, err = self.check(lambda: None, lambda: self.rows(1005, 1004))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out, "POOL                     POLICY      CLIENTS WORST% PRIOS\n"
                              "demo                     round_robin       2     34     -\n"
                              "fair: 2 clients and 0 priorities compared, none beyond the bound\n")

    def test_check_of_an_unfair_pool(self):
        self.rows(5, 5)
        self.rows(7, 8, name="other")
        status, out, _ = self.check(lambda: self.rows(1005, 105))
        self.assertEqual((status, out.splitlines()[2:]), (
            1, ["  1 c1 (weight 100): had 100 turns, at least 997 were due beside the 1000 of "
                "0 c0 (weight 100)",
                "other                    round_robin       2      0     -",
                "UNFAIR: 4 clients and 0 priorities compared, 1 beyond the bound"]))
        self.rows(5, 5)
        status, out, _ = self.check(lambda: self.rows(1005, 105), args=["--pool", "other"])
        self.assertEqual((status, len(out.splitlines())), (0, 3))

    def test_nothing_to_compare_is_said(self):
        self.rows(5)
        self.rows(5, 5, policy="fifo", name="first")
        status, out, _ = self.check(lambda: self.rows(700))
        self.assertEqual(status, 0)
        self.assertIn(" not judged: fifo: nothing is promised\n", out)
        self.assertIn("nothing could be compared", out.splitlines()[-1])

    def test_pools_that_come_and_go_are_said(self):
        def change():
            shutil.rmtree(os.path.join(self.root, "demo"))
            self.rows(5, 5, name="late")
        self.rows(5, 5)
        out = self.check(change)[1]
        self.assertRegex(out, "demo .* not judged: the pool is gone\n")
        self.assertRegex(out, "late .* not judged: the pool is new\n")

    def test_tables_that_are_cut_short_are_not_judged(self):
        self.rows(5, 5)
        os.remove(os.path.join(self.root, "demo", "low_turns"))
        self.assertIn("not judged: its tables are not complete", self.check(lambda: None)[1])

    def test_odd_cells_are_not_judged(self):
        for odd in (row("z", weight=0), row("z").replace("12.5", "1.2.5"),
                    row("z", service="9" * 5000), row("z", longest=0)):
            self.pool(row("a"), row("b"), odd)
            self.assertEqual(self.check(lambda: None)[0], 0)
        for odd in ({"low_turns": 1}, {"max_active": "many"}, {"max_active": -1},
                    {"async": "9" * 5000}):
            self.pool(row("a"), row("b"), **odd)
            self.assertIn("not judged: its tables are not complete", self.check(lambda: None)[1])

    def test_other_columns_are_those_of_another_version(self):
        for ours, theirs in ("service longest", "longest service"), ("owner", "owner new"):
            self.rows(5, 5)
            path = pathlib.Path(self.root, "demo", "batches")
            text = path.read_text(encoding="utf-8")
            path.write_text(re.sub(ours, theirs, text, count=1), encoding="utf-8")
            self.assertEqual(self.call("--check", "1")[0], 2)

    def test_output_that_is_not_taken_is_no_check(self):
        full = io.StringIO()
        full.flush = unittest.mock.Mock(side_effect=OSError(28, "No space left on device"))
        self.rows(5, 5)
        self.assertEqual(self.call("--check", "0.01", out=full)[::2],
                         (2, "fairwq-top: [Errno 28] No space left on device\n"))

    def test_no_tables_are_no_check(self):
        self.rows(5)
        self.assertEqual(self.call("--check", "1", "--pool", "none")[::2],
                         (2, "fairwq-top: no pool none: there are demo\n"))
        shutil.rmtree(os.path.join(self.root, "demo"))
        os.rename(self.root, self.root + ".away")
        status, _, err = self.call("--check", "1")
        os.rename(self.root + ".away", self.root)
        self.assertEqual(status, 2)
        self.assertIn("modprobe fairwq", err)

    def test_check_that_is_interrupted_is_none(self):
        def interrupt():
            raise KeyboardInterrupt
        self.rows(5, 5)
        self.assertEqual(self.check(interrupt)[:2], (2, ""))

    def test_usage_of_check(self):
        for args in (["0"], ["-1"], ["nan"], ["inf"], ["x"], [""], ["1", "--once"], ["1", "--json"],
                     ["86401"]):
            with self.assertRaises(SystemExit) as end:
                self.call(f"--check={args[0]}", *args[1:])
            self.assertEqual(end.exception.code, 2)

    def test_many_clients(self):
        before = [row(f"c{nth}", number=nth) for nth in range(2000)]
        after = [row(f"c{nth}", number=nth, service=1000 + nth % 3, longest=nth % 50 + 1)
                 for nth in range(2000)]
        self.assertEqual(self.between(before, after), (2000, [], 0))


if __name__ == "__main__":
    unittest.main()
