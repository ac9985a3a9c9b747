"""A Prometheus that scrapes a platform, and its answers."""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

SCRAPE_SECONDS = 5


class Prometheus:
    def __init__(self, program, folder, address, targets):
        self.url = f"http://{address}"
        lines = [
            "global: {scrape_interval: %ds, scrape_timeout: %ds}" % (SCRAPE_SECONDS, SCRAPE_SECONDS),
            "scrape_configs:",
            "  - job_name: sexton",
            "    honor_labels: true",
            "    static_configs:",
            *(f"      - {{targets: ['{target}'], labels: {{instance: {name}}}}}" for name, target in targets.items()),
        ]
        config = Path(folder) / "prometheus.yml"
        config.write_text("\n".join(lines) + "\n")
        log = open(Path(folder) / "prometheus.log", "ab")
        command = [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={address}",
        ]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ask(self, path, **parameters):
        """The data of an answer; the error that Prometheus names is raised."""
        url = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            # Not ready yet.
            if error.code == 503:
                raise
            raise RuntimeError(f"{parameters}: {error.read().decode()}") from error

    def wait(self, seconds=30):
        end = time.monotonic() + seconds
        while True:
            try:
                return self.ask("query", query="vector(1)")
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def over_time(self, query, start, end, step):
        """Pairs of labels and values; a value is `None` where Prometheus has none."""
        result = self.ask("query_range", query=query, start=start, end=end, step=step)["result"]
        times = [start + number * step for number in range(int((end - start) / step) + 1)]
        for series in result:
            found = {round(float(when)): float(value) for when, value in series["values"]}
            yield series["metric"], [number(found.get(round(when))) for when in times]

    def now(self, query, when):
        for series in self.ask("query", query=query, time=when)["result"]:
            yield series["metric"], [number(float(series["value"][1]))]

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def number(value):
    """As Grafana, which draws nothing where a quotient has no value."""
    return None if value is None or value != value or abs(value) == float("inf") else value
