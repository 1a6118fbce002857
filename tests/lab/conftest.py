"""A lab of two hosts."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from labs import TWO_HOSTS

from qoslab.lab import Lab


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A lab name that no other test has, also with several pytest processes."""
    return f"test-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**8}"


@pytest.fixture
def lab(name: str) -> Iterator[Lab]:
    """Two hosts on one link."""
    with Lab.up(TWO_HOSTS, name=name) as lab:
        yield lab
