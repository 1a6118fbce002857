"""`qoslab job`: the file that `pyats run job` takes."""

from __future__ import annotations

import click

from qoslab.extras import need
from qoslab.printing import echo
from qoslab.shipped import JOB


@click.command()
def command() -> None:
    """Print the path of the pyATS job that runs an experiment.

    pyats run job $(qoslab job) --experiment NAME takes --set, --arm, --only, --duration, --repetitions and --order as
    qoslab run does, and --in-lab for its --lab, besides the options of pyATS. Each cell is a testcase: passed where all
    that is expected of its arm holds, failed where not, errored where the cell is invalid, blocked where it was not
    run, skipped where it was not needed.
    """
    need("devices")
    echo(str(JOB))
