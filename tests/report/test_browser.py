"""The page in a real browser: no console message, no request to the network. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mara.report.page import write_report

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")


def visit(page: Path, folder: Path, width: int) -> tuple[list[str], list[str], Path]:
    """Console messages, addresses asked from the network, and the screenshot."""
    log, picture = folder / "net.json", folder / f"{width}.png"
    options = [f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--enable-logging=stderr"]
    options += [f"--window-size={width},900", f"--screenshot={picture}", page.as_uri()]
    done = subprocess.run(
        [str(BROWSER), *FLAGS, *options], capture_output=True, text=True, timeout=120, check=True
    )
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    params = [event.get("params") for event in json.loads(log.read_text())["events"]]
    asked = [p for p in params if isinstance(p, dict) and "url" in p and "network_isolation_key" in p]
    outside = sorted(
        {p["url"] for p in asked if "file://" in p["network_isolation_key"]}
    )  # asked by the page
    return console, outside, picture


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A report with a claim, a loss, a figure and a wide table."""
    tables, figures = tmp_path / "tables", tmp_path / "figures"
    tables.mkdir()
    figures.mkdir()
    claim = {"claim": "C2", "title": "lead over LARA", "unit": "completion", "published": "0.0854"}
    claim |= {"measured": 0.07, "ci_low": 0.05, "ci_high": 0.09, "holds": "true", "n": "9 episodes"}
    claim |= {
        "where": "completion.csv: method=mara",
        "rule": "r",
        "note": "n",
        "figure": "completion_training",
    }
    loss = {"suite": "stress", "workload": "bursty", "load": 1.0, "baseline": "edf", "resolved": True}
    loss |= {"difference": -0.02, "diff_low": -0.04, "diff_high": -0.01}
    wide = pd.DataFrame(np.arange(60).reshape(2, 30) / 7, columns=[f"column_{k}" for k in range(30)])
    pd.DataFrame([claim]).to_csv(tables / "claims.csv", index=False)
    pd.DataFrame([loss]).to_csv(tables / "losses.csv", index=False)
    wide.assign(method="mara").to_csv(tables / "completion.csv", index=False)
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 430 200"><rect width="430" height="200"/></svg>'
    )
    (figures / "completion_training.svg").write_text(svg)
    words = {"title": "t", "caption": "c", "alt": "a"}
    (figures / "completion_training.json").write_text(json.dumps(words))
    (tmp_path / "provenance.json").write_text('{"git": "0"}')
    (tmp_path / "settings.yaml").write_text("study: {}\n")
    files = [tmp_path / name for name in ("provenance.json", "settings.yaml", "report.html", "summary.md")]
    write_report(tables, figures, *files)
    return tmp_path / "report.html"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_opens_silently_and_asks_for_nothing(page: Path, tmp_path: Path, width: int) -> None:
    console, outside, picture = visit(page, tmp_path, width)
    assert console == []
    assert outside == []
    assert picture.stat().st_size > 5_000


def test_a_page_that_errs_and_fetches_is_caught(tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text('<img src="http://127.0.0.1:9/a.png"><script>undefinedFunction()</script>')
    console, outside, _ = visit(bad, tmp_path, 390)
    assert any("undefinedFunction" in line for line in console)
    assert outside == ["http://127.0.0.1:9/a.png"]
