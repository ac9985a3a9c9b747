"""Runs a platform for some minutes under Prometheus, and draws both dashboards: `make pictures`.

Needs DATABASE_URL and AMQP_URL of servers that nothing else uses: `with-servers` starts them.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from draw import picture
from prometheus import Prometheus
from shop import Shop, free_port

ROOT = Path(__file__).resolve().parents[2]
# What is chosen of each dashboard's variables.
CHOSEN = {
    "operations": {"instance": ".*", "pool": ".*"},
    "job": {"instance": ".*", "job": "billing.invoices", "pool": "billing", "task_type": "invoices"},
}

arguments = argparse.ArgumentParser()
arguments.add_argument("--programs", required=True, help="the folder with scheduler, worker and sexton")
arguments.add_argument("--prometheus", required=True, help="the folder with prometheus")
arguments.add_argument("--minutes", type=float, default=12)
arguments.add_argument("--to", type=Path, default=ROOT / "docs/images")
arguments.add_argument("--keep", action="store_true", help="wait for a key before everything is stopped")
arguments = arguments.parse_args()

with tempfile.TemporaryDirectory() as folder:
    shop = Shop(arguments.programs, folder)
    prometheus = None
    try:
        shop.open()
        names = ["scheduler-1", "scheduler-2", "worker-1", "worker-2", "worker-3"]
        for name in names:
            shop.addresses.setdefault(name, f"127.0.0.1:{free_port()}")
        program = Path(arguments.prometheus) / "prometheus"
        prometheus = Prometheus(program, folder, f"127.0.0.1:{free_port()}", shop.addresses)
        prometheus.wait()
        # Without the first seconds, in which the programs start.
        time.sleep(20)
        start = time.time()
        print(f"Prometheus: {prometheus.url}; the programs' logs: {folder}", flush=True)
        shop.befall(arguments.minutes * 60)
        for name, chosen in CHOSEN.items():
            dashboard = json.loads((ROOT / f"deploy/grafana/{name}.json").read_text())
            drawn = picture(dashboard, chosen, prometheus, start, time.time())
            arguments.to.mkdir(parents=True, exist_ok=True)
            (arguments.to / f"dashboard-{name}.svg").write_text(drawn)
        if arguments.keep:
            input()
    finally:
        if prometheus:
            prometheus.stop()
        shop.close()
