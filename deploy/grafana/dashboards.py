"""Writes Sexton's Grafana dashboards beside this file, or into the folder of the first argument."""

import json
import sys
from pathlib import Path

from job import JOB
from operations import OPERATIONS

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
for name, content in [("operations.json", OPERATIONS), ("job.json", JOB)]:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    (folder / name).write_text(text, encoding="utf-8")
