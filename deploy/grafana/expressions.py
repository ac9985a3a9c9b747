"""What the expressions of both dashboards share: the variables, and how to write a rate and a quantile."""

from panels import query_variable

# Selectors by the variables: of processes, and of processes and pools.
I = 'instance=~"$instance"'
P = f'{I}, pool=~"$pool"'
ORANGE, RED = "orange", "red"


def rate(series):
    return f"rate({series}[$__rate_interval])"


def quantile(share, metric, selector, *by):
    return f"histogram_quantile({share}, sum by ({', '.join(['le', *by])}) ({rate(f'{metric}_bucket{{{selector}}}')}))"

def or_zero(expr, metric):
    """The expression, or 0 where it has no series and the metric has: what is not read at all is not 0."""
    return f"{expr} or 0 * max({metric}{{{I}}})"


INSTANCE = query_variable(
    "instance",
    "Instance",
    "label_values(sexton_build_info, instance)",
    "Schedulers and workers. Where one Prometheus scrapes several platforms, choose the processes of one.",
)
POOL = query_variable("pool", "Pool", "label_values(sexton_executions, pool)", "Worker pools.")
