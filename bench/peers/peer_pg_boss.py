"""pg-boss on PostgreSQL; its programs are in peer_pg_boss.mjs."""

import node_peer
import servers
import works
from node_peer import bulk, enqueue, prepare, work  # noqa: F401 - what a peer is asked for

LEAD = 15
WORKS = works.WITH_BULK


def version(run):
    return node_peer.version(run, "pg-boss")


def settings(run):
    # It fetches and completes whole batches; "prefetch 1" is a batch of one, with as many workers as pay.
    one_by_one = run["prefetch"] == 1 and run["work"] == "drain"
    return {
        "batchSize": 1 if one_by_one else 500,
        "localConcurrency": 10 if one_by_one else 2,
        "burstWhenReadyExceeds": 1 if one_by_one else None,
        "burstWhenBatchFull": not one_by_one,
        "pollingIntervalSeconds": 0.5,
        "superviseIntervalSeconds": 1,  # as monitor and queue cache, so that a new queue is known within a second
        "prefetch": run["prefetch"] if one_by_one else 500,
        "record": "job",
    }


def unsettled(run):
    waiting = "select count(*) from pgboss.job where name = 'bench' and state < 'completed'"
    return servers.number(run["database"], waiting)


def remove(run):
    """Nothing: all is in the database."""
