"""Difference of two configurations: the lines that change a device from one to the other.

Commands define the subject of their lines and how to remove them (`cli.undo`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Literal, get_args

from qoslab.errors import IosError, QoslabError
from qoslab.ios.cli.grammar import CliError, CommandMatch
from qoslab.ios.cli.session import INERT, Handler
from qoslab.ios.cli.undo import PLAIN, Undo
from qoslab.ios.config import CAPABILITIES, CONFIG, MODES, ConfigSession
from qoslab.ios.model.device import Device
from qoslab.ios.parse import apply_config
from qoslab.ios.running_config import render

MAX_PASSES = 3
"""Maximum number of passes over the remaining difference: a macro changes more than its own line."""


@dataclass
class ConfigurationBlock:
    """A configuration line with its child lines by subject."""

    line: str = ""
    removal_line: str = ""
    """The line that removes this line, or sets the default."""
    undo: Undo = PLAIN
    ordered: bool = False
    goes_with: str | None = None
    text: list[str] = field(default_factory=list)
    """The additional lines of a banner, unchanged."""
    children: dict[str, ConfigurationBlock] = field(default_factory=dict)

    def lines(self, depth: int = 0) -> Iterator[str]:
        """Yield the text of the whole block."""
        if self.undo.table:
            yield from self.children
            return
        yield " " * depth + self.line
        yield from self.text
        for child in self.children.values():
            yield from child.lines(depth + 1)
        if self.undo.followed is not None:
            yield " " * depth + self.undo.followed

    def differs(self, other: ConfigurationBlock | None) -> bool:
        """Return whether the other block is missing or has a different text."""
        return other is None or list(self.lines()) != list(other.lines())


Rewrite = Literal["nothing", "differing", "all"]
"""Policies, classes and addresses that are removed and re-entered."""
LATER_PASSES: Rewrite = "nothing"
"""Value of `Rewrite` for later passes: re-entered lines stay."""


def configuration_lines_between(wanted: Device, current: Device, *, rewrite: Rewrite = "all") -> list[str]:
    """Return the lines that change the device `current` to `wanted`; empty if they are equal.

    Differences are changed in place if possible; otherwise policies and addresses that differ, or if necessary all of
    them, are removed and re-entered; `rewrite` is the limit. The result is tested on a model. Raise QoslabError if no
    lines are found.
    """
    if wanted == current:
        return []
    tries = get_args(Rewrite)
    for each in tries[: tries.index(rewrite) + 1]:
        device, lines = current.copy(), []
        with suppress(IosError):
            for look in range(MAX_PASSES):
                lines += (more := _step(wanted, device, each if look == 0 else LATER_PASSES))
                apply_config(device, "\n".join(more))
                if device == wanted:
                    return lines
    raise QoslabError(
        "found no configuration lines that restore the previous running configuration",
        hint="Compare the two by hand; both are in the run folder.",
    )


def _step(wanted: Device, device: Device, rewrite: Rewrite) -> list[str]:
    """Return the lines of one pass over the differences, in an order in which they can be typed."""
    target, present = configuration_tree(wanted), configuration_tree(device)
    return [
        *_early_removals(target, present, rewrite),
        *_block_difference(target, present, rewrite=rewrite != "nothing"),
    ]


# The running configuration as a tree.


def configuration_tree(device: Device) -> ConfigurationBlock:
    """Return the running configuration as a tree, parsed as if typed.

    Printed lines that the device would refuse as input, such as default values, are included.
    """
    session = ConfigSession(Device(device.hardware))
    root = ConfigurationBlock()
    path = [("config", root)]
    lines = render(device).splitlines()
    while lines:
        line = lines.pop(0).strip()
        if line == "!":
            continue
        match = _read(session, line)
        while path[-1][0] != match.mode:
            path.pop()
        try:
            session.execute_match(match)
        except CliError:
            _add_block(path[-1][1], line, match)
            continue
        if session.finished:
            break
        block = _add_block(path[-1][1], line, match)
        if len(session.position.names) == len(path):
            path.append((session.position.mode, block))
        else:
            path[-1] = (session.position.mode, path[-1][1])
        # The text of a banner, and the unparsed block below an inert line.
        while session.is_collecting_banner or (session.position.mode == INERT and lines[0].startswith(" ")):
            block.text.append(lines.pop(0))
            session.execute(block.text[-1])
    return root


def _read(session: ConfigSession, line: str) -> CommandMatch[Handler]:
    """Match a line that the device prints. Its numbers may be out of range if it cannot be typed."""
    try:
        return session.parse(line)
    except CliError:
        return CONFIG.parse(session.position.mode, line, capabilities=session.capabilities, any_number=True)


@lru_cache(1024)
def line_subject(line: str) -> str:
    """Return the key of a line's subject, regardless of its block; the line itself if no command matches."""
    for mode in MODES:
        try:
            return CONFIG.parse(mode, line, capabilities=CAPABILITIES).key(line)
        except CliError:
            continue
    return line.removeprefix("no ")


@lru_cache(1024)
def line_table(line: str) -> str | None:
    """Return the key of the table of a global line, even if no command matches the line; None without a table.

    The `no` form that clears the table also removes the line.
    """
    words = line.removeprefix("no ").split()
    for count in range(len(words), 1, -1):
        cleared = " ".join(("no", *words[:count]))
        with suppress(CliError):
            match = CONFIG.parse("config", cleared, capabilities=CAPABILITIES)
            if match.command.undo.table:
                return match.key(cleared)
    return None


def _add_block(above: ConfigurationBlock, line: str, match: CommandMatch[Handler]) -> ConfigurationBlock:
    """Add a line below its parent, and return it."""
    how, key = match.command.undo, match.key(line)
    if how.split is not None:
        # Lines below a range of terminal lines apply to each of them.
        blocks = [ConfigurationBlock(single, f"no {single}", how) for single in how.split(match.args)]
        for block in blocks:
            above.children[block.line], block.children = block, blocks[0].children
        return blocks[0]
    if how.table:
        above = above.children.setdefault(key, ConfigurationBlock(key, f"no {key}", how))
        key = line
    elif how.parts:
        whole = (each for name, each in above.children.items() if key.startswith(f"{name} "))
        above = next(whole, above)
    ordered = how.ordered is not None and how.ordered(match.args)
    block = ConfigurationBlock(line, match.undo(line), how, ordered, match.goes_with(line))
    above.children[key] = block
    return block


# The difference of two trees.


def _early_removals(target: ConfigurationBlock, present: ConfigurationBlock, rewrite: Rewrite) -> Iterator[str]:
    """Yield the removals that precede all other changes, and remove their lines from `present`.

    These are the attachments of policies that must not stay attached. Re-entered policies (`rewrite`) are detached in
    the meantime; they are removed together with the addresses that differ, and then the policy-maps and class-maps,
    each before the names that it refers to."""
    written = {
        key: block
        for key, block in reversed(present.children.items())
        if block.undo.rewrite
        and (rewrite == "all" or (rewrite == "differing" and block.differs(target.children.get(key))))
    }
    for key, block in present.children.items():
        wanted = target.children.get(key, ConfigurationBlock())
        gone = [
            name
            for name, child in block.children.items()
            if _must_remove_first(child, wanted.children.get(name), written)
        ]
        if rewrite != "nothing" and _reentered_lines(block) != _reentered_lines(wanted):
            gone += _reentered_lines(block)
        yield from _early_removals_below(wanted, block, written)
        if gone:
            yield block.line
        for name in gone:
            yield f" {block.children[name].removal_line}"
            without = wanted.children.get(name)
            if without is not None and without.line.startswith("no "):
                # In the same position: otherwise the block would still seem to differ.
                block.children[name] = without
            else:
                del block.children[name]
    for key, block in sorted(written.items(), key=lambda item: item[1].undo.referred or 0):
        yield block.removal_line
        del present.children[key]


def _ends_with_name(line: ConfigurationBlock, blocks: Iterable[str]) -> bool:
    """Return whether a line ends with the name of one of the blocks."""
    name = line.line.split()[-1]
    return any(key.endswith(f" {name}") for key in blocks)


def _must_remove_first(line: ConfigurationBlock, wanted: ConfigurationBlock | None, written: Iterable[str]) -> bool:
    """Return whether a line is removed before all additions; `written` are the re-entered blocks."""
    if line.undo.attaches:
        return _ends_with_name(line, written) or line.differs(wanted)
    return line.undo.first and wanted is None


def _early_removals_below(
    target: ConfigurationBlock, present: ConfigurationBlock, written: Iterable[str]
) -> Iterator[str]:
    """Yield the lines that detach the policies of nested blocks (circuits), and remove these from `present`."""
    for key, block in present.children.items():
        wanted = target.children.get(key, ConfigurationBlock())
        for name, child in list(block.children.items()):
            if _must_remove_first(child, wanted.children.get(name), written):
                yield from (present.line, f" {block.line}", f"  {block.children.pop(name).removal_line}")


def _reentered_lines(block: ConfigurationBlock) -> dict[str, str]:
    """Return the lines below a block, by key, that are removed and re-entered if they differ."""
    lines = {key: child.line for key, child in block.children.items() if child.undo.rewrite}
    return {key: line for key, line in lines.items() if not line.startswith("no ")}


def _block_difference(target: ConfigurationBlock, present: ConfigurationBlock, *, rewrite: bool) -> Iterator[str]:
    """Yield the lines from one configuration to the other."""
    _drop_dependent_lines(target, present)
    gone = [block for key, block in present.children.items() if key not in target.children and block.undo.split is None]
    for block in gone:
        if block.undo.referred is None and not block.undo.verbatim:
            yield block.removal_line
    # The order of the running configuration has definitions before references to them.
    ordered = sorted(target.children.items(), key=lambda item: rewrite and not item[1].undo.early)
    for key, block in ordered:
        if block.undo.split is None and not block.undo.verbatim:
            yield from _block_changes(block, present.children.get(key), 0)
    # Remove a name before the names that it refers to.
    referred = [block for block in reversed(gone) if block.undo.referred is not None]
    yield from (block.removal_line for block in sorted(referred, key=attrgetter("undo.referred")))
    yield from _terminal_lines(target, present)
    yield from (block.removal_line for block in gone if block.undo.verbatim)
    for key, block in target.children.items():
        if block.undo.verbatim and block.differs(present.children.get(key)):
            yield from block.lines()


def _drop_dependent_lines(target: ConfigurationBlock, present: ConfigurationBlock) -> None:
    """Remove from `present` the lines that disappear with a removed or re-entered line, such as a schedule."""
    for key, block in list(present.children.items()):
        name = block.goes_with
        if name in present.children and present.children[name].differs(target.children.get(name)):
            del present.children[key]


def _block_changes(target: ConfigurationBlock, present: ConfigurationBlock | None, depth: int) -> Iterator[str]:
    """Yield the lines that change a block of `present` to that of `target`."""
    indent = " " * depth
    if present is None:
        yield from target.lines(depth)
    elif not target.differs(present):
        return
    elif (
        _is_replaced_as_whole(target)
        or _is_replaced_as_whole(present)
        or (target.undo.needs_block_removal and target.line != present.line)
    ):
        yield indent + present.removal_line
        yield from target.lines(depth)
    else:
        yield indent + target.line
        yield from _changes_below(target, present, depth + 1)


def _is_replaced_as_whole(block: ConfigurationBlock) -> bool:
    """Return whether a block can only be replaced as a whole."""
    return block.undo.needs_removal or block.undo.table


def _changes_below(target: ConfigurationBlock, present: ConfigurationBlock, depth: int) -> Iterator[str]:
    """Yield the changes below a line: removals in reverse order, then additions."""
    misplaced = _misplaced_lines(target, present)
    gone: list[ConfigurationBlock] = []
    last: list[ConfigurationBlock] = []
    for key, block in reversed(present.children.items()):
        if key not in target.children or key in misplaced:
            (last if block.undo.late else gone).append(block)
    if last:
        # One remaining line keeps the block from being empty; all of them and the new one may exceed a limit.
        stays = any(block.undo.late and key in target.children for key, block in present.children.items())
        kept = 0 if stays else 1
        gone, last = gone + last[: len(last) - kept], last[len(last) - kept :]
    yield from (" " * depth + block.removal_line for block in gone)
    for key, block in target.children.items():
        yield from _block_changes(block, None if key in misplaced else present.children.get(key), depth)
    yield from (" " * depth + block.removal_line for block in last)


def _misplaced_lines(target: ConfigurationBlock, present: ConfigurationBlock) -> set[str]:
    """Return the lines that must be re-entered for the right order, since new lines are appended."""
    wanted = [key for key, block in target.children.items() if block.ordered]
    have = [key for key, block in present.children.items() if block.ordered and key in target.children]
    kept = 0
    while kept < len(have) and wanted[kept] == have[kept]:
        kept += 1
    return set(have[kept:])


def _terminal_lines(target: ConfigurationBlock, present: ConfigurationBlock) -> Iterator[str]:
    """Yield the changes of terminal lines; neighbours with the same changes are combined."""
    superfluous = [b for key, b in present.children.items() if b.undo.split is not None and key not in target.children]
    if superfluous:
        # IOS removes the lines after it too.
        yield superfluous[0].removal_line
    changes: list[tuple[str, str, list[str]]] = []
    for key, block in target.children.items():
        if block.undo.split is not None:
            kind, _, number = key.rpartition(" ")
            changes.append(
                (kind, number, list(_changes_below(block, present.children.get(key, ConfigurationBlock()), 1)))
            )
    for (kind, below), group in groupby(changes, key=lambda each: (each[0], each[2])):
        numbers = [number for _, number, _ in group]
        if below:
            last = "" if len(numbers) == 1 else f" {numbers[-1]}"
            yield f"{kind} {numbers[0]}{last}"
            yield from below
