"""What every benchmark says of its machine, and how its results are written down."""

import json
import os
import platform
import re
import sys
from datetime import date
from pathlib import Path

import numpy as np
import psutil
import torch


def machine() -> dict[str, str | int]:
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) if sys.platform == "linux" else None
    cpu, ram = model[1] if model else platform.processor(), round(psutil.virtual_memory().total / 2**30)
    facts = {"cpu": cpu, "cores": os.cpu_count(), "ram_gib": ram, "os": f"{platform.system()} {platform.machine()}"}
    versions = {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__}
    return {**facts, **versions, "torch_threads": torch.get_num_threads()}


def words(facts: dict[str, object]) -> str:
    return ", ".join(f"{name} {fact}" for name, fact in facts.items())


def publish(name: str, facts: dict, tables: str, rows: list[dict], bars: dict[str, tuple[float, bool]]) -> None:
    """Print the tables and the bars, write all to `results/<date>-<name>`, and exit with 1 if a bar is missed."""
    lines = [f"- {'PASS' if passed else 'FAIL'} {value:.3f}: {bar}" for bar, (value, passed) in bars.items()]
    report = "\n".join([tables, "", *lines, ""])
    print(report)
    results = {"date": str(date.today()), "machine": facts, "records": rows, "bars": bars}
    path = Path(__file__).parent / "results" / f"{date.today()}-{name}.json"
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    title = f"# {name.capitalize()}, {date.today()}"
    path.with_suffix(".md").write_text(f"{title}\n\n{words(facts)}\n\n{report}", encoding="utf-8")
    sys.exit(not all(passed for _, passed in bars.values()))
