"""The dashboard of the whole platform. Its limits are those of deploy/prometheus/rules.yml.

Values of the whole platform are the same on every scheduler, hence `max`.
"""

from expressions import INSTANCE, ORANGE, POOL, RED, I, P, or_zero, quantile, rate
from panels import bars, dashboard, graph, row, stat

# A value of the whole platform that is there whenever a scheduler can read the database.
READ = "sexton_unpublished_tickets"
FAILED_OUTCOMES = "error|permanent|timeout|signal|out_of_memory|lost"

SUMMARY = [
    row("Is it well?"),
    stat(
        "Unaccounted firings",
        "Firings with neither an execution nor a gap. Must be 0. Otherwise the schedulers' logs name job and time; "
        "`sexton jobs explain` shows the place, `sexton jobs backfill` runs what is missing. Find out who removed rows.",
        "short",
        f"max(sexton_unaccounted_firings{{{I}}})",
        (1, RED),
    ),
    stat(
        "Oldest unpublished ticket",
        "How long RabbitMQ has not confirmed a ticket that is due. Above a minute: docs/operations/runbook.md, RabbitMQ is down.",
        "s",
        f"max(sexton_unpublished_ticket_oldest_seconds{{{I}}})",
        (10, ORANGE),
        (60, RED),
    ),
    stat(
        "Longest wait",
        "For how long the oldest waiting execution has been due. Above 15 minutes: is a worker there for its pool, "
        "are the slots too few? docs/operations/runbook.md, executions are pending and nothing runs.",
        "s",
        or_zero(f"max(sexton_due_oldest_seconds{{{P}}})", READ),
        (60, ORANGE),
        (900, RED),
    ),
    stat(
        "Failed, for an operator",
        "Failed executions that wait for an operator. `sexton groups list` shows what they have in common; "
        "docs/operations/failed.md says how to requeue or discard them.",
        "short",
        or_zero(f"sum(max by (pool) (sexton_failed{{{P}}}))", READ),
        (1, ORANGE),
        (100, RED),
    ),
    stat(
        "Open incidents",
        "Incidents that are not resolved. `sexton incidents list` names them; docs/operations/monitors.md.",
        "short",
        or_zero(f"sum(max by (severity) (sexton_incidents_open{{{I}}}))", READ),
        (1, ORANGE),
    ),
    stat(
        "Held catch-ups",
        "Jobs whose late firings wait for an operator, because the database's clock jumped or a backup was restored: "
        "`sexton jobs catch-up --dry-run`, then docs/operations/runbook.md, catch-up is held.",
        "short",
        f"max(sexton_catch_up_held_jobs{{{I}}})",
        (1, RED),
    ),
    stat(
        "Schedulers",
        "Schedulers that Prometheus reaches. Two or more, so that one may die; without one nothing fires.",
        "short",
        f'count(sexton_build_info{{{I}, program="scheduler"}}) or vector(0)',
        (1, ORANGE),
        (2, "green"),
        first=RED,
    ),
    stat(
        "Workers",
        "Workers that Prometheus reaches.",
        "short",
        f'count(sexton_build_info{{{I}, program="worker"}}) or vector(0)',
        (1, "green"),
        first=RED,
    ),
    stat(
        "Pools without a worker",
        "Pools with executions to run that no worker serves: start one with the pool in `WORKER_POOLS`.",
        "short",
        or_zero(
            f'count(sum by (pool) (max by (pool, state) (sexton_executions{{{P}, state=~"pending|retrying"}})) > 0 '
            f"unless on (pool) max by (pool) (sexton_pool_slots{{{P}}}) > 0)",
            READ,
        ),
        (1, RED),
    ),
    stat(
        "Links down",
        "Connections to RabbitMQ that are down, over all processes. docs/operations/runbook.md, RabbitMQ is down.",
        "short",
        or_zero(f"count(sexton_broker_connected{{{I}}} == 0)", "sexton_broker_connected"),
        (1, RED),
    ),
    stat(
        "Oldest notification",
        "For how long a notification waits that should have been sent. `sexton alerts notifications` says what the "
        "channel answered; docs/operations/channels.md.",
        "s",
        f"max(sexton_notification_oldest_seconds{{{I}}})",
        (60, ORANGE),
        (600, RED),
    ),
    stat(
        "Ledger check",
        "How long ago the ledger check looked at the job that it has not looked at for longest. If it grows, "
        "unaccounted firings are not found: the log of a scheduler says why.",
        "s",
        f"max(sexton_ledger_check_age_seconds{{{I}}})",
        (3600, ORANGE),
        (86400, RED),
    ),
]

FIRINGS = [
    row("Firings: from the schedule to RabbitMQ"),
    graph(
        "Firings by disposition",
        "What schedulers did with firings. `skipped` and `missed` do not run, by the job's policies; `held` waits for "
        "an operator. `sexton jobs explain` says of one firing why.",
        "suffix: /s",
        (f"sum by (disposition) ({rate(f'sexton_firings_total{{{I}}}')})", "{{disposition}}"),
        stacked=True,
    ),
    graph(
        "Firing lag",
        "From the instant at which an execution was due to the confirm of its first ticket. Above 10 s: a slow "
        "database or broker; `sexton doctor`.",
        "s",
        (quantile("0.5", "sexton_firing_lag_seconds", I), "median"),
        (quantile("0.99", "sexton_firing_lag_seconds", I), "99 %"),
        limit=10,
    ),
    graph(
        "Unpublished tickets",
        "Tickets that RabbitMQ has not confirmed yet. They rise while RabbitMQ is away, and fall once it is back; "
        "nothing is lost meanwhile.",
        "short",
        (f"max(sexton_unpublished_tickets{{{I}}})", "unpublished"),
    ),
]

POOLS = [
    row("Pools and workers"),
    graph(
        "Executions under way",
        "Executions that have not ended. Growing `pending`: too few slots or a slow task. Growing `retrying`: look at "
        "the failures below. `waiting`: their job runs one at a time.",
        "short",
        (f"sum by (state) (max by (pool, state) (sexton_executions{{{P}}}))", "{{state}}"),
        stacked=True,
    ),
    graph(
        "Longest wait by pool",
        "For how long the oldest waiting execution of each pool has been due. Above 15 minutes: more slots, or a worker "
        "for this pool.",
        "s",
        (f"max by (pool) (sexton_due_oldest_seconds{{{P}}})", "{{pool}}"),
        limit=900,
    ),
    graph(
        "Busy slots",
        "Share of a pool's slots that run attempts, on average. Near 100 % while executions wait: add workers or raise `WORKER_SLOTS`.",
        "percentunit",
        (
            f'sum by (pool) (avg_over_time(sexton_slots{{{P}, state="busy"}}[$__rate_interval])) '
            f"/ sum by (pool) (avg_over_time(sexton_slots{{{P}}}[$__rate_interval]))",
            "{{pool}}",
        ),
        most=1,
    ),
    graph(
        "Queue wait",
        "From the instant at which an attempt was due to its begin: 95 % waited less than this.",
        "s",
        (quantile("0.95", "sexton_queue_wait_seconds", P, "pool"), "{{pool}}"),
    ),
    graph(
        "Attempts by outcome",
        "How attempts ended. `error`, `permanent`, `timeout`, `signal` and `out_of_memory` are the task's; `lost` is a "
        "worker that died or froze.",
        "suffix: /s",
        (f"sum by (outcome) ({rate(f'sexton_attempts_total{{{P}}}')})", "{{outcome}}"),
        stacked=True,
    ),
    graph(
        "Leases lost",
        "Attempts within 5 minutes whose worker died or let the lease run out. They run again. Above 5 in 15 minutes: "
        "docs/operations/runbook.md, a worker is silent.",
        "short",
        (f"sum(increase(sexton_leases_lost_total{{{I}}}[5m]))", "lost"),
    ),
]

TASKS = [
    row("Task types"),
    graph(
        "Failing attempts",
        "Share of each task type's attempts that fail. Retries go on; repair the cause: `sexton groups list`.",
        "percentunit",
        (
            f'sum by (task_type) ({rate(f"""sexton_attempts_total{{{P}, outcome=~"{FAILED_OUTCOMES}"}}""")}) '
            f"/ sum by (task_type) ({rate(f'sexton_attempts_total{{{P}}}')})",
            "{{task_type}}",
        ),
        most=1,
        limit=0.5,
        width=12,
    ),
    graph(
        "Duration of attempts",
        "95 % of each task type's attempts took less than this. Near its timeout: docs/guides/timeouts-and-leases.md.",
        "s",
        (quantile("0.95", "sexton_attempt_duration_seconds", P, "task_type"), "{{task_type}}"),
        width=12,
    ),
]

FAILURES = [
    row("Failed executions, incidents, notifications"),
    graph(
        "Failed by pool",
        "Failed executions that wait for an operator.",
        "short",
        (f"max by (pool) (sexton_failed{{{P}}})", "{{pool}}"),
        stacked=True,
    ),
    graph(
        "Oldest failed",
        "For how long the oldest of them has waited. Above a day nobody looks: docs/operations/failed.md.",
        "s",
        (f"max by (pool) (sexton_failed_oldest_seconds{{{P}}})", "{{pool}}"),
        limit=86400,
    ),
    graph(
        "Groups of failures",
        "One group for each kind of error. `reopened` failed again after somebody resolved it.",
        "short",
        (f"max by (state) (sexton_failed_groups{{{I}}})", "{{state}}"),
        stacked=True,
    ),
    graph(
        "Requeued",
        "Failed executions that operators requeued, and items of bulks, within 5 minutes. `refused` items changed meanwhile: "
        "`sexton bulks show`.",
        "short",
        (f"max by (how) (increase(sexton_requeued_total{{{I}}}[5m]))", "requeued: {{how}}"),
        (f"sum by (outcome) (increase(sexton_bulk_items_total{{{I}}}[5m]))", "bulk items: {{outcome}}"),
    ),
    graph(
        "Incidents by severity",
        "Incidents that are not resolved, acknowledged ones included.",
        "short",
        (f"max by (severity) (sexton_incidents_open{{{I}}})", "{{severity}}"),
        stacked=True,
    ),
    graph(
        "Notifications",
        "Notifications within 5 minutes. `failed` is tried again for three days; `parked` is given up: "
        "`sexton alerts requeue`, docs/operations/channels.md.",
        "short",
        (
            f"sum by (channel_kind, outcome) (increase(sexton_notifications_total{{{I}}}[5m]))",
            "{{channel_kind}}: {{outcome}}",
        ),
    ),
]

PROCESSES = [
    row("Processes"),
    graph(
        "Wait for PostgreSQL",
        "How long a transaction waited for a connection and its BEGIN, at 95 %. Above a second: more connections, or a "
        "less busy database; `sexton doctor`.",
        "s",
        (quantile("0.95", "sexton_db_acquire_seconds", I, "instance"), "{{instance}}"),
        limit=1,
        width=6,
    ),
    graph(
        "Confirms of RabbitMQ",
        "How long RabbitMQ took to confirm a batch of messages, at 95 %.",
        "s",
        (quantile("0.95", "sexton_publish_confirm_seconds", I, "instance"), "{{instance}}"),
        width=6,
    ),
    bars(
        "Slowest loops",
        "How long a round of a scheduler's loop took within 5 minutes, at 95 %: the eight slowest.",
        "s",
        (
            f"topk(8, histogram_quantile(0.95, sum by (le, loop) (rate(sexton_loop_round_seconds_bucket{{{I}}}[5m]))))",
            "{{loop}}",
        ),
        width=6,
    ),
    graph(
        "Faults of the loops",
        "Rounds within 5 minutes that failed. The log of the scheduler says what the loop lacks. `series dropped`: more "
        "than 1,000 pools or task types; docs/reference/metrics.md.",
        "short",
        (f"sum by (loop) (increase(sexton_loop_errors_total{{{I}}}[5m])) > 0", "{{loop}}"),
        (f"sum(increase(sexton_series_dropped_total{{{I}}}[5m]))", "series dropped"),
        width=6,
    ),
]

OPERATIONS = dashboard(
    "sexton-operations",
    "Sexton: operations",
    "Is the platform well, and where does it hurt? docs/operations/dashboards.md",
    [INSTANCE, POOL],
    SUMMARY + FIRINGS + POOLS + TASKS + FAILURES + PROCESSES,
)
