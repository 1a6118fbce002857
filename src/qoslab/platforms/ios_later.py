"""Routers with IOS 15 and with IOS-XE as data.

Sources: heads of `show version` and `show interfaces` as public parsers' recordings have them [C]. Memory sizes of
other models than those, serial numbers, clocks and the releases of boot programs are fillers [I].
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from qoslab.platforms.ios_model import InterfaceHardware, RouterModel, Software

if TYPE_CHECKING:
    from qoslab.model.generation import Generation

XE_ONLY: tuple[Generation, ...] = ("ios-xe",)
HQF_ONLY: tuple[Generation, ...] = ("hqf",)

EVEREST = Software("16.6.5", "fc3", 2018, "Mon 10-Dec-18 12:53 by mcpre", "", "Everest")
CUPERTINO = Software("17.9.4a", "fc3", 2023, "Fri 20-Oct-23 10:44 by mcpre", "", "Cupertino")
IOS_15 = Software("15.7(3)M8", "fc1", 2021, "Wed 03-Mar-21 08:30 by prod_rel_team", "SPA.157-3.M8")
IOS_VIRTUAL = Software("15.9(3)M6", "fc1", 2022, "Mon 01-Aug-22 06:37 by mcpre", "SPA.159-3.M6")

GIGABIT = 1_000_000
"""kb/s."""


def _ports(names: Iterable[str], chip: str, kbps: int = GIGABIT) -> tuple[InterfaceHardware, ...]:
    delay_us = 10 if kbps <= GIGABIT else 1 if kbps >= 10 * GIGABIT else 10
    return tuple(InterfaceHardware(name, "ethernet", chip, bandwidth_kbps=kbps, delay_us=delay_us) for name in names)


def _numbered(kind: str, numbers: range) -> tuple[str, ...]:
    return tuple(f"{kind}{number}" for number in numbers)


def _xe(
    name: str,
    chassis: str,
    interfaces: tuple[InterfaceHardware, ...],
    *,
    software: Software = CUPERTINO,
    family: str = "ISR",
    image: str,
    board_id: str = "FLM2140W0AB",
) -> RouterModel:
    return RouterModel(
        name=name,
        default_generation="ios-xe",
        generations=XE_ONLY,
        own_software=software,
        software_family=family,
        image="X86_64_LINUX_IOSD-UNIVERSALK9-M",
        image_name=image,
        bootstrap="IOS-XE ROMMON",
        chassis=chassis,
        board_id=board_id,
        processor_lines=(),
        memory_lines=(
            "32768K bytes of non-volatile configuration memory.",
            # The size of the file system of an ISR 4451 in a public print.
            "7341807K bytes of flash memory at bootflash:.",
        ),
        interfaces=interfaces,
    )


_ISR_PORTS = _numbered("GigabitEthernet0/0/", range(4))

LATER_ROUTERS: dict[str, RouterModel] = {
    "1941": RouterModel(
        name="1941",
        default_generation="hqf",
        generations=HQF_ONLY,
        own_software=IOS_15,
        software_family="C1900",
        image="C1900-UNIVERSALK9-M",
        bootstrap="System Bootstrap, Version 15.0(1r)M15, RELEASE SOFTWARE (fc1)",
        chassis="Cisco CISCO1941/K9 (revision 1.0) with 491520K/32768K bytes of memory.",
        board_id="FTX1530W0AB",
        processor_lines=(),
        memory_lines=(
            "DRAM configuration is 64 bits wide with parity disabled.",
            "255K bytes of non-volatile configuration memory.",
            "249856K bytes of ATA System CompactFlash 0 (Read/Write)",
        ),
        interfaces=_ports(_numbered("GigabitEthernet0/", range(2)), "CN Gigabit Ethernet"),
    ),
    "2911": RouterModel(
        name="2911",
        default_generation="hqf",
        generations=HQF_ONLY,
        own_software=IOS_15,
        software_family="C2900",
        image="C2900-UNIVERSALK9-M",
        bootstrap="System Bootstrap, Version 15.0(1r)M15, RELEASE SOFTWARE (fc1)",
        chassis="Cisco CISCO2911/K9 (revision 1.0) with 483328K/40960K bytes of memory.",
        board_id="FTX1530W0AC",
        processor_lines=(),
        memory_lines=(
            "DRAM configuration is 64 bits wide with parity enabled.",
            "255K bytes of non-volatile configuration memory.",
            "250880K bytes of ATA System CompactFlash 0 (Read/Write)",
        ),
        interfaces=_ports(_numbered("GigabitEthernet0/", range(3)), "CN Gigabit Ethernet"),
    ),
    "IOSv": RouterModel(
        name="IOSv",
        default_generation="hqf",
        generations=HQF_ONLY,
        own_software=IOS_VIRTUAL,
        software_family="IOSv",
        image="VIOS-ADVENTERPRISEK9-M",
        bootstrap="Bootstrap program is IOSv",
        chassis="Cisco IOSv (revision 1.0) with 460137K/62464K bytes of memory.",
        board_id="9KXYI0FCTGH7BQCJLVTTH",
        processor_lines=(),
        memory_lines=(
            "DRAM configuration is 72 bits wide with parity disabled.",
            "255K bytes of non-volatile configuration memory.",
            "2097152K bytes of ATA System CompactFlash 0 (Read/Write)",
        ),
        interfaces=_ports(_numbered("GigabitEthernet0/", range(4)), "iGbE"),
        register="0x0",
    ),
    "C1111": _xe(
        "C1111",
        "cisco C1111-8P (1RU) processor with 1416866K/6147K bytes of memory.",
        _ports(_numbered("GigabitEthernet0/0/", range(2)), "C1111-2x1GE"),
        image="c1100-universalk9",
        board_id="FGL2140L0AB",
    ),
    "ISR4331": _xe(
        "ISR4331",
        "cisco ISR4331/K9 (1RU) processor with 1795979K/6147K bytes of memory.",
        _ports(_ISR_PORTS[:3], "ISR4331-3x1GE"),
        software=EVEREST,
        image="isr4300-universalk9",
    ),
    "ISR4451": _xe(
        "ISR4451",
        "cisco ISR4451-X/K9 (2RU) processor with 1795979K/6147K bytes of memory.",
        _ports(_ISR_PORTS, "ISR4451-X-4x1GE"),
        software=EVEREST,
        image="isr4400-universalk9",
    ),
    "C8200": _xe(
        "C8200",
        "cisco C8200-1N-4T (1RU) processor with 3763047K/6147K bytes of memory.",
        _ports(_ISR_PORTS, "4x1G-2xSFP"),
        family="c8000be",
        image="c8000be-universalk9",
    ),
    "C8300": _xe(
        "C8300",
        "cisco C8300-2N2S-4T2X (2RU) processor with 3763047K/6147K bytes of memory.",
        (
            *_ports(_ISR_PORTS, "4x1G-2xSFP+"),
            *_ports(_numbered("TenGigabitEthernet0/0/", range(4, 6)), "4x1G-2xSFP+", 10 * GIGABIT),
        ),
        family="c8000be",
        image="c8000be-universalk9",
    ),
    "C8500": _xe(
        "C8500",
        "cisco C8500-12X (1RU) processor with 9236983K/6147K bytes of memory.",
        _ports(_numbered("TenGigabitEthernet0/0/", range(12)), "C8500-12X", 10 * GIGABIT),
        family="c8000aep",
        image="c8000aep-universalk9",
    ),
    "C8000V": _xe(
        "C8000V",
        "cisco C8000V (VXE) processor (revision VXE) with 1900130K/3075K bytes of memory.",
        _ports(_numbered("GigabitEthernet", range(1, 9)), "CSR vNIC"),
        family="Virtual XE",
        image="c8000v-universalk9",
        board_id="9ABCDEFGHIJ",
    ),
    "ASR1001-X": _xe(
        "ASR1001-X",
        "cisco ASR1001-X (1NG) processor (revision 1NG) with 3753626K/6147K bytes of memory.",
        (
            *_ports(_numbered("GigabitEthernet0/0/", range(6)), "BUILT-IN-2T+6X1GE"),
            *_ports(_numbered("TenGigabitEthernet0/0/", range(2)), "BUILT-IN-2T+6X1GE", 10 * GIGABIT),
        ),
        family="ASR1000",
        image="asr1001x-universalk9",
    ),
    "ASR1002-X": _xe(
        "ASR1002-X",
        "cisco ASR1002-X (2RU-X) processor (revision 2KP) with 3753626K/6147K bytes of memory.",
        _ports(_numbered("GigabitEthernet0/0/", range(6)), "6XGE-BUILT-IN"),
        family="ASR1000",
        image="asr1002x-universalk9",
    ),
}
"""Models by the value of `model` in experiments."""
