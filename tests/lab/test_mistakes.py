"""Programs contain no mistake on purpose."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from qoslab.programs import OWN_PROGRAMS, own_program

pytestmark = pytest.mark.lab

CATALOGUE = Path(__file__).parents[2] / "crates/mistakes/src/lib.rs"


@pytest.mark.parametrize("program", OWN_PROGRAMS)
def test_a_program_has_no_switch_of_a_mistake(program: str) -> None:
    names = re.findall(r'^    \w+, "([a-z0-9-]+)", "', CATALOGUE.read_text(encoding="utf-8"), re.MULTILINE)
    content = own_program(program).read_bytes()
    assert len(names) >= 50 and not [name for name in names if name.encode() in content]


def test_the_simulator_knows_no_mistake() -> None:
    command = [own_program("qos-sim"), "run", "--mistake", "ring-longer"]
    said = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert said.returncode == 2 and "unexpected argument '--mistake'" in said.stderr
