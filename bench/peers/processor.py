"""Processor time of the whole machine, from the kernel's accounts."""

IDLE = (3, 4)  # idle, waiting for a disk
COUNTED = 7  # then what the machine did not get, and what is part of these


def busy_ms():
    """How long the machine's processors have been busy since it runs, for all programs."""
    with open("/proc/stat") as stat:
        ticks = [int(text) for text in stat.readline().split()[1 : 1 + COUNTED]]
    # The kernel counts hundredths of a second for every program, whatever its own clock is.
    return 10 * sum(count for place, count in enumerate(ticks) if place not in IDLE)


def forks():
    """How many processes the machine has started since it runs."""
    with open("/proc/stat") as stat:
        return next(int(line.split()[1]) for line in stat if line.startswith("processes "))
