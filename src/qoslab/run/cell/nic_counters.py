"""Counters of the hosts' interfaces in the experiment: packets as the kernel's driver sees them."""

from __future__ import annotations

from collections.abc import Iterable

from qoslab.errors import RunInvalid
from qoslab.model.experiment import Topology
from qoslab.results import Cell
from qoslab.run.protocols import RunningLab

COLUMNS = {"received_bytes": 0, "received_packets": 1, "sent_bytes": 8, "sent_packets": 9}
"""Columns of a line of `/proc/net/dev`, behind the interface's name."""
Counts = dict[str, dict[str, int]]
"""Counters by interface, under the experiment's names."""


class NicCounters:
    """Counters of the hosts' interfaces, from now on."""

    def __init__(self, lab: RunningLab, topology: Topology, hosts: Iterable[str]) -> None:
        self._lab = lab
        self._topology = topology
        self._before = {host: self._read(host) for host in hosts}

    def keep(self, cell: Cell) -> None:
        """Write the counters from the start and from now."""
        for host, before in self._before.items():
            cell.write_json(cell.host_cards(host), {"before": before, "after": self._read(host)})

    def _read(self, host: str) -> Counts:
        there = self._lab.host(host)
        devices = {near.interface: there.device(near.interface) for _, near, _ in self._topology.node_links(host)}
        counted = read_devices(there.read("/proc/net/dev"))
        missing = [device for device in devices.values() if device not in counted]
        if missing:
            raise RunInvalid(f"{host}: found no {', '.join(missing)} in /proc/net/dev")
        return {name: counted[device] for name, device in devices.items()}


def read_devices(text: str) -> Counts:
    """Parse `/proc/net/dev`, under the host's own names."""
    lines = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {
        name.strip(): {key: int(rest.split()[column]) for key, column in COLUMNS.items()} for name, _, rest in lines
    }
