"""Figures of the course: computed from data, described in words, readable in light and dark.

The functions named `plot_…` raise TypeError for data of another kind than they draw, and ValueError
for data that are empty, of another shape, or more than a figure can show: both name the argument.
"""

from utils.plots.canvas import AXIS_COLOURS, INK, PAPER, TOKEN_FILLS, as_png, shape_ledger, show
from utils.plots.charts import plot_bars, plot_counts, plot_lines
from utils.plots.diagrams import plot_flow
from utils.plots.heads import plot_heads
from utils.plots.machines import plot_parallel, plot_stacks
from utils.plots.maps import plot_attention, plot_matrices, plot_verdicts
from utils.plots.models import plot_block, plot_gpt
from utils.plots.text import ROUTE, plot_merges, plot_route, plot_tokens
from utils.plots.vectors import plot_plane, plot_weighted_sum
from utils.plots.windows import plot_predictions, plot_windows

__all__ = [
    "AXIS_COLOURS",
    "INK",
    "PAPER",
    "ROUTE",
    "TOKEN_FILLS",
    "as_png",
    "plot_attention",
    "plot_bars",
    "plot_block",
    "plot_counts",
    "plot_flow",
    "plot_gpt",
    "plot_heads",
    "plot_lines",
    "plot_matrices",
    "plot_merges",
    "plot_parallel",
    "plot_plane",
    "plot_predictions",
    "plot_route",
    "plot_stacks",
    "plot_tokens",
    "plot_verdicts",
    "plot_weighted_sum",
    "plot_windows",
    "shape_ledger",
    "show",
]
