"""Cases of a test that are tried each night, where one of its others goes with every change."""

from __future__ import annotations

import pytest


def nightly(*cases: object) -> list[object]:
    """Values of a parameter, for `pytest.mark.parametrize`."""
    return [pytest.param(case, marks=pytest.mark.nightly) for case in cases]
