"""Runs of `qos-sim` for a trial: its scenarios side by side, one process each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

from qoslab.errors import MachineError, UserError
from qoslab.programs import SIMULATOR, how_ended, own_program

if TYPE_CHECKING:
    from qoslab import formats

LIMIT_S = 600
"""Seconds that a simulation may take."""


def simulate(scenarios: Sequence[formats.Scenario]) -> list[formats.SimulationReport]:
    """Return the results of scenarios. Raise UserError where one cannot be simulated."""
    program = str(own_program(SIMULATOR))
    with ThreadPoolExecutor(max_workers=len(scenarios)) as pool:
        return list(pool.map(lambda scenario: _run(program, scenario), scenarios))


def _run(program: str, scenario: formats.Scenario) -> formats.SimulationReport:
    try:
        done = subprocess.run(
            [program, "run"], input=json.dumps(scenario), capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{SIMULATOR} took more than {LIMIT_S} s", hint="give fewer sources, or fewer --seconds"
        ) from None
    if done.returncode == 1:
        # A configuration that the data plane does not take; the path says where.
        raise UserError(f"not simulated: {done.stderr.strip().removeprefix(f'{SIMULATOR}: ')}")
    if done.returncode:
        raise MachineError(f"{SIMULATOR} {how_ended(done.returncode)}: {done.stderr.strip()}")
    return cast("formats.SimulationReport", json.loads(done.stdout))
