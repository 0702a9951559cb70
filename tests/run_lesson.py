"""Run one lesson in plain Python, every socket refused, and print as JSON what is wrong: pairs of where and what.

python tests/run_lesson.py notebooks/04_simple_attention.ipynb

Beside each stub its folded solution must pass the check, and with one small fault in it, it must not, unless
tests/answers/ lists the fault as equal. After that, what the lesson has built is compared with what utils has under
the same name.
"""

import ast
import contextlib
import importlib
import io
import json
import pkgutil
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from answers import answers
from IPython.display import display
from lessons import Task, code_cells, label, read, tags, tasks
from nbformat import NotebookNode
from solution_mutants import mutants

refused: list[str] = []


def refuse(event: str, arguments: tuple) -> None:
    """An audit hook, which hears of each socket, whoever wants one."""
    if event.startswith("socket."):
        refused.append(f"{event} {arguments}")
        raise RuntimeError(f"a lesson needs no network: {event} {arguments}")


def run(path: Path) -> Iterator[tuple[str, str]]:
    """Run a lesson and yield where something is wrong, and what; an error that the lesson does not declare ends it."""
    nb = read(path)
    stubs = {task.index + 1: task for task in tasks(nb)}
    taught = names = {"__name__": "__main__", "display": display}
    left_out = set()  # names: cells tagged "slow", and those that build on them, are run by nbval alone
    for index, cell in enumerate(nb.cells):
        if index in stubs:
            names = dict(names)  # a stub's names must not change what the lesson itself defined
        if cell.cell_type == "code" and ("slow" in tags(cell) or not executed(cell, names, left_out)):
            left_out |= assigned(cell)
        if index in stubs:
            verdict = solve(stubs[index], dict(names))
            if not getattr(verdict, "passed", False):
                yield f"solution of {stubs[index].number}", f"it does not pass its check: {verdict!r}"
            yield from survivors(stubs[index], names)
        yield from ((label(cell), f"it asks for the network: {event}") for event in refused)
        refused.clear()
    yield from differences(path, taught)


def assigned(cell: NotebookNode) -> set[str]:
    nodes = [*ast.walk(ast.parse(cell.source))]
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    names |= {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return names | {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}


def executed(cell: NotebookNode, names: dict, left_out: set[str]) -> bool:
    """Run a cell; return False if it needs a name that was left out."""
    try:
        exec(compile(cell.source, label(cell), "exec"), names)
    except Exception as error:
        if isinstance(error, NameError) and error.name in left_out:
            return False
        if "raises-exception" not in tags(cell):
            error.add_note(f"raised by {label(cell)}")
            raise
    return True


def survivors(task: Task, names: dict) -> Iterator[tuple[str, str]]:
    """Yield each small fault in the folded solution that its check accepts, and each listed as equal that is not."""
    from utils.exercises import limits

    limits.SECONDS = 1.0
    equal = {table["equal"].strip() for table in answers().get(task.number, []) if "equal" in table}
    passed = set()
    with warnings.catch_warnings(action="ignore"):
        for change, code in mutants("\n".join(task.solutions)).items():
            if getattr(solve(task, dict(names), code), "passed", False):
                passed.add(change)
    yield from ((f"solution of {task.number}", f"its check accepts {change!r}") for change in sorted(passed - equal))
    yield from ((f"solution of {task.number}", f"listed as equal, but refused: {c!r}") for c in sorted(equal - passed))


def solve(task: Task, names: dict, code: str | None = None) -> object:
    """Return the verdict on the folded solution, or on other code for it, or the error that it raises."""
    try:
        exec("\n".join(task.solutions) if code is None else code, names)
        return eval(task.below[1].source, names)
    except Exception as error:  # reported like a verdict that is not "right", and the other solutions run too
        return error


def differences(path: Path, taught: dict) -> Iterator[tuple[str, str]]:
    """Yield each name under which the lesson and utils have different things, and an input that shows it."""
    from comparisons import first_difference  # not sooner: utils must be imported by the lesson, without a network

    public = public_names()
    for name in sorted(definitions(path) & public.keys()):
        if what := first_difference(name, taught[name], public[name]):
            yield name, what


def definitions(path: Path) -> set[str]:
    """The names of the functions and classes that a lesson defines, exercises apart."""
    stubs = [id(task.below[0]) for task in tasks(read(path))]
    cells = [cell for cell in code_cells(read(path)) if id(cell) not in stubs]
    nodes = [node for cell in cells for node in ast.parse(cell.source).body]
    return {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def public_names() -> dict[str, object]:
    """Name -> function or class that a module of utils defines."""
    import utils

    found = {}
    for info in pkgutil.iter_modules(utils.__path__, "utils."):
        if not info.ispkg:
            for name, item in vars(importlib.import_module(info.name)).items():
                if getattr(item, "__module__", "") == info.name and callable(item) and not name.startswith("_"):
                    found[name] = item
    return found


if __name__ == "__main__":
    sys.addaudithook(refuse)
    with contextlib.redirect_stdout(io.StringIO()):
        wrong = [*run(Path(sys.argv[1]))]
    json.dump(wrong, sys.stdout)
