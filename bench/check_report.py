"""Checks of the sums: run by `python bench/report.py --check`."""

import unittest
import xml.etree.ElementTree

import report
import rounds


def line(peer, value, work="drain", unit="tasks/s", **settings):
    figure = {"value": value, "unit": unit, "samples": []}
    return {"peer": peer, "work": work, "version": "1", "settings": settings, **figure}


def of(lines, peer, work):
    return [figure for figure in rounds.figures(lines) if (figure.peer, figure.work) == (peer, work)]


class Sums(unittest.TestCase):
    def test_the_median_of_interleaved_rounds_and_their_spread(self):
        lines = [line("celery", value, prefetch=1) for value in (3000, 1000, 2900)]
        lines.insert(1, line("sexton", 9000, prefetch=1))
        [figure] = of(lines, "celery", "drain-1")
        self.assertEqual((figure.median, min(figure.values), max(figure.values)), (2900, 1000, 3000))
        self.assertIn("| 2,900 | 1,000–3,000 | 3 |", report.sections(lines)["drain-1"])

    def test_a_drain_at_another_prefetch_is_another_work(self):
        lines = [line("celery", 1, prefetch=1), line("celery", 2, prefetch=16)]
        self.assertEqual([figure.work for figure in rounds.figures(lines)], ["drain-1", "drain-16"])

    def test_more_tasks_and_fewer_milliseconds_are_better(self):
        rate = [line("sexton", 10_000, prefetch=1), line("celery", 4000, prefetch=1)]
        time = [line("sexton", 1000, "burst", "ms"), line("bullmq", 2500, "burst", "ms")]
        for lines in (rate, time):
            ours, other = rounds.figures(lines)
            self.assertEqual(rounds.ratio(ours, other), 2.5)
            self.assertEqual([figure.peer for figure in rounds.ranked([other, ours])], ["sexton", other.peer])

    def test_the_comparison_says_who_is_faster_and_how_many_times(self):
        def compared(value, other, work, unit):
            ours, its = rounds.figures([line("sexton", value, work, unit), line("celery", other, work, unit)])
            return rounds.comparison(ours, its)

        self.assertEqual(compared(3125, 446, "burst", "ms"), "7.0× slower")
        self.assertEqual(compared(5531, 441, "drain", "tasks/s"), "13× faster")
        self.assertEqual(compared(100, 102, "lag", "ms"), "as fast")
        self.assertEqual(compared(14, 42, "memory", "MB"), "3.0× less")
        made = report.sections([line("sexton", 3125, "burst", "ms"), line("pg-boss", 625, "burst", "ms")])["burst"]
        self.assertTrue(made.splitlines()[2].endswith("| 5.0× slower |"), made)

    def test_works_of_sexton_alone_are_one_table(self):
        lines = [line("sexton", value, "memory-worker", "MB") for value in (13, 15)] + [line("sexton", 9, "lag", "ms")]
        made = report.sections(lines)["resources"].splitlines()
        self.assertEqual(made[2:], ["| memory of an idle worker | 14.0 MB | 13.0–15.0 | 2 |"])
        self.assertNotIn("resources", report.sections(lines[2:]))

    def test_the_best_variant_of_each_peer_counts(self):
        lines = [line("sexton", value, prefetch=1, slots=slots) for slots, value in ((1, 10), (64, 90), (128, 80))]
        [figure] = rounds.best(rounds.figures(lines))
        self.assertEqual((figure.settings["slots"], figure.median), (64, 90))

    def test_the_best_batch_of_an_enqueue_counts_and_is_named(self):
        lines = [line("pg-boss", value, "enqueue", "/s", batch=batch) for batch, value in ((1_000, 90), (10_000, 80))]
        lines += [line("sexton", value, "enqueue", "/s", batch=batch) for batch, value in ((1_000, 20), (10_000, 30))]
        made = report.sections(lines)["enqueue"].splitlines()
        self.assertIn("| pg-boss (batches of 1,000) | 90.0 |", made[2])
        self.assertIn("| sexton (batches of 10,000) | 30.0 |", made[3])
        self.assertEqual(len(made), 4)

    def test_what_waits_costs_as_many_times_as_much_as_nothing_within_each_run(self):
        def cost(work, waiting, value):
            return line("sexton", value, work, "ms", slots=8, waiting=waiting, part=f"{waiting} waiting")

        lines = [cost("delayed-relay", 0, value) for value in (1.0, 2.0, 4.0)]
        lines += [cost("delayed-relay", 1_000_000, value) for value in (1.1, 2.4, 4.0)]
        made = report.sections(lines)["delayed-cost"].splitlines()
        self.assertEqual(made[0], "|  | nothing waits | 1,000,000 wait | ratio | least–most | rounds |")
        self.assertEqual(made[2:], ["| a round of the relay | 2.00 ms | 2.40 ms | 1.10 | 1.00–1.20 | 3 |"])
        self.assertNotIn("delayed-cost", report.sections(lines[:3]))

    def test_what_is_kept_of_a_task_stays_apart(self):
        lines = [line("celery", 3000, prefetch=1, record="none"), line("celery", 500, prefetch=1, record="redis")]
        self.assertEqual(len(rounds.best(rounds.figures(lines))), 2)

    def test_a_round_that_did_not_finish_is_said_beside_those_that_did(self):
        stuck = line("celery", None, "burst", "ms") | {"unfinished": {"started": 9996, "after_ms": 86_000}}
        made = report.sections([line("celery", 5000, "burst", "ms"), stuck])["burst"]
        self.assertIn("| 5,000 (1 rounds not done) |", made)

    def test_the_bare_limit_is_composed_of_broker_and_database(self):
        lines = [line("bare", 10_000, prefetch=1, part="broker"), line("bare", 40_000, prefetch=1, part="database")]
        lines += [line("sexton", 6000, prefetch=1)]
        composite = next(figure for figure in rounds.figures(lines) if figure.settings.get("part") == "composite")
        self.assertAlmostEqual(composite.median, 8000)
        self.assertAlmostEqual(rounds.ratio(of(lines, "sexton", "drain-1")[0], composite), 0.75)
        self.assertIn("bare (composite)", report.sections(lines)["drain-1"])

    def test_a_missing_peer_is_said_to_be_missing(self):
        lines = [{"peer": "bullmq", "work": "lag", "missing": "no redis-server"}, line("sexton", 3, "lag", "ms")]
        made = report.sections(lines)
        self.assertEqual(made["missing"], "- bullmq (lag): no redis-server")
        self.assertNotIn("bullmq", made["lag"])

    def test_a_peer_that_did_not_finish_ranks_last_and_has_no_ratio(self):
        stuck = line("celery-beat", None, "burst", "ms") | {"unfinished": {"started": 1086, "after_ms": 60_000}}
        made = report.sections([stuck, line("sexton", 900, "burst", "ms")])["burst"].splitlines()
        self.assertIn("not done: 1,086 after 60 s", made[-1])
        self.assertTrue(made[-1].endswith("| – |"))

    def test_without_sexton_there_are_no_ratios(self):
        self.assertTrue(report.sections([line("celery", 1, prefetch=1)])["drain-1"].endswith("| – |"))

    def test_the_processor_time_of_a_task_has_a_column(self):
        lines = [line("sexton", 90, prefetch=1) | {"processor_ms": cost} for cost in (0.2, 0.4, 0.3)]
        made = report.sections([*lines, line("celery", 30, prefetch=1)])["drain-1"].splitlines()
        self.assertIn("| processor, ms |", made[0])
        self.assertIn("| 0.30 |", made[2])
        self.assertIn("| – |", made[3])

    def test_a_tail_has_a_column(self):
        lines = [line("bullmq", 53, "lag", "ms") | {"p99": 100}, line("bullmq", 55, "lag", "ms") | {"p99": 120}]
        self.assertIn("| 54.0 | 110 |", report.sections(lines)["lag"])

    def test_only_marked_sections_of_a_page_change(self):
        page = "a\n<!-- bench:lag -->\nold\n<!-- /bench:lag -->\nb\n"
        page += "<!-- bench:memory -->\nkept\n<!-- /bench:memory -->\n"
        filled = report.fill(page, {"lag": "new"})
        self.assertEqual(filled, page.replace("old", "new"))
        self.assertEqual(report.fill(filled, {"lag": "new"}), filled)

    def test_a_plot_is_well_formed_and_has_a_bar_for_each(self):
        stuck = line("<beat>", None, "burst", "ms") | {"unfinished": {"started": 1, "after_ms": 60_000}}
        found = rounds.figures([stuck, line("sexton", 900, "burst", "ms"), line("bullmq", 2000, "burst", "ms")])
        drawn = xml.etree.ElementTree.fromstring(report.plot("burst", found))
        self.assertEqual(len(drawn.findall("{*}rect")), 1 + 2)
        self.assertEqual(len(drawn.findall("{*}text")), 1 + 2 * 3)


if __name__ == "__main__":
    unittest.main()
