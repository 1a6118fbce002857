"""Malicious and damaged input: each command ends soon, with a verdict or a message.

The rules for every case are in `harness.assert_held`: processor time, memory, exit status, no line of output forged by
a name, no DNS query, no change outside the output, nothing left in temporary folders.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import corpus_experiments
import corpus_folders
import corpus_foreign
import corpus_runs
import pytest
from harness import HostileCase, Sandbox, assert_held, sandbox

from levels import every_nth

EVERY = [
    case for module in (corpus_experiments, corpus_folders, corpus_foreign, corpus_runs) for case in module.cases()
]
CASES = {case.name: case for case in EVERY}
TRIED = list(CASES)[:: every_nth(320)]
"""Cases of this level; pytest would take seconds to create thousands of items and to deselect them by a mark."""


@pytest.fixture(scope="module")
def server() -> Iterator[Sandbox]:
    with sandbox() as server:
        yield server


@pytest.mark.parametrize("name", TRIED)
def test_hostile_input_ends_soon_with_a_verdict_or_message(server: Sandbox, tmp_path: Path, name: str) -> None:
    case: HostileCase = CASES[name]
    try:
        assert_held(case, server, tmp_path)
    finally:
        # A case may leave a large folder, or one with paths longer than the system's limit.
        subprocess.run(["rm", "-rf", str(tmp_path)], check=False)


def test_hostile_corpus_covers_all_commands() -> None:
    assert len(CASES) == len(EVERY) >= 600
