"""Draw README's picture from the course's own figures:  .venv/bin/python docs/picture.py"""

import io
from pathlib import Path

from PIL import Image

from utils.batches import TokenWindows
from utils.plots import PAPER, as_png, plot_route, plot_tokens, plot_windows
from utils.tokenizer import text_to_ids, token_texts

pair = [text_to_ids(text).tolist() for text in ("Every effort moves you", "Every day holds a")]
figures = [
    plot_route("IDs"),
    plot_tokens([(token_texts(ids), ids) for ids in pair]),
    plot_windows({"windows of 4 tokens and the next one, stride 2": TokenWindows(range(12), 4, 2)}, num_tokens=12),
]
pictures = [Image.open(io.BytesIO(as_png(figure))) for figure in figures]

width = max(picture.width for picture in pictures)
whole = Image.new("RGB", (width, sum(picture.height + 30 for picture in pictures)), PAPER)
top = 15
for picture in pictures:
    whole.paste(picture, ((width - picture.width) // 2, top))
    top += picture.height + 30
whole.save(Path(__file__).parent / "picture.png", optimize=True)
