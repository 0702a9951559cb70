"""The three ways to install agree: pyproject.toml, constraints.txt and environment.yml."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from rattler import MatchSpec

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
PINS = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]

# conda-forge's own names; pytorch-cpu is the build without CUDA.
CONDA_NAMES = {"torch": "pytorch-cpu", "huggingface-hub": "huggingface_hub"}


def requirements(*extras: str) -> list[Requirement]:
    """What the course needs, with these extras."""
    lines = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][extra] for extra in extras)]
    return [Requirement(text) for part in lines for text in part]


def test_conda_installs_the_same_ranges_for_the_lab_and_the_tests():
    wanted = {"python": SpecifierSet(PROJECT["requires-python"]), "pip": SpecifierSet()}  # without pip, conda warns
    for one in requirements("pretrained", "test"):
        wanted[CONDA_NAMES.get(one.name, canonicalize_name(one.name))] = one.specifier
    lines = [line for line in ENVIRONMENT["dependencies"] if isinstance(line, str)]
    specs = [MatchSpec(line, strict=True) for line in lines]
    assert {spec.name.normalized: SpecifierSet(str(spec.version or "")) for spec in specs} == wanted
    assert len(specs) == len(wanted), "a package is listed twice"
    # A build string, a file or a channel would tie the line to one platform or one host.
    ties = ("build", "build_number", "channel", "subdir", "file_name")
    tied = [line for line, spec in zip(lines, specs) if any(getattr(spec, tie) is not None for tie in ties)]
    assert not tied


def test_conda_asks_conda_forge_and_pip_this_folder_alone():
    assert ENVIRONMENT["channels"] == ["conda-forge"]
    assert [line for line in ENVIRONMENT["dependencies"] if not isinstance(line, str)] == [{"pip": ["-e ."]}]


def test_constraints_pin_each_requirement_exactly_and_within_its_range():
    wrong = [f"{line}: not an exact pin" for line in PINS if not re.fullmatch(r"[\w.-]+==\d[\da-z.]*", line)]
    pins = [(canonicalize_name(name), version) for name, _, version in (line.partition("==") for line in PINS)]
    wrong += [f"{name}: pinned {count} times" for name, count in Counter(name for name, _ in pins).items() if count > 1]
    for one in requirements(*PROJECT["optional-dependencies"]):
        version = dict(pins).get(canonicalize_name(one.name))
        if version is None or not one.specifier.contains(version, prereleases=True):
            wrong.append(f"{one}: pinned to {version}")
    assert not wrong
