"""Whether experiments come to the same through an inventory as in the virtual lab, expectation by expectation.

    python benches/inventory.py                                        # the published ones, whole: a night
    python benches/inventory.py hqf-nested --write                     # one of them; its section of the report
    python benches/inventory.py srr-3750 -- --arm srr --duration 8s    # what stands behind -- is for both runs

Each experiment is run in the virtual lab, and in the same lab behind SSH (`lab up --expose`), where nothing but command
lines and agents leads. A sweep over links is run a lab at a time. Runs are kept in --folder and not made again. The
table says of each expectation what both found; the exit status is 1 where a verdict is another or a figure is missing
that the virtual lab has, 3 where only a cell was invalid.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
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
"""Those with a publication, and what of them is run."""
INFORMATIVE = "informative"
"""The verdict on figures of which no repetition is valid."""
MEASURED = (0, 1, 3)
"""Exit statuses of a run that came to its end."""


@dataclass(frozen=True)
class Lab:
    """A part of an experiment whose cells have the same links."""

    experiment: str
    name: str
    """For folders."""
    topology: str
    """As a file of a topology."""
    only: tuple[str, ...]
    """The options that choose its cells."""


@dataclass(frozen=True)
class Pair:
    """An expectation in both labs."""

    virtual: dict[str, Any]
    inventory: dict[str, Any]
    error: float = 0.0
    """By how much the one of the inventory may be wrong, since show commands tell it."""

    @property
    def place(self) -> str:
        """What it is of."""
        where = f" ({self.virtual['where']})" if self.virtual.get("where") else ""
        return f"{self.virtual['arm']}{where} {self.virtual['metric']}"

    @property
    def verdict(self) -> str:
        """What became of it."""
        one, other = self.virtual, self.inventory
        if INFORMATIVE in (one["verdict"], other["verdict"]) and one["verdict"] != other["verdict"]:
            return "not judged: a cell was invalid"
        if _measured(other) is None and _measured(one) is not None:
            return f"missing: {other.get('missing') or 'nobody says why'}"
        if one["verdict"] != other["verdict"]:
            return f"differs: {one['verdict']}, {other['verdict']}"
        return "same" if self.within else "same, medians apart"

    @property
    def within(self) -> bool:
        """Whether each median is in the other's interval, the error of the readings added; or they are equal."""
        one, other = _measured(self.virtual), _measured(self.inventory)
        if one is None or other is None:
            return one is other
        both = _has(self.virtual, other, self.error) and _has(self.inventory, one, self.error)
        return math.isclose(one, other, rel_tol=1e-6) or both


def _measured(row: dict[str, Any]) -> float | None:
    value = row["measured"]
    return None if value is None or math.isnan(value) else float(value)


def _has(row: dict[str, Any], value: float, error: float) -> bool:
    low, high = row.get("low"), row.get("high")
    return low is not None and high is not None and low - error <= value <= high + error


def errors(folder: Path) -> dict[tuple[str, str], float]:
    """By how much figures of a run may be wrong, the most of its cells, by arm and metric."""
    rows = pd.read_parquet(folder / "tables" / "metrics.parquet", columns=["arm", "metric", "error"]).dropna()
    return {
        (str(arm), str(name)): float(most)
        for (arm, name), most in rows.groupby(["arm", "metric"])["error"].max().items()
    }


def labs_of(name: str, chosen: Sequence[str]) -> Iterator[Lab]:
    """The labs that an experiment needs, one after the other."""
    arms = tuple(value for word, value in pairwise(chosen) if word == "--arm")
    sweep = load_sweep(TOP / "experiments" / f"{name}.yml", {})
    names = sweep.names_of("topology")
    seen = set()
    for cell in make_plan(sweep, Options(arms=arms, lab="external")).cells:
        text = cell.experiment.topology.model_dump_json(by_alias=True, exclude_none=True)
        if text in seen:
            continue
        seen.add(text)
        values = [(each, show_value(value)) for each in names if (value := cell.identity.get(each)) is not None]
        label = ",".join(f"{each}={value.replace(' ', '').replace('/', 'p')}" for each, value in values) or "all"
        yield Lab(name, label, text, tuple(word for each, value in values for word in ("--only", f"{each}={value}")))


def qoslab(folder: Path, *words: str) -> int:
    """Run `qoslab` in a folder; what it says of its progress is kept there."""
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        log.write(f"$ qoslab {' '.join(words)}\n")
        log.flush()
        return subprocess.run([*QOSLAB, *words], cwd=folder, stdout=log, stderr=log, check=False).returncode


def run(lab: Lab, options: Sequence[str], folder: Path) -> tuple[Path, Path]:
    """The run folders of one part: in the virtual lab, through an inventory."""
    made = []
    for kind in ("virtual", "inventory"):
        place = folder / lab.experiment / lab.name / kind
        newest = place / "runs" / lab.experiment / "latest"
        if not newest.exists():
            place.mkdir(parents=True, exist_ok=True)
            began = time.monotonic()
            words = ["run", str(TOP / "experiments" / f"{lab.experiment}.yml"), *options, *lab.only]
            status = qoslab(place, *words) if kind == "virtual" else _exposed(lab, place, words)
            print(f"{lab.experiment} {lab.name} {kind}: {time.monotonic() - began:.0f} s, status {status}", flush=True)
            if status not in MEASURED or not newest.exists():
                sys.exit(f"{place / 'log.txt'} says why {lab.experiment} did not come to its end in the lab {kind}")
        made.append(newest.resolve())
    return made[0], made[1]


def _exposed(lab: Lab, place: Path, words: Sequence[str]) -> int:
    """The same through an inventory of the same lab."""
    topology, inventory = place / "topology.yml", place / "here.yml"
    topology.write_text(lab.topology, encoding="utf-8")
    name = f"inventory-{lab.experiment}-{os.getpid()}"
    status = qoslab(place, "lab", "up", str(topology), "--name", name, "--expose", str(inventory))
    if status:
        return status
    try:
        return qoslab(place, *words, "--lab", str(inventory))
    finally:
        qoslab(place, "lab", "down", name)


def pairs(virtual: Path, inventory: Path) -> Iterator[Pair]:
    """The expectations that were measured in this part."""
    found = [json.loads((each / "comparison.json").read_text(encoding="utf-8")) for each in (virtual, inventory)]
    other, wrong = {_key(row): row for row in found[1]}, errors(inventory)
    for row in found[0]:
        there = other.get(_key(row), row | {"measured": None, "verdict": "not there"})
        pair = Pair(row, there, wrong.get((row["arm"], row["metric"]), 0.0))
        # Of cells in other labs neither knows anything.
        if any(_measured(each) is not None or each.get("missing") for each in (pair.virtual, pair.inventory)):
            yield pair


def _key(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(row.get(each)) for each in ("arm", "where", "metric"))


def invalid(folder: Path) -> list[str]:
    """The cells whose figures count for nothing, with the reasons."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return [
        f"{cell['arm']}/{cell['repetition']}: {'; '.join(cell['reasons'])}"
        for cell in manifest["cells"]
        if not cell["valid"] and not cell.get("spared")
    ]


def shown(row: dict[str, Any]) -> str:
    """A measured figure with its interval."""
    value = _measured(row)
    if value is None:
        return "–"
    low, high = row.get("low"), row.get("high")
    interval = "" if low is None or high is None or low == high else f" ({low:.6g} to {high:.6g})"
    return f"{value:.6g}{interval}"


def section(name: str, found: Sequence[Pair], reasons: Sequence[str], words: Sequence[str]) -> str:
    """What the report says of an experiment."""
    same = sum(pair.verdict.startswith("same") for pair in found)
    near = sum(pair.within for pair in found)
    lines = [
        f"## {name}",
        "",
        page.head(
            f"Options: `{' '.join(words) or 'none'}`. {len(found)} figures, {same} with the same verdict, of {near} "
            "each median in the other's interval, if the error of readings is added."
        ),
        "",
        "| figure | unit | virtual lab | inventory | error of readings | verdict there | |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {pair.place} | {pair.virtual.get('unit') or ''} | {shown(pair.virtual)} | {shown(pair.inventory)} "
        f"| {f'{pair.error:.3g}' if pair.error else ''} | {pair.virtual['verdict']} | {pair.verdict} |"
        for pair in found
    ]
    if reasons:
        lines += ["", "Cells that were not valid:", "", *(f"- {reason}" for reason in reasons)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "experiments", nargs="*", metavar="EXPERIMENT", help=f"of {', '.join(EXPERIMENTS)}; all of them"
    )
    parser.add_argument("--folder", type=Path, default=TOP / "runs" / "inventory", help="where runs are kept")
    parser.add_argument("--write", action="store_true", help=f"write sections of {REPORT.relative_to(TOP)}")
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    chosen, options = parser.parse_args(arguments[:split]), arguments[split + 1 :]
    # A lab that is up is taken down.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    status = 0
    for name in chosen.experiments or EXPERIMENTS:
        own = [*options, *(() if "--arm" in options else EXPERIMENTS.get(name, ()))]
        found: list[Pair] = []
        reasons: list[str] = []
        for lab in labs_of(name, own):
            virtual, inventory = run(lab, own, chosen.folder)
            found += pairs(virtual, inventory)
            reasons += [f"virtual lab, {each}" for each in invalid(virtual)]
            reasons += [f"inventory, {each}" for each in invalid(inventory)]
        page.tell(section(name, found, reasons, own), write_it=chosen.write, to=REPORT)
        if any(pair.verdict.startswith(("differs", "missing")) for pair in found):
            status = 1
        elif reasons:
            status = status or 3
    sys.exit(status)


if __name__ == "__main__":
    main()
