"""A run as a pyATS job: `pyats run job $(qoslab job) --experiment NAME --in-lab WHERE`.

`qoslab_job` is the job file, `script` the AEtest script behind it. It is `qoslab run`: the same options, the same run
folder, the same report.
"""

from pathlib import Path

SCRIPT = Path(__file__).with_name("script.py")
"""Script of the job."""
