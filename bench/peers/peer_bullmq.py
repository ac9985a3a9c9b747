"""BullMQ on Redis; its programs are in peer_bullmq.mjs."""

import redis

import node_peer
from node_peer import enqueue, prepare, work  # noqa: F401 - what a peer is asked for

LEAD = 15


def version(run):
    return node_peer.version(run, "bullmq")


def settings(run):
    return {
        "concurrency": 100,
        "removeOnComplete": run["record"] == "no",
        "appendfsync": "everysec",
        "prefetch": None,
        "record": "none" if run["record"] == "no" else "job",
    }


def unsettled(run):
    with redis.from_url(run["redis"]) as client:
        return client.llen(f"bull:{run['name']}:wait") + client.llen(f"bull:{run['name']}:active")


def remove(run):
    with redis.from_url(run["redis"]) as client:
        for key in client.scan_iter(f"bull:{run['name']}:*", count=10_000):
            client.unlink(key)
