"""The three ways to install say the same: pyproject.toml, constraints.txt and environment.yml."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from rattler import MatchSpec

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
PINS = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]

EXTRAS = PROJECT["optional-dependencies"]
DIRECT = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRA = [Requirement(text) for name in ("pretrained", "test") for text in EXTRAS[name]]
PINNED = DIRECT + [Requirement(text) for extra in EXTRAS.values() for text in extra]

CONDA_LINES = [line for line in ENVIRONMENT["dependencies"] if isinstance(line, str)]
# conda-forge's own names; pytorch-cpu is the build without CUDA.
CONDA_NAMES = {"torch": "pytorch-cpu", "huggingface-hub": "huggingface_hub"}


def conda_name(requirement: Requirement) -> str:
    return CONDA_NAMES.get(requirement.name, canonicalize_name(requirement.name))


def conda_ranges(name: str) -> list[SpecifierSet]:
    specs = [MatchSpec(line) for line in CONDA_LINES]
    return [SpecifierSet(str(spec.version or "")) for spec in specs if spec.name.normalized == name]


def test_conda_forge_is_the_only_channel():
    assert ENVIRONMENT["channels"] == ["conda-forge"]


@pytest.mark.parametrize("line", CONDA_LINES)
def test_conda_line_is_a_name_and_a_range(line):
    spec = MatchSpec(line, strict=True)
    # A build string, a file or a channel would tie the line to one platform or one host.
    tied = {field: getattr(spec, field) for field in ("build", "build_number", "channel", "subdir", "file_name")}
    assert not any(value is not None for value in tied.values()), f"{line}: {tied}"
    assert "==" not in line


def test_pip_installs_this_folder_alone():
    assert [line for line in ENVIRONMENT["dependencies"] if not isinstance(line, str)] == [{"pip": ["-e ."]}]
    assert conda_ranges("pip"), "without pip among the lines conda warns and guesses"


@pytest.mark.parametrize("requirement", DIRECT + EXTRA, ids=str)
def test_conda_range_is_pyprojects(requirement):
    assert conda_ranges(conda_name(requirement)) == [requirement.specifier]


def test_conda_lists_nothing_else():
    wanted = {conda_name(requirement) for requirement in DIRECT + EXTRA}
    listed = {MatchSpec(line).name.normalized for line in CONDA_LINES}
    assert listed - wanted == {"python", "pip"}


def test_python_range_is_pyprojects():
    assert conda_ranges("python") == [SpecifierSet(PROJECT["requires-python"])]


@pytest.mark.parametrize("requirement", PINNED, ids=str)
def test_one_pin_within_the_range(requirement):
    pins = [Requirement(line) for line in PINS]
    mine = [pin for pin in pins if canonicalize_name(pin.name) == canonicalize_name(requirement.name)]
    assert len(mine) == 1, f"constraints.txt pins {requirement.name} {len(mine)} times"
    [version] = [part.version for part in mine[0].specifier]
    assert requirement.specifier.contains(version, prereleases=True)


def test_constraints_are_exact_pins_each_once():
    loose = [line for line in PINS if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line)]
    assert not loose
    names = Counter(canonicalize_name(Requirement(line).name) for line in PINS)
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_ruff_targets_the_oldest_python():
    [oldest] = [part.version for part in SpecifierSet(PROJECT["requires-python"]) if part.operator == ">="]
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]
    assert ruff["target-version"] == "py" + oldest.replace(".", "")
