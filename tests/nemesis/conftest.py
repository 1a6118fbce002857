"""Seeds of the nemesis from the command line."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seeds", default="1-20", help="which trials of the nemesis: FROM-TO or one number")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        first, _, last = metafunc.config.getoption("--seeds").partition("-")
        metafunc.parametrize("seed", range(int(first), int(last or first) + 1))
