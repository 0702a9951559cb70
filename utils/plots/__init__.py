"""Figures of the course: computed from data, described in words, readable in light and dark."""

from utils.plots.canvas import AXIS_COLOURS, INK, PAPER, TOKEN_FILLS, shape_ledger, show
from utils.plots.text import ROUTE, plot_counts, plot_merges, plot_route, plot_tokens, plot_windows

__all__ = [
    "AXIS_COLOURS",
    "INK",
    "PAPER",
    "ROUTE",
    "TOKEN_FILLS",
    "plot_counts",
    "plot_merges",
    "plot_route",
    "plot_tokens",
    "plot_windows",
    "shape_ledger",
    "show",
]
