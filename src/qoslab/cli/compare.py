"""`qoslab compare`: differences between a run and a baseline."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qoslab.cli.completion import complete_runs
from qoslab.cli.output_options import json_option
from qoslab.cli.places import RUNS
from qoslab.errors import ExitStatus, UserError
from qoslab.model.run_values import NEGLIGIBLE
from qoslab.model.units import Percent, QuantityError
from qoslab.system.printing import echo
from qoslab.system.shipped import find_checkout


@click.command()
@click.argument("run", shell_complete=complete_runs)
@click.argument("baseline", required=False, shell_complete=complete_runs)
@click.option(
    "--difference",
    default=f"{100 * NEGLIGIBLE:g} %",
    show_default=True,
    metavar="PERCENT",
    help="Allowed difference, relative to the larger of the two values.",
)
@json_option
def command(run: str, baseline: str | None, difference: str, as_json: bool) -> ExitStatus:
    """Compare a run with a baseline and list the differences.

    RUN is a run folder or an experiment name (its latest run). BASELINE is another run, given in the same way, or the
    folder of a saved baseline. [default: the saved baseline of the same experiment and kind of lab, from
    reports/saved/LAB of the project or from this checkout]

    The differences are changed verdicts, new and missing rows, different values, and settings of the experiment that
    changed since the baseline was measured. Rows that a partial run (--arm, --only) did not measure are only counted.
    The exit status is 1 if there are differences, else 0.
    """
    from qoslab.results import find_run
    from qoslab.results.baselines import changes, otherwise, read

    allowed = _parse_percent(difference)
    here = find_run(RUNS, run).path
    now = read(here)
    name, lab = now.manifest.experiment.name, now.manifest.lab
    folder = _given_baseline(baseline) if baseline is not None else _saved_baseline(name, lab, here)
    then = read(folder)
    if (other := then.manifest.experiment.name) != name:
        raise UserError(f"{folder}: found a baseline of {other}, expected one of {name}")
    rows = now.requested_rows(then), then.requested_rows(now)
    found = list(changes(*rows, allowed))
    unasked = len({row.key for row in (*now.rows, *then.rows)} - {row.key for each in rows for row in each})
    parts = list(otherwise(now.manifest.experiment, now.manifest.configurations, then.manifest))
    if as_json:
        document = {"baseline": str(folder), "otherwise": parts, "changes": found, "not_asked_for": unasked}
        echo(json.dumps(document, indent=2))
    else:
        if parts:
            echo(f"{folder} belongs to another version of {name}, with different settings: {', '.join(parts)}")
        for line in found:
            echo(line)
        apart = f"; {unasked} not compared, because only one of the two runs includes them" if unasked else ""
        echo(f"{len(rows[0])} values, {len(found)} different from {folder}{apart}")
    return ExitStatus.OUTSIDE if found or parts else ExitStatus.WITHIN


def _parse_percent(text: str) -> float:
    try:
        return Percent.parse(text).fraction
    except QuantityError as error:
        raise UserError(f"--difference: {error}") from error


def _given_baseline(text: str) -> Path:
    """Return the folder of a saved baseline, or of the run that the user names."""
    from qoslab.results import find_run
    from qoslab.results.baselines import COMPARISON

    folder = Path(text)
    return folder if (folder / COMPARISON).exists() else find_run(RUNS, text).path


def _saved_baseline(name: str, lab: str, run: Path) -> Path:
    """Return the folder of the saved baseline of a run's experiment, in this project or in the running checkout."""
    from qoslab.results import RunFolder
    from qoslab.results.baselines import AVERAGES, BASELINES, COMPARISON, MANIFEST, SAVED, SCORES

    own, top = Path(SAVED, lab), find_checkout()
    if (own / COMPARISON).exists() and RunFolder(own).manifest().experiment.name == name:
        return own
    known: list[str] = []
    if top is not None:
        if (top / BASELINES / name / lab / COMPARISON).exists():
            return top / BASELINES / name / lab
        known = sorted(str(path.parent) for path in (top / BASELINES / name).glob(f"*/{COMPARISON}"))
    if top is not None and (top / "experiments" / f"{name}.yml").exists():
        hint = "`qoslab baseline` saves a run as the baseline"
    else:
        files = ",".join(each for each in (COMPARISON, AVERAGES, SCORES, MANIFEST) if (run / each).exists())
        keep = f"mkdir -p {own}; cp {RUNS}/{name}/latest/{{{files}}} {own}"
        hint = f"give an earlier run as BASELINE (`qoslab list` shows the runs), or save this one: {keep}"
    raise UserError(
        f"found no baseline of {name} in the lab {lab}, expected one in {own}"
        + (f", or one of another lab: {', '.join(known)}" if known else ""),
        hint=hint,
    )
