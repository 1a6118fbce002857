"""Conservation of packets between hosts and routers: each packet was passed or dropped, or is still queued. Pure.

The unit is packets, since bytes differ by the layer of the counter, and the period is the traffic time, since counters
of real devices are never cleared. Counters that one side does not report are not compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from qoslab.analysis.class_lines import CLASS
from qoslab.analysis.counter_files import HostCount, add_counters, host_nic_counters, stale_counter_messages
from qoslab.analysis.raw import Row
from qoslab.model.drops import DROP_REASONS
from qoslab.model.experiment import Experiment, Topology
from qoslab.platforms import router_names
from qoslab.results import CellFiles, CellRecord

SHARE = 0.005
"""Tolerated share of packets that only one side counts, since readings are not simultaneous."""
PACKETS = 30
"""Number of tolerated packets in addition to that share: ARP, and other single packets."""
EVERY_S = {
    "keepalives": 10.0,  # `show interfaces` of the articles: `Keepalive set (10 sec)`
    "CDP": 60.0,  # the default of `cdp timer`, inferred from other releases' references
    "LLDP": 30.0,  # the default of `lldp timer`, inferred in the same way
    "spanning tree": 2.0,  # the hello time of IEEE 802.1D, of a switch on the line
    "EIGRP": 5.0,  # the hello interval on lines of more than T1, inferred
    "OSPF": 10.0,  # the hello interval except on multipoint lines (RFC 2328, appendix C.3, has it as a sample)
}
"""Shortest time in seconds between packets that real routers and switches originate, by kind."""
BY_ITSELF = sum(1 / seconds for seconds in EVERY_S.values())
"""Additional tolerated packets a second on each line of a real router, while its counters grow."""
UNCOUNTED = ("access-group", "traffic-filter", "rate-limit", "ip verify unicast")
"""Configuration commands that make a router drop packets which are in none of the counters that are read."""


def counter_disagreements(files: CellFiles, record: CellRecord, experiment: Experiment) -> list[str]:
    """Return one sentence for each disagreement of a cell's hosts and routers, and for counters without the end of the
    traffic.

    `record` is the cell's record before it is written; all other files exist. This is called once, when the cell ends.
    """
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    problems, last = add_counters(files, record, experiment, lambda name, row: rows[name].append(row))
    if problems:
        return [f"the counters cannot be read: {problem}" for problem in problems]
    try:
        cards = host_nic_counters(files)
    except (LookupError, TypeError, ValueError, RecursionError):
        return ["the interface counters of the hosts are damaged"]
    real, uncounted = files.devices_with_readings(), _routers_with_uncounted_drops(files, experiment)
    compared = disagreements(
        experiment.topology, cards, rows["interfaces"], rows["classes"], uncounted=uncounted, talking=real
    )
    return [*stale_counter_messages(last, record, experiment), *compared]


def _routers_with_uncounted_drops(files: CellFiles, experiment: Experiment) -> list[str]:
    """Return the routers that drop packets without a counter, according to their configurations."""
    found, counting = [], files.devices_with_counters()
    for router in router_names(experiment.topology):
        names = (f"config/{router}.{each}" for each in ("ios", "before.ios", "running.ios"))
        words = UNCOUNTED if router not in counting else ("rate-limit",)
        if any(word in files.text(name) for name in names if files.has(name) for word in words):
            found.append(router)
    return found


def disagreements(
    topology: Topology,
    hosts: Mapping[str, Mapping[str, HostCount]],
    interfaces: Iterable[Row],
    classes: Iterable[Row],
    uncounted: Collection[str] = (),
    talking: Collection[str] = (),
) -> Iterator[str]:
    """Yield the disagreements in one cell. `hosts` are by interface; rows are those of the tables.

    `uncounted` routers drop packets that no counter includes. Lines of `talking` routers carry additional packets that
    real routers and switches originate; lines of virtual routers do not.
    """
    counted = _Counted(interfaces, talking)
    yield from _link_disagreements(topology, hosts, counted)
    of_classes: defaultdict[str, list[Row]] = defaultdict(list)
    for row in classes:
        of_classes[str(row["device"])].append(row)
    for router in counted.devices:
        if router not in uncounted:
            yield from _router_disagreements(topology, router, counted, of_classes[router])


class _Counted:
    """Counters of the interfaces of one cell."""

    def __init__(self, interfaces: Iterable[Row], talking: Collection[str]) -> None:
        self._talking = talking
        self._each: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in interfaces:
            self._each[str(row["device"]), str(row["interface"])].append(row)
        for rows in self._each.values():
            rows.sort(key=_reading_time_s)

    @property
    def devices(self) -> list[str]:
        """Names of the devices with counters."""
        return list(dict.fromkeys(device for device, _ in self._each))

    def growth(self, device: str, interface: str, *columns: str) -> float | None:
        """Return the sum of the counters' growth; None if one is unknown."""
        rows = self._each.get((device, interface), ())
        if len(rows) < 2:
            return None
        found = [_growth(_number(rows[0], name), _number(rows[-1], name)) for name in columns]
        return None if None in found else sum(each for each in found if each is not None)

    def tolerance(self, packets: float, device: str, *ports: str) -> float:
        """Return the tolerated difference in packets between the router and another counter at these ports."""
        own = 0.0
        for port in ports if device in self._talking else ():
            rows = self._each[device, port]
            own += BY_ITSELF * (_reading_time_s(rows[-1]) - _reading_time_s(rows[0]))
        return PACKETS + SHARE * packets + own

    def last(self, device: str, interface: str, column: str) -> float:
        """Return the last value of a gauge; 0 if it is missing, since it is of a ring of a few packets."""
        rows = self._each.get((device, interface))
        return (_number(rows[-1], column) if rows else None) or 0.0


def _reading_time_s(row: Row) -> float:
    return float(row["time_s"])  # type: ignore[arg-type]


def _number(row: Row, column: str) -> float | None:
    value = row.get(column)
    return None if value is None else float(value)  # type: ignore[arg-type]


def _growth(first: float | None, last: float | None) -> float | None:
    return None if first is None or last is None else last - first


def _link_disagreements(
    topology: Topology, hosts: Mapping[str, Mapping[str, HostCount]], counted: _Counted
) -> Iterator[str]:
    """Yield a sentence for each link with different counts of the host and the router at its ends."""
    for host, cards in hosts.items():
        for link, near, far in topology.node_links(host):
            card = cards.get(near.interface)
            if card is None or not card.counts_line_frames:
                continue
            names = (far.node, far.interface)
            for verb, own, column, does in (
                ("sent", card.sent, "input", "received"),
                ("received", card.received, "output", "sent"),
            ):
                there = counted.growth(*names, f"{column}_packets")
                lost = counted.growth(*names, f"link_{column}_lost_packets") or 0.0
                if there is None:
                    continue
                expected = there + lost if column == "input" else there - lost
                trusted = counted.tolerance(max(own, expected), *names)
                if abs(own - expected) > trusted:
                    yield (
                        f"on the link {link.name}, {host} {verb} {own} packets on {near.interface}, but {far.node} "
                        f"counts {expected:.0f} packets that {far.interface} {does}: the two may differ by at most "
                        f"{trusted:.0f}"
                    )


def _router_disagreements(topology: Topology, router: str, counted: _Counted, classes: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence if packets that a router received were neither passed nor dropped."""
    ports = sorted({near.interface.partition(".")[0] for _, near, _ in topology.node_links(router)})
    came = _sum(counted.growth(router, port, "input_packets") for port in ports)
    left = _sum(counted.growth(router, port, "output_packets") for port in ports)
    refused = _class_drops([row for row in classes if row["direction"] == "input"])
    drops, waits = (
        _possible_drops(router, ports, counted, classes),
        _possible_queued_packets(router, ports, counted, classes),
    )
    if came is None or left is None or refused is None or not drops or not waits:
        return
    refused += sum(
        counted.growth(router, port, "denied_input_packets", "denied_output_packets") or 0.0 for port in ports
    )
    rest = {(lost, kept): came - left - refused - lost - kept for lost in drops for kept in waits}
    (lost, kept), missing = min(rest.items(), key=lambda each: abs(each[1]))
    trusted = counted.tolerance(came, router, *ports)
    if abs(missing) > trusted:
        what = "are unaccounted for" if missing > 0 else "more than received"
        yield (
            f"{router} counts {came:.0f} received packets, {left:.0f} sent, {lost + refused:.0f} dropped and "
            f"{kept:.0f} queued: {abs(missing):.0f} {what}, at most {trusted:.0f} are allowed"
        )


def _possible_drops(router: str, ports: list[str], counted: _Counted, classes: Sequence[Row]) -> list[float]:
    """Return the possible numbers of drops on output: software differs in whether a port's drops include those of its
    policy, or of policers.

    The list is empty if no counter has them.
    """
    of_ports = _sum(counted.growth(router, port, "output_drops") for port in ports)
    output = [row for row in classes if row["direction"] == "output"]
    if not output:
        return [] if of_ports is None else [of_ports]
    of_classes, policed = _class_drops(output), _class_drops(output, ("police",))
    both = None if of_ports is None or policed is None else of_ports + policed
    return [each for each in (of_ports, of_classes, both) if each is not None]


def _possible_queued_packets(router: str, ports: list[str], counted: _Counted, classes: Sequence[Row]) -> list[float]:
    """Return the possible numbers of packets queued at the end: a port's queue may be that of its policy, or follow a
    shaper's.

    The list is empty if a class does not report its queue.
    """
    of_ports = sum(
        counted.last(router, port, "queue_depth") + counted.last(router, port, "tx_ring_depth") for port in ports
    )
    last = [rows[-1] for rows in _readings_by_class(row for row in classes if row["direction"] == "output")]
    depths = [_queued_packets(row) for row in last]
    if None in depths:
        return []
    of_classes = sum(each for each in depths if each is not None)
    return [of_ports, of_classes, of_ports + of_classes]


def _queued_packets(row: Row) -> float | None:
    """Return the packets in a class's queue; 0 without a queue, None if the reading lacks them."""
    packets = _number(row, "queue_depth_packets")
    return 0.0 if packets is None and row.get("queue_discipline") is None else packets


def _class_drops(classes: Iterable[Row], reasons: Sequence[str] = DROP_REASONS) -> float | None:
    """Return the number of packets that the classes of policies dropped for these reasons; None if one does not report
    it.
    """
    found = 0.0
    for rows in _readings_by_class(row for row in classes if "/" not in str(row["class"])):
        for reason in reasons:
            name = f"drops_{reason}_packets"
            grown = _growth(_number(rows[0], name), _number(rows[-1], name))
            if grown is None:
                return None
            found += grown
    return found


def _readings_by_class(rows: Iterable[Row]) -> list[list[Row]]:
    """Return the readings of each class, ordered by time."""
    found: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=_reading_time_s):
        found[tuple(row.get(name) for name in CLASS)].append(row)
    return list(found.values())


def _sum(counts: Iterator[float | None]) -> float | None:
    found = list(counts)
    return None if not found or None in found else sum(each for each in found if each is not None)
