"""`show interfaces [X]` and `show ip interface brief`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from qoslab.ios.environment import Activity, PortState
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.generations import QosGeneration
from qoslab.ios.model.hardware import Chassis
from qoslab.ios.model.mtu import line_mtu
from qoslab.ios.model.printed_rates import format_rate, interval_text
from qoslab.ios.model.routes import NULL
from qoslab.ios.show.queueing import queue_lines
from qoslab.ios.show.times import elapsed_text
from qoslab.system import program_formats

KEEPALIVE_S = 10
FULL_LOAD = 255


def unwired_counters(
    interface: Interface, chassis: Chassis, subinterfaces: Iterable[Interface] = ()
) -> program_formats.InterfaceCounters:
    """Return the counters of an interface without a cable, which the data plane does not have."""
    hardware = chassis.interface(interface.name)
    if hardware is None:
        raise ValueError(f"{interface.name} is not an interface of a {chassis.name}")
    none: program_formats.DirectionCounters = {"packets": 0, "bytes": 0, "rate_bps": 0.0, "rate_pps": 0.0, "drops": 0}
    return {
        "enabled": not interface.shutdown,
        "load_interval_s": engine_defaults.LOAD_INTERVAL_S
        if interface.load_interval_s is None
        else interface.load_interval_s,
        "line_rate_bps": 1000 * hardware.bandwidth_kbps,
        "input": none,
        "output": none,
        "queue": {
            "strategy": "fifo",
            "depth": 0,
            "limit": engine_defaults.FIFO_HOLD_QUEUE if interface.hold_queue_out is None else interface.hold_queue_out,
            "drops": 0,
            "conversations": None,
            "max_conversations": None,
            "threshold": None,
            "max_active_conversations": None,
            "reserved_conversations": None,
            "available_bandwidth_kbps": None,
        },
        "conversations": [],
        "random_detect": None,
        "numbered_queues": [],
        "shapers": [],
        "tree": [],
        "tx_ring": {"limit": 0, "depth": 0},
        "queueing_delay": None,
        "link": {"input": EMPTY_LINE, "output": EMPTY_LINE},
        "access_list_hits": None,
        "denied_input": {"packets": 0, "bytes": 0},
        "denied_output": {"packets": 0, "bytes": 0},
        "rate_limit_input": [],
        "rate_limit_output": [],
        "policy_input": None,
        "policy_output": None,
        "subinterfaces": {
            each.name: {
                "enabled": not each.shutdown,
                "vlan": each.vlan,
                "native": each.native,
                "input": {"packets": 0, "bytes": 0},
                "output": {"packets": 0, "bytes": 0},
                "policy_input": None,
                "policy_output": None,
            }
            for each in subinterfaces
            if each.vlan is not None
        },
        "switch": None,
    }


EMPTY_LINE: program_formats.PropagationCounters = {"lost": {"packets": 0, "bytes": 0}, "in_flight": 0}


def dotted_mac(mac: str) -> str:
    """Return a MAC address in the notation of IOS: 0200.0000.0001 for `02:00:00:00:00:01`."""
    digits = mac.replace(":", "").lower()
    return ".".join(digits[i : i + 4] for i in (0, 4, 8))


def interface_states(interface: Interface, port: PortState | None, *, shutdown: bool | None = None) -> tuple[str, str]:
    """Return status and line protocol; for a subinterface, `shutdown` includes that of its port."""
    if interface.shutdown if shutdown is None else shutdown:
        return "administratively down", "down"
    up = port is not None and port.carrier
    return ("up", "up") if up else ("down", "down")


@dataclass(frozen=True, slots=True)
class InterfaceView:
    """Output of `show interfaces` for one interface."""

    interface: Interface
    chassis: Chassis
    port: PortState | None
    counters: program_formats.InterfaceCounters
    now: datetime
    cleared: datetime | None
    activity: Activity
    qos: QosGeneration
    kbit: str
    """Unit of BW in the output: `Kbit`, from 15.x on `Kbit/sec`."""
    circuit: bool = False
    """True if an ATM port has a circuit, on itself or on a subinterface."""

    def render(self) -> str:
        """Return the output."""
        return "".join(line + "\n" for line in self._body_lines())

    def _body_lines(self) -> Iterator[str]:
        interface, counters, port = self.interface, self.counters, self.port
        status, protocol = interface_states(interface, port)
        # A Catalyst adds the state of the cable.
        plugged = "" if interface.port is None else "(connected) " if protocol == "up" else "(notconnect) "
        yield f"{interface.name} is {status}, line protocol is {protocol} {plugged}"
        yield from self._hardware_line(protocol == "up")
        yield (
            f"  Last input {self._elapsed_since(self.activity.last_input)}, "
            f"output {self._elapsed_since(self.activity.last_output)}," + (" output hang never")
        )
        yield f'  Last clearing of "show interface" counters {self._elapsed_since(self.cleared)}'
        yield from (f"  {line}" for line in queue_lines(interface, counters, self.qos))
        interval = interval_text(counters["load_interval_s"])
        for way in ("input", "output"):
            rates = counters["input"] if way == "input" else counters["output"]
            bits, packets = format_rate(rates["rate_bps"]), round(rates["rate_pps"])
            yield f"  {interval} {way} rate {bits} bits/sec, {packets} packets/sec"
        yield from self._counter_lines()

    def _elapsed_since(self, moment: datetime | None) -> str:
        return elapsed_text(None if moment is None else self.now - moment)

    def _hardware_line(self, up: bool) -> Iterator[str]:
        interface, port = self.interface, self.port
        hardware = self.chassis.interface(interface.name)
        if hardware is None:
            raise ValueError(f"{interface.name} is not an interface of a {self.chassis.name}")
        address = (
            "" if port is None or port.mac is None or interface.is_serial or interface.is_atm else dotted_mac(port.mac)
        )
        yield f"  Hardware is {hardware.chip}" + (f", address is {address} (bia {address})" if address else "")
        if interface.description is not None:
            yield f"  Description: {interface.description}"
        if interface.address is not None:
            yield f"  Internet address is {interface.address}"
        default, delay = hardware.bandwidth_kbps, hardware.delay_us
        if interface.port is not None and up:
            # The speed of a switch's port is forced or negotiated, and these defaults go by it.
            default = self.counters["line_rate_bps"] // 1000
            delay = hardware.delay_us * hardware.bandwidth_kbps // max(default, 1)
        bandwidth = default if interface.bandwidth_kbps is None else interface.bandwidth_kbps
        mtu = line_mtu(interface) if port is None else min(line_mtu(interface), port.mtu)
        below = f" sub MTU {mtu}," if interface.is_atm else ""
        yield f"  MTU {mtu} bytes,{below} BW {bandwidth} {self.kbit}, DLY {delay} usec, "
        yield (
            f"     reliability 255/255, txload {_load(self.counters['output']['rate_bps'], bandwidth)}/255,"
            f" rxload {_load(self.counters['input']['rate_bps'], bandwidth)}/255"
        )
        yield from self._encapsulation_lines(up)
        if interface.is_atm:
            return
        yield f"  Keepalive set ({KEEPALIVE_S} sec)" if interface.keepalive else "  Keepalive not set"
        if interface.is_serial:
            yield "  CRC checking enabled"
        else:
            rate_mbps = self.counters["line_rate_bps"] // 1_000_000
            duplex = "Half" if interface.duplex == "half" else "Full"
            media = "100BaseTX/FX" if interface.port is None else "media type is 10/100/1000BaseTX"
            if self.qos.output_queue_of_fifo:
                yield f"  {duplex} Duplex, {rate_mbps}Mbps, link type is auto, media type is RJ45"
            else:
                yield f"  {duplex}-duplex, {rate_mbps}Mb/s, {media}"
            if interface.port is not None:
                yield "  input flow-control is off, output flow-control is unsupported "
            yield "  ARP type: ARPA, ARP Timeout 04:00:00"

    def _encapsulation_lines(self, up: bool) -> Iterator[str]:
        if self.interface.is_atm:
            yield from self._atm_lines()
        elif not self.interface.is_serial:
            yield "  Encapsulation ARPA, loopback not set"
        elif self.interface.encapsulation == "ppp":
            yield f"  Encapsulation PPP, LCP {'Open' if up else 'Closed'}"
            yield f"  {'Open: IPCP' if up else 'Closed: IPCP'}, loopback not set"
        else:
            yield "  Encapsulation HDLC, loopback not set"

    def _atm_lines(self) -> Iterator[str]:
        # As in document 6143 of Cisco; the hardware has 4096 circuits.
        yield "  Encapsulation ATM, loopback not set, keepalive not set"
        yield "  Encapsulation(s): AAL5"
        yield f"  4096 maximum active VCs, {int(self.circuit)} current VCCs"
        yield "  VC idle disconnect time: 300 seconds"

    def _counter_lines(self) -> Iterator[str]:
        # The data plane counts packets and bytes only. A virtual line has no damaged frames, collisions or
        # carrier losses, so those are zero; broadcasts are not distinguished from other packets.
        received, sent = self.counters["input"], self.counters["output"]
        ethernet = not self.interface.is_serial and not self.interface.is_atm
        yield f"     {received['packets']} packets input, {received['bytes']} bytes" + (
            "" if ethernet else ", 0 no buffer"
        )
        yield "     Received 0 broadcasts, 0 runts, 0 giants, 0 throttles"
        if not ethernet:
            yield "     0 input errors, 0 CRC, 0 frame, 0 overrun, 0 ignored, 0 abort"
        else:
            yield "     0 input errors, 0 CRC, 0 frame, 0 overrun, 0 ignored"
            yield "     0 watchdog"
            yield "     0 input packets with dribble condition detected"
        yield f"     {sent['packets']} packets output, {sent['bytes']} bytes, 0 underruns"
        yield "     0 output errors, 0 collisions, 0 interface resets"
        if self.interface.is_atm:
            yield "     0 output buffer failures, 0 output buffers swapped out"
        elif self.interface.is_serial:
            yield "     0 output buffer failures, 0 output buffers swapped out"
            yield "     0 carrier transitions"
            # [I] The state of the modem lines of a serial port.
            signal = "up" if self.port is not None and self.port.carrier else "down"
            yield "     " + "  ".join(f"{line}={signal}" for line in ("DCD", "DSR", "DTR", "RTS", "CTS"))
        else:
            yield "     0 babbles, 0 late collision, 0 deferred"
            yield "     0 lost carrier, 0 no carrier"
            yield "     0 output buffer failures, 0 output buffers swapped out"


def _load(rate_bps: float, bandwidth_kbps: int) -> int:
    """Return the load as a fraction of 255, at least 1."""
    return max(1, min(FULL_LOAD, int(FULL_LOAD * rate_bps / (1000 * bandwidth_kbps))))


def _brief_row(name: str, address: str, method: str, status: str, protocol: str) -> str:
    return f"{name:<27}{address:<16}YES {method:<7}{status:<22}{protocol:<8}"


def show_ip_interface_brief(device: Device, ports: Mapping[str, PortState], from_startup: Collection[str]) -> str:
    """Return one line for each interface; those in `from_startup` have their address from the startup configuration."""
    lines = ["Interface                  IP-Address      OK? Method Status                Protocol"]
    for name, interface in device.interfaces.items():
        # A subinterface uses the cable of its port.
        port = ports.get(interface.parent or name)
        status, protocol = interface_states(interface, port, shutdown=device.is_shut_down(interface))
        if interface.address is None:
            address, method = "unassigned", "unset"
        else:
            address, method = str(interface.address.ip), "NVRAM" if name in from_startup else "manual"
        lines.append(_brief_row(name, address, method, status, protocol))
    for name, own in device.host_interfaces.items():
        status, protocol = ("administratively down", "down") if own.shutdown else ("up", "up")
        method = "unset" if own.address is None else "NVRAM" if name in from_startup else "manual"
        address = "unassigned" if own.address is None else str(own.address.ip)
        if name != NULL:
            lines.append(_brief_row(name, address, method, status, protocol))
    return "".join(line + "\n" for line in lines)
