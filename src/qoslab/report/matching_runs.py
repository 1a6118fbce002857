"""Selection of runs of one experiment in several labs for a comparison, and the reasons against other runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from qoslab.errors import UserError
from qoslab.lab_kinds import LABS
from qoslab.model.partial_runs import partial_options
from qoslab.results import CellFiles, Manifest
from qoslab.results.folder import MANIFEST, RunFolder, find_run, runs

UNMEASURED = frozenset(
    {"name", "title", "description", "compare", "answer", "graphs", "traces", "notes"}
    | {"repetitions", "enough", "matrix", "order"}
)
"""Keys of a cell's experiment without an effect on measured values."""
NAMED = 4
"""Maximum number of differences that are named."""


@dataclass(frozen=True)
class MatchingRuns:
    """Runs of several labs, one each, with the same settings."""

    runs: tuple[RunFolder, ...]
    """Runs, starting with the lab that is nearest to hardware."""
    passed: tuple[str, ...] = ()
    """Newer runs that were skipped, each with the reason."""


def counterparts(root: Path, given: Sequence[str]) -> MatchingRuns:
    """Return the runs to compare: given folders, an experiment's runs by its name, or runs of the newest run's
    experiment.

    Several folders are used as given. For a single folder, or for an experiment, it is the newest run of each lab, with
    complete runs before partial ones, all with the settings of the newest run that has matching runs. Raise `UserError`
    for fewer than two labs, for runs of several experiments, and for different settings, which are named.
    """
    found = [_Candidate(find_run(root, each)) for each in given or (None,)]
    if len(found) > 1:
        return _check_given_runs(found)
    (first,) = found
    around = runs(first.folder.path.parent.parent, first.folder.path.parent.name)
    others = [_Candidate(each) for each in reversed(around) if each.is_finished and each.path != first.folder.path]
    if given and any((place / MANIFEST).exists() for place in (Path(given[0]), root / given[0])):
        return _find_newest_matches([first], others)
    return _find_newest_matches([], sorted([first, *others], key=lambda each: each.folder.path.name, reverse=True))


class _Candidate:
    """A finished run that may be compared."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    @cached_property
    def manifest(self) -> Manifest:
        return self.folder.manifest()

    @property
    def lab(self) -> str:
        return self.manifest.lab

    @cached_property
    def missing_part(self) -> str:
        """Return the missing part of the experiment; empty if it is complete."""
        chosen = partial_options(self.manifest.overrides)
        unrun = [each.name for each in self.manifest.cells if each.record is None and not each.spared]
        remarks = [chosen] if chosen else []
        remarks += [f"{len(unrun)} of {len(self.manifest.cells)} cells were not run"] if unrun else []
        return "; ".join(remarks)

    @cached_property
    def cells(self) -> dict[str, CellFiles]:
        """Return the first repetition of each cell, by cell name without the repetition."""
        found: dict[str, CellFiles] = {}
        for each in self.manifest.cells:
            found.setdefault(each.name.rpartition("/")[0], self.folder.counted_cell_files(each))
        return found

    def differences(self, other: _Candidate) -> Iterator[str]:
        """Describe the differences of the settings in common cells."""
        common = [place for place in self.cells if place in other.cells]
        if not common:
            yield f"no cell exists in both ({_first_names(self.cells)}; {_first_names(other.cells)})"
        for place in common:
            try:
                mine, theirs = (json.loads(each.cells[place].experiment_content()) for each in (self, other))
            except (UserError, ValueError, RecursionError):
                continue  # a damaged cell is left out and reported
            for where, a, b in _differing_values(mine, theirs):
                yield f"{place}: {where}: {_short_text(a)} and {_short_text(b)}"


def _differing_values(mine: object, theirs: object, where: str = "") -> Iterator[tuple[str, object, object]]:
    """Return the values that differ, each with its place."""
    if mine == theirs:
        return
    a, b = _named_parts(mine), _named_parts(theirs)
    if a is None or b is None:
        yield where, mine, theirs
        return
    for key in dict.fromkeys([*a, *b]):
        if where or key not in UNMEASURED:
            yield from _differing_values(a.get(key), b.get(key), f"{where}.{key}" if where else str(key))


def _named_parts(value: object) -> Mapping[str, Any] | None:
    """Return the parts of a value by name; None if it has none."""
    if isinstance(value, dict):
        return {key: each for key, each in value.items() if key != "title"}
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        return {str(each.get("name", number)): each for number, each in enumerate(value, 1)}
    return None


def _short_text(value: object) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _check_given_runs(found: Sequence[_Candidate]) -> MatchingRuns:
    first, *others = found
    for other in others:
        _check_experiment(first, other)
        _check_settings(first, other)
    by_lab: dict[str, _Candidate] = {}
    for each in found:
        if each.lab in by_lab:
            raise UserError(
                f"{by_lab[each.lab].folder.path} and {each.folder.path}: found two runs in {_title(each.lab)}, "
                "expected one run per lab",
                hint="`qoslab compare RUN RUN` compares two runs of one lab",
            )
        by_lab[each.lab] = each
    return MatchingRuns(_order_by_lab_kind(by_lab))


def _find_newest_matches(fixed: Sequence[_Candidate], others: Sequence[_Candidate]) -> MatchingRuns:
    """Return the newest run of each lab with the same settings; `others` start with the newest."""
    preferred = sorted(others, key=lambda each: bool(each.missing_part))
    for anchor in fixed or preferred:
        chosen = {anchor.lab: anchor}
        for each in preferred:
            if each.lab not in chosen and next(anchor.differences(each), None) is None:
                chosen[each.lab] = each
        if len(chosen) > 1:
            return MatchingRuns(_order_by_lab_kind(chosen), tuple(_skipped_run_reasons(anchor, chosen, others)))
    first = (fixed or preferred)[0]
    other = next((each for each in preferred if each.lab != first.lab), None)
    name = first.manifest.experiment.name
    if other is None:
        elsewhere = next(kind.name for kind in LABS.values() if not kind.has_place and kind.name != first.lab)
        raise UserError(
            f"{first.folder.path.parent}: found runs in {_title(first.lab)} only, expected runs in a second lab",
            hint=f"make one with `qoslab run {name} --lab {elsewhere}`",
        )
    _check_settings(first, other)
    raise AssertionError("choose runs with the same settings")


def _skipped_run_reasons(
    anchor: _Candidate, chosen: Mapping[str, _Candidate], others: Sequence[_Candidate]
) -> Iterator[str]:
    """Return the newer runs of a lab that were skipped, with the reason."""
    taken = [each.folder.path for each in chosen.values()]
    for each in others:
        if each.folder.path in taken:
            continue
        instead = chosen.get(each.lab)
        if instead is not None and each.manifest.started <= instead.manifest.started:
            continue
        difference = next(anchor.differences(each), None)
        yield f"{each.folder.path.name}: {each.missing_part or difference or 'another run was given'}"


def _check_experiment(first: _Candidate, other: _Candidate) -> None:
    names = first.manifest.experiment.name, other.manifest.experiment.name
    if names[0] != names[1]:
        raise UserError(
            f"{first.folder.path} is a run of {names[0]}, {other.folder.path} of {names[1]}; expected runs of one "
            "experiment"
        )


def _check_settings(first: _Candidate, other: _Candidate) -> None:
    found = list(islice(first.differences(other), NAMED + 1))
    if found:
        more = "; …" if len(found) > NAMED else ""
        raise UserError(
            f"{first.folder.path} ({first.lab}) and {other.folder.path} ({other.lab}) have different settings: "
            f"{'; '.join(found[:NAMED])}{more}",
            hint="run the experiment with the same options in both labs, or give two runs with the same options",
        )


def _order_by_lab_kind(chosen: Mapping[str, _Candidate]) -> tuple[RunFolder, ...]:
    """Sort runs: real devices first, then real time, then the rest."""

    def place(lab: str) -> tuple[bool, bool, str]:
        kind = LABS.get(lab)
        return not (kind is not None and kind.has_place), not (kind is not None and kind.real_time), lab

    return tuple(chosen[lab].folder for lab in sorted(chosen, key=place))


def _title(lab: str) -> str:
    return LABS[lab].title if lab in LABS else lab


def _first_names(cells: Mapping[str, object]) -> str:
    names = list(cells)
    return ", ".join(names[:2]) + (", …" if len(names) > 2 else "")
