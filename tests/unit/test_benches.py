"""Benchmarks, which are run rarely and by hand: each of them starts."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

BENCHES = sorted((Path(__file__).parents[2] / "benches").glob("*.py"))


@pytest.mark.sample(10)
@pytest.mark.parametrize("file", BENCHES, ids=lambda file: file.stem)
def test_every_benchmark_can_be_imported(file: Path) -> None:
    done = subprocess.run([sys.executable, file, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert file.stem == "page" or file.name in done.stdout, "it says what it takes"


def test_late_refusal_is_reported_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHES[0].parent))
    import refusals

    def run_refusal_benchmark(took: dict[str, float]) -> tuple[int, list[str]]:
        """Return the exit status and the rows of the benchmark for these durations."""
        monkeypatch.setattr(refusals, "make_lab", lambda *_: nullcontext((None, Path("rack.yml"))))
        monkeypatch.setattr(refusals, "WRONG", [each for each in refusals.WRONG if each.what == "port down"])
        monkeypatch.setattr(refusals, "refused", lambda *_: took["port down"])
        monkeypatch.setattr(refusals, "second_user", lambda *_: (took["a second user"], took["free"]))
        monkeypatch.setattr(sys, "argv", ["refusals.py", "--repetitions", "2"])
        status = refusals.main()
        return status, [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")][1:]

    assert run_refusal_benchmark({"port down": 14.96, "a second user": 4.5, "free": 0.5}) == (
        0,
        [
            "| port down | 15.0 | 15.0 | 15 | met |",
            "| a second user | 4.5 | 4.5 | 5 | met |",
            f"| {refusals.FREE} | 0.5 | 0.5 | 5 | met |",
        ],
    )
    for what, found in (("port down", "port down"), ("a second user", "a second user"), ("free", refusals.FREE)):
        status, rows = run_refusal_benchmark({"port down": 1.0, "a second user": 1.0, "free": 1.0, what: 20.0})
        assert status == 1
        assert [each for each in rows if "**not met**" in each] == [
            f"| {found} | 20.0 | 20.0 | {refusals.allowed_seconds(found):g} | **not met** |"
        ]
