"""Cisco IOS routers and switches as data: a new model is one more entry in this file.

A model inherits properties and features from its parent: another model, or a family, which has no interfaces.

Sources of the values: output of `show version` and `show interfaces` in the articles and in public transcripts; for
IOS 15 and IOS-XE the recordings of public parsers [C]. Values from memory are marked [I] (inferred). Memory sizes of
IOS 15 and IOS-XE, serial numbers, clocks and the releases of boot programs are fillers [I].
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace
from typing import Any

from qoslab.platforms.ios_model import HardwareFeature, InterfaceHardware, ModelSoftware, RouterModel

DEFAULT_MODEL = "3725"
"""Model of the routers of a new experiment."""
OTHER_MODEL = "IOSv"
"""Model of routers in imported topologies if only their command line is known."""

GIGABIT = 1_000_000
"""kb/s."""


def _port_names(names: Iterable[str], chip: str, kbps: int = GIGABIT) -> tuple[InterfaceHardware, ...]:
    delay_us = {100_000: 100, GIGABIT: 10, 10 * GIGABIT: 1}[kbps]
    return tuple(InterfaceHardware(name, "ethernet", chip, bandwidth_kbps=kbps, delay_us=delay_us) for name in names)


def _numbered_ports(kind: str, numbers: range) -> tuple[str, ...]:
    return tuple(f"{kind}{number}" for number in numbers)


_FAST_ETHERNET = _numbered_ports("FastEthernet0/", range(2))
_ISR_PORTS = _numbered_ports("GigabitEthernet0/0/", range(4))
# Two serial interfaces are printed; the articles use Serial0/1/0, so the other is its neighbour [I].
# BW: the default of a T1-capable serial port [I]. DLY and chip: printed.
_SERIAL = tuple(
    InterfaceHardware(name, "serial", "GT96K Serial", bandwidth_kbps=1544, delay_us=20_000)
    for name in _numbered_ports("Serial0/1/", range(2))
)
# BW, DLY: output for a PA-A3-T3 (document 6143 of Cisco, on a 7500). The chip name is that of a 7200 [I].
_ATM = InterfaceHardware("ATM1/0", "atm", "ENHANCED ATM PA", bandwidth_kbps=44_209, delay_us=190)

CATALYST_SOFTWARE = ModelSoftware("12.2(55)SE3", "fc1", 2011, "Thu 05-May-11 16:56 by prod_rel_team", "122-55.SE3")
"""A late release of the 12.2SE train for the 3750G. The articles do not show their release [I]."""
G2_SOFTWARE = ModelSoftware("15.7(3)M8", "fc1", 2021, "Wed 03-Mar-21 08:30 by prod_rel_team", "SPA.157-3.M8")
VIRTUAL_SOFTWARE = ModelSoftware("15.9(3)M6", "fc1", 2022, "Mon 01-Aug-22 06:37 by mcpre", "SPA.159-3.M6")
EVEREST = ModelSoftware("16.6.5", "fc3", 2018, "Mon 10-Dec-18 12:53 by mcpre", "", "Everest")
CUPERTINO = ModelSoftware("17.9.4a", "fc3", 2023, "Fri 20-Oct-23 10:44 by mcpre", "", "Cupertino")

PROCESS_NS_2811 = 320_000
"""Process switching time of a packet on a 2811, in ns: derived, not printed.

The tx-ring-limit article floods one of its 2811s, so that each packet of the flood ends at process level there, and
prints that router's `show processes cpu`: 20 % in all and 10 % at interrupt level, which leaves 10 % for process level.
Packets of 200 bytes pass the line of 512 kb/s at 512000 / ((200 + 7) * 8) = 309 a second: 0.10 / 309 = 0.32 ms each.

The article does not state the flood and the rate of that output (at 128 kb/s the value would be four times as much),
and the output is a five-second average in whole percents. Nothing was fitted to the article's delays.
"""

_ENTRIES: dict[str, RouterModel] = {}


def _define_model(
    name: str, *, parent: str | None = None, features: Set[HardwareFeature] = frozenset(), **properties: Any
) -> None:
    """Add a model or family. The fields about other devices that a model represents are not inherited."""
    inherited = RouterModel(name) if parent is None else _ENTRIES[parent]
    own = {"represented_models": "", "node_kinds": (), "usual": False, **properties}
    _ENTRIES[name] = replace(inherited, name=name, parent=parent, features=inherited.features | features, **own)


_define_model("IOS", features={"mqc"}, default_generation="classic")
_define_model(
    "IOS 15",
    parent="IOS",
    default_generation="hqf",
    generations=("hqf",),
    own_software=G2_SOFTWARE,
    bootstrap="System Bootstrap, Version 15.0(1r)M15, RELEASE SOFTWARE (fc1)",
)
_define_model(
    "IOS-XE",
    parent="IOS",
    default_generation="ios-xe",
    generations=("ios-xe",),
    own_software=CUPERTINO,
    software_family="ISR",
    image="X86_64_LINUX_IOSD-UNIVERSALK9-M",
    bootstrap="IOS-XE ROMMON",
    board_id="FLM2140W0AB",
    memory_lines=(
        "32768K bytes of non-volatile configuration memory.",
        # The size of the file system of an ISR 4451 in a public output.
        "7341807K bytes of flash memory at bootflash:.",
    ),
)

_define_model(
    "3725",
    parent="IOS",
    usual=True,
    represented_models=r"(?:CISCO)?(?:17\d\d|26\d\d|36\d\d|37\d\d)",
    software_family="3700",
    image="C3725-ADVENTERPRISEK9-M",
    bootstrap="System Bootstrap, Version 12.4(13r)T5, RELEASE SOFTWARE (fc1)",
    chassis="Cisco 3725 (R7000) processor (revision 0.1) with 124928K/6144K bytes of memory.",
    board_id="FTX0945W0MY",  # [I]
    processor_lines=("R7000 CPU at 240MHz, Implementation 39, Rev 2.1, 256KB L2, 512KB L3 Cache",),
    memory_lines=("DRAM configuration is 64 bits wide with parity disabled.", "55K bytes of NVRAM."),
    interfaces=_port_names(_FAST_ETHERNET, "Gt96k FE", 100_000),
)
_define_model(
    "2811",
    parent="IOS",
    default_generation="hqf",
    represented_models=r"(?:CISCO)?(?:18\d\d|28\d\d|38\d\d)",
    software_family="2800",
    image="C2800NM-ADVENTERPRISEK9-M",
    bootstrap="System Bootstrap, Version 12.4(13r)T, RELEASE SOFTWARE (fc1)",
    chassis="Cisco 2811 (revision 53.50) with 249856K/12288K bytes of memory.",
    board_id="FTX1001C14X",
    memory_lines=(
        "1 Virtual Private Network (VPN) Module",
        "DRAM configuration is 64 bits wide with parity enabled.",
        "239K bytes of non-volatile configuration memory.",
        "62720K bytes of ATA CompactFlash (Read/Write)",
    ),
    interfaces=(*_port_names(_FAST_ETHERNET, "MV96340 Ethernet", 100_000), *_SERIAL),
    process_ns=PROCESS_NS_2811,
)
# From `show version` of routers of this model; board ID, clock and release of the bootstrap are fillers [I].
_define_model(
    "7206VXR",
    parent="IOS",
    represented_models=r"(?:CISCO)?(?:72\d\d|73\d\d|75\d\d)",
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
    interfaces=(*_port_names(_FAST_ETHERNET, "i82543 (Livengood)", 100_000), _ATM),
)
# Layout: `show version` of Catalyst 3750 switches; the numbers are fillers [I].
_define_model(
    "3750G",
    features={"mls qos", "switching"},
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
    interfaces=_port_names(_numbered_ports("GigabitEthernet1/0/", range(1, 29)), "Gigabit Ethernet"),
    register="0xF",
)
_define_model(
    "1941",
    parent="IOS 15",
    represented_models=r"(?:CISCO)?19\d\d",
    software_family="C1900",
    image="C1900-UNIVERSALK9-M",
    chassis="Cisco CISCO1941/K9 (revision 1.0) with 491520K/32768K bytes of memory.",
    board_id="FTX1530W0AB",
    memory_lines=(
        "DRAM configuration is 64 bits wide with parity disabled.",
        "255K bytes of non-volatile configuration memory.",
        "249856K bytes of ATA System CompactFlash 0 (Read/Write)",
    ),
    interfaces=_port_names(_numbered_ports("GigabitEthernet0/", range(2)), "CN Gigabit Ethernet"),
)
_define_model(
    "2911",
    parent="1941",
    usual=True,
    represented_models=r"(?:CISCO)?(?:8[0-9]\d|29\d\d|39\d\d)",
    software_family="C2900",
    image="C2900-UNIVERSALK9-M",
    chassis="Cisco CISCO2911/K9 (revision 1.0) with 483328K/40960K bytes of memory.",
    board_id="FTX1530W0AC",
    memory_lines=(
        "DRAM configuration is 64 bits wide with parity enabled.",
        "255K bytes of non-volatile configuration memory.",
        "250880K bytes of ATA System CompactFlash 0 (Read/Write)",
    ),
    interfaces=_port_names(_numbered_ports("GigabitEthernet0/", range(3)), "CN Gigabit Ethernet"),
)
_define_model(
    "IOSv",
    parent="IOS 15",
    represented_models=r"IOSv",
    node_kinds=("cisco_vios", "iosv", "cisco_iol", "iol"),
    own_software=VIRTUAL_SOFTWARE,
    software_family="IOSv",
    image="VIOS-ADVENTERPRISEK9-M",
    bootstrap="Bootstrap program is IOSv",
    chassis="Cisco IOSv (revision 1.0) with 460137K/62464K bytes of memory.",
    board_id="9KXYI0FCTGH7BQCJLVTTH",
    memory_lines=(
        "DRAM configuration is 72 bits wide with parity disabled.",
        "255K bytes of non-volatile configuration memory.",
        "2097152K bytes of ATA System CompactFlash 0 (Read/Write)",
    ),
    interfaces=_port_names(_numbered_ports("GigabitEthernet0/", range(4)), "iGbE"),
    register="0x0",
)
_define_model(
    "C1111",
    parent="IOS-XE",
    represented_models=r"C11\d\d|C12\d\d|ISR11\d\d|C9[02]\d",
    chassis="cisco C1111-8P (1RU) processor with 1416866K/6147K bytes of memory.",
    interfaces=_port_names(_ISR_PORTS[:2], "C1111-2x1GE"),
    image_name="c1100-universalk9",
    board_id="FGL2140L0AB",
)
_define_model(
    "ISR4331",
    parent="IOS-XE",
    represented_models=r"ISR42\d\d|ISR43[0-246-9]\d",
    chassis="cisco ISR4331/K9 (1RU) processor with 1795979K/6147K bytes of memory.",
    interfaces=_port_names(_ISR_PORTS[:3], "ISR4331-3x1GE"),
    own_software=EVEREST,
    image_name="isr4300-universalk9",
)
_define_model(
    "ISR4451",
    parent="ISR4331",
    usual=True,
    represented_models=r"(?:CISCO|ISR)?(?:ISR)?4[34][35]\d?|ISR44\d\d",
    chassis="cisco ISR4451-X/K9 (2RU) processor with 1795979K/6147K bytes of memory.",
    interfaces=_port_names(_ISR_PORTS, "ISR4451-X-4x1GE"),
    image_name="isr4400-universalk9",
)
_define_model(
    "C8200",
    parent="IOS-XE",
    represented_models=r"C82\d\d",
    chassis="cisco C8200-1N-4T (1RU) processor with 3763047K/6147K bytes of memory.",
    interfaces=_port_names(_ISR_PORTS, "4x1G-2xSFP"),
    software_family="c8000be",
    image_name="c8000be-universalk9",
)
_define_model(
    "C8300",
    parent="C8200",
    represented_models=r"C83\d\d",
    chassis="cisco C8300-2N2S-4T2X (2RU) processor with 3763047K/6147K bytes of memory.",
    interfaces=(
        *_port_names(_ISR_PORTS, "4x1G-2xSFP+"),
        *_port_names(_numbered_ports("TenGigabitEthernet0/0/", range(4, 6)), "4x1G-2xSFP+", 10 * GIGABIT),
    ),
)
_define_model(
    "C8500",
    parent="IOS-XE",
    represented_models=r"C85\d\d",
    chassis="cisco C8500-12X (1RU) processor with 9236983K/6147K bytes of memory.",
    interfaces=_port_names(_numbered_ports("TenGigabitEthernet0/0/", range(12)), "C8500-12X", 10 * GIGABIT),
    software_family="c8000aep",
    image_name="c8000aep-universalk9",
)
_define_model(
    "C8000V",
    parent="IOS-XE",
    represented_models=r"C8000V|CSR1000V|.*\bVXE\b",
    node_kinds=(
        *("cisco_c8000v", "vr-c8000v", "vr-cisco_c8000v", "cat8000v"),
        *("cisco_csr1000v", "vr-csr", "vr-cisco_csr1000v", "csr"),
    ),
    chassis="cisco C8000V (VXE) processor (revision VXE) with 1900130K/3075K bytes of memory.",
    interfaces=_port_names(_numbered_ports("GigabitEthernet", range(1, 9)), "CSR vNIC"),
    software_family="Virtual XE",
    image_name="c8000v-universalk9",
    board_id="9ABCDEFGHIJ",
)
_define_model(
    "ASR1001-X",
    parent="IOS-XE",
    represented_models=r"ASR-?1001",
    chassis="cisco ASR1001-X (1NG) processor (revision 1NG) with 3753626K/6147K bytes of memory.",
    interfaces=(
        *_port_names(_numbered_ports("GigabitEthernet0/0/", range(6)), "BUILT-IN-2T+6X1GE"),
        *_port_names(_numbered_ports("TenGigabitEthernet0/0/", range(2)), "BUILT-IN-2T+6X1GE", 10 * GIGABIT),
    ),
    software_family="ASR1000",
    image_name="asr1001x-universalk9",
)
_define_model(
    "ASR1002-X",
    parent="ASR1001-X",
    represented_models=r"ASR-?1\d\d\d",
    chassis="cisco ASR1002-X (2RU-X) processor (revision 2KP) with 3753626K/6147K bytes of memory.",
    interfaces=_port_names(_numbered_ports("GigabitEthernet0/0/", range(6)), "6XGE-BUILT-IN"),
    image_name="asr1002x-universalk9",
)

MODELS: dict[str, RouterModel] = {name: each for name, each in _ENTRIES.items() if each.interfaces}
"""Models by the value of `model` in experiments."""
