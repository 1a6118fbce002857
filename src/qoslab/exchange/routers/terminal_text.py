"""Splitting of terminal text into the outputs of show commands, by prompts or by their first lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from qoslab.policy.pasted_text import CONFIGURATION_PROMPT, dedent_lines, section_command, terminal_lines

Kind = Literal["configuration", "interfaces", "version", "policies", "routes", "other"]

_PROMPT = re.compile(r"^ ?([A-Za-z][\w.:/@-]{0,62}?)(?:\([\w-]+\))?[#>] ?(.*)$")
_COMMANDS: tuple[tuple[str, Kind], ...] = (
    (
        r"(?:do )?(?:sh\w* (?:run|start|conf)\w*|wr\w* t\w*|more (?:system:running|nvram:startup)-config)\b",
        "configuration",
    ),
    (r"(?:do )?sh\w* policy-m\w* int", "policies"),
    (r"(?:do )?sh\w* int\w*(?:(?! (?:desc|stat|brief|summ|count|trunk|switch|acc)).)*$", "interfaces"),
    (r"(?:do )?sh\w* ver", "version"),
    (r"(?:do )?sh\w* ip ro", "routes"),
)
_MARKS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (
        re.compile(r"Building configuration\.\.\.|(?:Current|Startup) configuration ?:|Using \d+ out of \d+"),
        "configuration",
    ),
    (re.compile(r"version \d+\.\d+(?:\(.*\)\w*)?$|!? ?Last configuration change at "), "configuration"),
    (re.compile(r"(?:Cisco (?:IOS|Internetwork Operating)|IOS \(tm\)).*(?:Software|Version)"), "version"),
    (re.compile(r"[A-Za-z][\w./:-]* is [\w ]*(?:up|down|reset|deleted).*, line protocol is "), "interfaces"),
    (re.compile(r"Codes: +L? ?-? ?|Gateway of last resort "), "routes"),
)
_WEAK = re.compile(
    r"(?:hostname|interface|class-map|policy-map|router|vrf|aaa|service|no service|enable|boot-start-marker|username"
    r"|ip (?:route|access-list|vrf|cef|domain))\b(?! is )"
)
"""Possible first lines of a configuration without its heading."""
_POLICY_MARK = re.compile(r" +(?:Service-policy (?:input|output)|Policy-map) ?: ")
_INTERFACE = re.compile(r" ?[A-Z][A-Za-z-]+ ?\d[\w/.:]*(?: ?: ?.*)?$")
_CONFIGURATION = re.compile(
    r"(?im)^ *(?:hostname|interface|policy-map|class-map|router (?:bgp|ospf|eigrp|rip)"
    r"|ip (?:route|address|access-list)) \S"
)
_HOSTNAME = re.compile(r"^ ?hostname +(\S+)")


@dataclass
class RouterOutput:
    """The output of one show command."""

    file: str
    kind: Kind
    host: str
    """Name in the prompt, or in the `hostname` line of a configuration; empty if neither is known."""
    lines: list[tuple[int, str]] = field(default_factory=list)
    """Lines with their line numbers in the file, from 1."""

    @property
    def text(self) -> str:
        """The lines, each at its line number in the file."""
        made: list[str] = []
        for number, line in self.lines:
            made += [""] * (number - 1 - len(made))
            made.append(line)
        return "\n".join(made) + "\n"


def split_outputs(file: str, pasted: str) -> list[RouterOutput]:
    """Return the outputs in a file, in order; empty if it has none."""
    lines = dedent_lines([_strip_configuration_prompt(line) for line in terminal_lines(pasted)])
    found = _split_by_lines(file, lines)
    configured = _CONFIGURATION.search("\n".join(lines)) is not None
    if configured:
        # A line such as `enable` may be typed at a prompt and still look like the first one of a configuration.
        for each in found:
            if each.kind == "configuration" and not _CONFIGURATION.search(each.text):
                each.kind = "other"
    if configured and all(each.kind == "other" for each in found):
        found = [RouterOutput(file, "configuration", "", list(enumerate(lines, 1)))]
    for each in found:
        if each.kind == "configuration":
            names = (_HOSTNAME.match(line) for _, line in each.lines)
            each.host = next((name[1].strip('"') for name in names if name), each.host)
    return [each for each in found if any(line.strip() for _, line in each.lines)]


def _strip_configuration_prompt(line: str) -> str:
    """Return a configuration command without its prompt; other lines are unchanged."""
    found = CONFIGURATION_PROMPT.match(line)
    return line if found is None or found[1].startswith("do ") else found[1]


def _split_by_lines(file: str, lines: Sequence[str]) -> list[RouterOutput]:
    found: list[RouterOutput] = []
    current: RouterOutput | None = None
    prompted = ended = False
    before = 0
    for number, line in enumerate(lines, 1):
        if (prompt := _split_prompt(line)) is not None:
            current, prompted, ended = None, bool(prompt[1]), False
            if prompt[1]:
                current = RouterOutput(file, _command_kind(prompt[1]), prompt[0])
                found.append(current)
            continue
        kind = _marked_kind(line, lines[before - 1] if before else "")
        if (
            kind is not None
            and (ended or not prompted)
            and _begins_output(current, kind, ended=ended, weak=_WEAK.match(line) is not None)
        ):
            taken = [(before, lines[before - 1])] if kind == "policies" else []
            if current is not None and taken:
                current.lines = [each for each in current.lines if each[0] < before]
            current, prompted, ended = (
                RouterOutput(file, kind, "" if current is None else current.host, taken),
                False,
                False,
            )
            found.append(current)
        before = number if line.strip() else before
        if current is None and line.strip():
            current = RouterOutput(file, "other", "")
            found.append(current)
        if current is not None:
            current.lines.append((number, line))
            ended = ended or (current.kind == "configuration" and line.strip() == "end")
    return found


def _begins_output(current: RouterOutput | None, kind: Kind, *, ended: bool, weak: bool) -> bool:
    """Return whether a line with the mark of a kind begins a new output."""
    if current is None or current.kind == "other":
        return True
    if ended:
        return not weak
    return kind not in ("configuration", current.kind)


def _split_prompt(line: str) -> tuple[str, str] | None:
    """Return host and command of a line with a prompt, or of a heading of `show tech-support`."""
    if (section := section_command(line)) is not None:
        return "", section
    found = _PROMPT.match(line)
    if found is None or "-" in found[2][:1]:
        return None
    return found[1], found[2].strip()


def _command_kind(command: str) -> Kind:
    return next((kind for pattern, kind in _COMMANDS if re.match(pattern, command, re.IGNORECASE)), "other")


def _marked_kind(line: str, before: str) -> Kind | None:
    """Return the kind of output that begins with a line."""
    if _POLICY_MARK.match(line) and _INTERFACE.match(before):
        return "policies"
    strong = next((kind for pattern, kind in _MARKS if pattern.match(line)), None)
    return strong or ("configuration" if _WEAK.match(line) else None)
