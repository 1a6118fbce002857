"""Released programs contain no deliberate mistakes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from qoslab.system.programs import OWN_PROGRAMS, find_own_program

pytestmark = pytest.mark.lab

CATALOGUE = Path(__file__).parents[2] / "crates/mistakes/src/lib.rs"


@pytest.mark.parametrize("program", OWN_PROGRAMS)
def test_released_program_has_no_mistake_switch(program: str) -> None:
    names = re.findall(r'^    \w+, "([a-z0-9-]+)", "', CATALOGUE.read_text(encoding="utf-8"), re.MULTILINE)
    content = find_own_program(program).read_bytes()
    assert len(names) >= 50 and not [name for name in names if name.encode() in content]


@pytest.mark.parametrize(
    "given", [["run", "--mistake", "ring-longer"], ["--mistake", "anything", "check"], ["--mistake=x"]]
)
def test_released_simulator_refuses_deliberate_mistakes(given: list[str]) -> None:
    output = subprocess.run(
        [find_own_program("qos-sim"), *given], input="", capture_output=True, text=True, check=False
    )
    assert (output.returncode, output.stdout) == (2, "")
    assert "this program has no deliberate mistakes: only a build for tests has them" in output.stderr
    shown = subprocess.run([find_own_program("qos-sim"), "--help"], capture_output=True, text=True, check=True)
    assert "mistake" not in shown.stdout
