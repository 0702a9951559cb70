"""What is done to a text before Sphinx reads it: parts are filled in, links fit the site, code stays code."""

import re
from collections.abc import Callable, Sequence

from course import Lesson, link, slug


def fill(text: str, makers: dict[str, Callable[..., str]]) -> str:
    """Return a page with its `<!-- build: name arguments -->` replaced by what the maker of that name returns."""

    def made(match: re.Match) -> str:
        name, *arguments = match[1].split()
        return makers[name](*arguments)

    return re.sub(r"<!-- build: (.+?) -->", made, text)


def with_lesson_links(page: str, lessons: Sequence[Lesson]) -> str:
    """Return a page in which each "Lesson 4" outside headings is a link, if there is such a lesson."""
    by_number = {str(lesson.number): lesson for lesson in lessons}

    def linked(match: re.Match) -> str:
        return link(by_number[match[1]], match[0]) if match[1] in by_number else match[0]

    return "\n".join(
        line if line.startswith("#") else re.sub(r"(?<!\[)\bLesson (\d+)\b", linked, line) for line in page.split("\n")
    )


def with_backlinks(glossary: str, lessons: Sequence[Lesson]) -> str:
    """Return the glossary with each "(Lesson 4)" replaced by links to all lessons that list the word as learned.

    Raises:
        ValueError: a term does not name the first lesson that lists it.
    """

    def linked(section: str) -> str:
        term = section.partition("\n")[0]
        teach = [lesson for lesson in lessons if slug(term) in lesson.words]  # lesson 0 teaches none
        named = re.search(r"\(Lesson (\d+)\)\s*$", section)
        if not named or int(named[1]) not in [lesson.number for lesson in teach[:1]]:
            listed = ", ".join(lesson.heading for lesson in teach) or "none"
            raise ValueError(
                f"glossary: {term!r} must end with (Lesson n), the first lesson that lists it as learned; "
                f"these do: {listed}"
            )
        links = ", ".join(link(lesson, f"Lesson {lesson.number}") for lesson in teach)
        return f"{section[: named.start()]}({links})\n\n"

    head, *sections = re.split(r"^## ", glossary, flags=re.MULTILINE)
    return head + "".join(f"## {linked(section)}" for section in sections)


def for_site(notebook: str) -> str:
    """Return a notebook's source with links as the site has them.

    The landing page replaces README, and the anchors of headings, in which JupyterLab keeps capitals
    and punctuation, are those of the site.
    """
    text = notebook.replace("](../README.md)", "](../docs/index.md)")
    return re.sub(r"(\]\([\w/.-]*\.ipynb#)([^)]+)\)", lambda match: f"{match[1]}{slug(match[2])})", text)


def docstring(text: str) -> str:
    """Return a docstring in the form that Sphinx reads: text between backticks is code, unchanged to the letter.

    Examples (from `>>>` to the next empty line) stay as they are.
    """
    # Sphinx would take the words of "Args: As for `StackedHeads`." for names of arguments.
    text = re.sub(r"^Args:\n +([^:\n]+)$", r":Parameters: \1", text, flags=re.MULTILINE)
    parts = re.split(r"(^ *>>> .*?(?:\n\s*\n|\Z))", text, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [re.sub(r"`([^`]+)`|(\|)", lambda m: f"``{m[1]}``" if m[1] else r"\|", part) for part in parts[::2]]
    return "".join(parts)
