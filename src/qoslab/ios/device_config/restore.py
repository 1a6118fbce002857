"""Restoration of a device's configuration from before a run, preserving later changes by others.

Only the changes of the run are undone: the blocks, and the lines of blocks, that its configuration changed on a model
of the device. Changes by others in the meantime stay, and are reported. Lines that the model does not accept are
compared as text; of these, only lines that the run pushed itself are removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from qoslab.errors import QoslabError
from qoslab.ios.device_config.diff import (
    ConfigurationBlock,
    configuration_lines_between,
    configuration_tree,
    line_table,
)
from qoslab.ios.device_config.running_config_parser import (
    ConfigurationReading,
    UnreadLine,
    enter_lines,
    normalise_blanks,
    read_running,
)
from qoslab.ios.model.device import Device, Hardware

MARK = "alias exec qoslab"
"""Line that marks the router as locked by a run, followed by the owner."""
APPLETS = ("event manager applet qoslab-1", "event manager applet qoslab-2")
"""Applets of the rollback timer, one at a time."""
VOLATILE = {
    "ntp clock-period": "the router adjusts it during operation",
    MARK: "it marks the router as in use, and is not part of the configuration",
    **dict.fromkeys(
        APPLETS, "it rolls the configuration back if the run is interrupted, and is removed with the run lock"
    ),
}
"""Lines that are not compared, with the reason. Comments and the heading are never read."""


@dataclass(frozen=True, slots=True)
class RestorationPlan:
    """Lines that restore a device, and the changes that stay."""

    lines: tuple[str, ...]
    """Lines to configure, in this order; tested on the model."""
    left: tuple[str, ...]
    """Changes of others during the run that are left in place, one sentence each."""


def plan_restoration(before: str, after: str, pushed: Sequence[str], hardware: Hardware) -> RestorationPlan:
    """Return the restoration of a device that printed `before`, got the configurations `pushed` and prints `after`.

    `before` and `after` are running configurations. Raise QoslabError if no lines are known that undo the changes.
    """
    was, now = (_without_volatile_lines(read_running(text, hardware)) for text in (before, after))
    touched = _touched_lines(was.device, pushed)
    target, present = configuration_tree(was.device), configuration_tree(now.device)
    left = [sentence for keys, sentence in _tree_changes(target, present) if not touched.has(keys)]
    wanted = _reread_block(_merge_trees(target, present, touched), hardware) if left else was.device
    refused = _own_lines(was.unread, now.unread, pushed)
    lines = [*_removed_lines(refused), *configuration_lines_between(wanted, now.device, rewrite="differing")]
    taken_off = {key for key in touched.whole if key not in target.children}
    unread = [line for line in now.unread if line not in refused]
    return RestorationPlan(tuple(lines), (*left, *_unread_changes(was.unread, unread, taken_off)))


def unrestored_lines(before: str, after: str, pushed: Sequence[str], hardware: Hardware) -> list[str]:
    """Return the lines of `pushed` not rolled back in the running configuration `after`, one sentence each.

    Without pushed lines, return all differences from `before`.
    """
    was, now = (_without_volatile_lines(read_running(text, hardware)) for text in (before, after))
    touched = _touched_lines(was.device, pushed)
    target, present = configuration_tree(was.device), configuration_tree(now.device)
    found = [sentence for keys, sentence in _tree_changes(target, present) if not pushed or touched.has(keys)]
    if not pushed:
        return [*found, *_unread_changes(was.unread, now.unread, set())]
    # A line missing below a line that stays was removed by others; a line in a removed block was removed by the run.
    names = _block_keys(target, was.unread)
    mine = [line for line in was.unread if (name := _block_key(line)) in touched.whole or name in touched.keys & names]
    known = {(line.place, line.text) for line in mine}
    left = [line for line in now.unread if (line.place, line.text) in known]
    return [*found, *_unread_changes(mine, [*left, *_own_lines(was.unread, now.unread, pushed)], set())]


def find_collisions(before: str, asked: str, hardware: Hardware) -> list[str]:
    """Return the parts of the running configuration `before` that `asked` would overwrite, one sentence each.

    These are policy-maps, class-maps, access lists and operations of the same name with different content, and policies
    attached in the place of requested ones. They belong to the device, and its owner must decide. Lines that the model
    does not accept count as content: they would be removed with their block and could not be restored.
    """
    own = _without_volatile_lines(read_running(before, hardware))
    alone = ConfigurationReading(Device(hardware))
    enter_lines(alone, asked)
    had, made = configuration_tree(own.device), configuration_tree(alone.device)
    found = []
    for key, block in made.children.items():
        mine = had.children.get(key)
        if mine is None:
            continue
        if block.undo.referred is not None and mine.differs(block):
            found.append(f"it has its own `{mine.line}`, with different content")
        for name, child in mine.children.items():
            wanted = block.children.get(name)
            if child.undo.attaches and wanted is not None and wanted.line != child.line:
                found.append(f"`{child.line}` is already active under `{mine.line}`")
    return [*found, *_unread_collisions(own, alone, asked)]


# Lines changed by the run.


@dataclass(frozen=True)
class _TouchedLines:
    """Changes below one line."""

    whole: frozenset[str]
    """Keys of lines that were added or removed, with all lines below them."""
    parts: dict[str, _TouchedLines]
    """Changed children by key of a line that stayed; empty changes stand for the line itself."""

    def has(self, keys: Sequence[str]) -> bool:
        """Return whether the line with these keys, outermost first, or a parent of it, was changed."""
        return bool(keys) and (keys[0] in self.whole or self.lines_below(keys[0]).has(keys[1:]))

    def lines_below(self, key: str) -> _TouchedLines:
        return self.parts.get(key, _NOTHING)

    @property
    def keys(self) -> set[str]:
        """Keys of lines that were added, removed, or have changed children."""
        return {*self.whole, *self.parts}


_NOTHING = _TouchedLines(frozenset(), {})


def _touched_lines(device: Device, pushed: Sequence[str]) -> _TouchedLines:
    """Return the changes that configurations make on a device, each entered separately and in order."""
    before = configuration_tree(device)
    found = _NOTHING
    together = device.copy()
    for text in pushed:
        alone = ConfigurationReading(device.copy())
        enter_lines(alone, text)
        enter_lines(ConfigurationReading(together), text)
        for changed in (alone.device, together):
            found = _merge_touched(found, _tree_difference(before, configuration_tree(changed)))
    return found


def _tree_difference(one: ConfigurationBlock, other: ConfigurationBlock) -> _TouchedLines:
    whole = one.children.keys() ^ other.children.keys()
    parts = {}
    for key in one.children.keys() & other.children.keys():
        mine, theirs = one.children[key], other.children[key]
        if not mine.differs(theirs):
            continue
        if mine.line != theirs.line or mine.text != theirs.text:
            whole |= {key}
        else:
            parts[key] = _tree_difference(mine, theirs)
    return _TouchedLines(frozenset(whole), parts)


def _merge_touched(one: _TouchedLines, other: _TouchedLines) -> _TouchedLines:
    whole = one.whole | other.whole
    keys = (one.parts.keys() | other.parts.keys()) - whole
    return _TouchedLines(whole, {key: _merge_touched(one.lines_below(key), other.lines_below(key)) for key in keys})


# Block or table of lines that the model does not accept.


def _unread_collisions(own: ConfigurationReading, alone: ConfigurationReading, asked: str) -> Iterator[str]:
    """Yield unread lines on only one side of common blocks; `alone` is `asked` parsed by itself."""
    mine, theirs = (_block_keys(configuration_tree(each.device), each.unread) for each in (own, alone))
    touched = theirs | _touched_lines(own.device, [asked]).keys
    # Parsed by itself, it lacks objects of the device that it refers to.
    together = ConfigurationReading(own.device.copy())
    enter_lines(together, asked)
    had, wanted, refused = (
        Counter((_block_key(line), line.place, line.text) for line in each.unread) for each in (own, alone, together)
    )
    for name, _, text in had - wanted:
        if name in mine & touched:
            yield f"it has its own `{text}` in `{name}`; the experiment would remove it too"
    for name, _, text in (wanted & refused) - had:
        if name in mine:
            yield f"it has its own `{name}`, without `{text}`"


def _block_key(line: UnreadLine) -> str:
    """Return the key of the line's block, or of the table of a global line."""
    return line.place[0] if line.place else line_table(line.text) or line.text


def _block_keys(read: ConfigurationBlock, unread: Sequence[UnreadLine]) -> set[str]:
    """Return the keys of blocks that are removed as a whole: named objects and tables."""
    found = {key for key, block in read.children.items() if block.undo.referred is not None or block.undo.table}
    return found | {table for line in unread if not line.place and (table := line_table(line.text)) is not None}


# Lines of the run that the model does not accept, for example because of changes by others in the meantime.


def _own_lines(was: Sequence[UnreadLine], now: Sequence[UnreadLine], pushed: Sequence[str]) -> list[UnreadLine]:
    """Return the new lines that are identical to pushed lines."""
    asked = {normalise_blanks(line) for text in pushed for line in text.splitlines()}
    known = {(line.place, line.text) for line in was}
    return [line for line in now if line.text in asked and (line.place, line.text) not in known]


def _removed_lines(lines: Sequence[UnreadLine]) -> Iterator[str]:
    for place, group in groupby(lines, key=lambda line: line.place):
        yield from (" " * depth + line for depth, line in enumerate(place))
        yield from (" " * len(place) + f"no {line.text}" for line in group)


# Differences.


def _tree_changes(
    was: ConfigurationBlock, now: ConfigurationBlock, keys: tuple[str, ...] = (), place: tuple[str, ...] = ()
) -> Iterator[_Change]:
    """Yield the differences: keys of the line, outermost first, and a sentence."""
    for key in dict.fromkeys((*was.children, *now.children)):
        mine, theirs = was.children.get(key), now.children.get(key)
        if mine is None or theirs is None:
            yield (*keys, key), _change_sentence(place, mine.line if mine else "", theirs.line if theirs else "")
        elif mine.line != theirs.line or mine.text != theirs.text:
            yield (*keys, key), _change_sentence(place, mine.line, theirs.line)
        else:
            yield from _tree_changes(mine, theirs, (*keys, key), (*place, mine.line))


_Change = tuple[tuple[str, ...], str]


def _unread_changes(was: Sequence[UnreadLine], now: Sequence[UnreadLine], taken_off: set[str]) -> Iterator[str]:
    """Yield lines that the model does not know, except those in blocks that are removed as a whole."""
    counted = [Counter((each.place, each.text) for each in lines) for lines in (was, now)]
    for one, other, gone in ((counted[0], counted[1], True), (counted[1], counted[0], False)):
        for place, text in one - other:
            if not (place and place[0] in taken_off):
                yield _change_sentence(place, text if gone else "", "" if gone else text)


def _change_sentence(place: Sequence[str], was: str, now: str) -> str:
    where = ", ".join(place) + ": " if place else ""
    if not was:
        return f"{where}`{now}` is new"
    return f"{where}`{was}` became `{now}`" if now else f"{where}`{was}` is gone"


def _without_volatile_lines(reading: ConfigurationReading) -> ConfigurationReading:
    """Return the reading without the lines that a device changes by itself."""
    for key in VOLATILE:
        reading.device.inert = reading.device.inert.remove_line(key)
    return reading


def _merge_trees(was: ConfigurationBlock, now: ConfigurationBlock, touched: _TouchedLines) -> ConfigurationBlock:
    """Return the current configuration with the touched parts as they were before.

    Lines are in the previous order, which has no references to later lines; new lines come last.
    """
    children: dict[str, ConfigurationBlock] = {}
    for key in dict.fromkeys((*was.children, *now.children)):
        mine, theirs = was.children.get(key), now.children.get(key)
        if key in touched.whole:
            kept = mine
        elif mine is not None and theirs is not None:
            kept = _merge_trees(mine, theirs, touched.lines_below(key))
        else:
            kept = theirs
        if kept is not None:
            children[key] = kept
    return replace(now, children=children)


def _reread_block(block: ConfigurationBlock, hardware: Hardware) -> Device:
    # Blocks that others refer to come first.
    children = sorted(block.children.values(), key=_block_rank)
    reading = read_running("\n".join(line for each in children for line in each.lines()), hardware)
    if reading.unread:
        raise QoslabError(
            "found no configuration lines that remove the run's configuration and keep the later changes of "
            f"others: `{reading.unread[0].text}`: {reading.unread[0].reason}",
            hint="Compare the configurations by hand; both are in the run folder.",
        )
    return reading.device


def _block_rank(block: ConfigurationBlock) -> int:
    return -(block.undo.referred or 0)
