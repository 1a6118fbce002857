"""Parser of running configurations of real devices, most of whose lines are irrelevant to QoS.

`qoslab.ios.parse` refuses a line that the device model does not know. This parser collects such lines with their
blocks as unread and reads the rest.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from qoslab.ios.cli.grammar import CliError, InvalidInputError
from qoslab.ios.cli.session import INERT, Position
from qoslab.ios.config import CONFIG, MODES, ConfigSession
from qoslab.ios.device_config.diff import line_subject
from qoslab.ios.model.device import Clutter, Device, Hardware
from qoslab.ios.model.generations import train_generations
from qoslab.ios.model.inert_lines import InertLine
from qoslab.ios.model.ios_names import interface_kind, interface_name
from qoslab.ios.parse import HEADING
from qoslab.model.generation import Generation

_RANGE = re.compile(r"<(\d+)-(\d+)>")
"""Range of a number in help."""
_INTERFACE = re.compile(r"interface +(\S+) *")
_BANNER = re.compile(r"banner +(?!(?:motd|login|exec|incoming)\b)\S+ +(\^?.)(.*)")
_VERSION = re.compile(r"(?m)^version +(\S+)")
_ROOTS = {
    "standard-acl": "ip access-list standard",
    "extended-acl": "ip access-list extended",
    "ipv6-acl": "ipv6 access-list",
    "sla": "ip sla",
}
"""Beginning of the line that enters a mode, if it differs from the mode's name."""

_CRYPTO_BLOCK = re.compile(
    r"crypto (?:ipsec (?:transform-set|profile)|map \S+ \d|dynamic-map|isakmp (?:policy|profile|client)|keyring"
    r"|ikev2 \w|pki (?:trustpoint|certificate)|gdoi)"
)
"""First lines of blocks, of which interfaces have the first word, too."""
_BELOW_CRYPTO = re.compile(r"(?:mode (?:transport|tunnel)|set|match (?:address|identity)|qos pre-classify)\b")
"""Lines of these blocks that other modes have, too, or that tunnels depend on."""

POLICY_MODES = ("policy-map", "policy-class", "police")

CREATED_INTERFACES = ("Loopback", "Null")
SWITCH_CREATED_INTERFACES = (*CREATED_INTERFACES, "Vlan")
"""Interface types created by configuration, without hardware: of a router (`CREATED_INTERFACES`) and of a switch."""

Chain = tuple[str, ...]
"""A place in a configuration: the keys, as in `diff.subject`, of the parent lines, outermost first."""


@dataclass(frozen=True, slots=True)
class UnreadLine:
    """A line that the device model does not accept."""

    place: Chain
    text: str
    """One blank between words."""
    reason: str
    """Reason given by the command line."""
    head: Chain = field(default=(), compare=False)
    """The known parent lines, outermost first, as in a running configuration."""
    depth: int = field(default=0, compare=False)
    """Number of parent lines, known or not."""
    number: int = field(default=0, compare=False)
    """Line of the text, from 1."""


@dataclass(frozen=True, slots=True)
class ExecutedLine:
    """An executed line."""

    number: int
    """Line of the text, from 1."""
    position: Position
    """Mode and names after the line."""
    text: str
    """One blank between words."""
    remarks: tuple[InertLine, ...] = ()
    """Lines without effect."""
    other_interfaces: tuple[str, ...] = ()
    """Interfaces of a range, except the first one, which is in the position."""


@dataclass(frozen=True, slots=True)
class InputLine:
    """A line of the text, executed or not."""

    number: int
    """Line of the text, from 1."""
    place: Chain
    """Names of the position of an executed line; the parent lines of an unread line."""
    head: str | None
    """The first parent line of an unread line, a line without effect, or a line of an interface; empty if it has none.

    None for other executed lines.
    """
    text: str
    """One blank between words."""


@dataclass(slots=True)
class ConfigurationReading:
    """Result of reading a configuration."""

    device: Device
    unread: list[UnreadLine] = field(default_factory=list)
    entered: set[Position] = field(default_factory=set)
    """Places of the executed lines: mode and names."""
    executed: list[ExecutedLine] = field(default_factory=list)
    """The executed lines, in order."""
    _by_names: dict[tuple[str, ...], list[ExecutedLine]] = field(default_factory=lambda: defaultdict(list))
    """Lines of policy-maps by the first names of their position."""
    _by_owner: dict[str, list[ExecutedLine]] = field(default_factory=lambda: defaultdict(list))
    """All lines by the first name of their position."""
    _indexed: int = 0
    """Number of lines in the two indexes."""

    def _index(self) -> None:
        for each in self.executed[self._indexed :]:
            names = each.position.names
            if names:
                for owner in (names[0], *each.other_interfaces):
                    self._by_owner[owner].append(each)
            if each.position.mode in POLICY_MODES:
                for length in range(1, len(names) + 1):
                    self._by_names[names[:length]].append(each)
        self._indexed = len(self.executed)

    def input_lines(self) -> list[InputLine]:
        """Return the executed lines, and after them the unread ones."""
        found = []
        for each in self.executed:
            mode, names = each.position.mode, each.position.names
            head = names[0] if mode == INERT else f"interface {names[0]}" if mode == "interface" else None
            found.append(InputLine(each.number, names, head, each.text))
        for unread in self.unread:
            found.append(InputLine(unread.number, unread.place, unread.place[0] if unread.place else "", unread.text))
        return found

    def lines_below(self, name: str) -> list[ExecutedLine]:
        """Return the executed lines of all positions whose first name is given, such as that of an interface."""
        self._index()
        return self._by_owner.get(name, [])

    def line_number(self, *names: str, command: str = "") -> int:
        """Return the line of a policy-map or of its class, or its last line that begins with a command; or 0."""
        self._index()
        own = self._by_names.get(names, [])
        if command:
            return max((each.number for each in own if each.text.startswith(command)), default=0)
        return own[0].number if own else 0

    def class_map_line(self, name: str) -> int:
        """Return the line of a class-map; or 0."""
        lines = (each for each in self.lines_below(name) if each.position == Position("class-map", (name,)))
        return next((each.number for each in lines), 0)

    def interface_line(self, interface: str, command: str) -> int:
        """Return the last line below an interface that begins with a command; or 0."""
        own = self.lines_below(interface)
        return max((each.number for each in own if each.text.startswith(command)), default=0)


def unread_as_inert_lines(reading: ConfigurationReading) -> Clutter:
    """Return the unread lines in the form of `Device.clutter`, for a device that prints them anyway."""
    return tuple((each.head, " " * each.depth + each.text) for each in reading.unread)


def normalise_blanks(line: str) -> str:
    """Return a line with one blank between its words."""
    return " ".join(line.split())


def session_place(position: Position) -> Chain:
    """Return the place of lines entered at a position of a configuration session."""
    mode, names = position.mode, position.names
    if not names:
        return ()
    root = mode
    while (parent := MODES[root].parent) not in (None, "config"):
        assert parent is not None
        root = parent
    root = "sla" if root.startswith("sla") else root
    head = block_name(f"{_ROOTS.get(root, root)} {names[0]}")
    if root in ("interface", "subinterface") and len(names) > 1:
        return (head, f"pvc {names[1]}")
    if root == "policy-map" and len(names) > 1:
        return (head, f"class {names[1]}")
    return (head,)


def block_name(line: str) -> str:
    """Return the name of the block below a line in a place."""
    if line.startswith("line "):
        # A range of terminal lines may be printed in parts.
        return "line"
    try:
        return line_subject(line)
    except IndexError:
        # The line only begins like a known line.
        return line


def possible_generations(text: str) -> tuple[Generation, ...]:
    """Return the possible generations of the router by its `version` line: only 12.4 has releases of both."""
    version = _VERSION.search(text)
    return train_generations("" if version is None else version[1])


def described_hardware(text: str, family: str, generation: Generation) -> Hardware:
    """Return the hardware described by a running configuration: its interfaces. The generation is mostly not shown."""
    made = SWITCH_CREATED_INTERFACES if family == "switch" else CREATED_INTERFACES
    names = (interface_name(match[1]) for line in text.splitlines() if (match := _INTERFACE.fullmatch(line)))
    version = _VERSION.search(text)
    return Hardware(
        platform="",
        # Partial output may contain a subinterface without its port: the port exists, too.
        interfaces=tuple(
            dict.fromkeys(name.partition(".")[0] for name in names if name and interface_kind(name) not in made)
        ),
        generation=generation,
        version="12.4" if version is None else version[1],
        family="switch" if family == "switch" else "router",
    )


def likely_hardware(text: str, family: str) -> Hardware:
    """Return the hardware described by a running configuration, with the generation that leaves fewer unknown lines."""
    candidates = (described_hardware(text, family, generation) for generation in possible_generations(text))
    return min(candidates, key=lambda hardware: len(read_running(text, hardware).unread))


def read_running(text: str, hardware: Hardware) -> ConfigurationReading:
    """Read a running configuration by its blocks: indented lines belong to the line above them."""
    return read_into(Device(hardware), text)


def read_into(device: Device, text: str) -> ConfigurationReading:
    """Read a running configuration into `device`, which is changed."""
    reading = ConfigurationReading(device)
    session = ConfigSession(reading.device)
    above: list[_OpenBlock] = []
    for number, line in _numbered_lines(text, lambda: session.is_collecting_banner):
        if session.is_collecting_banner:
            session.execute(line)
            continue
        depth = len(line) - len(line.lstrip())
        while above and above[-1].depth >= _effective_depth(line, depth, above):
            above.pop()
        if depth == 0:
            session.position = Position("config")
        if above and above[-1].unread:
            reason = "the line above it is unknown"
        else:
            reason = _execute_line(session, line, nested=depth > 0)
        if reason:
            place = tuple(block_name(each.text) for each in above)
            head = tuple(each.text for each in above if not each.unread)
            reading.unread.append(UnreadLine(place, normalise_blanks(line), reason, head, len(above), number))
        else:
            reading.executed.append(_executed_line(session, number, line))
        above.append(_OpenBlock(depth, normalise_blanks(line), bool(reason)))
        session.finished = False
    return reading


def _executed_line(session: ConfigSession, number: int, line: str) -> ExecutedLine:
    remarks = tuple(session.remarks)
    session.remarks.clear()
    return ExecutedLine(number, session.position, normalise_blanks(line), remarks, session.other_interfaces)


@dataclass(frozen=True, slots=True)
class _OpenBlock:
    depth: int
    text: str
    unread: bool


def _effective_depth(line: str, depth: int, above: list[_OpenBlock]) -> int:
    """Return the effective depth of a line: actions of a class are printed at different depths but are siblings."""
    in_class = len(above) > 1 and above[0].text.startswith("policy-map ") and depth > above[1].depth
    return above[1].depth + 1 if in_class and not line.split()[0].endswith("-action") else depth


def _execute_line(session: ConfigSession, line: str, *, nested: bool) -> str:
    """Execute a line; return the reason of a refusal."""
    try:
        if nested and session.parse(line).mode == "config":
            # A line within a block is not a global command, even if a global command has the same words.
            return "it is unknown here"
        session.execute(line)
    except CliError as error:
        return _refusal_reason(session, error, line)
    return ""


def _refusal_reason(session: ConfigSession, error: CliError, line: str) -> str:
    """Return the message of a refusal, with the word that no command accepts and, of a number, the accepted ranges."""
    if not isinstance(error, InvalidInputError):
        return error.message
    known, word = line[: error.column].split(), next(iter(line[error.column :].split()), "")
    if not word or known in ([], ["no"]):
        return error.message
    try:
        ranges = [match for each in session.help(line[: error.column]) if (match := _RANGE.fullmatch(each.word))]
    except CliError:
        ranges = []
    inside = word.isdecimal() and any(int(each[1]) <= int(word) <= int(each[2]) for each in ranges)
    expected = ", ".join(dict.fromkeys(f"{each[1]} to {each[2]}" for each in ranges))
    shown = expected if word[0].isdigit() and not inside else ""
    return f"{error.message} ({word}{f', expected {shown}' if shown else ''})"


def _numbered_lines(text: str, collecting: Callable[[], bool]) -> Iterator[tuple[int, str]]:
    """Yield the configuration lines with their numbers, from 1, without banners that the model does not have."""
    delimiter = ""
    for number, line in enumerate(text.expandtabs(1).splitlines(), 1):
        if collecting():
            yield number, line
        elif delimiter:
            delimiter = "" if delimiter in line else delimiter
        elif (banner := _BANNER.fullmatch(line)) is not None:
            delimiter = "" if banner[1] in banner[2] else banner[1]
        elif line.strip() and not line.lstrip().startswith("!") and not HEADING.fullmatch(line.strip()):
            if line.strip() == "end":
                return
            yield number, line.rstrip()


def enter_lines(reading: ConfigurationReading, text: str) -> None:
    """Execute a piece of typed configuration on top of `reading`, possibly abbreviated and with or without indentation.

    A refused line and the deeper lines below it are collected as unread.
    """
    session = ConfigSession(reading.device)
    indented = any(line.startswith(" ") for line in text.splitlines())
    refused: _OpenBlock | None = None
    for number, line in _numbered_lines(text, lambda: session.is_collecting_banner):
        depth = len(line) - len(line.lstrip())
        if session.is_collecting_banner:
            session.execute(line)
            continue
        if refused is not None and depth > refused.depth:
            place = (*session_place(session.position), block_name(refused.text))
            reading.unread.append(
                UnreadLine(place, normalise_blanks(line), "the line above it was refused", number=number)
            )
            continue
        refused = None
        if reason := _enter_line(session, line):
            if depth == 0 and indented:
                # The refused line would have begun a block, or belongs to none.
                session.position = Position("config")
            reading.unread.append(
                UnreadLine(session_place(session.position), normalise_blanks(line), reason, number=number)
            )
            refused = _OpenBlock(depth, normalise_blanks(line), unread=True)
        else:
            reading.executed.append(_executed_line(session, number, line))
        reading.entered.add(session.position)
        session.finished = False


def read_typed_lines(reading: ConfigurationReading, text: str) -> None:
    """Execute lines without indentation on top of `reading`, as typed at the prompt of a router.

    The commands determine the mode. Lines of an unknown block are collected as unread up to the next global command.
    """
    session = ConfigSession(reading.device)
    lost = ""
    for number, line in _numbered_lines(text, lambda: session.is_collecting_banner):
        if session.is_collecting_banner:
            session.execute(line)
            continue
        line = line.strip()
        outer = session.position
        if lost.startswith("crypto ") and _BELOW_CRYPTO.match(line):
            place: Chain = (block_name(lost),)
            reading.unread.append(
                UnreadLine(place, normalise_blanks(line), "the line above it is unknown", number=number)
            )
            continue
        reason = _execute_line(session, line, nested=False)
        if not reason:
            if session.position != Position("config") or _begins_block(line):
                lost = ""
            reading.executed.append(_executed_line(session, number, line))
        else:
            place = (block_name(lost),) if lost else session_place(outer)
            if _begins_block(line, "" if lost else outer.mode):
                session.position, lost, place = Position("config"), normalise_blanks(line), ()
            reading.unread.append(UnreadLine(place, normalise_blanks(line), reason, number=number))
        session.finished = False


def _begins_block(line: str, mode: str = "") -> bool:
    """Return whether a line begins a block or is a global command, judging by its first word alone.

    A word of another mode decides nothing. With `mode`, the modes are that one and the modes above it.
    """
    if _CRYPTO_BLOCK.match(line):
        return True
    first = line.split()[0].lower()
    inner = ["interface", "policy-map", "policy-class", "class-map", "police", "line"]
    if mode.startswith(("policy", "class-map")):
        inner = [mode, "policy-map"]
    return first in CONFIG.first_words("config") and not any(first in CONFIG.first_words(each) for each in inner)


def _enter_line(session: ConfigSession, line: str) -> str:
    """Execute a line; return the reason of a refusal. A requested policy replaces an attached one."""
    reason = _execute_line(session, line, nested=False)
    if not reason or session.position.mode != "interface":
        return reason
    interface = session.interface
    attached = interface.service_policy_input, interface.service_policy_output
    if attached == (None, None):
        return reason
    interface.service_policy_input = interface.service_policy_output = None
    reason = _execute_line(session, line, nested=False)
    interface.service_policy_input = interface.service_policy_input or attached[0]
    interface.service_policy_output = interface.service_policy_output or attached[1]
    return reason
