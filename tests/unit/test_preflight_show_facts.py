"""Facts for preflight checks, read from the output of routers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from preflight_facts import MACS, UP, preflight_facts, router_port

from qoslab.genie.show_parser import parse as genie_parse
from qoslab.run.real.access.rollback_methods import RollbackState
from qoslab.run.real.preflight import refusal_error, run_checks
from qoslab.run.real.preflight.facts import RoundTrips, RouterFacts
from qoslab.run.real.preflight.gather import FactCollector
from qoslab.run.real.preflight.show_facts import round_trips, router_facts

INTERFACES = """\
GigabitEthernet0/1 is up, line protocol is up 
  Hardware is CN Gigabit Ethernet, address is 7c69.f6a1.0001 (bia 7c69.f6a1.0001)
  Internet address is 192.168.10.1/24
  MTU 1500 bytes, BW 1000000 Kbit/sec, DLY 10 usec, 
     reliability 255/255, txload 1/255, rxload 1/255
  Encapsulation ARPA, loopback not set
  Keepalive set (10 sec)
  Half Duplex, 1Gbps, media type is RJ45
  ARP type: ARPA, ARP Timeout 04:00:00
     9 packets input, 900 bytes, 0 no buffer
     17 input errors, 17 CRC, 0 frame, 0 overrun, 0 ignored
     9 output errors, 3 collisions, 0 interface resets
"""  # noqa: W291
PRINTED = {
    "show version": "Cisco IOS Software, C2900 Software (C2900-UNIVERSALK9-M), Version 15.1(4)M4, RELEASE\n"
    "Processor board ID FTX1234A5BC\n",
    "show interfaces": INTERFACES,
    "show arp": (
        "Protocol  Address          Age (min)  Hardware Addr   Type   Interface\n"
        "Internet  192.168.10.2            3   0200.0000.0001  ARPA   GigabitEthernet0/1\n"
    ),
    "show running-config": "interface GigabitEthernet0/1\n ipv6 address 2001:DB8::1/64\n!\nend\n",
    "show startup-config": "startup-config is not present\n",
    "dir flash:": "8 bytes total (3 bytes free)\n",
    "show cdp neighbors detail": "% CDP is not enabled\n",
    "show lldp neighbors detail": "% LLDP is not enabled\n",
    "show mac address-table": (
        "   1    0200.0000.0001    DYNAMIC     Gi1/0/15\n 20    0200.0000.0002    DYNAMIC     Po1\n"
    ),
}
CDP = """\
-------------------------
Device ID: R2.example.org
Entry address(es): 
  IP address: 10.0.12.2
Platform: Cisco 2811,  Capabilities: Router Source-Route-Bridge Switch IGMP 
Interface: Serial0/0/0,  Port ID (outgoing port): Serial0/1/0
Holdtime : 154 sec

Version :
Cisco IOS Software, 2800 Software (C2800NM-ADVENTERPRISEK9-M), Version 12.4(15)T14, RELEASE SOFTWARE (fc2)
Technical Support: http://www.cisco.com/techsupport
Copyright (c) 1986-2010 by Cisco Systems, Inc.
Compiled Tue 17-Aug-10 12:08 by prod_rel_team

advertisement version: 2
VTP Management Domain: ''
Duplex: full

"""  # noqa: W291
LLDP = """\
------------------------------------------------
Local Intf: Gi0/1
Chassis id: 0200.0000.0003
Port id: Gi0/2
Port Description: GigabitEthernet0/2
System Name: R3.example.org

System Description: 
Cisco IOS Software, C2900 Software (C2900-UNIVERSALK9-M), Version 15.1(4)M4, RELEASE SOFTWARE (fc1)
Technical Support: http://www.cisco.com/techsupport
Copyright (c) 1986-2012 by Cisco Systems, Inc.
Compiled Tue 20-Mar-12 18:57 by prod_rel_team

Time remaining: 103 seconds
System Capabilities: B,R
Enabled Capabilities: R
Management Addresses:
    IP: 10.0.13.3
Auto Negotiation - supported, enabled
Physical media capabilities:
    1000baseT(FD)
    100base-TX(FD)
Media Attachment Unit type: 30
Vlan ID: - not advertised


Total entries displayed: 1

"""  # noqa: W291
"""CDP and LLDP output in the form of the examples in Cisco's command reference; the devices are invented."""
SERIAL = """\
Serial0/0/0 is up, line protocol is up 
  Hardware is GT96K Serial
  Internet address is 10.0.12.1/30
  MTU 1500 bytes, BW 512 Kbit/sec, DLY 20000 usec, 
     reliability 255/255, txload 1/255, rxload 1/255
  Encapsulation HDLC, loopback not set
  Keepalive set (10 sec)
"""  # noqa: W291


def test_output_of_ping_is_parsed() -> None:
    text = "Success rate is 80 percent (4/5), round-trip min/avg/max = 48/52/60 ms\n"
    assert round_trips(text) == RoundTrips(5, (48.0, 52.0, 52.0, 60.0), summed=True)
    nobody = "Success rate is 0 percent (0/5)\n"
    assert round_trips(nobody) == RoundTrips(5, (), summed=True)
    assert round_trips(text, nobody, text) == RoundTrips(15, (48.0, 52.0, 52.0, 60.0) * 2, summed=True)
    assert round_trips("% Unrecognized host or address, or protocol not running.\n") == RoundTrips(0, (), summed=True)


def read(**changed: str) -> RouterFacts:
    """Return the facts parsed from `PRINTED` with changes."""

    def parse(command: str, text: str) -> Any:
        return genie_parse("ios", command, text).parsed or {}

    return router_facts({**PRINTED, **changed}, parse, {}, "192.0.2.1")


@pytest.mark.parametrize(
    ("printed", "why"), [(INTERFACES, ""), ("Gi0/1 up up\n", "the parser recognised nothing in it")]
)
def test_reason_for_unparsed_router_output_is_recorded(printed: str, why: str) -> None:
    parser = SimpleNamespace(parse=lambda command, text: genie_parse("ios", command, text))
    inventory = SimpleNamespace(routers={"R1": SimpleNamespace(host="192.0.2.1")})
    gathering: Any = SimpleNamespace(collector=parser, inventory=inventory)
    found = FactCollector._read(gathering, "R1", PRINTED | {"show interfaces": printed}, {})
    assert (bool(found.ports), found.unread) == (not why, why)


def test_facts_are_parsed_from_router_output() -> None:
    found = read()
    assert (found.ios, found.release, found.board, found.refused) == (True, "15.1(4)M4", "FTX1234A5BC", "")
    there = found.ports["GigabitEthernet0/1"]
    assert (there.duplex, there.mbps, there.line) == ("half", 1000.0, True)
    assert there.addresses == ("192.168.10.1/24", "2001:DB8::1/64")
    assert there.errors == {"CRC errors": 17, "input errors": 17, "output errors": 9, "collisions": 3}
    assert found.arp == {"192.168.10.2": ("02:00:00:00:00:01", "GigabitEthernet0/1")}
    assert found.learnt == {"02:00:00:00:00:01": "Gi1/0/15", "02:00:00:00:00:02": "Po1"}
    assert found.neighbours == ()
    kept = (PRINTED[each] for each in ("show running-config", "show startup-config", "dir flash:"))
    assert found.rollback_state == RollbackState(*kept)


def test_neighbours_are_read_from_cdp_and_lldp() -> None:
    found = read(**{"show cdp neighbors detail": CDP, "show lldp neighbors detail": LLDP})
    assert found.neighbours == (
        ("Serial0/0/0", "R2", "Serial0/1/0"),
        ("GigabitEthernet0/1", "R3", "GigabitEthernet0/2"),
    )


def test_lldp_neighbour_confirms_or_refutes_a_cable() -> None:
    reported = LLDP.replace("Gi0/1", "Fa0/1").replace("Gi0/2", "Fa0/0").replace("R3.example.org", "R1.example.org")
    swapped = read(**{"show lldp neighbors detail": reported}).neighbours
    assert swapped == (("FastEthernet0/1", "R1", "FastEthernet0/0"),)
    refused = refusal_error(run_checks(preflight_facts(neighbours=swapped)))
    assert refused is not None
    assert refused.message.startswith(
        "link wan: found FastEthernet0/0 of R1 at FastEthernet0/1 of R1according to that device, expected eth0 of "
        "server"
    )


def test_clock_rate_that_differs_from_the_link_is_noted() -> None:
    serial = read(
        **{
            "show interfaces": SERIAL,
            "show controllers Serial0/0/0": "Interface Serial0/0/0\nHardware is GT96K\nDCE V.35, clock rate 512000\n",
        }
    )
    assert serial.ports["Serial0/0/0"].clock_rate_bps == 512_000
    taken = "Interface Serial0/0/0\nHardware is GT96K\nDTE V.35 TX and RX clocks detected.\n"
    other_end = read(**{"show interfaces": SERIAL, "show controllers Serial0/0/0": taken})
    assert other_end.ports["Serial0/0/0"].clock_rate_bps is None

    def noted(rate: int | None) -> list[str]:
        wan = router_port(MACS["Fa1"], "192.168.20.1/24", clock_rate_bps=rate)
        found = run_checks(preflight_facts(ports={**UP, "FastEthernet0/1": wan}))
        assert refusal_error(found) is None
        return [str(each) for each in found]

    assert noted(100_000_000) == noted(None) == []
    assert noted(512_000) == [
        "R1: found clock rate 512000 on FastEthernet0/1, expected 100000000 for the link wan; set `clock rate`, unless "
        "the experiment's configuration does"
    ]
