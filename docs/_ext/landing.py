"""The landing page: the route as a living picture, made of lesson 0's own model, and the lessons as cards."""

from collections.abc import Sequence
from html import escape

import course
import torch
from course import Lesson
from docutils import nodes
from record_sliders import executed
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from utils.attention import simple_attention
from utils.plots import AXIS_COLOURS, ROUTE, TOKEN_FILLS
from utils.tokenizer import ids_to_text

SHOWN = 12  # columns of a wide matrix, so that they fit on a phone
PAUSE = '<input type="checkbox" id="pause-route" /><label for="pause-route">Pause the animation</label>'


def route() -> str:
    """Return the route in HTML: at each station what one text is there, and a link to the lesson that teaches it."""
    at = course.by_station()
    views = dict(zip(ROUTE, stations(run_lesson_0()), strict=True))
    items = "\n".join(
        f'<li style="--turn-of: {index}"><a href="../notebooks/{at[name].path.stem}.html">{escape(name)}</a>'
        f"<div>{view}</div></li>"
        for index, (name, view) in enumerate(views.items())
    )
    return f'<div class="living-route">\n{PAUSE}\n<ol>\n{items}\n</ol>\n</div>\n'


def run_lesson_0() -> dict:
    """Run the code of lesson 0, without its figures, and return the names that it defines."""
    lesson = course.read_lessons()[0].path
    with torch.random.fork_rng():
        *_, (_, names) = executed(lesson, show=lambda *_, **__: None, interact=lambda **_: lambda function: function)
    return names


@torch.no_grad()
def stations(lesson: dict) -> Sequence[str]:
    """Return what lesson 0's text is at each station, as HTML."""
    ids, pieces, model = lesson["ids"], lesson["pieces"], lesson["model"]
    row, vectors, block = lesson["input_ids"], lesson["vectors"], model.blocks[0]
    attention, normed = block.attention, block.norm1(vectors)
    weights = attention.attention_weights(normed)[0]  # (num_heads, num_tokens, num_tokens)
    probabilities = torch.softmax(lesson["logits"], dim=0)[lesson["top_ids"][:3]]
    _, unmasked = simple_attention(vectors[0])
    size = tuple(attention.W_query(normed).shape)
    with torch.random.fork_rng():
        torch.manual_seed(0)  # whatever was drawn before, the picture is the same, and so is what is drawn afterwards
        dropped = torch.nn.functional.dropout(weights[0], 0.3)
    # Rounded, because training differs in the last digits with the machine and the number of threads.
    chances = [(word, round(20 * p) / 20) for word, p in zip(lesson["words"], probabilities.tolist())]
    return (
        f"“{escape(lesson['text'])}”",
        tokens(pieces) + tokens(ids.tolist()),
        f"{tokens(row[0].tolist())}<p>one row of a batch {tuple(row.shape)}, in a small model's own IDs</p>",
        f"{cells(vectors[0, :, :SHOWN], 'emb_dim')}<p>{SHOWN} of the {vectors.shape[-1]} numbers per token</p>",
        f"{cells(unmasked, 'num_tokens')}<p>how much each token takes from each</p>",
        f"<p>queries, keys, values: {size} each</p>{cells(attention.W_query(normed)[0, :, :SHOWN], 'emb_dim')}"
        f"<p>{SHOWN} of the {size[-1]} numbers per query</p>",
        f"{cells(weights[0], 'num_tokens')}<p>nothing from later tokens</p>",
        f"{cells(dropped, 'num_tokens')}<p>while it trains: some weights switched off</p>",
        "".join(cells(head, "num_heads") for head in weights) + f"<p>{len(weights)} heads, side by side</p>",
        "".join(f'<p class="chance" style="--p: {p:.2f}">{escape(word.strip())} {p:.0%}</p>' for word, p in chances)
        + "<p>rounded to 5%</p>",
        f"“{escape(lesson['text'])}<strong>{escape(ids_to_text(lesson['known'][lesson['top_ids'][:1]]))}</strong>”",
    )


def tokens(pieces: Sequence) -> str:
    fills = [TOKEN_FILLS[index % len(TOKEN_FILLS)] for index in range(len(pieces))]
    words = [escape(str(piece).replace(" ", "␣")) for piece in pieces]
    spans = [f'<span class="token" style="background: {fill}">{word}</span>' for fill, word in zip(fills, words)]
    return f"<p>{' '.join(spans)}</p>"


def cells(matrix: torch.Tensor, axis: str) -> str:
    """Return a matrix as small coloured cells, on the scale of its own numbers; a picture beside its words."""
    strengths = (matrix / matrix.abs().max()).abs().round(decimals=2).tolist()
    rows = "".join(f'<i style="--s: {strength:.2f}"></i>' for line in strengths for strength in line)
    look = f"--columns: {matrix.shape[1]}; --hue: {AXIS_COLOURS[axis]}"
    return f'<span class="cells" aria-hidden="true" style="{look}">{rows}</span>'


def cards(lessons: Sequence[Lesson]) -> str:
    """Return how long the course takes, and the lessons as a list: title, what one learns, minutes of the core."""
    core, further = course.total_minutes(lessons)
    learned = course.readme_lessons()
    items = [
        f"{course.link(lesson)}\n: {learned[lesson.number]}. *{lesson.minutes[0]}\N{NO-BREAK SPACE}minutes*"
        for lesson in lessons
    ]
    both = f"takes about {core / 60:.0f} hours, everything about {(core + further) / 60:.0f}"
    return "\n\n".join([f"The core of all {len(lessons)} lessons {both}.", *items, ""])


class Ways(SphinxTransform):
    """Make the line of links under the first words the three ways in."""

    default_priority = 440

    def apply(self, **kwargs: object) -> None:
        if self.env.docname == "docs/index":
            line = next(line for line in self.document.findall(nodes.paragraph) if line.astext().startswith("Read · "))
            links = [child for child in line.children if not isinstance(child, nodes.Text)]
            line.replace_self(nodes.paragraph("", "", *links, classes=["ways"]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Ways)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
