"""The outputs of a lesson on its page: figures with their words; answers to predictions and plot code, folded."""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform


class Figures(SphinxTransform):
    """Give each picture of a notebook its alt text, and a frame that scrolls where the screen is narrow."""

    default_priority = 400

    def apply(self, **kwargs: object) -> None:
        for bundle in [*self.document.findall(is_mime_bundle)]:
            kinds = {kind["mime_type"]: kind for kind in bundle.children}
            for image in [*bundle.findall(nodes.image)]:
                image["alt"] = kinds["text/plain"].astext()
                image.replace_self(nodes.container("", image.copy(), classes=["paper"]))


class Folds(SphinxTransform):
    """Fold the code that only draws a figure, and the output that a question asks the reader to predict."""

    default_priority = 410

    def apply(self, **kwargs: object) -> None:
        for cell in [*self.document.findall(lambda node: has_class(node, "cell"))]:
            if "tag_figure" in cell["classes"]:
                first = cell.children[0].astext().splitlines()[0]
                fold(cell.children[0], first.removeprefix("# "), "plot-code")
            if "tag_predicted" in cell["classes"] and len(cell.children) > 1:
                fold(cell.children[1], "Your prediction is made? Show the output", "prediction")


def fold(node: nodes.Element, summary: str, kind: str) -> None:
    """Put a part of a page into a <details> that is closed at first."""
    opening = f'<details class="{kind}"><summary>{summary}</summary>'
    parts = [nodes.raw("", opening, format="html"), node.deepcopy(), nodes.raw("", "</details>", format="html")]
    node.parent.replace(node, parts)


def has_class(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.container) and name in node["classes"]


def is_mime_bundle(node: nodes.Node) -> bool:
    return isinstance(node, nodes.container) and node.get("nb_element") == "mime_bundle"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(Figures)
    app.add_transform(Folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
