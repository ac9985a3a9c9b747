"""A platform at work: the programs, the jobs of a shop, and what befalls them while Prometheus looks on."""

import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

JOBS = """
[[job]]
name = "shop.prices"
every = "3s"
task = "prices"
pool = "shop"

[[job]]
name = "shop.stock"
every = "4s"
task = "stock"
pool = "shop"
retry = { max_retries = 4, delay = "2s" }

[[job]]
name = "billing.invoices"
every = "10s"
task = "invoices"
pool = "billing"
severity = "high"
retry = { max_retries = 1, delay = "3s" }

[[job]]
name = "billing.reminders"
every = "15s"
task = "reminders"
pool = "billing"
retry = { max_retries = 2, delay = "2s" }

[[job]]
name = "reports.turnover"
every = "5s"
task = "turnover"
pool = "reports"
overlap = "skip"
"""

# What each task does: seconds that it takes, from and to, and when it fails.
SHELL = 'sleep $(awk -v s=$$ "BEGIN {{ srand(s); print {least} + rand() * {spread} }}"); {fails}'
TASKS = {
    "prices": (0.1, 0.5, "exit 0"),
    "stock": (0.2, 1.2, 'test $((SEXTON_ATTEMPT + $$ % 3)) -gt 1 || { echo "the warehouse is busy" >&2; exit 1; }'),
    "invoices": (0.4, 1.0, 'test ! -e "$0/provider-down" || { echo "the payment provider answers 503" >&2; exit 1; }'),
    "reminders": (0.2, 0.4, 'test ! -e "$0/provider-down" || { echo "the payment provider answers 503" >&2; exit 1; }'),
    "turnover": (3.0, 5.5, "exit 0"),
}

ALERTS = """
[[channel]]
name = "ops"
webhook = {{ url = "{url}", allow_private = true }}

[[route]]
channels = ["ops"]
"""


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Broker:
    """A way to RabbitMQ that can be cut."""

    def __init__(self, url):
        parts = urlsplit(url)
        self.target = (parts.hostname, parts.port or 5672)
        self.listener = socket.create_server(("127.0.0.1", 0))
        port = self.listener.getsockname()[1]
        login = parts.netloc.rsplit("@", 1)[0] + "@" if "@" in parts.netloc else ""
        self.url = parts._replace(netloc=f"{login}127.0.0.1:{port}").geturl()
        self.is_cut, self.sockets = False, set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            client, _ = self.listener.accept()
            if self.is_cut:
                client.close()
                continue
            server = socket.create_connection(self.target)
            self.sockets |= {client, server}
            for one, other in [(client, server), (server, client)]:
                threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    def _copy(self, one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        for end in (one, other):
            self.sockets.discard(end)
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def cut(self):
        self.is_cut = True
        for one in list(self.sockets):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def mend(self):
        self.is_cut = False


class Receiver(BaseHTTPRequestHandler):
    """The channel's receiver: takes every notification."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Shop:
    """The programs of a platform, each with its own address for Prometheus."""

    def __init__(self, programs, folder):
        self.programs, self.folder = Path(programs), Path(folder)
        self.broker = Broker(os.environ["AMQP_URL"])
        self.environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME", "DATABASE_URL") if name in os.environ},
            "AMQP_URL": self.broker.url,
            "SEXTON_NAMESPACE": "pictures",
            "SEXTON_STATE_DIR": str(self.folder),
            "METRICS_PER_JOB": "true",
            "METRICS_INTERVAL_MS": "2000",
            "LEASE_MS": "5000",
            "WORKER_TASKS": str(self.folder / "tasks.toml"),
        }
        self.addresses, self.running = {}, {}
        receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        self._write(f"http://127.0.0.1:{receiver.server_port}/")

    def _write(self, url):
        tasks = []
        for name, (least, most, fails) in TASKS.items():
            script = SHELL.format(least=least, spread=most - least, fails=fails)
            tasks.append(f"[tasks.{name}]\ncommand = ['/bin/sh', '-c', '''{script}''', '{self.folder}']\n")
        for name, text in [("tasks", "".join(tasks)), ("jobs", JOBS), ("alerts", ALERTS.format(url=url))]:
            (self.folder / f"{name}.toml").write_text(text)

    def sexton(self, *arguments):
        command = [self.programs / "sexton", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120)
        if done.returncode not in (0, 4, 9):
            raise RuntimeError(f"sexton {' '.join(arguments)}: {done.stdout}{done.stderr}")

    def start(self, program, name, **settings):
        self.addresses.setdefault(name, f"127.0.0.1:{free_port()}")
        environment = {**self.environment, "SEXTON_INSTANCE": name, "HEALTH_ADDR": self.addresses[name], **settings}
        log = open(self.folder / f"{name}.log", "ab")
        self.running[name] = subprocess.Popen(
            [self.programs / program], env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def worker(self, name, pools, slots):
        self.start("worker", name, WORKER_POOLS=pools, WORKER_SLOTS=str(slots))

    def kill_busy(self, name, seconds=30):
        """Kills a worker while it runs something."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with urllib.request.urlopen(f"http://{self.addresses[name]}/metrics", timeout=5) as answer:
                if b'state="busy"} 1' in answer.read():
                    break
            time.sleep(0.05)
        self.running[name].send_signal(signal.SIGKILL)

    def open(self):
        self.sexton("migrate")
        self.sexton("alerts", "apply", "-f", str(self.folder / "alerts.toml"))
        self.sexton("jobs", "apply", "-f", str(self.folder / "jobs.toml"))
        for name in ("scheduler-1", "scheduler-2"):
            self.start("scheduler", name)
        self.worker("worker-1", "shop,billing", 4)
        self.worker("worker-2", "reports", 1)

    def befall(self, seconds):
        """What happens within so many seconds: each event at its share of the time."""
        began = time.monotonic()
        provider = self.folder / "provider-down"
        # The reminders still wait for somebody at the end.
        requeue = ["failed", "requeue", "--job", "billing.invoices", "--yes", "--reason", "the provider is back", "--rate", "1/s"]
        for share, event in [
            (0.18, lambda: self.worker("worker-3", "reports", 1)),
            (0.30, lambda: provider.touch()),
            (0.52, lambda: provider.unlink()),
            (0.57, lambda: self.sexton(*requeue)),
            (0.72, lambda: self.broker.cut()),
            (0.77, lambda: self.broker.mend()),
            (0.85, lambda: self.kill_busy("worker-2")),
            (0.89, lambda: self.worker("worker-2", "reports", 1)),
            (1.00, lambda: None),
        ]:
            time.sleep(max(0, began + seconds * share - time.monotonic()))
            event()

    def close(self):
        self.broker.mend()
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
