"""Registry of the contributions of commands to output, compilation and checks.

The modules of `commands` and `catalyst.commands` fill these lists. Their users (`running_config`, `compile`, `rules`,
`show.policy_map`, `show.policy_interface`) process a list in the order of the ranks, which is that of IOS for printed
output, and do not depend on individual commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from qoslab.ios.model.device import Device, Family, Interface
from qoslab.ios.model.generations import QosGeneration
from qoslab.ios.model.policy import PolicyClass, PolicyMap
from qoslab.system import program_formats

_Contribution = TypeVar("_Contribution", bound=Callable[..., Any])


class Contributions(Generic[_Contribution]):
    """Functions of commands, in the order of their ranks."""

    def __init__(self) -> None:
        self._all: list[tuple[int, Family | None, _Contribution]] = []

    def register_family(self, rank: int, *, family: Family | None = None) -> Callable[[_Contribution], _Contribution]:
        """Register the decorated function, for all devices or for those of one family."""

        def register(function: _Contribution) -> _Contribution:
            self._all.append((rank, family, function))
            self._all.sort(key=lambda each: each[0])
            return function

        return register

    def family_functions(self, family: Family) -> list[_Contribution]:
        """Return the functions for devices of that family."""
        return [function for _, only, function in self._all if only in (None, family)]


@dataclass(frozen=True, slots=True)
class Layout:
    """Indentation of the lines below a policy-map's class in a running configuration."""

    qos: QosGeneration

    @property
    def queueing(self) -> str:
        """Blanks before queueing actions and `police`."""
        return self.qos.queueing_indent


@dataclass(frozen=True, slots=True)
class InterfacePolicyClass:
    """A class of a policy-map in `show policy-map interface`."""

    config: program_formats.PolicyClass
    """Configuration of the class; only its name if class-default is not configured."""
    counters: program_formats.ClassCounters
    qos: QosGeneration


# The running configuration.
BLOCKS: Contributions[Callable[[Device], Iterable[Sequence[str]]]] = Contributions()
"""Blocks of lines between two `!`."""
INTERFACE_LINES: Contributions[Callable[[Interface], Iterable[str]]] = Contributions()
"""Lines below `interface NAME`, without indentation."""
CLASS_LINES: Contributions[Callable[[PolicyClass, Layout], Iterable[str]]] = Contributions()
"""Lines below `class NAME` in a policy-map, indented."""

# The data plane's configuration; parts of a family are added to the common parts.
ENGINE: Contributions[Callable[[Device], program_formats.DataPlaneConfigPart]] = Contributions()
ENGINE_INTERFACE: Contributions[Callable[[Device, Interface], program_formats.InterfaceConfigPart]] = Contributions()
ENGINE_CLASS: Contributions[Callable[[PolicyClass], program_formats.PolicyClassPart]] = Contributions()

# Rules of IOS: the functions raise RejectedError.
COMBINATION_WORDS: dict[tuple[str, str], str | Callable[[QosGeneration], str]] = {}
"""Messages for combinations of `engine_rules.IMPOSSIBLE`, by the refused fact and the first other fact."""
ORDER_WORDS: dict[str, str] = {}
"""Messages for values of `engine_rules.ORDERED`, by the key of the one that is too small."""
CLASS_RULES: Contributions[Callable[[Device, PolicyClass], None]] = Contributions()
"""Rules for one class that only the command line has."""
POLICY_RULES: Contributions[Callable[[Device, PolicyMap], None]] = Contributions()
"""Rules for the classes of one policy-map together."""
INPUT_RULES: Contributions[Callable[[PolicyClass], None]] = Contributions()
"""Rules for actions that an input policy cannot have, at any level."""
ATTACH_RULES: Contributions[Callable[[Device, Interface, str], None]] = Contributions()
"""Rules for attachments of an interface in a direction (`input`, `output`), for any policy."""
OUTPUT_RULES: Contributions[Callable[[Device, PolicyMap, Interface], None]] = Contributions()
"""Rules for the output policy of an interface."""

# Show output.
SHOW_POLICY_MAP_CLASS: Contributions[
    Callable[[program_formats.RouterConfig, program_formats.PolicyClass, program_formats.ResolvedClass], Iterable[str]]
] = Contributions()
"""A class in `show policy-map`: arguments are the whole configuration and the class, as typed and with defaults."""
SHOW_INTERFACE_CLASS: Contributions[Callable[[InterfacePolicyClass], Iterable[str]]] = Contributions()
"""A class in `show policy-map interface`, below the lines of its criteria and without the indentation of the body."""
