"""Configuration session: modes, the current object, and execution of typed lines.

`CONFIG` is the table of configuration commands, filled by the modules of commands. The session changes its
device in place. A line that is refused changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar

from qoslab.ios.cli.grammar import (
    NOT_SUPPORTED,
    Args,
    CliError,
    CommandMatch,
    CommandTable,
    HelpItem,
    InvalidInputError,
    RejectedError,
    tokenise,
)
from qoslab.ios.model import generations
from qoslab.ios.model.device import Device, Hardware, HostInterface, Interface, Line
from qoslab.ios.model.inert_lines import InertLine, indentation
from qoslab.ios.model.policy import ClassMap, PolicyClass, PolicyMap


class Mode(NamedTuple):
    """A configuration mode: its prompt is `HOSTNAME(prompt)#`; `exit` leads to `parent`."""

    prompt: str
    parent: str | None


MODES: dict[str, Mode] = {
    "config": Mode("config", None),
    "interface": Mode("config-if", "config"),
    "subinterface": Mode("config-subif", "config"),
    "atm-vc": Mode("config-if-atm-vc", "interface"),
    "subif-atm-vc": Mode("config-if-atm-vc", "subinterface"),
    "vlan": Mode("config-vlan", "config"),
    "class-map": Mode("config-cmap", "config"),
    "table-map": Mode("config-tablemap", "config"),
    "policy-map": Mode("config-pmap", "config"),
    "policy-class": Mode("config-pmap-c", "policy-map"),
    "police": Mode("config-pmap-c-police", "policy-class"),
    "line": Mode("config-line", "config"),
    # The prompts of the UDP operations are from memory, not confirmed.
    "sla": Mode("config-ip-sla", "config"),
    "sla-icmp-echo": Mode("config-ip-sla-echo", "config"),
    "sla-icmp-jitter": Mode("config-ip-sla-icmpjitter", "config"),
    "sla-udp-echo": Mode("config-ip-sla-udp", "config"),
    "sla-udp-jitter": Mode("config-ip-sla-jitter", "config"),
    "standard-acl": Mode("config-std-nacl", "config"),
    "extended-acl": Mode("config-ext-nacl", "config"),
    "ipv6-acl": Mode("config-ipv6-acl", "config"),
    "network-group": Mode("config-network-group", "config"),
    "service-group": Mode("config-service-group", "config"),
    "host-interface": Mode("config-if", "config"),
    "kept": Mode("config-kept", None),
}

HOST_INTERFACE = "host-interface"
CIRCUIT_MODES = ("atm-vc", "subif-atm-vc")
"""Modes of an ATM circuit on an interface, and on a subinterface."""
OWN_WORDS = {"map-class": "frame-relay", "dial-peer": "ip"}
"""First words of lines, by first word of their accepted block, that are also commands of the whole device."""
INERT = "kept"
"""The mode below an inert line; it accepts any line."""


def device_capabilities(hardware: Hardware) -> frozenset[str]:
    """Return the capabilities of a device: `switch`, or `router` and the capabilities of its generation."""
    return frozenset({"switch"}) if hardware.family == "switch" else frozenset({"router"}) | hardware.qos.capabilities


CAPABILITIES = frozenset({"router", "switch"}) | generations.CAPABILITIES
"""All capabilities that a command may require."""

T = TypeVar("T")
Handler = Callable[["ConfigSession", Args], None]

TEXTS = {"<cr>": "", "ip": "Interface Internet Protocol config commands"}

WITHOUT_EFFECT: set[str] = set()
"""The syntaxes of inert commands."""

CONFIG: CommandTable[Handler] = CommandTable(texts=TEXTS, parents={name: mode.parent for name, mode in MODES.items()})
router_command = partial(CONFIG.add, requires={"router"})
"""Decorator of a command of routers, with the parameters of `CONFIG.add`."""
switch_command = partial(CONFIG.add, requires={"switch"})
"""Decorator of a command of switches, with the parameters of `CONFIG.add`."""


@dataclass(frozen=True, slots=True)
class Position:
    """Position of a session: the mode and the names of the edited objects, outermost first."""

    mode: str
    names: tuple[str, ...] = ()


BELOW_REFUSED = "it is below a line that was refused"


class UnsupportedError(RejectedError):
    """Error for a line that IOS accepts and whose effect on forwarding is not modelled."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"% {NOT_SUPPORTED}{reason}")


@dataclass(frozen=True, slots=True)
class _TextBlock:
    """Position within a block of text that is kept, or refused, as a whole."""

    outer: Position
    """Position of its first line."""
    depth: int
    """Blanks before its first line."""
    cursor: int = -1
    """The index of the last line that was entered."""


class ConfigSession:
    """One login's configuration mode, from `configure terminal` to `end`.

    `capabilities` are those that commands may require (`device_capabilities`). After `end`, or `exit` from the
    outermost mode, `finished` is true. `notices` collects the output of executed lines; its reader empties it.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.capabilities = device_capabilities(device.hardware)
        self.position = Position("config")
        self.finished = False
        self.notices: list[str] = []
        self.restoring = False
        """True while a whole running configuration is read, including lines written by macros."""
        self.remarks: list[InertLine] = []
        """The inert lines; the reader empties the list."""
        self._banner: _Banner | None = None
        self.indent = 0
        """Blanks before the line that was parsed last."""
        self._block: _TextBlock | None = None
        self._range: tuple[Position, tuple[str, ...]] | None = None
        """Position after `interface range`, and the interfaces after the first one."""
        self._skipped: int | None = None
        """Indentation of a refused line: deeper indented lines belong to it."""

    @property
    def prompt(self) -> str:
        """The prompt between hostname and `#`, with its parentheses; empty while a banner is being typed."""
        if self._banner is not None:
            return ""
        return f"({MODES[self.position.mode].prompt}{'-range' if self.other_interfaces else ''})"

    @property
    def is_collecting_banner(self) -> bool:
        """True if the next lines are the text of a banner, taken as they are."""
        return self._banner is not None

    def execute(self, line: str) -> None:
        """Execute one line.

        Raise CliError, without a change, if it is refused. Empty lines and `!` comments have no effect.
        """
        if self._banner is not None:
            self._collect(line)
            return
        if not line.strip() or line.lstrip().startswith("!"):
            return
        self.execute_match(self.parse(line))

    def execute_match(self, match: CommandMatch[Handler]) -> None:
        """Execute a line that `parse` has matched. Raise CliError, without a change, if it is refused."""
        before, block = self.position, self._block
        self._leave_mode(match.mode)
        try:
            self._handle(match)
        except UnsupportedError:
            # IOS would have left the current mode: the following lines do not belong to it.
            if self._skipped is None:
                self.position, self._block = before, block
            raise
        except Exception:
            self.position, self._block = before, block
            raise

    def _handle(self, match: CommandMatch[Handler]) -> None:
        """Execute a line; for a range on each of its interfaces, or on none if one of them refuses it."""
        first, others = self.position, self.other_interfaces
        before = {name: copy(self.device.interfaces[name]) for name in (*first.names, *others) if others}
        try:
            match.command.handler(self, match.args)
            if self.position != first:
                return
            for name in others:
                self.position = Position(first.mode, (name,))
                match.command.handler(self, match.args)
        except Exception:
            self.device.interfaces.update(before)
            raise
        self.position = first

    @property
    def other_interfaces(self) -> tuple[str, ...]:
        """The interfaces of the current range except the first one; empty outside a range."""
        return self._range[1] if self._range is not None and self._range[0] is self.position else ()

    def parse(self, line: str) -> CommandMatch[Handler]:
        """Match one line in the current mode and its parent modes."""
        self.indent = indentation(line)
        if self._skipped is not None and self.indent > self._skipped:
            raise UnsupportedError(BELOW_REFUSED)
        self._skipped = None
        if self._block is not None and self.position.mode == INERT:
            return self._parse_in_block(line, self._block)
        match = CONFIG.parse(self.position.mode, line, capabilities=self.capabilities)
        further_up = match.mode not in (self.position.mode, "policy-class")
        if self.indent and further_up and match.command.syntax in WITHOUT_EFFECT:
            # An indented line belongs to the line above it; a class continues after `police`.
            raise InvalidInputError(self.indent)
        return match

    def _parse_in_block(self, line: str, block: _TextBlock) -> CommandMatch[Handler]:
        """Match a line after the first line of a block of text.

        It belongs to the block if it is indented deeper than the first line of the block, or if it is no command and
        its first word begins no command. In an interface's block, commands of interfaces belong to it too.
        """
        inside, outside = INERT, block.outer.mode
        if line.strip() in ("exit", "end") or indentation(line) > block.depth or self._is_in_block(line):
            return CONFIG.parse(inside, line, capabilities=self.capabilities)
        try:
            return CONFIG.parse(outside, line, capabilities=self.capabilities)
        except CliError:
            words = [each.text.lower() for each in tokenise(line) if each.text.lower() not in ("no", "default")]
            if words and words[0] in CONFIG.first_words(outside):
                raise
            return CONFIG.parse(inside, line, capabilities=self.capabilities)

    def _is_in_block(self, line: str) -> bool:
        """Return whether a line belongs to a block of this kind; for an interface, any command of interfaces does."""
        head = self.position.names[0].split()[0]
        words = [each.text.lower() for each in tokenise(line)]
        if words[words[:1] == ["no"] :][:1] == [OWN_WORDS.get(head)]:
            return True
        if head != "interface":
            return False
        try:
            return CONFIG.parse("interface", line, capabilities=self.capabilities).mode == "interface"
        except CliError:
            return False

    def help(self, line: str) -> list[HelpItem]:
        """Return the answer to `?` at the end of `line`."""
        return CONFIG.help(self.position.mode, line, capabilities=self.capabilities)

    def complete(self, line: str) -> str | None:
        """Return the unique keyword completion of the last token of `line`; None without one."""
        return CONFIG.complete(self.position.mode, line, capabilities=self.capabilities)

    # Methods for the handlers.

    def enter(self, mode: str, name: str) -> None:
        """Go one mode down, to the object `name`."""
        self.position = Position(mode, (*self.position.names, name))

    def enter_range(self, mode: str, names: tuple[str, ...]) -> None:
        """Enter the mode of several interfaces, which all get the following lines."""
        self.enter(mode, names[0])
        self._range = (self.position, names[1:])

    def enter_instead(self, mode: str) -> None:
        """Go to another mode of the same object."""
        self.position = Position(mode, self.position.names)

    def leave(self) -> None:
        """Go one mode up (`exit`); from the outermost mode, leave configuration."""
        parent = MODES[self.position.mode].parent
        if self._block is not None and self.position.mode == INERT:
            self.position, self._block = self._block.outer, None
        elif parent is None:
            self.finished = True
        else:
            self.position = Position(parent, self.position.names[:-1])

    def end(self) -> None:
        """Leave configuration from any depth."""
        self.position = Position("config")
        self.finished = True

    def begin_block(self, key: str) -> None:
        """Take the lines below the current one as text, kept with the line of that key."""
        self._block = _TextBlock(self.position, self.indent)
        self.position = Position(INERT, (key,))

    def skip_block(self) -> None:
        """Refuse the lines that are indented below the current one; the caller refuses the current one."""
        self._skipped = self.indent

    @property
    def block(self) -> _TextBlock:
        """The current block of text."""
        assert self._block is not None
        return self._block

    def set_block_cursor(self, cursor: int) -> None:
        """Set the index of the last line in the block of text."""
        self._block = replace(self.block, cursor=cursor)

    def begin_banner(self, delimiter: str, keep: Callable[[str], None], first: str) -> None:
        """Take the following lines as text up to `delimiter`, then call `keep` with it."""
        self._banner = _Banner(delimiter, keep, [])
        self._collect(first)

    @property
    def interface(self) -> Interface:
        """The interface being configured."""
        return self._drop_missing(self.device.interfaces.get(self.position.names[0]))

    @property
    def host_interface(self) -> HostInterface:
        """The Loopback or Null interface being configured."""
        return self._drop_missing(self.device.host_interfaces.get(self.position.names[0]))

    @property
    def terminal_lines(self) -> list[Line]:
        """The terminal lines being configured."""
        return [self._drop_missing(self.device.lines.get(name)) for name in self.position.names[0].split(",")]

    @property
    def class_map(self) -> ClassMap:
        """The class-map being configured."""
        return self._drop_missing(self.device.class_maps.get(self.position.names[0]))

    @property
    def policy_map(self) -> PolicyMap:
        """The policy-map being configured."""
        return self._drop_missing(self.device.policy_maps.get(self.position.names[0]))

    @property
    def policy_class(self) -> PolicyClass:
        """The class of a policy-map being configured."""
        return self._drop_missing(self.policy_map.find(self.position.names[1]))

    @staticmethod
    def _drop_missing(found: T | None) -> T:
        if found is None:
            # Another session removed it in the meantime.
            raise RejectedError("% The object being configured has been removed")
        return found

    def _leave_mode(self, mode: str) -> None:
        while self.position.mode != mode:
            self.leave()

    def _collect(self, line: str) -> None:
        banner = self._banner
        assert banner is not None
        text, delimiter, _ = line.partition(banner.delimiter)
        banner.lines.append(text)
        if delimiter:
            self._banner = None
            banner.keep("\n".join(banner.lines))


@dataclass(slots=True)
class _Banner:
    delimiter: str
    keep: Callable[[str], None]
    lines: list[str]


@CONFIG.add(tuple(MODES), "exit", help={"exit": "Exit from the current mode"})
def _exit(session: ConfigSession, args: Args) -> None:
    session.leave()


@CONFIG.add(tuple(MODES), "end", help={"end": "Exit from configure mode"})
def _end(session: ConfigSession, args: Args) -> None:
    session.end()
