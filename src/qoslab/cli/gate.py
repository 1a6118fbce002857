"""Options for commands in CI pipelines: output files for a forge, and changes since an earlier run."""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from qoslab.cli.completion import complete_runs
from qoslab.cli.places import RUNS
from qoslab.errors import Finding, UserError
from qoslab.system.printing import echo, printable

if TYPE_CHECKING:
    from qoslab.analysis import Outcome
    from qoslab.overview import RunSummary
    from qoslab.results import RunFolder

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class GateOptions:
    """Outputs in addition to the report."""

    junit: Path | None = None
    summary: Path | None = None
    before: RunSummary | None = None
    """Earlier run to compare with."""

    def check(self, name: str) -> None:
        """Raise `UserError` if the earlier run is of another experiment: the runs then have no common values."""
        if self.before is not None and self.before.name != name:
            raise UserError(
                f"--compare {self.before.folder}: found a run of {self.before.name or 'no experiment with a name'}, "
                f"expected one of {name}",
                hint=f"give {name} for its latest run, or the folder of another run or of a saved run",
            )

    def write(self, folder: RunFolder, outcome: Outcome) -> None:
        """Write the files; on GitHub, also write annotations."""
        from qoslab.report import gate

        manifest = folder.manifest()
        if self.junit is not None:
            content = gate.junit(outcome, manifest, repository_path(_experiment_path(folder)), folder.experiment_text())
            gate.save_text(self.junit, content, more=False)
        if self.summary is not None or self.before is not None:
            self._summarise(folder, outcome)
        if is_on_github():
            notes = gate.failure_annotations(outcome, folder.experiment_text())
            for level in ("error", "warning"):
                chosen = [(note.line, 1, note.title, note.text) for note in notes if note.level == level]
                _print_annotations(_experiment_path(folder), chosen, level)

    def _summarise(self, folder: RunFolder, outcome: Outcome) -> None:
        from qoslab.overview import read_run
        from qoslab.report import gate
        from qoslab.report.page import build_page

        now = read_run(folder.path)
        if self.before is not None:
            echo(f"qoslab: {_changed_counts(now, self.before)}", err=True)
        if self.summary is not None:
            lead = build_page(folder, outcome).lead
            text = gate.markdown(outcome, folder.manifest(), now, self.before, lead, artifacts_url(os.environ))
            # The summary of a GitHub step is one file for all its commands.
            shared = str(self.summary) == os.environ.get("GITHUB_STEP_SUMMARY")
            gate.save_text(self.summary, text.encode(), more=shared)


def gate_options(function: _F) -> _F:
    """Add `--junit`, `--summary` and `--compare` as one argument `gate`. Raise `UserError` before the run starts."""

    @functools.wraps(function)
    def gathered(*, junit: Path | None, summary: Path | None, compare: str | None, **rest: Any) -> Any:
        for option, path in (("--junit", junit), ("--summary", summary)):
            if path is not None and (missing := _write_obstacle(path)):
                raise UserError(f"{option} {path}: found no {missing}")
        return function(gate=GateOptions(junit, summary, None if compare is None else _earlier_run(compare)), **rest)

    result: Any = gathered
    file = click.Path(dir_okay=False, path_type=Path)
    for name, metavar, kind, about in (
        (
            "compare",
            "RUN",
            None,
            "Report the values that changed since this run: a run folder or an experiment name (its latest run).",
        ),
        ("summary", "FILE", file, "Write a Markdown summary, for a pull request."),
        ("junit", "FILE", file, "Write a JUnit report with one test case for each expectation."),
    ):
        complete = complete_runs if name == "compare" else None
        result = click.option(f"--{name}", type=kind, metavar=metavar, help=about, shell_complete=complete)(result)
    return cast("_F", result)


def _write_obstacle(path: Path) -> str:
    """Return the reason why a file cannot be written. A draft is written next to it, except for a device or pipe."""
    from qoslab.results.file_access import is_special_file

    if is_special_file(path):
        return "" if os.access(path, os.W_OK) else "permission to write to it"
    if not path.parent.is_dir():
        return f"folder {path.parent}, expected it to exist"
    return "" if os.access(path.parent, os.W_OK) else f"permission to write in the folder {path.parent}"


def _earlier_run(given: str) -> RunSummary:
    from qoslab.overview import FINISHED, read_run
    from qoslab.results import find_run

    kept = Path(given).resolve()  # also one of reports/baselines, which has nothing but these two files
    alone = all((kept / name).is_file() for name in ("comparison.csv", "manifest.json"))
    found = read_run(kept if alone else find_run(RUNS, given).path)
    if found.state != FINISHED:
        raise UserError(
            f"--compare {given}: the run is {found.state}, expected one with results",
            hint=f"`qoslab report {shlex.quote(given)}` recomputes them",
        )
    return found


def _changed_counts(now: RunSummary, before: RunSummary) -> str:
    """Return the number of changed, missing and new values, and whether the earlier run was valid."""
    moved = len(now.changed_values(before))
    words = f"{moved} value{'' if moved == 1 else 's'} changed since {before.folder}"
    for count, word in ((len(now.missing_values(before)), "gone"), (len(before.missing_values(now)), "new")):
        words += f", {count} {'is' if count == 1 else 'are'} {word}" if count else ""
    return words + (f"; that run was not valid ({before.invalid} of {before.cells} cells)" if before.invalid else "")


def artifacts_url(environment: Mapping[str, str]) -> str:
    """Return the URL of this job's files on the forge; empty elsewhere."""
    if is_on_github(environment):
        parts = (environment.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID"))
        server, repository, number = parts
        return f"{server}/{repository}/actions/runs/{number}"
    job = environment.get("CI_JOB_URL", "")
    return f"{job}/artifacts/browse" if job else ""


def is_on_github(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether qoslab runs in a workflow of GitHub or a compatible forge."""
    return environment.get("GITHUB_ACTIONS") == "true"


def repository_path(file: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the path of a file relative to the forge's checkout; empty if it is outside."""
    top = environment.get("GITHUB_WORKSPACE") or environment.get("CI_PROJECT_DIR") or ""
    path, known = Path(file).resolve(), Path(top).resolve()
    return path.relative_to(known).as_posix() if file and path.is_relative_to(known) else ""


def _experiment_path(folder: RunFolder) -> str:
    """Return the experiment file as given to the run; empty if the run has no record of it."""
    try:
        return folder.options().file
    except UserError:
        return ""


def annotate_findings(findings: Sequence[Finding]) -> None:
    """Print the failed values as GitHub annotations at their lines."""
    for finding in findings:
        text = f"{finding.path}: {finding.message}" if finding.path else finding.message
        _print_annotations(
            finding.file, [(finding.line or 1, finding.column or 1, "The experiment file is not valid", text)]
        )


def _print_annotations(file: str, notes: Sequence[tuple[int, int, str, str]], level: str = "error") -> None:
    """Print workflow commands to standard error, where GitHub also reads them; `level` is `error` or `warning`."""
    known = repository_path(file)
    for line, column, title, text in notes:
        place = f"file={_escape_property(known)},line={line},col={column}," if known else ""
        sys.stderr.write(f"::{level} {place}title={_escape_property(title)}::{_escape_data(text)}\n")


def _escape_data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
