"""Figures of the course: computed from data, described in words, readable in light and dark.

Every function raises TypeError for data of another kind than it draws, and ValueError for data
that are empty, of another shape, or more than a figure can show: both name the argument.
"""

from utils.plots.canvas import AXIS_COLOURS, INK, PAPER, TOKEN_FILLS, as_png, shape_ledger, show
from utils.plots.text import ROUTE, plot_counts, plot_merges, plot_route, plot_tokens, plot_windows
from utils.plots.vectors import plot_attention, plot_bars, plot_lines, plot_matrices, plot_plane, plot_weighted_sum

__all__ = [
    "AXIS_COLOURS",
    "INK",
    "PAPER",
    "ROUTE",
    "TOKEN_FILLS",
    "as_png",
    "plot_attention",
    "plot_bars",
    "plot_counts",
    "plot_lines",
    "plot_matrices",
    "plot_merges",
    "plot_plane",
    "plot_route",
    "plot_tokens",
    "plot_weighted_sum",
    "plot_windows",
    "shape_ledger",
    "show",
]
