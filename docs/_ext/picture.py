"""Draw README's picture from the course's own figures:  .venv/bin/python docs/_ext/picture.py"""

import io
from pathlib import Path

import matplotlib.image
import numpy as np
import torch
from matplotlib.figure import Figure

from utils.attention import simple_attention
from utils.plots import as_png, plot_flow, plot_predictions, plot_route, plot_tokens
from utils.tokenizer import text_to_ids, token_texts

GAP = 48


def pixels(figure: Figure) -> np.ndarray:
    """Return a figure as an array of pixels, without the white paper around it."""
    picture = matplotlib.image.imread(io.BytesIO(as_png(figure)))[..., :3]
    rows, columns = (np.flatnonzero((picture < 1).any(axis=(axis, 2))) for axis in (1, 0))
    return picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def joined(pictures: list[np.ndarray], axis: int) -> np.ndarray:
    """Return pictures on white paper, one below the other (axis 0) or side by side (1), each centred."""
    most = max(picture.shape[1 - axis] for picture in pictures)
    padded = []
    for picture in pictures:
        room = most - picture.shape[1 - axis]
        sides = [(GAP // 2, GAP // 2), (room // 2, room - room // 2)]
        padded.append(np.pad(picture, [*sides[:: 1 - 2 * axis], (0, 0)], constant_values=1))
    return np.concatenate(padded, axis=axis)


pair = [text_to_ids(text).tolist() for text in ("Every effort moves you", "Every day holds a")]
pieces = token_texts(text_to_ids("Every effort moves you forward").tolist())
torch.manual_seed(0)
inputs = torch.randn(4, 3)
context_vectors, attn_weights = simple_attention(inputs)
tokens = plot_tokens([(token_texts(ids), ids) for ids in pair])
flow = plot_flow(
    inputs=inputs, attn_scores=inputs @ inputs.T, attn_weights=attn_weights, context_vectors=context_vectors
)
left = joined([pixels(tokens), pixels(plot_predictions(pieces[:-1], pieces[1:]))], axis=0)
whole = joined([pixels(plot_route("IDs", "attention")), joined([left, pixels(flow)], axis=1)], axis=0)
matplotlib.image.imsave(Path(__file__).parents[1] / "picture.png", whole, pil_kwargs={"optimize": True})
