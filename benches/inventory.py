"""Compare the results of experiments on an inventory with those in the virtual lab, expectation by expectation.

    python benches/inventory.py                                        # all experiments with published values: a night
    python benches/inventory.py hqf-nested --write                     # one of them; its section of the report
    python benches/inventory.py srr-3750 -- --arm srr --duration 8s    # options after -- apply to all runs

Each experiment runs in the virtual lab, one cell at a time like on real devices, and in the same lab behind SSH (`lab
up --expose`), reached only by command lines and agents. A sweep over links runs one lab at a time. Runs are saved in
--folder and not repeated. The table has both results of each expectation; the exit status is 1 if a verdict differs or
a value of the virtual lab is missing, and 3 if only a cell was invalid.

With --control the virtual lab is measured twice. The share of its medians that lie in each other's interval is the
effect of chance: independent samples of a few repetitions do not always agree.

With --again invalid cells of saved runs are measured once more; the runs record each attempt. With --at-once several
runs execute in parallel: for slow links, whose labs leave processors idle. Late and stalled cells are reported as
always.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from threading import Event
from typing import Any

import page
import pandas as pd

from qoslab.model.expressions import show_value
from qoslab.plan import Options, make_plan
from qoslab.schema import load_sweep

TOP = Path(__file__).resolve().parents[1]
REPORT = TOP / "reports" / "inventory.md"
QOSLAB = [sys.executable, "-P", "-m", "qoslab"]
EXPERIMENTS: dict[str, tuple[str, ...]] = {
    "policing-vs-shaping": (),
    "hqf-classes": (),
    "hqf-fair-queue": (),
    "hqf-nested": (),
    "wfq-precedence": (),
    "srr-3750": (),
    "tx-ring-limit": (),
    "tcp-friendly-policer": ("--arm", "size"),
}
"""Experiments with published values, and the part of each to run."""
VIRTUAL, INVENTORY, CONTROL = "virtual", "inventory", "control"
"""Kinds of runs: in the virtual lab, through its inventory, in the virtual lab a second time."""
SINGLE_CELL = ("--jobs", "1")
"""Options of the virtual lab. Real devices run one cell at a time; in parallel a cell has fewer processors."""
INFORMATIVE = "informative"
"""Verdict on values without a valid repetition."""
MEASURED = (0, 1, 3)
"""Exit statuses of a finished run."""


@dataclass(frozen=True)
class BenchLab:
    """A part of an experiment whose cells have the same links."""

    experiment: str
    name: str
    """Name for folders."""
    topology: str
    """Topology file."""
    only: tuple[str, ...]
    """Options that select its cells."""


@dataclass(frozen=True)
class ResultPair:
    """Results of an expectation in both labs."""

    virtual: dict[str, Any]
    inventory: dict[str, Any]
    error: float = 0.0
    """Greatest error of the value measured through the inventory, which comes from show commands."""
    control: dict[str, Any] | None = None
    """Value of the second run in the virtual lab."""

    @property
    def measured(self) -> tuple[dict[str, Any], ...]:
        """Return the measured values, in the order of the table."""
        return (self.virtual, *((self.control,) if self.control else ()), self.inventory)

    @property
    def place(self) -> str:
        """Return the place of the expectation."""
        where = f" ({self.virtual['where']})" if self.virtual.get("where") else ""
        return f"{self.virtual['arm']}{where} {self.virtual['metric']}"

    @property
    def verdict(self) -> str:
        """Return the verdict of the expectation."""
        one, other = self.virtual, self.inventory
        if INFORMATIVE in (one["verdict"], other["verdict"]) and one["verdict"] != other["verdict"]:
            return "not judged: a cell was invalid"
        if _measured_value(other) is None and _measured_value(one) is not None:
            return f"missing: {other.get('missing') or 'nobody says why'}"
        if one["verdict"] != other["verdict"]:
            return f"differs: {one['verdict']}, {other['verdict']}"
        return "same" if self.within else "same, medians apart"

    @property
    def within(self) -> bool:
        """Return whether each median is in the other's interval plus the reading error, or both are equal."""
        return nearby(self.virtual, self.inventory, self.error)

    @property
    def by_chance(self) -> bool:
        """Return the same comparison of the virtual lab with itself."""
        return self.control is not None and nearby(self.virtual, self.control)


def nearby(row: dict[str, Any], other: dict[str, Any], error: float = 0.0) -> bool:
    """Return whether two medians are in each other's interval, or equal; two missing values are near."""
    one, two = _measured_value(row), _measured_value(other)
    if one is None or two is None:
        return one is two
    both = _has_value(row, two, error) and _has_value(other, one, error)
    return math.isclose(one, two, rel_tol=1e-6) or both


def _measured_value(row: dict[str, Any]) -> float | None:
    value = row["measured"]
    return None if value is None or math.isnan(value) else float(value)


def _has_value(row: dict[str, Any], value: float, error: float) -> bool:
    low, high = row.get("low"), row.get("high")
    return low is not None and high is not None and low - error <= value <= high + error


def errors(folder: Path) -> dict[tuple[str, str], float]:
    """Return the greatest error of the values of a run, by arm and metric."""
    rows = pd.read_parquet(folder / "tables" / "metrics.parquet", columns=["arm", "metric", "error"]).dropna()
    return {
        (str(arm), str(name)): float(most)
        for (arm, name), most in rows.groupby(["arm", "metric"])["error"].max().items()
    }


def labs_of(name: str, chosen: Sequence[str]) -> Iterator[BenchLab]:
    """Return the labs that an experiment needs, in the order in which they run."""
    arms = tuple(value for word, value in pairwise(chosen) if word == "--arm")
    sweep = load_sweep(TOP / "experiments" / f"{name}.yml", {})
    names = sweep.parameters_of_keys("topology")
    seen = set()
    for cell in make_plan(sweep, Options(arms=arms, lab="external")).cells:
        text = cell.experiment.topology.model_dump_json(by_alias=True, exclude_none=True)
        if text in seen:
            continue
        seen.add(text)
        values = [(each, show_value(value)) for each in names if (value := cell.identity.get(each)) is not None]
        label = ",".join(f"{each}={value.replace(' ', '').replace('/', 'p')}" for each, value in values) or "all"
        yield BenchLab(
            name, label, text, tuple(word for each, value in values for word in ("--only", f"{each}={value}"))
        )


numbers = count()
"""Numbers of the running labs, which make their names unique."""
broken_runs = Event()
"""True if no further run may start."""
started: list[subprocess.Popen[bytes]] = []


def qoslab(folder: Path, *words: str) -> int:
    """Run `qoslab` in a folder; its progress output is saved there."""
    if broken_runs.is_set() and words[0] == "run":
        raise RuntimeError("another run did not come to its end")
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        log.write(f"$ qoslab {' '.join(words)}\n")
        log.flush()
        own = os.environ | {"XDG_STATE_HOME": str(folder / "state")}
        process = subprocess.Popen([*QOSLAB, *words], cwd=folder, env=own, stdout=log, stderr=log)
        started.append(process)
        return process.wait()


def run(lab: BenchLab, kind: str, options: Sequence[str], folder: Path, again: bool) -> Path:
    """Return the run folder of one part: in the virtual lab (first or second run), or through an inventory."""
    place = folder / title(lab.experiment, options) / lab.name / kind
    newest = place / "runs" / lab.experiment / "latest"
    lacking = again and newest.exists() and bool(invalid(newest))
    if lacking or not newest.exists():
        words = ["run", str(TOP / "experiments" / f"{lab.experiment}.yml"), *options, *lab.only]
        if lacking:
            words += ["--resume"]
        else:
            # Of a run that was broken off, with what is kept of its routers, which are not there any more.
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
        began = time.monotonic()
        status = _exposed(lab, place, words) if kind == INVENTORY else qoslab(place, *words, *SINGLE_CELL)
        print(f"{lab.experiment} {lab.name} {kind}: {time.monotonic() - began:.0f} s, status {status}", flush=True)
        if status not in MEASURED or not newest.exists():
            raise RuntimeError(f"{place / 'log.txt'} says why {lab.experiment} did not come to its end ({kind})")
    return newest.resolve()


def _exposed(lab: BenchLab, place: Path, words: Sequence[str]) -> int:
    """Run the part through an inventory of the same lab."""
    topology, inventory = place / "topology.yml", place / "here.yml"
    topology.write_text(lab.topology, encoding="utf-8")
    name = f"inventory-{lab.experiment}-{os.getpid()}-{next(numbers)}"
    status = qoslab(place, "lab", "up", str(topology), "--name", name, "--expose", str(inventory))
    if status:
        return status
    try:
        return qoslab(place, *words, "--lab", str(inventory))
    finally:
        qoslab(place, "lab", "down", name)


@contextmanager
def pool_of(at_once: int) -> Iterator[ThreadPoolExecutor]:
    """Execute a pool of runs; if one of them or this command fails, end the others."""
    with ThreadPoolExecutor(at_once) as pool:
        try:
            yield pool
        except BaseException:
            broken_runs.set()
            pool.shutdown(wait=False, cancel_futures=True)
            for process in started:
                process.terminate()
            raise


def pairs(virtual: Path, inventory: Path, control: Path | None = None) -> Iterator[ResultPair]:
    """Return the expectations that were measured in this part."""
    wrong = errors(inventory)
    there, again = _rows(inventory), _rows(control) if control else {}
    for key, row in _rows(virtual).items():
        absent = row | {"measured": None, "verdict": "not there"}
        error = wrong.get((row["arm"], row["metric"]), 0.0)
        pair = ResultPair(row, there.get(key, absent), error, again.get(key, absent) if control else None)
        # Of cells in other labs neither knows anything.
        if any(_measured_value(each) is not None or each.get("missing") for each in (pair.virtual, pair.inventory)):
            yield pair


def _rows(folder: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    found = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    return {_key(row): row for row in found}


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row.get(each)) for each in ("arm", "where", "metric"))


def invalid(folder: Path) -> list[str]:
    """Return the invalid cells with the reasons."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return [
        f"{cell['arm']}/{cell['repetition']}: {'; '.join(cell['reasons'])}"
        for cell in manifest["cells"]
        if not cell["valid"] and not cell.get("spared")
    ]


def format_pair(row: dict[str, Any]) -> str:
    """Return a measured value with its interval."""
    value = _measured_value(row)
    if value is None:
        return "–"
    low, high = row.get("low"), row.get("high")
    interval = "" if low is None or high is None or low == high else f" ({low:.6g} to {high:.6g})"
    return f"{value:.6g}{interval}"


def title(name: str, words: Sequence[str]) -> str:
    """Return the title of an experiment; a selection of arms other than the default has a separate section."""
    arms, usual = (
        [arm for option, arm in pairwise(each) if option == "--arm"] for each in (words, EXPERIMENTS.get(name, ()))
    )
    return " ".join((name, *(arms if arms != usual else ())))


def section(
    name: str, found: Sequence[ResultPair], reasons: Sequence[str], words: Sequence[str], at_once: int = 1
) -> str:
    """Return the section of the report on an experiment."""
    same = sum(pair.verdict.startswith("same") for pair in found)
    within = sum(pair.within for pair in found)
    controlled = any(pair.control is not None for pair in found)
    chance = f", {sum(pair.by_chance for pair in found)} by chance (virtual lab measured twice)" if controlled else ""
    parallel = f", {at_once} runs at a time" if at_once > 1 else ""
    lines = [
        f"## {title(name, words)}",
        "",
        page.head(
            f"Options: `{' '.join(words) or 'none'}`{parallel}. {len(found)} values, {same} with the same verdict, "
            f"{within} with each median in the interval of the other lab, including the error of readings{chance}."
        ),
        "",
    ]
    more = ("once more",) if controlled else ()
    head = ("metric", "unit", "virtual lab", *more, "inventory", "error of readings", "verdict there")
    # The last column, what became of it, has no name.
    lines += [f"| {' | '.join(head)} | |", "|" + "---|" * (len(head) + 1)]
    lines += [
        f"| {pair.place} | {pair.virtual.get('unit') or ''} | {' | '.join(map(format_pair, pair.measured))} "
        f"| {f'{pair.error:.3g}' if pair.error else ''} | {pair.virtual['verdict']} | {pair.verdict} |"
        for pair in found
    ]
    if reasons:
        reported = (textwrap.fill(f"- {reason}", page.WIDTH, subsequent_indent="  ") for reason in reasons)
        lines += ["", "Cells that were not valid:", "", *reported]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", metavar="EXPERIMENT", help=f"{', '.join(EXPERIMENTS)} [default: all]")
    parser.add_argument("--folder", type=Path, default=TOP / "runs" / "inventory", help="folder of the runs")
    parser.add_argument("--write", action="store_true", help=f"write sections of {REPORT.relative_to(TOP)}")
    parser.add_argument(
        "--control", action="store_true", help="measure the virtual lab twice, to compare it with itself"
    )
    parser.add_argument("--again", action="store_true", help="measure invalid cells of saved runs again")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="number of runs at a time [default: 1]")
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    chosen, options = parser.parse_args(arguments[:split]), arguments[split + 1 :]
    # A lab that is up is taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    status = 0
    with pool_of(chosen.at_once) as pool:
        own = {
            name: [*options, *(() if "--arm" in options else EXPERIMENTS.get(name, ()))]
            for name in chosen.experiments or EXPERIMENTS
        }
        kinds = (VIRTUAL, INVENTORY, *((CONTROL,) if chosen.control else ()))
        runs = {
            name: [
                [pool.submit(run, lab, kind, words, chosen.folder, chosen.again) for kind in kinds]
                for lab in labs_of(name, words)
            ]
            for name, words in own.items()
        }
        for name, words in own.items():
            made = [[each.result() for each in part] for part in runs[name]]
            found = [pair for part in made for pair in pairs(*part)]
            reasons = [
                f"{kind}, {each}"
                for part in made
                for kind, folder in zip(kinds, part, strict=True)
                for each in invalid(folder)
            ]
            page.print_summary(section(name, found, reasons, words, chosen.at_once), write_it=chosen.write, to=REPORT)
            if any(pair.verdict.startswith(("differs", "missing")) for pair in found):
                status = 1
            elif reasons:
                status = status or 3
    sys.exit(status)


if __name__ == "__main__":
    main()
