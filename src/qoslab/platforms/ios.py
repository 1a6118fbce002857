"""Cisco IOS routers and switches: the hardware models as data.

Sources of the figures: `show version` and `show interfaces` as routers print them, in the articles and in public
transcripts. What is remembered, not read, is marked [I] (inferred) beside the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qoslab.platforms.base import COMMAND_LINE, AccessMethod, CounterSource, Forwarding, Language, Problem
from qoslab.platforms.ios_later import LATER_ROUTERS
from qoslab.platforms.ios_model import InterfaceHardware, RouterModel, Software

if TYPE_CHECKING:
    from qoslab.ios.model.device import Hardware
    from qoslab.model.experiment import Node
    from qoslab.model.framing import Framing
    from qoslab.model.generation import Generation


def _fast_ethernet(name: str, chip: str) -> InterfaceHardware:
    return InterfaceHardware(name, "ethernet", chip, bandwidth_kbps=100_000, delay_us=100)


def _serial(name: str) -> InterfaceHardware:
    # BW: the default of a T1-capable serial port [I]. DLY and chip: printed.
    return InterfaceHardware(name, "serial", "GT96K Serial", bandwidth_kbps=1544, delay_us=20_000)


def _atm(name: str) -> InterfaceHardware:
    # BW, DLY: printed of a PA-A3-T3 (document 6143 of Cisco, of a 7500). The chip as a 7200 calls it [I].
    return InterfaceHardware(name, "atm", "ENHANCED ATM PA", bandwidth_kbps=44_209, delay_us=190)


def _gigabit(number: int) -> InterfaceHardware:
    return InterfaceHardware(
        f"GigabitEthernet1/0/{number}", "ethernet", "Gigabit Ethernet", bandwidth_kbps=1_000_000, delay_us=10
    )


CATALYST_SOFTWARE = Software("12.2(55)SE3", "fc1", 2011, "Thu 05-May-11 16:56 by prod_rel_team", "122-55.SE3")
"""A late release of the 12.2SE train for the 3750G. The articles don't print theirs [I]."""

PROCESS_NS_2811 = 320_000
"""Derived, not printed.

The tx-ring-limit article floods one of its 2811s, so that each packet of the flood ends at process level there, and
prints that router's `show processes cpu`: 20 % in all and 10 % at interrupt level, which leaves 10 % for process level.
Packets of 200 bytes pass the line of 512 kb/s at 512000 / ((200 + 7) * 8) = 309 a second: 0.10 / 309 = 0.32 ms each.

The article does not say with which flood and at which rate it was printed (at 128 kb/s it would be four times as
much), and it is five seconds in whole percents. Nothing was fitted to the article's delays.
"""

_ROUTERS: dict[str, RouterModel] = {
    "3725": RouterModel(
        name="3725",
        default_generation="classic",
        software_family="3700",
        image="C3725-ADVENTERPRISEK9-M",
        bootstrap="System Bootstrap, Version 12.4(13r)T5, RELEASE SOFTWARE (fc1)",
        chassis="Cisco 3725 (R7000) processor (revision 0.1) with 124928K/6144K bytes of memory.",
        board_id="FTX0945W0MY",  # [I]
        processor_lines=("R7000 CPU at 240MHz, Implementation 39, Rev 2.1, 256KB L2, 512KB L3 Cache",),
        memory_lines=("DRAM configuration is 64 bits wide with parity disabled.", "55K bytes of NVRAM."),
        interfaces=(_fast_ethernet("FastEthernet0/0", "Gt96k FE"), _fast_ethernet("FastEthernet0/1", "Gt96k FE")),
    ),
    "2811": RouterModel(
        name="2811",
        default_generation="hqf",
        software_family="2800",
        image="C2800NM-ADVENTERPRISEK9-M",
        bootstrap="System Bootstrap, Version 12.4(13r)T, RELEASE SOFTWARE (fc1)",
        chassis="Cisco 2811 (revision 53.50) with 249856K/12288K bytes of memory.",
        board_id="FTX1001C14X",
        processor_lines=(),
        memory_lines=(
            "1 Virtual Private Network (VPN) Module",
            "DRAM configuration is 64 bits wide with parity enabled.",
            "239K bytes of non-volatile configuration memory.",
            "62720K bytes of ATA CompactFlash (Read/Write)",
        ),
        interfaces=(
            _fast_ethernet("FastEthernet0/0", "MV96340 Ethernet"),
            _fast_ethernet("FastEthernet0/1", "MV96340 Ethernet"),
            # Two serial interfaces are printed; the articles use Serial0/1/0, so the other is its neighbour [I].
            _serial("Serial0/1/0"),
            _serial("Serial0/1/1"),
        ),
        process_ns=PROCESS_NS_2811,
    ),
    # As `show version` of routers of this model answers; board ID, clock and release of the bootstrap are fillers [I].
    "7206VXR": RouterModel(
        name="7206VXR",
        default_generation="classic",
        software_family="7200",
        image="C7200-ADVENTERPRISEK9-M",
        bootstrap="System Bootstrap, Version 12.3(4r)T3, RELEASE SOFTWARE (fc1)",
        chassis="Cisco 7206VXR (NPE400) processor (revision A) with 491520K/32768K bytes of memory.",
        board_id="31410931",
        processor_lines=(
            "R7000 CPU at 350MHz, Implementation 39, Rev 3.3, 256KB L2, 4096KB L3 Cache",
            "6 slot VXR midplane, Version 2.7",
        ),
        memory_lines=("125K bytes of NVRAM.",),
        # An I/O controller with two ports, and a PA-A3-T3 in the first slot.
        interfaces=(
            _fast_ethernet("FastEthernet0/0", "i82543 (Livengood)"),
            _fast_ethernet("FastEthernet0/1", "i82543 (Livengood)"),
            _atm("ATM1/0"),
        ),
    ),
    # Layout of the print: as Catalyst 3750 switches answer `show version`; the numbers in it are fillers [I].
    "3750G": RouterModel(
        name="3750G",
        default_generation=None,
        family="switch",
        own_software=CATALYST_SOFTWARE,
        software_family="C3750",
        image="C3750-IPSERVICESK9-M",
        bootstrap="Bootstrap program is C3750 boot loader",
        rom_lines=("BOOTLDR: C3750 Boot Loader (C3750-HBOOT-M) Version 12.2(44)SE5, RELEASE SOFTWARE (fc1)",),
        chassis="cisco WS-C3750G-24TS (PowerPC405) processor (revision L0) with 131072K bytes of memory.",
        board_id="CAT1017R0AB",
        processor_lines=("Last reset from power-on",),
        memory_lines=(
            "The password-recovery mechanism is enabled.",
            "",
            "512K bytes of flash-simulated non-volatile configuration memory.",
            "Model number                    : WS-C3750G-24TS-E",
            "System serial number            : CAT1017R0AB",
            "",
            "Switch Ports Model              SW Version            SW Image                 ",
            "------ ----- -----              ----------            ----------               ",
            "*    1 28    WS-C3750G-24TS     12.2(55)SE3           C3750-IPSERVICESK9-M     ",
            "",
        ),
        # 24 ports of 10/100/1000BaseT and four for SFP modules.
        interfaces=tuple(_gigabit(number) for number in range(1, 29)),
        register="0xF",
    ),
}


MODELS: dict[str, RouterModel] = {**_ROUTERS, **LATER_ROUTERS}


MANY = 8
"""Interfaces that a message still lists one by one."""


@dataclass(frozen=True)
class Ios:
    """A router that is configured over its IOS command line."""

    name: str = "ios"
    is_router: bool = True
    access: AccessMethod = COMMAND_LINE
    language: Language | None = "ios"
    forwarding: Forwarding | None = "engine"
    counters: CounterSource | None = "data plane"
    unsimulated: str = ""
    has_startup_config: bool = True

    def ansible_role(self, node: Node) -> str | None:
        """Return the Ansible role; Catalyst switches have a separate one."""
        return "ios_switch" if MODELS[node.model or ""].family == "switch" else "ios"

    def hardware(self, node: Node, interfaces: tuple[str, ...]) -> Hardware:
        """The model's."""
        return MODELS[node.model or ""].hardware(node.generation)

    def generation(self, node: Node) -> Generation | None:
        """The node's own, or its model's."""
        model = MODELS[node.model or ""]
        return None if model.default_generation is None else node.generation or model.default_generation

    def check(self, node: Node) -> Iterator[Problem]:
        """A known model is needed."""
        if node.model is None:
            yield Problem("model", "no model", f"one of {_models()}")
        elif node.model not in MODELS:
            yield Problem("model", f'"{node.model}"', f"one of {_models()}", tuple(MODELS))
        elif node.generation is not None and MODELS[node.model].default_generation is None:
            yield Problem("generation", f'"{node.generation}" on a {node.model}', "this key on routers only")
        elif node.generation not in (None, *MODELS[node.model].generations):
            known = " or ".join(f'"{each}"' for each in MODELS[node.model].generations)
            yield Problem("generation", f'"{node.generation}" on a {node.model}', f"{known}, or no generation")

    def interfaces(self, node: Node) -> tuple[str, ...] | None:
        """The chassis's interfaces."""
        model = MODELS.get(node.model or "")
        return None if model is None else tuple(interface.name for interface in model.interfaces)

    def interface_problem(self, node: Node, interface: str, framing: Framing) -> str | None:
        """The model must have the interface, and the interface do the link's framing."""
        model = MODELS.get(node.model or "")
        if model is None:
            return None  # the model itself is reported
        hardware = model.interface(interface)
        if hardware is None:
            names = [each.name for each in model.interfaces]
            known = f"{names[0]} to {names[-1]}" if len(names) > MANY else f"one of {', '.join(names)}"
            return f"{known}, which a {model.name} has"
        if framing not in hardware.framings:
            return f"another interface or framing: {interface} does {_listed(hardware.framings)}, not {framing}"
        return None


def _listed(framings: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(framings[:-1]), framings[-1])))


def _models() -> str:
    return ", ".join(f'"{name}"' for name in MODELS)
