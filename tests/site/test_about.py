"""What pages say about themselves, and what the site has once its address is known."""

import runpy
from types import SimpleNamespace

import about
import course
import landing
import pytest
import torch
from lessons import ROOT
from PIL import Image

SITE = "https://name.example/course/"


def settings(monkeypatch, **addresses):
    for name in ("SITE_URL", "REPOSITORY_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, address in addresses.items():
        monkeypatch.setenv(name, address)
    return runpy.run_path(str(ROOT / "docs" / "conf.py"))


def test_a_page_has_its_card_once_the_address_is_known():
    without = about.facts("4. Simple <em>attention</em>", "Words.", "", "notebooks/04_simple_attention")
    assert without["og:title"] == "4. Simple attention"
    assert not {"og:url", "og:image"} & {*without}
    known = about.facts("4.", "Words.", SITE, "notebooks/04_simple_attention")
    assert known["og:url"] == f"{SITE}notebooks/04_simple_attention.html"
    assert known["og:image"] == f"{SITE}_static/cards/04_simple_attention.png"
    assert about.facts("Glossary", "Words.", SITE, "docs/glossary")["og:image"] == f"{SITE}_static/cards/course.png"


def test_the_address_that_people_share_has_the_course_card(tmp_path):
    source = (ROOT / "docs" / "_extra" / "index.html").read_text(encoding="utf-8")
    (tmp_path / "index.html").write_text(source, encoding="utf-8")
    config = SimpleNamespace(html_baseurl="", root_doc="docs/index")
    app = SimpleNamespace(config=config, builder=SimpleNamespace(name="html"), outdir=tmp_path)
    about.describe_root(app, None)
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == source
    config.html_baseurl = SITE
    for _ in range(2):
        about.describe_root(app, None)
        page = (tmp_path / "index.html").read_text(encoding="utf-8")
        head = page.partition("</head>")[0]
        assert head.count(f'<meta property="og:image" content="{SITE}_static/cards/course.png" />') == 1
        assert head.count('<meta name="twitter:card" content="summary_large_image" />') == 1


def test_cards_are_drawn_small_for_every_lesson(tmp_path):
    config = SimpleNamespace(html_baseurl=SITE, project="text-to-attention")
    app = SimpleNamespace(config=config, builder=SimpleNamespace(name="html"), outdir=tmp_path)
    about.draw_cards(app, None)
    cards = {path.stem: path for path in (tmp_path / "_static" / "cards").iterdir()}
    assert {*cards} == {"course", *(lesson.path.stem for lesson in course.read_lessons())}
    for path in cards.values():
        with Image.open(path) as card:
            assert card.size == (1200, 630)
        assert path.stat().st_size < 60_000
    assert len({path.read_bytes() for path in cards.values()}) == len(cards)


@pytest.mark.parametrize(("address", "prefix"), [(SITE, "/course/"), (SITE.rstrip("/"), "/course/"), (None, "/")])
def test_sitemap_and_page_for_unknown_addresses_follow_the_address(monkeypatch, address, prefix):
    conf = settings(monkeypatch, **({"SITE_URL": address} if address else {}))
    assert ("sphinx_sitemap" in conf["extensions"]) == bool(address)
    assert conf["html_baseurl"] == (SITE if address else "")
    assert conf["notfound_urls_prefix"] == prefix


def test_links_to_the_source_need_the_repository(monkeypatch):
    assert settings(monkeypatch)["html_context"]["repository"] == ""
    conf = settings(monkeypatch, REPOSITORY_URL="https://code.example/a/b/")
    assert conf["html_context"]["repository"] == "https://code.example/a/b"
    template = (ROOT / "docs" / "_templates" / "page.html").read_text(encoding="utf-8")
    assert "{{ repository }}/blob/{{ branch }}/{{ source }}" in template
    assert "{{ repository }}/issues/new?title=" in template


def test_the_living_picture_does_not_depend_on_chance():
    with torch.random.fork_rng():
        pictures = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            pictures.append(landing.route())
            assert torch.initial_seed() == seed
            after = torch.rand(1)
            torch.manual_seed(seed)
            assert torch.equal(after, torch.rand(1)), "the build's own random numbers are left as they were"
    assert pictures[0] == pictures[1]
