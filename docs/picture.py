"""Draw README's picture from the course's own figures:  .venv/bin/python docs/picture.py"""

import io
from pathlib import Path

import matplotlib.image
import numpy as np

from utils.batches import TokenWindows
from utils.plots import as_png, plot_route, plot_tokens, plot_windows
from utils.tokenizer import text_to_ids, token_texts

pair = [text_to_ids(text).tolist() for text in ("Every effort moves you", "Every day holds a")]
figures = [
    plot_route("IDs"),
    plot_tokens([(token_texts(ids), ids) for ids in pair]),
    plot_windows({"windows of 4 tokens and the next one, stride 2": TokenWindows(range(12), 4, 2)}, num_tokens=12),
]
pictures = [matplotlib.image.imread(io.BytesIO(as_png(figure)))[..., :3] for figure in figures]

gap = 30
width = max(picture.shape[1] for picture in pictures)
whole = np.ones((sum(len(picture) + gap for picture in pictures), width, 3), dtype=np.float32)  # white paper
top = gap // 2
for picture in pictures:
    left = (width - picture.shape[1]) // 2
    whole[top : top + len(picture), left : left + picture.shape[1]] = picture
    top += len(picture) + gap
matplotlib.image.imsave(Path(__file__).parent / "picture.png", whole, pil_kwargs={"optimize": True})
