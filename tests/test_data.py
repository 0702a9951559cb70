"""data/ holds what its README says, byte for byte."""

import hashlib
import re
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parent.parent / "data"
ROW = re.compile(
    r"^\| \[(?P<name>[^]]+)\]\((?P<link>[^)]+)\) \|.*\| (?P<bytes>[\d,]+) \| `(?P<sha256>[0-9a-f]{64})` \|$"
)
LINES = (DATA / "README.md").read_text(encoding="utf-8").splitlines()
TABLE = [line for line in LINES if line.startswith("| [")]
ROWS = [row for row in map(ROW.match, TABLE) if row]
STORY = (DATA / "the_night_ferry.txt").read_bytes()


def test_table_and_folder_name_the_same_files():
    assert len(ROWS) == len(TABLE), "a row is not: | [file](file) | what | source | licence | bytes | `sha256` |"
    present = sorted(path.name for path in DATA.iterdir() if not path.name.startswith(".") and path.name != "README.md")
    assert sorted(row["name"] for row in ROWS) == present
    assert [row["link"] for row in ROWS] == [row["name"] for row in ROWS]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_file_has_the_length_and_hash_of_the_table(row):
    content = (DATA / row["name"]).read_bytes()
    assert len(content) == int(row["bytes"].replace(",", ""))
    assert hashlib.sha256(content).hexdigest() == row["sha256"]


def test_story_is_utf8_with_plain_line_ends():
    text = STORY.decode("utf-8")
    assert not text.startswith("\N{ZERO WIDTH NO-BREAK SPACE}")
    assert "\r" not in text
    assert text.endswith("\n")


def test_story_has_the_length_the_lessons_count_on():
    assert 20_000 <= len(STORY) <= 25_000


def test_mit_licence_travels_with_the_vocabulary():
    text = " ".join(line.removeprefix(">").strip() for line in LINES)
    assert "Copyright (c) 2022 OpenAI" in text
    assert "The above copyright notice and this permission notice shall be included in all copies" in text
