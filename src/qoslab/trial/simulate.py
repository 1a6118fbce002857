"""Runs of `qos-sim` for a trial: its scenarios in parallel, one process each."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

from qoslab.errors import MachineError, UserError
from qoslab.system import program_formats
from qoslab.system.programs import SIMULATOR, describe_exit, find_own_program

LIMIT_S = 600
"""Maximum duration of a simulation in seconds."""


def simulate(scenarios: Sequence[program_formats.Scenario]) -> list[program_formats.SimulationReport]:
    """Return the results of scenarios. Raise UserError if one cannot be simulated."""
    with ThreadPoolExecutor(max_workers=len(scenarios)) as pool:
        return list(pool.map(_run, scenarios))


def call_simulator(
    arguments: Sequence[str], scenario: program_formats.Scenario, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the simulator on a scenario, with captures in a folder, and return its result. Raise UserError."""
    try:
        return subprocess.run(
            [str(find_own_program(SIMULATOR)), *arguments],
            cwd=folder,
            input=json.dumps(scenario),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{SIMULATOR} took more than {LIMIT_S} s", hint="give fewer sources, or fewer --seconds"
        ) from None


def _run(scenario: program_formats.Scenario) -> program_formats.SimulationReport:
    done = call_simulator(("run",), scenario)
    if done.returncode == 1:
        # The data plane refused the configuration; the message has the path of the error.
        raise UserError(f"not simulated: {done.stderr.strip().removeprefix(f'{SIMULATOR}: ')}")
    if done.returncode:
        raise MachineError(f"{SIMULATOR} {describe_exit(done.returncode)}: {done.stderr.strip()}")
    return cast("program_formats.SimulationReport", json.loads(done.stdout))
