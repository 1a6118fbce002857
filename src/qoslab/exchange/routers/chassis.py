"""Models and releases: the supported model nearest to a router, and the rules of its release."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from qoslab.errors import UserError
from qoslab.exchange.routers.show_values import Version
from qoslab.ios.model.generations import GENERATIONS, generation_of
from qoslab.model.generation import Generation
from qoslab.platforms import MODELS

_UDI = re.compile(r"(?m)^license udi pid (\S+)")
_SWITCH_MODELS = re.compile(
    r"(?im)^(?:switch \d+ provision (ws-\S+|c\d\S+)|license udi pid (WS-C\d\S+|C9[2-6]\d\d\S*)"
    r"|boot system (?:switch all )?\S*?((?:cat\d|c29[4-7]|c355|c356|c3650|c3750|c3850|c4500|c4900)\S*))"
)
_SWITCH_LINES = re.compile(
    r"(?m)^(?:mls qos\b|spanning-tree mode |vtp mode |switch \d+ provision |system mtu routing )"
)
_PORTS_OF_SWITCH = re.compile(r"(?m)^interface (?:Fast|Gigabit|TenGigabit)Ethernet\d+/(?:0/)?\d+ *$")
_ROUTER_LINES = re.compile(
    r"(?m)^interface (?:Serial|Dialer|ATM|Tunnel|Multilink|Virtual-Template)|^(?:controller|dial-peer|vpdn|crypto map) "
    r"|^ *ip nat (?:inside|outside)|^ +shape "
)
"""Lines that only routers have, including routers with switch modules."""
_OTHER_SYSTEMS = (
    (r"(?m)^(?:ASA|PIX) Version |^ +nameif \S+ *$", "a configuration of a Cisco ASA or PIX firewall"),
    (r"(?m)^! (?:device|boot system): .*EOS|^transceiver qsfp |^service routing protocols model ", "an Arista EOS one"),
    (r"(?m)^; J\d+[A-Z] Configuration Editor|^!Current Configuration: Dell", "a switch of another vendor"),
    (r"(?m)^interfaces \{|^set deviceconfig |^set system host-name ", "a configuration of another vendor"),
    (r"(?m)^!Command: show running-config|^version \d+\.\d+\(\d+\)[A-Z]\d+\(", "an NX-OS configuration"),
)
"""Lines of other systems with interface names similar to IOS."""
_FEWEST_SWITCH_PORTS = 8
_CATALYST_3750 = re.compile(r"(?i)(?:ws-)?c?3750")


@dataclass(frozen=True)
class Chassis:
    """The model that represents a device."""

    found: str
    """Model in the input; empty if it is not printed."""
    release: str
    generation: Generation
    model: str
    """One of `MODELS`."""

    @property
    def description(self) -> str:
        """Sentence about model and release."""
        known = self.found or "unknown model"
        release = f", release {self.release}" if self.release else ", no release printed"
        rules = f"rules of {GENERATIONS[self.generation].title}"
        exact = f"{known}{release}: {rules}"
        if self.found and self.found.upper().removeprefix("CISCO").startswith(self.model.upper()):
            return exact
        if not self.found:
            return f"{exact}; modelled as {self.model}, by its release and ports (--model, or `show version`)"
        return f"{exact}; modelled as {self.model}, the nearest model: of the same family or software"


def chassis_of(
    text: str, version: Version, read: Generation, wanted: str | None, ports: Collection[str] = ()
) -> Chassis:
    """Select the model of a router by `show version`, by the licence line, or by the release and the ports.

    `read` is the generation that recognises most lines of the configuration; `wanted` is the user's choice.
    """
    udi = _UDI.search(text)
    found = version.model or (udi[1].removesuffix("/K9") if udi else "")
    line = re.search(r"(?m)^version +(\S+)", text)
    release = version.release or ("" if line is None else line[1])
    generation = generation_of(version.release) or read if version.release else read
    if wanted is not None:
        own = MODELS[wanted]
        chosen = generation if generation in own.generations else own.default_generation
        return Chassis(found or wanted, release, chosen or generation, wanted)
    similar = (name for name, each in MODELS.items() if each.stands_for and re.match(each.stands_for, found, re.I))
    near = next(similar, None) if found else None
    exact = next((name for name in MODELS if found.upper().removeprefix("CISCO").startswith(name.upper())), None)
    exact = exact if found else None
    usual = next(name for name, each in MODELS.items() if each.usual and each.default_generation == generation)
    fitting = (name for name in (usual, *MODELS) if generation in MODELS[name].generations and _has(name, ports))
    model = exact or near or (usual if found else next(fitting, usual))
    if generation not in MODELS[model].generations or MODELS[model].family == "switch":
        model = usual
    return Chassis(found, release, generation, model)


def _has(model: str, ports: Collection[str]) -> bool:
    return MODELS[model].family == "router" and all(MODELS[model].interface(each) is not None for each in ports)


def refuse_others(text: str, source: str) -> None:
    """Raise an error with one sentence for the configuration of another operating system with interfaces similar to
    IOS.
    """
    for pattern, name in _OTHER_SYSTEMS:
        if re.search(pattern, text):
            raise UserError(
                f"{source}: found {name}, expected a configuration of a router with Cisco IOS or IOS-XE",
                hint="paste the output of `show running-config` of such a router",
            )


def refuse_switch(text: str, source: str) -> None:
    """Raise an error with one sentence for the configuration of a Catalyst switch."""
    named = _SWITCH_MODELS.search(text)
    ports = len(_PORTS_OF_SWITCH.findall(text))
    if named is None and not (_SWITCH_LINES.search(text) and ports >= _FEWEST_SWITCH_PORTS):
        return
    if named is None and _ROUTER_LINES.search(text):
        return
    name = next((each for each in named.groups() if each), "") if named else ""
    called = f" ({name})" if name else ""
    if _CATALYST_3750.match(name) or (not name and re.search(r"(?m)^mls qos srr-queue|^ *srr-queue", text)):
        raise UserError(
            f"{source}: found the configuration of a Catalyst 3750 switch{called}, expected one of a router",
            hint="`qoslab policy` answers for it; in an experiment write {platform: ios, model: 3750G}",
        )
    raise UserError(
        f"{source}: found the configuration of a Catalyst switch{called}, expected one of a router with IOS or IOS-XE",
        hint="of switches only the Catalyst 3750G is modelled",
    )
