"""`show interfaces` of simulated routers: parsed without Genie, with Genie's result."""

from __future__ import annotations

import json

import pytest

from qoslab.genie import own_parsers
from qoslab.genie.show_parser import parse

COMMAND = "show interfaces"
ETHERNET = """\
FastEthernet0/1 is up, line protocol is up
  Hardware is Gt96k FE, address is 0200.0000.0001 (bia 0200.0000.0001)
  Internet address is 192.168.20.1/24
  MTU 1500 bytes, BW 100000 Kbit, DLY 100 usec,
     reliability 255/255, txload 12/255, rxload 1/255
  Encapsulation ARPA, loopback not set
  Keepalive set (10 sec)
  Full-duplex, 100Mb/s, 100BaseTX/FX
  ARP type: ARPA, ARP Timeout 04:00:00
  Last input 00:00:01, output 1d02h, output hang never
  Last clearing of "show interface" counters never
  Input queue: 0/75/3/0 (size/max/drops/flushes); Total output drops: 17
  Queueing strategy: fifo
  Output queue: 2/40 (size/max)
  5 minute input rate 1000 bits/sec, 2 packets/sec
  5 minute output rate 3000 bits/sec, 4 packets/sec
     5 packets input, 600 bytes
     Received 0 broadcasts, 0 runts, 0 giants, 0 throttles
     0 input errors, 0 CRC, 0 frame, 0 overrun, 0 ignored
     0 watchdog
     0 input packets with dribble condition detected
     7 packets output, 800 bytes, 0 underruns
     0 output errors, 0 collisions, 0 interface resets
     0 babbles, 0 late collision, 0 deferred
     0 lost carrier, 0 no carrier
     0 output buffer failures, 0 output buffers swapped out
"""
SERIAL = """\
Serial0/1/0 is administratively down, line protocol is down
  Hardware is GT96K Serial
  MTU 1500 bytes, BW 2000 Kbit/sec, DLY 20000 usec,
     reliability 255/255, txload 1/255, rxload 1/255
  Encapsulation HDLC, loopback not set
  Keepalive not set
  CRC checking enabled
  Last input never, output never, output hang never
  Last clearing of "show interface" counters 00:01:02
  Input queue: 0/75/0/0 (size/max/drops/flushes); Total output drops: 5
  Queueing strategy: weighted fair
  Output queue: 10/1000/64/5 (size/max total/threshold/drops)
     Conversations  1/1/64 (active/max active/max total)
     Reserved Conversations 1/1 (allocated/max allocated)
     Available Bandwidth 64 kilobits/sec
  30 second input rate 0 bits/sec, 0 packets/sec
  30 second output rate 0 bits/sec, 0 packets/sec
     0 packets input, 0 bytes, 0 no buffer
     Received 0 broadcasts, 0 runts, 0 giants, 0 throttles
     0 input errors, 0 CRC, 0 frame, 0 overrun, 0 ignored, 0 abort
     0 packets output, 0 bytes, 0 underruns
     0 output errors, 0 collisions, 0 interface resets
     0 output buffer failures, 0 output buffers swapped out
     0 carrier transitions
     DCD=up  DSR=up  DTR=up  RTS=up  CTS=up
"""
CHANGED = (
    (ETHERNET, "  Full-duplex, 100Mb/s, 100BaseTX/FX", "  Half Duplex, 10Mbps, link type is auto, media type is RJ45"),
    (ETHERNET, "line protocol is up\n", "line protocol is up (connected) \n"),
    (
        ETHERNET,
        "  Full-duplex, 100Mb/s, 100BaseTX/FX",
        "  Full-duplex, 1000Mb/s, media type is 10/100/1000BaseTX\n"
        "  input flow-control is off, output flow-control is unsupported ",
    ),
    (SERIAL, "Encapsulation HDLC, loopback not set", "Encapsulation PPP, LCP Open\n  Open: IPCP, loopback not set"),
    (
        SERIAL,
        "Output queue: 10/1000/64/5 (size/max total/threshold/drops)",
        "Output queue: 0/1000/5 (size/max total/drops)",
    ),
    (SERIAL, "Queueing strategy: weighted fair", "Queueing strategy: random early detection(RED)"),
)


@pytest.mark.parametrize("text", [ETHERNET + SERIAL, *(whole.replace(old, new) for whole, old, new in CHANGED)])
def test_interfaces_parsed_without_genie_equal_those_of_genie(text: str) -> None:
    found = own_parsers.parse(COMMAND, text)
    assert found is not None and found.parsed
    # The order of the keys is that of the file in a run folder.
    assert json.dumps(found.parsed) == json.dumps(parse("ios", COMMAND, text).parsed)


@pytest.mark.parametrize(
    "line", ["  Description: to the branch", "  Encapsulation ATM, loopback not set", "% Invalid input"]
)
def test_output_with_an_unknown_line_is_left_to_genie(line: str) -> None:
    assert own_parsers.parse(COMMAND, ETHERNET + line + "\n") is None


def test_output_without_interfaces_is_empty() -> None:
    assert own_parsers.parse(COMMAND, "") == parse("ios", COMMAND, "")
