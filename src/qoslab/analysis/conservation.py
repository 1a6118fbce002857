"""Conservation of packets between hosts and routers: each packet passed, was dropped, or still waits. Pure.

In packets, since bytes differ by the layer at which each counts, and over the traffic time, since counters of real
devices are never cleared. What one side does not tell is not compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import pandas as pd

from qoslab.analysis.classes import CLASS, dropped, last_of_class, waiting
from qoslab.analysis.counter_files import HostCount, add_counters, cards_of, too_old
from qoslab.analysis.raw import Row
from qoslab.model.experiment import Experiment, Topology
from qoslab.platforms import routers_of
from qoslab.results import Cell, CellRecord, tables

SHARE = 0.005
"""Share of packets that one side may count alone: readings are not simultaneous."""
PACKETS = 30
"""Number of packets allowed beyond that share: ARP, and other single packets."""
EVERY_S = {
    "keepalives": 10.0,  # `show interfaces` of the articles: `Keepalive set (10 sec)`
    "CDP": 60.0,  # the default of `cdp timer`, inferred from other releases' references
    "LLDP": 30.0,  # the default of `lldp timer`, inferred likewise
    "spanning tree": 2.0,  # the hello time of IEEE 802.1D, of a switch on the line
    "EIGRP": 5.0,  # the hello interval on lines of more than T1, inferred
    "OSPF": 10.0,  # the hello interval but on multipoint lines (RFC 2328, appendix C.3, has it as a sample)
}
"""Shortest time between packets that real routers and switches send by themselves, for each kind."""
BY_ITSELF = sum(1 / seconds for seconds in EVERY_S.values())
"""Packets a second that may be beyond it on each line of a real router, while its counters grow."""
UNCOUNTED = ("access-group", "traffic-filter", "rate-limit", "ip verify unicast")
"""Words of a configuration by which a router drops what no show command of those that are read counts."""


def disagreements_of(cell: Cell, record: CellRecord, experiment: Experiment) -> list[str]:
    """Return who of a cell's hosts and routers does not count the same, or not to the end of the traffic, a sentence
    each.

    `record` is what is to be written of it; its files are all there. This is asked once, when the cell ends.
    """
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    if problems := add_counters(cell, record, experiment, lambda name, row: rows[name].append(row)):
        return [f"the counters cannot be read: {problem}" for problem in problems]
    try:
        cards = cards_of(cell)
    except (LookupError, TypeError, ValueError, RecursionError):
        return ["the interface counters of the hosts are damaged"]
    interfaces, classes = (tables.frame(name, rows[name]) for name in ("interfaces", "classes"))
    real, uncounted = cell.devices_with_readings(), _uncounted(cell, experiment)
    compared = disagreements(experiment.topology, cards, interfaces, classes, uncounted=uncounted, talking=real)
    return [*too_old(cell, record, experiment), *compared]


def _uncounted(cell: Cell, experiment: Experiment) -> list[str]:
    """Routers that drop what nothing of what was read counts, by their configurations."""
    found, told = [], cell.devices_with_counters()
    for router in routers_of(experiment.topology):
        files = (cell.configuration(f"{router}.{each}") for each in ("ios", "before.ios", "running.ios"))
        words = UNCOUNTED if router not in told else ("rate-limit",)
        if any(word in cell.text(file) for file in files if file.exists() for word in words):
            found.append(router)
    return found


def disagreements(
    topology: Topology,
    hosts: Mapping[str, Mapping[str, HostCount]],
    interfaces: pd.DataFrame,
    classes: pd.DataFrame,
    uncounted: Collection[str] = (),
    talking: Collection[str] = (),
) -> Iterator[str]:
    """Yield who disagrees with whom, of one cell. `hosts` are by interface.

    `uncounted` routers drop what nobody counts, and on lines of `talking` ones there is what these and switches say by
    themselves, as there is on no virtual one.
    """
    counted = _Counted(interfaces, talking)
    yield from _of_links(topology, hosts, counted)
    for router in interfaces["device"].unique():
        if router not in uncounted:
            yield from _of_router(topology, str(router), counted, classes[classes["device"] == router])


class _Counted:
    """The counters of interfaces of one cell."""

    def __init__(self, interfaces: pd.DataFrame, talking: Collection[str]) -> None:
        self._talking = talking
        readings = interfaces.sort_values("time_s").groupby(["device", "interface"])
        self._each = {(str(key[0]), str(key[1])): rows for key, rows in readings}

    def grown(self, device: str, interface: str, *columns: str) -> float | None:
        """Return how much counters grew together; None where one is not known."""
        rows = self._each.get((device, interface))
        if rows is None or len(rows) < 2:
            return None
        found = rows[list(columns)].astype(float)
        total = float((found.iloc[-1] - found.iloc[0]).sum(skipna=False))
        return None if pd.isna(total) else total

    def tolerance(self, packets: float, device: str, *ports: str) -> float:
        """Return the allowed difference in packets between the router and another counter at these ports."""
        own = 0.0
        for port in ports if device in self._talking else ():
            times = self._each[device, port]["time_s"]
            own += BY_ITSELF * float(times.iloc[-1] - times.iloc[0])
        return PACKETS + SHARE * packets + own

    def last(self, device: str, interface: str, column: str) -> float:
        """The last of a gauge; 0 where it is not told: a ring of a few packets."""
        rows = self._each.get((device, interface))
        value = None if rows is None else rows[column].iloc[-1]
        return 0.0 if pd.isna(value) else float(value)


def _of_links(topology: Topology, hosts: Mapping[str, Mapping[str, HostCount]], counted: _Counted) -> Iterator[str]:
    """Yield where a host and the router at the other end of its link do not count the same."""
    for host, cards in hosts.items():
        for link, near, far in topology.links_of(host):
            card = cards.get(near.interface)
            if card is None or not card.is_of_the_line:
                continue
            names = (far.node, far.interface)
            for said, own, column, does in (
                ("sent", card.sent, "input", "received"),
                ("received", card.received, "output", "sent"),
            ):
                there = counted.grown(*names, f"{column}_packets")
                lost = counted.grown(*names, f"link_{column}_lost_packets") or 0.0
                if there is None:
                    continue
                expected = there + lost if column == "input" else there - lost
                trusted = counted.tolerance(max(own, expected), *names)
                if abs(own - expected) > trusted:
                    yield (
                        f"on the link {link.name} {host} {said} {own} packets by {near.interface}, and {far.node} "
                        f"counts {expected:.0f} that {far.interface} {does}: they may differ by {trusted:.0f}"
                    )


def _of_router(topology: Topology, router: str, counted: _Counted, classes: pd.DataFrame) -> Iterator[str]:
    """Yield where a router neither passed nor dropped what came in."""
    ports = sorted({near.interface.partition(".")[0] for _, near, _ in topology.links_of(router)})
    came = _sum(counted.grown(router, port, "input_packets") for port in ports)
    left = _sum(counted.grown(router, port, "output_packets") for port in ports)
    refused = _class_drops(classes[classes["direction"] == "input"])
    drops, waits = _ways_of_drops(router, ports, counted, classes), _ways_of_waiting(router, ports, counted, classes)
    if came is None or left is None or refused is None or not drops or not waits:
        return
    refused += sum(
        counted.grown(router, port, "denied_input_packets", "denied_output_packets") or 0.0 for port in ports
    )
    rest = {(lost, kept): came - left - refused - lost - kept for lost in drops for kept in waits}
    (lost, kept), missing = min(rest.items(), key=lambda each: abs(each[1]))
    trusted = counted.tolerance(came, router, *ports)
    if abs(missing) > trusted:
        what = "are nowhere" if missing > 0 else "came from nowhere"
        yield (
            f"{router} counts {came:.0f} packets that came in, {left:.0f} that left, {lost + refused:.0f} dropped and "
            f"{kept:.0f} that wait: {abs(missing):.0f} {what}, at most {trusted:.0f} can be trusted"
        )


def _ways_of_drops(router: str, ports: list[str], counted: _Counted, classes: pd.DataFrame) -> list[float]:
    """Return the possible drops on output: software differs in whether a port's drops include its policy's, or
    policer's.

    Empty where nothing tells.
    """
    of_ports = _sum(counted.grown(router, port, "output_drops") for port in ports)
    output = classes[classes["direction"] == "output"]
    if output.empty:
        return [] if of_ports is None else [of_ports]
    of_classes, policed = _class_drops(output), _class_drops(output, "drops_police_packets")
    both = None if of_ports is None or policed is None else of_ports + policed
    return [each for each in (of_ports, of_classes, both) if each is not None]


def _ways_of_waiting(router: str, ports: list[str], counted: _Counted, classes: pd.DataFrame) -> list[float]:
    """Return the packets that may wait at the end: a port's queue may be that of its policy, or follow a shaper's.

    Empty where a queue does not tell.
    """
    of_ports = sum(
        counted.last(router, port, "queue_depth") + counted.last(router, port, "tx_ring_depth") for port in ports
    )
    depths = waiting(last_of_class(classes[classes["direction"] == "output"]), "packets")
    if depths.isna().any():
        return []
    return [of_ports, float(depths.sum()), of_ports + float(depths.sum())]


def _class_drops(classes: pd.DataFrame, column: str | None = None) -> float | None:
    """Return how many packets the classes of policies dropped, for whatever reason; None where one does not tell."""
    own = classes[~classes["class"].str.contains("/")].sort_values("time_s")
    found = 0.0
    for _, rows in own.groupby(CLASS):
        drops = dropped(rows, "packets") if column is None else rows[column].astype(float)
        found += float(drops.iloc[-1] - drops.iloc[0])
    return None if pd.isna(found) else found


def _sum(counts: Iterator[float | None]) -> float | None:
    found = list(counts)
    return None if not found or None in found else sum(each for each in found if each is not None)
