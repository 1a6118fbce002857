"""Plug-ins: traffic tools, platforms, metrics and figures of other packages, registered by entry points.

A package registers its plug-ins in the groups `qoslab.tools`, `qoslab.platforms`, `qoslab.metrics` and
`qoslab.figures`. The name of an entry point is its name in experiment files or on the command line; its object is a
value, or a class that is called without arguments. A plug-in is only imported when its name is used, so that a package
that does not load affects only its users.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from qoslab.errors import MachineError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PluginKind = Literal["tools", "platforms", "metrics", "figures"]
KINDS: tuple[PluginKind, ...] = ("tools", "platforms", "metrics", "figures")
NAME_OF_KIND: dict[PluginKind, str] = {
    "tools": "tool",
    "platforms": "platform",
    "metrics": "metric",
    "figures": "figure",
}
"""Name of one object of a kind."""

_T = TypeVar("_T")

SKIPPED_PLUGINS: dict[tuple[PluginKind, str], MachineError] = {}
"""Plug-ins that did not load when all plug-ins of a kind were requested; the command line lists them at the end."""


class PluginError(MachineError):
    """A plug-in that does not load, or does not have the interface of its group."""


@functools.cache
def installed_plugins(kind: PluginKind) -> Mapping[str, EntryPoint]:
    """Return the entry points of a kind by name; of two with the same name, the first that Python finds."""
    from importlib.metadata import entry_points  # most commands use no plug-ins, and need not load it

    found: dict[str, EntryPoint] = {}
    for each in entry_points(group=f"qoslab.{kind}"):
        found.setdefault(each.name, each)
    return found


def plugin_package(point: EntryPoint) -> str:
    """Return name and version of the package of an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown package"


def protocol_members(protocol: type) -> frozenset[str]:
    """Return the attributes and methods of a protocol."""
    return frozenset(name for name in {*vars(protocol), *protocol.__annotations__} if not name.startswith("_"))


def missing_members(protocol: type, name: str, value: object) -> Iterator[str]:
    """Yield the missing parts of a value for a protocol and the name `name`."""
    for member in sorted(protocol_members(protocol)):
        if not hasattr(value, member):
            yield f"it has no {member}"
    called = getattr(value, "name", name)
    if called != name:
        yield f'its name is "{called}"'


class PluginRegistry(Mapping[str, _T], Generic[_T]):
    """Values by name: those of qoslab, then those of other packages, which are loaded on lookup.

    `wrong` returns the errors of a value for its kind. Plug-ins cannot replace names of qoslab.
    """

    def __init__(self, kind: PluginKind, own: Mapping[str, _T], wrong: Callable[[str, object], Iterator[str]]) -> None:
        self.kind: PluginKind = kind
        self.own: Mapping[str, _T] = own
        self._wrong = wrong
        self._loaded: dict[str, _T] = {}

    def __getitem__(self, name: str) -> _T:
        """Return a value. Raise `KeyError` for an unknown name, `PluginError` if it does not load."""
        if name in self.own:
            return self.own[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(installed_plugins(self.kind)[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in installed_plugins(self.kind)

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (name for name in installed_plugins(self.kind) if name not in self.own)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def working_items(self) -> Iterator[tuple[str, _T]]:
        """Yield all values that load, with their names; the others are recorded in `SKIPPED_PLUGINS`."""
        yield from self.own.items()
        yield from self.added_items()

    def added_items(self) -> Iterator[tuple[str, _T]]:
        """Yield the values of other packages that load, with their names, as `working`."""
        for name in installed_plugins(self.kind):
            if name in self.own or (self.kind, name) in SKIPPED_PLUGINS:
                continue
            try:
                value = self[name]
            except PluginError as error:
                SKIPPED_PLUGINS[self.kind, name] = error
            else:
                yield name, value

    def fingerprint(self, name: str) -> str:
        """Return the identity of a plug-in for a result: version, and SHA-256 of the module; empty for values of
        qoslab.
        """
        if name in self.own or name not in installed_plugins(self.kind):
            return ""
        point = installed_plugins(self.kind)[name]
        try:
            found = importlib.util.find_spec(point.module)
            text = Path(found.origin).read_bytes() if found is not None and found.origin is not None else b""
        except (ImportError, OSError, ValueError):
            text = b""
        return f"{NAME_OF_KIND[self.kind]} {name}: {plugin_package(point)}, SHA-256 {hashlib.sha256(text).hexdigest()}"

    def _load(self, point: EntryPoint) -> _T:
        what = f'the {NAME_OF_KIND[self.kind]} "{point.name}" of the package {plugin_package(point)} ({point.value})'
        hint = (
            "Fix or remove that package; docs/internals/extending.md describes the interface of a "
            f"{NAME_OF_KIND[self.kind]}."
        )
        try:
            value: Any = point.load()
            value = value() if isinstance(value, type) else value
        # The other package may raise anything during its import; SystemExit would end a program that only asked.
        except (Exception, SystemExit) as error:
            raise PluginError(f"{what} cannot be loaded: {type(error).__name__}: {error}", hint=hint) from error
        if problems := list(self._wrong(point.name, value)):
            raise PluginError(f"{what} is not valid: {'; '.join(problems)}", hint=hint)
        loaded: _T = value
        return loaded
