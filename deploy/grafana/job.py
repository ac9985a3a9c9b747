"""The dashboard of one job. Metrics know only three things of a job; the rest is of its task type and pool."""

from expressions import INSTANCE, ORANGE, POOL, RED, I, P, quantile, rate
from panels import bars, dashboard, graph, query_variable, row, stat

J = f'{I}, job="$job"'
T = f'{P}, task_type=~"$task_type"'
FAILURES_IN_A_ROW = "sexton_job_consecutive_failures"

JOBS = [
    row("All jobs"),
    bars(
        "Jobs that fail",
        "Ends of executions in a row that were failures, the ten worst jobs. Choose one above; `sexton failed list --job NAME` shows why.",
        "short",
        (f"topk(10, max by (job) ({FAILURES_IN_A_ROW}{{{I}}}) > 0)", "{{job}}"),
        (1, ORANGE),
        (3, RED),
    ),
    bars(
        "Longest without a success",
        "The ten jobs whose last success is longest ago. Whether that is too long, the job knows: `expect_within` in its "
        "jobs file makes a monitor of it, docs/operations/monitors.md.",
        "s",
        (f"topk(10, time() - max by (job) (sexton_job_last_success_timestamp_seconds{{{I}}}))", "{{job}}"),
    ),
]

ONE_JOB = [
    row("Job $job"),
    stat(
        "Last success",
        "How long ago an execution of this job last succeeded. `sexton executions list --job NAME` shows the latest ones.",
        "s",
        f"time() - max(sexton_job_last_success_timestamp_seconds{{{J}}})",
        empty="never",
        width=8,
    ),
    stat(
        "Next firing",
        "In how long the job fires. None: it is paused, has ended, or fires by hand only; `sexton jobs show NAME`. "
        "Negative: it is late, so no scheduler claims; docs/operations/runbook.md.",
        "s",
        f"max(sexton_job_next_firing_timestamp_seconds{{{J}}}) - time()",
        empty="none",
        width=8,
    ),
    stat(
        "Failures in a row",
        "Executions of this job that failed since its last success. `sexton failed list --job NAME`, then docs/operations/failed.md.",
        "short",
        f"max({FAILURES_IN_A_ROW}{{{J}}})",
        (1, ORANGE),
        (3, RED),
        width=8,
    ),
    graph(
        "Time since the last success",
        "A saw: it falls to 0 with each success. A tooth higher than the others is a run that failed or did not happen; "
        "`sexton jobs explain NAME` says of each firing what became of it.",
        "s",
        (f"time() - max(sexton_job_last_success_timestamp_seconds{{{J}}})", "since the last success"),
        width=12,
    ),
    graph(
        "Failures in a row, over time",
        "Rises with each failed execution, and falls to 0 with the next success.",
        "short",
        (f"max({FAILURES_IN_A_ROW}{{{J}}})", "failures in a row"),
        width=12,
    ),
]

TASK_TYPE = [
    row("Task type $task_type in pool $pool: all jobs that use it"),
    graph(
        "Attempts by outcome",
        "How attempts of this task type ended.",
        "suffix: /s",
        (f"sum by (outcome) ({rate(f'sexton_attempts_total{{{T}}}')})", "{{outcome}}"),
        stacked=True,
    ),
    graph(
        "Duration of attempts",
        "How long attempts of this task type ran. Near its timeout: docs/guides/timeouts-and-leases.md.",
        "s",
        *(
            (quantile(share, "sexton_attempt_duration_seconds", T), name)
            for share, name in [("0.5", "median"), ("0.95", "95 %"), ("0.99", "99 %")]
        ),
    ),
    graph(
        "Queue wait of the pool",
        "From the instant at which an attempt was due to its begin. A job that starts late starts late here, unless it "
        "waits for its own running execution or for a lock.",
        "s",
        (quantile("0.5", "sexton_queue_wait_seconds", P), "median"),
        (quantile("0.95", "sexton_queue_wait_seconds", P), "95 %"),
    ),
]

TASK_TYPES = query_variable(
    "task_type", "Task type", 'label_values(sexton_attempts_total{pool=~"$pool"}, task_type)', "What the job runs."
)
ONE = query_variable(
    "job",
    "Job",
    "label_values(sexton_job_consecutive_failures, job)",
    "Empty without METRICS_PER_JOB, and wrong without `honor_labels` in the scrape configuration.",
    several=False,
)

JOB = dashboard(
    "sexton-job",
    "Sexton: one job",
    "Does this job run, and what holds it up? Needs METRICS_PER_JOB and `honor_labels`: docs/operations/dashboards.md",
    [INSTANCE, ONE, POOL, TASK_TYPES],
    JOBS + ONE_JOB + TASK_TYPE,
)
