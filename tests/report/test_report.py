"""The page: self-contained, traceable to rows of tables, and refusing what it cannot read."""

import json
import re
from html.parser import HTMLParser

import pandas as pd
import pytest

from mara.errors import InputError
from mara.report.markdown import summary
from mara.report.page import render, write_report
from mara.report.pictures import inline_svg, read_pictures
from mara.report.tables import LONGEST, locate, read_tables, sheet
from mara.report.verdicts import amount

SVG = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns:xlink="http://www.w3.org/1999/xlink" width="430pt" height="200pt" viewBox="0 0 430 200"
 xmlns="http://www.w3.org/2000/svg" version="1.1">
 <metadata><a href="http://example.org/">x</a></metadata>
 <defs><clipPath id="c1"><rect width="10" height="10"/></clipPath><path id="g1" d="M 0 0"/></defs>
 <g id="figure_1" style="fill: #1b2127; stroke: #dde1e6" clip-path="url(#c1)"><use xlink:href="#g1"/></g>
</svg>
"""


class Page(HTMLParser):
    """Ids, links within the page, and everything that would be fetched."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.fetched, self.tags = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            elif name in ("href", "src", "xlink:href", "action", "data", "srcset"):
                (self.links if value.startswith("#") else self.fetched).append(value.lstrip("#"))


@pytest.fixture
def results(tmp_path):
    tables, figures = tmp_path / "tables", tmp_path / "figures"
    tables.mkdir()
    figures.mkdir()
    claim = {
        "claim": "C2",
        "title": "lead over LARA",
        "unit": "completion",
        "published": "0.0854",
        "measured": 0.0712,
        "ci_low": 0.0512,
        "ci_high": 0.0912,
        "holds": "true",
        "n": "400 episodes",
        "where": "completion.csv: suite=in_distribution, load=1, method=mara",
        "rule": "holds if above zero",
        "note": "a < b & c",
        "figure": "completion_training",
    }
    other = {
        "claim": "C6",
        "holds": "false",
        "where": "shaping.csv; ablation.csv: method=x",
        "published": "unchanged",
    }
    pd.DataFrame([claim, claim | other]).to_csv(tables / "claims.csv", index=False)
    loss = {"suite": "held_out_family", "workload": "rl", "load": 1.0, "baseline": "edf"}
    loss |= {"difference": -0.021, "diff_low": -0.04, "diff_high": -0.002, "resolved": True}
    pd.DataFrame([loss]).to_csv(tables / "losses.csv", index=False)
    rows = [
        {
            "suite": "in_distribution",
            "load": 1.0,
            "method": method,
            "train_seed": seed,
            "difference_to_lara": lead,
        }
        for method, lead in (("lara", 0.0), ("mara", 0.0712))
        for seed in ("1", "all")
    ]
    pd.DataFrame(rows).to_csv(tables / "completion.csv", index=False)
    (figures / "completion_training.svg").write_text(SVG)
    words = {"title": "MARA completes more", "caption": "n = 400 episodes.", "alt": 'bars of "MARA"'}
    (figures / "completion_training.json").write_text(json.dumps(words))
    origin = {"git_commit": "abc", "packages": {"numpy": "2.0"}, "seeds": [1, 2]}
    (tmp_path / "provenance.json").write_text(json.dumps(origin))
    (tmp_path / "config.yaml").write_text("study: {train_seeds: [1, 2]}\n")
    return tmp_path


def build(results):
    names = ("tables", "figures", "provenance.json", "config.yaml", "report.html", "report.md")
    write_report(*(results / name for name in names))
    return (results / "report.html").read_text(), (results / "report.md").read_text()


def test_page_fetches_nothing_and_runs_nothing(results):
    text, _ = build(results)
    page = Page(text)
    assert page.fetched == ["data:,"]
    assert "script" not in page.tags
    assert "default-src 'none'" in text
    assert not re.search(r"@import|url\((?!#)", text)
    assert not [word for word in re.findall(r"https?://[^\"' <]+", text) if "www.w3.org" not in word]


def test_every_link_inside_the_page_has_its_target_and_ids_are_unique(results):
    page = Page(build(results)[0])
    assert set(page.links) <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))


def test_claims_lead_to_the_row_they_rest_on(results):
    text, _ = build(results)
    tables = read_tables(results / "tables")
    (_, anchor), *_ = locate(tables["claims"]["where"].iloc[0], tables)
    row = tables["completion"].iloc[int(anchor.removeprefix("completion-"))]
    assert row["difference_to_lara"] == tables["claims"]["measured"].iloc[0]
    assert row["train_seed"] == "all"
    assert f'href="#{anchor}"' in text
    assert f'<tr id="{anchor}">' in text
    assert locate("shaping.csv; completion.csv: method=none", tables) == [
        ("shaping.csv", ""),
        ("completion.csv: method=none", "table-completion"),
    ]


def test_first_page_names_verdicts_losses_and_origin(results):
    text, short = build(results)
    for content in (text, short):
        assert "1 of 2 published claims hold (C2)" in content
        assert "+7.12" in content
        assert "held out family, rl, load 1" in content
        assert "−2.10" in content
        assert "packages.numpy" in content
    assert "a &lt; b &amp; c" in text
    assert "train_seeds: [1, 2]" in text
    assert text.index('id="losses"') < text.index('id="figures"')


def test_no_loss_is_said_too(results):
    tables = read_tables(results / "tables")
    tables["losses"] = tables["losses"].iloc[:0]
    assert "does a baseline complete more" in render(tables, [], {}, "")
    assert "Nowhere" in summary(tables, [], {})


def test_same_files_give_the_same_bytes(results):
    assert build(results) == build(results)


def test_figure_follows_the_page_and_cannot_clash():
    svg = inline_svg(SVG, "fig", 'bars of "MARA"')
    assert svg.startswith("<svg")
    assert "metadata" not in svg
    assert 'width="430pt"' not in svg
    assert 'viewBox="0 0 430 200"' in svg
    assert "fill: currentColor; stroke: var(--grid)" in svg
    assert "url(#fig-c1)" in svg
    assert 'id="fig-c1"' in svg
    assert 'xlink:href="#fig-g1"' in svg
    assert 'aria-label="bars of &quot;MARA&quot;"' in svg
    assert '<rect width="10" height="10"/>' in svg


def test_long_tables_say_what_they_leave_out():
    long = sheet("long", pd.DataFrame({"x": range(LONGEST + 5)}))
    assert (len(long.rows), long.omitted) == (LONGEST, 5)


def test_amounts_for_readers():
    assert amount(0.0854, "completion") == "+8.54"
    assert amount(-0.01234, "nmae") == "−0.0123"
    assert amount(float("nan"), "completion") == "unknown"


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda r: (r / "tables" / "claims.csv").unlink(), "claims.csv: no such file"),
        (lambda r: (r / "provenance.json").write_text("{"), "provenance.json: not readable as JSON"),
        (lambda r: (r / "config.yaml").unlink(), "config.yaml: no such file"),
        (
            lambda r: (r / "figures" / "completion_training.json").write_text("{}"),
            "not the title, caption and alt",
        ),
    ],
)
def test_what_is_missing_is_named_and_nothing_is_half_written(results, break_it, message):
    break_it(results)
    with pytest.raises(InputError, match=re.escape(message)):
        build(results)
    assert not (results / "report.html").exists()


def test_reserved_colours_are_those_of_the_figures(results):
    from mara.figures import style
    from mara.report import pictures

    assert (pictures.INK, pictures.GRID) == (style.INK, style.GRID)
    assert [p.name for p in read_pictures(results / "figures")] == ["completion_training"]
