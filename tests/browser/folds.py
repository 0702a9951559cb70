"""Folded answers, as a reader opens them, both in JupyterLab and on the site."""

from playwright.sync_api import Locator, expect


def expect_to_unfold_and_fold(fold: Locator) -> None:
    """Open and close an answer by a click, then by the keyboard."""
    summary, inside = fold.locator("> summary"), fold.locator("> :not(summary)").first
    for toggle in (summary.click, lambda: summary.press("Enter")):
        expect(inside).to_be_hidden()
        toggle()
        expect(inside).to_be_visible()
        toggle()
    expect(inside).to_be_hidden()
