"""What all tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes is the machine's affair, and a busy one fails no test.
settings.register_profile("qoslab", deadline=None)
settings.load_profile("qoslab")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-goldens", action="store_true", help="write goldens instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare a text with a golden file; a missing golden is a failure. `--update-goldens` writes it instead."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-goldens"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"there is no golden {path}; look at the text, then use --update-goldens:\n{text}"
        assert text == path.read_text(encoding="utf-8"), f"differs from {path}; --update-goldens accepts it"

    return compare
