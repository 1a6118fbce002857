"""`qoslab job`: the path of the file for `pyats run job`."""

from __future__ import annotations

import click

from qoslab.system.extras import require_extra
from qoslab.system.printing import echo
from qoslab.system.shipped import JOB


@click.command()
def command() -> None:
    """Print the path of the pyATS job that runs an experiment.

    pyats run job $(qoslab job) --experiment NAME takes --set, --arm, --only, --duration, --repetitions and --order as
    qoslab run does, --in-lab in place of --lab, and the options of pyATS. Each cell is a testcase: passed if all
    expectations of its arm pass, failed if one fails, errored if the cell is invalid, blocked if it was not run,
    skipped if it was not needed.
    """
    require_extra("devices")
    echo(str(JOB))
