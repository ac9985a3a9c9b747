"""graphile-worker on PostgreSQL; its programs are in peer_graphile_worker.mjs."""

import node_peer
import servers
import works
from node_peer import bulk, enqueue, prepare, work  # noqa: F401 - what a peer is asked for

LEAD = 15
WORKS = works.WITH_BULK


def version(run):
    return node_peer.version(run, "graphile-worker")


def settings(run):
    # It fetches and completes one by one, or batches as its page on performance sets them.
    one_by_one = run["prefetch"] == 1 and run["work"] != "burst"
    return {
        "concurrentJobs": 24,
        "maxPoolSize": 25,
        "localQueue": None if one_by_one else 500,
        "completeJobBatchDelay": -1 if one_by_one else 0,
        "pollInterval": 100,
        "prefetch": run["prefetch"] if one_by_one else 500,
        "record": "none",
    }


def unsettled(run):
    return servers.number(run["database"], "select count(*) from graphile_worker._private_jobs")


def remove(run):
    """Nothing: all is in the database."""
