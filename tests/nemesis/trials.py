"""What is kept of the trials: how each seed went when it was last tried, and the page that tells of all."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from written import write_below

TRIED = Path(__file__).parent / "tried.csv"
PAGE = Path(__file__).parent / "tried.md"
MARK = "<!-- written by tests/nemesis/trials.py -->"
WITHIN = "within"
NOTHING = "nothing was met"


@dataclass(frozen=True, order=True)
class Trial:
    """A seed of one of the two tests, as it went."""

    test: str
    seed: int
    lab: str
    fault: str
    """What was done, without moment and victim; they are the same each time only as far as the machine is."""
    outcome: str
    """`within` the checker's rules, or `outside`."""
    commit: str
    day: str


def read() -> dict[tuple[str, int], Trial]:
    """The trials that are kept, by test and seed."""
    if not TRIED.exists():
        return {}
    with TRIED.open(encoding="utf-8", newline="") as text:
        found = [Trial(**{**row, "seed": int(row["seed"])}) for row in csv.DictReader(text)]  # type: ignore[arg-type]
    return {(each.test, each.seed): each for each in found}


def keep(trials: Iterable[Trial]) -> None:
    """Put these in the place of those with the same seed, and write the page."""
    kept = read() | {(each.test, each.seed): each for each in trials}
    with TRIED.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(field.name for field in fields(Trial))
        writer.writerows(astuple(each) for each in sorted(kept.values()))
    write_below(MARK, PAGE, page(kept.values()))


def page(trials: Iterable[Trial]) -> str:
    """The sum and the table: how many of each kind, and how many were within the rules."""
    every = list(trials)
    within = sum(each.outcome == WITHIN for each in every)
    text = ["", f"{within} of {len(every)} trials were within the rules.", ""]
    text += ["| lab | what is done | trials | within | outside | seeds | commits | dates |"]
    text += ["|---|---|--:|--:|--:|---|---|---|"]
    for lab, fault in sorted({(each.lab, each.fault) for each in every}):
        mine = [each for each in every if (each.lab, each.fault) == (lab, fault)]
        found = Counter(each.outcome for each in mine)
        commits = ", ".join(f"`{each}`" for each in sorted({each.commit for each in mine}))
        days = sorted({each.day for each in mine})
        dates = " to ".join(dict.fromkeys((days[0], days[-1])))
        text.append(
            f"| {lab} | {fault} | {len(mine)} | {found[WITHIN]} | {len(mine) - found[WITHIN]} "
            f"| {spans(sorted(each.seed for each in mine))} | {commits} | {dates} |"
        )
    return "\n".join([*text, ""])


def spans(numbers: list[int]) -> str:
    """`1, 3-5`: rising numbers, neighbours together."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ", ".join(str(each[0]) if len(each) == 1 else f"{each[0]}-{each[-1]}" for each in found)
