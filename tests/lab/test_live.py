"""Runs in the virtual lab, watched in a browser during their traffic."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from commands import RUN_S, Command

from browser import CHROMIUM, open_browser
from verdicts import newest_run, status_of
from waiting import wait_until

pytestmark = pytest.mark.lab

EXPERIMENT = Path(__file__).resolve().parents[2] / "experiments/policing-vs-shaping.yml"
SEEN = 3
"""Number of readings when the browser loads the page."""


def asked(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url + "data.json", timeout=30) as got:
        found: dict[str, Any] = json.load(got)
    return found


def drawn_readings(page: dict[str, Any]) -> int:
    """Return the readings in the first graph."""
    return max((len(graph["data"][0]["x"]) for cell in page["cells"] for graph in cell["graphs"]), default=0)


@pytest.mark.long
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_browser_shows_the_policer_while_it_drops(clean: Path, tmp_path: Path) -> None:
    # Started first, because it may take longer to start than the traffic lasts.
    with open_browser(tmp_path / "profile") as tab:
        running = Command(
            *(clean, "run", str(EXPERIMENT), "--duration", "8s", "--arm", "policed", "--live", "--metrics", "0")
        )
        running.wait_for("OpenMetrics: ")
        url, metrics = re.findall(r"(?:Live|OpenMetrics): (\S+)", running.stderr)
        tab.open(url)
        wait_until(lambda: drawn_readings(asked(url)) >= SEEN, f"the page has {SEEN} readings", RUN_S)
        with urllib.request.urlopen(metrics, timeout=30) as got:
            assert re.search(
                r'(?m)^qoslab_class_dropped_bytes_total\{[^}]*policy="Police"[^}]*\} [1-9]', got.read().decode()
            )
        tab.wait("document.querySelectorAll('.trace.scatter .js-line[d^=M]').length >= 3")
        text = tab.tell("document.body.innerText")
    assert "policed/1: traffic (12 s)" in text or "policed/1, after" in text
    last = asked(url)

    def gone() -> bool:
        nonlocal last
        try:
            last = asked(url)
        except (urllib.error.URLError, ConnectionError):
            return True
        return False

    wait_until(gone, "the page is gone", RUN_S)
    # The page has received the end of the run and its result.
    assert last["state"] == "finished" and last["report"].endswith("report.html") and last["done"] == 1
    assert {row["metric"] for row in last["figures"]} >= {"police.bc", "goodput.sum"}
    assert drawn_readings(last) > SEEN
    status, _, errors = running.end()
    assert status == status_of(newest_run(clean)), errors
