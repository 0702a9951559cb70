"""How much of utils/ do the tests protect? In copies with one small fault each, some test should fail.

The faults are mutmut's; they are tried here and not by mutmut itself, which leaves decorated functions (`generate`)
and everything outside functions alone. Exit code 1 if a bar is missed. Arguments: modules, to try only those; what
is known of the others is kept.
"""

import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from difflib import unified_diff
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

import libcst
import pytest
from hypothesis import settings
from mutmut.mutation.file_mutation import create_mutations, deep_replace
from report import machine, publish

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(path.stem for path in (ROOT / "utils").glob("*.py") if path.stem != "__init__")
# Test files to run besides tests/test_<module>.py and the doctests of the module.
ALSO = {
    "attention": ["cache"],
    "files": ["corpus", "processes"],
    "gpt": ["cache", "decoding"],
    "progress_bar": ["training"],
}
NEW = "NEW"  # a survivor that has no reason yet
SECONDS = 0.5  # of a processor: a test that needs more is left out
# Imported once, not in each process; nothing that imports utils may be among them.
HEAVY = ("huggingface_hub", "safetensors", "tiktoken", "torch._dynamo", "transformers")


def mutants(code: str) -> list[str]:
    """Return the code with one fault each, the wording of messages aside."""
    # As comments, so that mutmut does not see that a function is decorated.
    tree, mutations, *_ = create_mutations("", re.sub(r"^( *)@(?=\w)", r"\1#@", code, flags=re.MULTILINE))
    pairs = [(mutation.original_node, mutation.mutated_node) for mutation in mutations]
    changed = [deep_replace(tree, old, new).code for old, new in pairs if not is_wording(old, new)]
    return list(dict.fromkeys(text.replace("#@", "@") for text in changed))


def is_wording(old: libcst.CSTNode, new: libcst.CSTNode) -> bool:
    """Return whether a text of several words was changed, or a name got XX around it, which any message still has."""
    return isinstance(old, libcst.SimpleString) and (
        " " in old.value or (old.value[1:-1].isidentifier() and "XX" in new.value)
    )


def difference(code: str, mutant: str) -> tuple[int, str]:
    """Return the number of the first changed line, and what it was and is."""
    head, *lines = list(unified_diff(code.splitlines(), mutant.splitlines(), n=0, lineterm=""))[2:]
    old, new = (" ".join(line[1:].strip() for line in lines if line[0] == sign) for sign in "-+")
    return int(re.search(r"\d+", head)[0]), f"{old} → {new}"


class FastestFirst:
    """A pytest plugin that measures each test, and puts the tests in order the next time."""

    def __init__(self, costs: dict[str, float]):
        self.costs = costs

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if self.costs.get(item.nodeid, 0) < SECONDS]
        items.sort(key=lambda item: self.costs.get(item.nodeid, 0))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        start = sum(os.times()[:4])
        result = yield
        self.costs[item.nodeid] = sum(os.times()[:4]) - start
        return result


def survives(module: str, code: str, mutant: str, stamp: int) -> bool:
    """Return whether the tests of a module pass, in a fresh process, with `mutant` instead of it."""
    path, costs = Path(f"utils/{module}.py"), Path(f"../{module}.json")
    path.write_text(mutant, encoding="utf-8")
    os.utime(path, (stamp, stamp))  # Python knows a compiled file as old by its source's time and size
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))  # ends a loop without an end; the alarm, waiting
        signal.alarm(300)
        if mutant != code:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        plugin = FastestFirst(json.loads(costs.read_text()) if costs.exists() else {})
        files = [f"tests/test_{name}.py" for name in (module, *ALSO.get(module, ()))]
        options = ["-x", "-q", "-o", "addopts=", "--doctest-modules", "-p", "no:cacheprovider"]
        failed = pytest.main([*options, *filter(os.path.exists, files), str(path)], [plugin])
        if mutant == code:
            costs.write_text(json.dumps(plugin.costs))
        sys.stdout.flush()
        os._exit(failed)
    passed = os.waitpid(pid, 0)[1] == 0
    path.write_text(code, encoding="utf-8")
    return passed


def settle(base: str) -> None:
    """Give a worker its own copy of the course."""
    folder = Path(base, str(os.getpid()))
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "_build"))
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = str(folder)  # for tests that start a process
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # looking for plugins takes a second each time
    settings.register_profile("mutants", max_examples=20, derandomize=True, deadline=None, database=None)
    settings.load_profile("mutants")


def main(modules: list[str]) -> None:
    for name in HEAVY:
        import_module(name)
    equal = json.loads(Path(__file__).with_name("equal_mutants.json").read_text(encoding="utf-8"))
    records = newest()
    with (
        tempfile.TemporaryDirectory() as base,
        ProcessPoolExecutor(os.cpu_count(), get_context("fork"), settle, (base,)) as pool,
    ):
        for module in modules:
            code = (ROOT / f"utils/{module}.py").read_text(encoding="utf-8")
            assert pool.submit(survives, module, code, code, 0).result(), f"{module}: its tests fail without a fault"
            jobs = {text: pool.submit(survives, module, code, text, n) for n, text in enumerate(mutants(code), 1)}
            changes = [difference(code, text) for text, job in jobs.items() if job.result()]
            reasons = {change: why for why, alike in equal.get(module, {}).items() for change in alike}
            lines = [f"- {module}.py:{line} `{change}`: {reasons.get(change, NEW)}" for line, change in changes]
            records[module] = {"mutants": len(jobs), "survivors": lines}
            print(f"{module}: {len(jobs)} mutants", *lines, sep="\n", flush=True)
    table = ["| module | mutants | killed | survived | survived, equal |", "| :--- | ---: | ---: | ---: | ---: |"]
    known = [module for module in MODULES if module in records]
    rows = [counts(records[module]) for module in known]
    rows.append([sum(column) for column in zip(*rows)])
    table += [f"| {name} | {' | '.join(map(str, row))} |" for name, row in zip([*known, "all"], rows)]
    total, killed, new, _ = rows[-1]
    bars = {"of all mutants killed: 0.9 or more": (killed / total, killed / total >= 0.9)}
    bars["survivors neither equal nor killed: none"] = (new, new == 0)
    survivors = [line for module in known for line in records[module]["survivors"]]
    publish("mutants", machine(), "\n".join([*table, "", *survivors]), records, bars)


def newest() -> dict[str, dict]:
    """Return the records of the newest results; none if there are none."""
    paths = sorted((ROOT / "benchmarks" / "results").glob("*-mutants.json"))
    return json.loads(paths[-1].read_text(encoding="utf-8"))["records"] if paths else {}


def counts(record: dict) -> list[int]:
    """Return how many mutants there are, how many were killed, survived without a reason, and with one."""
    survivors = record["survivors"]
    new = sum(line.endswith(NEW) for line in survivors)
    return [record["mutants"], record["mutants"] - len(survivors), new, len(survivors) - new]


if __name__ == "__main__":
    main(sys.argv[1:] or MODULES)
