"""Models and releases: the supported model nearest to a router, and the rules of its release."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from qoslab.exchange.routers.show_values import SoftwareVersion
from qoslab.ios.model.generations import GENERATIONS, release_generation
from qoslab.model.generation import Generation
from qoslab.platforms import MODELS

_UDI = re.compile(r"(?m)^license udi pid (\S+)")


@dataclass(frozen=True)
class Chassis:
    """The model that represents a device."""

    printed_model: str
    """Model in the input; empty if it is not printed."""
    release: str
    generation: Generation
    model: str
    """One of `MODELS`."""

    @property
    def description(self) -> str:
        """Sentence about model and release."""
        known = self.printed_model or "unknown model"
        release = f", release {self.release}" if self.release else ", no release printed"
        rules = f"rules of {GENERATIONS[self.generation].title}"
        exact = f"{known}{release}: {rules}"
        if self.printed_model and self.printed_model.upper().removeprefix("CISCO").startswith(self.model.upper()):
            return exact
        if not self.printed_model:
            return f"{exact}; modelled as {self.model}, by its release and ports (--model, or `show version`)"
        return f"{exact}; modelled as {self.model}, the nearest model: of the same family or software"


def select_chassis(
    text: str, version: SoftwareVersion, read: Generation, wanted: str | None, ports: Collection[str] = ()
) -> Chassis:
    """Select the model of a router by `show version`, by the licence line, or by the release and the ports.

    `read` is the generation that recognises most lines of the configuration; `wanted` is the user's choice.
    """
    udi = _UDI.search(text)
    found = version.model or (udi[1].removesuffix("/K9") if udi else "")
    line = re.search(r"(?m)^version +(\S+)", text)
    release = version.release or ("" if line is None else line[1])
    generation = release_generation(version.release) or read if version.release else read
    if wanted is not None:
        own = MODELS[wanted]
        chosen = generation if generation in own.generations else own.default_generation
        return Chassis(found or wanted, release, chosen or generation, wanted)
    similar = (
        name
        for name, each in MODELS.items()
        if each.represented_models and re.match(each.represented_models, found, re.I)
    )
    near = next(similar, None) if found else None
    exact = next((name for name in MODELS if found.upper().removeprefix("CISCO").startswith(name.upper())), None)
    exact = exact if found else None
    usual = next(name for name, each in MODELS.items() if each.usual and each.default_generation == generation)
    fitting = (
        name for name in (usual, *MODELS) if generation in MODELS[name].generations and _has_interfaces(name, ports)
    )
    model = exact or near or (usual if found else next(fitting, usual))
    if generation not in MODELS[model].generations or MODELS[model].family == "switch":
        model = usual
    return Chassis(found, release, generation, model)


def _has_interfaces(model: str, ports: Collection[str]) -> bool:
    return MODELS[model].family == "router" and all(MODELS[model].interface(each) is not None for each in ports)
