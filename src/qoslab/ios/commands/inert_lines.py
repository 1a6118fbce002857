"""Inert lines: stored in order, printed, removed by `no`.

`ios.inert_commands` and `ios.undecided` define them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from qoslab.ios.cli import syntax
from qoslab.ios.cli.grammar import UNDECIDED as UNDECIDED_HELP
from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import CONFIG, HOST_INTERFACE, INERT, WITHOUT_EFFECT, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.command_families import RANKS, CommandFamily
from qoslab.ios.commands.policy_map import change_class
from qoslab.ios.inert_commands import FAMILIES, UNDECIDED_BELOW
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.inert_lines import InertLine, InertLines, insert_line, remove_lines
from qoslab.ios.registry import BLOCKS, INTERFACE_LINES
from qoslab.ios.undecided import UNDECIDED

_REST = re.compile(r" (?:<rest:line>|\[<rest:line>\])(\]*)$")
INTERFACES = ("interface", "subinterface", HOST_INTERFACE)
PRINTED_AFTER = (RANKS["services"],)
"""Ranks that are printed within a block of another module."""
(VIRTUAL_INTERFACE,) = (each for each in UNDECIDED if each.rows == (">interface <key:other-interface>",))


def _line_key(args: Args, names: frozenset[str]) -> str:
    """Return the key of a line's subject: the words of the arguments with these names."""
    return " ".join(str(each.value) for each in args.typed_order() if each.name in names)


def full_line_text(args: Args) -> str:
    """Return a line with unabbreviated keywords."""
    return " ".join(str(each.value) for each in args.typed_order())


def _change(session: ConfigSession, change: Callable[[InertLines], InertLines]) -> None:
    """Change the inert lines at the session's position."""
    if session.position.mode in ("interface", "subinterface"):
        session.interface.inert = change(session.interface.inert)
    elif session.position.mode == HOST_INTERFACE:
        interface = session.host_interface
        session.device.host_interfaces[interface.name] = replace(interface, inert=change(interface.inert))
    elif session.position.mode == "policy-class":
        changed = replace(session.policy_class, inert=change(session.policy_class.inert))
        change_class(session, changed)
    elif session.position.mode == "line":
        for line in session.terminal_lines:
            line.inert = change(line.inert)
    else:
        session.device.inert = change(session.device.inert)


def _store(session: ConfigSession, line: InertLine) -> None:
    _change(session, lambda inert: inert.add_line(line))
    session.remarks.append(line)


def _remove_superseded(device: Device, key: str) -> None:
    """Remove the model's settings on the same subject: a user has one password, of a known kind or not."""
    kind, _, name = key.rpartition(" ")
    if kind == "username":
        device.users.pop(name, None)
    elif key == "enable secret":
        device.enable_secret = None


def _family_help(family: CommandFamily) -> str:
    return f"{UNDECIDED_HELP if family.undecided else '(no effect in qoslab) '}{family.subject}"


def _inert_line(family: CommandFamily, key: str, text: str) -> InertLine:
    return InertLine(key, text, family.subject, family.rank, family.undecided)


def _keep_block(session: ConfigSession, family: CommandFamily, key: str, text: str) -> None:
    """Store the first line of a block, and enter the block."""
    present = session.device.inert.find(key)
    line = _inert_line(family, key, text)
    _store(session, line if present is None else replace(line, below=present.below))
    session.begin_block(key)


def keep_virtual_interface(session: ConfigSession, name: str, args: Args) -> None:
    """Store an interface without lab traffic and enter its block, or remove it."""
    key = f"interface {name}"
    if args.unset:
        session.device.inert = session.device.inert.remove_line(key)
    else:
        _keep_block(session, VIRTUAL_INTERFACE, key, key)


def _register(family: CommandFamily, row: str) -> None:
    marks = row[: len(row) - len(row.lstrip("~=>"))]
    about, elsewhere, further = row[len(marks) :].partition("^")
    text = about + further
    subject = about.strip() if elsewhere else _drop_rest_argument(text)
    names = frozenset(syntax.syntax_names(subject))

    def handler(session: ConfigSession, args: Args) -> None:
        key = _line_key(args, names)
        if args.form == "default" or (args.is_negated and "~" not in marks and "=" not in marks):
            _change(session, lambda inert: inert.remove_line(key))
        elif args.is_negated:
            _store(session, _inert_line(family, key, f"no {full_line_text(args)}"))
        elif "~" in marks:
            _change(session, lambda inert: inert.remove_line(key))
        elif ">" in marks:
            _keep_block(session, family, key, full_line_text(args))
        else:
            _remove_superseded(session.device, key)
            _store(session, _inert_line(family, key, full_line_text(args)))

    WITHOUT_EFFECT.add(text)
    no: str | bool = False if elsewhere else subject if subject == text else f"{subject} [<rest:line>]"
    CONFIG.add(
        INTERFACES if family.mode == "interface" else family.mode,
        text,
        no=no,
        help=dict.fromkeys(syntax.syntax_names(text), _family_help(family)),
        requires={family.requires} - {""},
        undo=Undo(key=subject, needs_removal=">" in marks),
        fallback=family.undecided,
    )(handler)


def _drop_rest_argument(text: str) -> str:
    """Return a syntax without `<rest:line>` at its end."""
    return _REST.sub(lambda match: match[1], text)


for _family in (*FAMILIES, *UNDECIDED):
    for _row in _family.rows:
        _register(_family, _row)


@CONFIG.add(INERT, "<text:line>", no="<text:line>", help={"text": "An inert line, together with the line above it"})
def _store_below(session: ConfigSession, args: Args) -> None:
    """Store a line below another one, or remove it."""
    line = session.device.inert.find(session.position.names[0])
    if line is None:
        return
    words = args.value("text", str)
    for head, word, reason in UNDECIDED_BELOW:
        if line.key.split()[0] == head and words.split()[0] == word:
            key = f"{head} {words}"
            session.remarks.append(InertLine(key, words, reason, line.place, undecided=True))
    block = session.block
    text = " " * max(session.indent - block.depth - 1, 0) + words
    changed, cursor = remove_lines(line, text, block.cursor) if args.unset else (line, block.cursor)
    if args.is_negated and changed == line:
        changed, cursor = insert_line(line, text.replace(words, f"no {words}"), cursor)
    elif not args.unset:
        changed, cursor = insert_line(line, text, cursor)
    session.set_block_cursor(cursor)
    session.device.inert = session.device.inert.add_line(changed)


def inert_lines_of_rank(device: Device, place: int) -> Iterator[str]:
    """Yield the inert lines of a rank in the running configuration, with their blocks."""
    for line in device.inert.block_lines(place):
        yield line.text
        yield from (f" {each}" for each in line.below)


def _rank_block(place: int) -> Callable[[Device], Iterator[list[str]]]:
    def block(device: Device) -> Iterator[list[str]]:
        plain = [line.text for line in device.inert.block_lines(place) if not line.below]
        yield plain
        for line in device.inert.block_lines(place):
            if line.below:
                yield [line.text, *(f" {each}" for each in line.below)]

    return block


for _place in sorted({family.rank for family in (*FAMILIES, *UNDECIDED)} - {0, *PRINTED_AFTER}):
    BLOCKS.register_family(_place)(_rank_block(_place))


@INTERFACE_LINES.register_family(70)
def _interface_lines(interface: Interface) -> Iterator[str]:
    yield from (line.text for line in interface.inert)
