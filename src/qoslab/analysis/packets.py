"""Bytes and packets of each flow in bins of 0.1 s, from captured packets. Pure; holds one piece of a
capture at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from qoslab.capture.packet_tables import TCP, UDP, Array, column_array
from qoslab.results import HostClockRecord

BIN_NS = 100_000_000
ALL = "all"
BINNED = pa.schema([("flow", pa.string()), ("time_s", pa.float64()), ("bytes", pa.int64()), ("packets", pa.int64())])
_ENDS = ["version", "source_high", "source", "destination_high", "destination", "protocol"]
_KEYS = ["bin", *_ENDS, "source_port", "destination_port"]
_HALF = (1 << 64) - 1


def shift_clock(pieces: Iterable[pa.RecordBatch], clock: HostClockRecord | None) -> Iterator[pa.RecordBatch]:
    """Yield the packets with time stamps converted to the clock of the machine that ran the cell.

    `clock` is that of the capturing host, None if it is the same clock. Its lead is assumed to change linearly between
    its two readings, and around them.
    """
    for piece in pieces:
        if clock is None:
            yield piece
            continue
        first, last = (at + ahead for at, ahead in zip(clock.looked_ns, clock.ahead_ns, strict=True))
        drift = (clock.ahead_ns[1] - clock.ahead_ns[0]) / max(last - first, 1)
        stamped = column_array(piece, "time_ns")
        ahead = clock.ahead_ns[0] + np.rint((stamped - first) * drift).astype(np.int64)
        columns = [
            pa.array(stamped - ahead) if name == "time_ns" else piece.column(name) for name in piece.schema.names
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=piece.schema)


def flow_name(source: str, source_port: int, destination: str, destination_port: int) -> str:
    """Return the name of a directed TCP or UDP flow in the tables: `192.168.10.2:40000 > 192.168.20.2:5201`.

    An IPv6 address is in brackets (RFC 3986): `[2001:db8:10::2]:40000 > [2001:db8:20::2]:5201`.
    """
    return f"{host_name(source)}:{source_port} > {host_name(destination)}:{destination_port}"


def host_name(address: str) -> str:
    """Return an address in the form used before a port."""
    return f"[{address}]" if ":" in address else address


def bin_packets(pieces: Iterable[pa.RecordBatch], origin_ns: int | None = None) -> pa.Table:
    """Return a table with the columns of `BINNED`; `time_s` counts from `origin_ns`, or from the first
    packet.

    Bytes are those of whole frames without FCS. `all` has every packet, both directions. An empty bin has no row.
    """
    binned: list[pa.Table] = []
    for piece in pieces:
        stamped = column_array(piece, "time_ns")
        if origin_ns is None and len(piece):
            origin_ns = int(stamped.min())
        bins = pa.array((stamped - (origin_ns or 0)) // BIN_NS)
        table = pa.table([bins, *(piece.column(name) for name in (*_KEYS[1:], "bytes"))], names=[*_KEYS, "bytes"])
        binned.append(table.group_by(_KEYS).aggregate([("bytes", "sum"), ("bytes", "count")]))
    if not binned:
        return BINNED.empty_table()
    sums = pa.concat_tables(binned)
    bins, counts = (
        column_array(sums, "bin"),
        np.stack([column_array(sums, f"bytes_{each}") for each in ("sum", "count")]),
    )
    names, flow = _flows(np.stack([column_array(sums, name) for name in _KEYS[1:]], axis=1).astype(np.int64))
    (all_bins,), of_all = _sum_by_key((bins,), counts)
    (of_flow, flow_bins), of_each = _sum_by_key((flow, bins), counts)
    sizes, packets = np.concatenate([of_all, of_each], axis=1)
    flows = [ALL] * len(all_bins) + [names[number] for number in of_flow]
    times = np.concatenate([all_bins, flow_bins]) * (BIN_NS / 1e9)
    return pa.table([flows, times, sizes, packets], schema=BINNED)


def _flows(ends: Array) -> tuple[list[str], Array]:
    """Return the sorted names of all flows, and the number of the flow for each row of `ends`, the
    columns `_KEYS[1:]`.
    """
    different, row = np.unique(ends, axis=0, return_inverse=True)
    each = [packet_flow(*map(int, values)) for values in different]
    names = sorted(set(each))
    numbers = {name: number for number, name in enumerate(names)}
    return names, np.array([numbers[name] for name in each], dtype=np.int64)[row.reshape(-1)]


def _sum_by_key(keys: tuple[Array, ...], counts: Array) -> tuple[list[Array], Array]:
    """Return the distinct combinations of keys, sorted, and the sums of the columns of `counts` for each."""
    order = np.lexsort(keys[::-1])
    ordered = [key[order] for key in keys]
    new = np.ones(len(order), dtype=bool)
    if len(order):
        new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in ordered])
    first = np.flatnonzero(new)
    return [key[first] for key in ordered], np.add.reduceat(counts[:, order], first, axis=1) if len(order) else counts


def packet_flow(version: int, *ends_and_ports: int) -> str:
    """Return the name of a packet's flow, from columns of `qoslab.capture.packet_tables.SCHEMA`; see `flow_name`."""
    if version < 0:
        return "not IP"
    source_high, source, destination_high, destination, protocol, source_port, destination_port = ends_and_ports
    ends = _address(version, source_high, source), _address(version, destination_high, destination)
    if protocol in (TCP, UDP) and source_port >= 0:
        return flow_name(ends[0], source_port, ends[1], destination_port)
    return f"{ends[0]} > {ends[1]} protocol {protocol}"


def _address(version: int, high: int, low: int) -> str:
    if version == 4:
        return str(IPv4Address(low))
    return str(IPv6Address((high & _HALF) << 64 | low & _HALF))
