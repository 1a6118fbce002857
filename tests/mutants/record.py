"""What is kept of small changes: how many of each file, and those that live, with the reasons of accepted ones."""

from __future__ import annotations

import csv
import hashlib
import json
import re
import textwrap
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

from written import ROOT, write_below

CRATE = ROOT / "crates" / "qos-core"
TRIED = Path(__file__).parent / "tried.csv"
SURVIVORS = Path(__file__).parent / "survivors.toml"
PAGE = ROOT / "docs" / "mutants.md"
MARK = "<!-- written by tests/mutants/record.py -->"
CHANGE = re.compile(r"^[^:]+:(\d+):\d+: (.*)$")
WIDTH = 118


@dataclass(frozen=True)
class Tried:
    """What became of the changes of a file, at a commit."""

    file: str
    digest: str
    """Of the file's text: whether it is still the one that was tried."""
    caught: int
    timeout: int
    unviable: int
    """Do not compile, and say nothing."""
    missed: int
    commit: str
    day: str

    @property
    def compiled(self) -> int:
        """Those of which the tests could notice something."""
        return self.caught + self.timeout + self.missed


@dataclass(frozen=True, order=True)
class Survivor:
    """A change that no test notices, at a line that is known by its text, since numbers move."""

    file: str
    line: str
    change: str
    reason: str = ""
    """Why that is accepted."""

    @classmethod
    def of(cls, name: str, file: Path) -> Survivor:
        """From the name that cargo-mutants gives it. `ValueError` where that has no place."""
        if not (match := CHANGE.match(name)):
            raise ValueError(f"{name}: expected FILE:LINE:COLUMN: CHANGE, as cargo-mutants writes it")
        line = file.read_text(encoding="utf-8").splitlines()[int(match[1]) - 1]
        return cls(name_of(file), line.strip(), match[2])


def name_of(file: Path) -> str:
    """A file's path in the repository."""
    return file.relative_to(ROOT).as_posix()


def digest(file: Path) -> str:
    """Of a file's bytes, short."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def read_tried() -> dict[str, Tried]:
    """Counts by file."""
    if not TRIED.exists():
        return {}
    with TRIED.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text))
    numbers = ("caught", "timeout", "unviable", "missed")
    return {row["file"]: Tried(**{**row, **{key: int(row[key]) for key in numbers}}) for row in rows}  # type: ignore[arg-type]


def read_survivors() -> list[Survivor]:
    """Those that live, in the order of their files."""
    if not SURVIVORS.exists():
        return []
    rows = tomllib.loads(SURVIVORS.read_text(encoding="utf-8")).get("survivor", [])
    return [Survivor(**{**row, "reason": " ".join(row.get("reason", "").split())}) for row in rows]


def keep(entry: Tried, lived: Iterable[Survivor]) -> None:
    """Records a file anew: reasons that were given before stay with their changes."""
    tried, before = read_tried(), read_survivors()
    tried[entry.file] = entry
    reasons = {(each.file, each.line, each.change): each.reason for each in before}
    others = [each for each in before if each.file != entry.file]
    now = [replace(each, reason=reasons.get((each.file, each.line, each.change), "")) for each in lived]
    survivors = sorted([*others, *now])
    with TRIED.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(field.name for field in fields(Tried))
        writer.writerows(astuple(tried[name]) for name in sorted(tried))
    SURVIVORS.write_text("\n".join(map(_entry, survivors)), encoding="utf-8")
    write_page(tried, survivors)


def _entry(survivor: Survivor) -> str:
    lines = ["[[survivor]]"]
    for key in ("file", "line", "change"):
        lines.append(f"{key} = {json.dumps(getattr(survivor, key), ensure_ascii=False)}")
    if survivor.reason:
        wrapped = textwrap.fill(survivor.reason.replace("\\", "\\\\"), WIDTH, break_on_hyphens=False)
        lines += ['reason = """', wrapped, '"""']
    return "\n".join([*lines, ""])


def write_page(tried: dict[str, Tried], survivors: list[Survivor]) -> None:
    """The tables of docs/mutants.md anew."""
    write_below(MARK, PAGE, page(tried, survivors))


def page(tried: dict[str, Tried], survivors: list[Survivor]) -> str:
    """Those tables."""
    compiled = sum(entry.compiled for entry in tried.values())
    accepted = [each for each in survivors if each.reason]
    live = Counter(each.file for each in survivors)
    share = f"{100 * len(accepted) / compiled:.1f} %" if compiled else "none"
    wanting = len(survivors) - len(accepted)
    text = [
        "",
        f"Of {compiled} changes that compile, the tests notice {compiled - len(survivors)};",
        f"{len(accepted)} are accepted ({share}), {wanting} are open.",
        "",
        "| file | changes | noticed | accepted | open | do not compile | commit | date |",
        "|---|--:|--:|--:|--:|--:|---|---|",
    ]
    for name in sorted(tried):
        entry = tried[name]
        fine = sum(each.file == name for each in accepted)
        counts = f"{entry.compiled} | {entry.caught + entry.timeout} | {fine} | {live[name] - fine} | {entry.unviable}"
        text.append(f"| `{_short(name)}` | {counts} | `{entry.commit}` | {entry.day} |")
    text += ["", "## Accepted", ""]
    text += [line for each in accepted for line in _paragraph(each)] or ["None."]
    return "\n".join([*text, ""])


def open_below(folder: str) -> bool:
    """Whether something lives in a folder without a reason."""
    return any(each.file.startswith(folder) and not each.reason for each in read_survivors())


def _short(name: str) -> str:
    return name.removeprefix("crates/").removeprefix("src/").replace("/src/", "/", 1)


def _paragraph(survivor: Survivor) -> list[str]:
    says = f"- `{_short(survivor.file)}`, `{survivor.change}`, at `{survivor.line}`"
    says += f": {survivor.reason}" if survivor.reason else ""
    return textwrap.wrap(says, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
