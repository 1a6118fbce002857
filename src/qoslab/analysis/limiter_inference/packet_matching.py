"""Matching of packets in two captures: when each packet entered and left, or that it was lost, and its changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]

from qoslab.analysis.capture_interfaces import Noted, choose
from qoslab.analysis.limiter_inference.clocks import Clocks, compare
from qoslab.analysis.packets import packet_flow
from qoslab.capture.packet_tables import PAYLOAD_BYTES
from qoslab.errors import UserError

LEAST_COMMON = 10
"""Minimum number of packets in both captures."""
LEAST_SHARE = 0.02
"""Minimum share of the smaller capture's packets that must be in both."""
SET_BACK_NS = 50_000_000
"""Maximum backward step of time stamps in a file with several interfaces."""
LEAST_BEHIND = 20
"""Minimum number of bytes after the IP header that must have been captured: TCP's header."""
_FLOW = [
    "version",
    "source_high",
    "source",
    "destination_high",
    "destination",
    "protocol",
    "source_port",
    "destination_port",
]
_KEPT = [*_FLOW, "time_ns", "bytes", "network_bytes", "tos", "ttl", "identity", "behind", "interface"]

_JOINED = ["flow", "time_ns", "bytes", "network_bytes", "tos", "ttl", "identity"]
_SOURCE = 3
"""Number of columns of a flow that identify the sender."""

Codes = npt.NDArray[np.int64]
Reader = Callable[[Path, int, Sequence[str]], Iterator[pa.RecordBatch]]
"""Function that reads a capture. Its second argument is the number of bytes after the IP header that identify packets,
its third one the needed interface, if not all are.
"""


@dataclass(frozen=True)
class Joined:
    """Packets from the first capture to the second."""

    packets: pd.DataFrame
    """A row for each packet, ordered by input: flow (a name), tos and after_tos, bytes and network_bytes, in_s and
    out_s (of the first clock; nan if it was lost), overtook (number of packets with earlier input and later output).
    """
    clocks: Clocks
    seen: tuple[int, int]
    """Number of IP packets in each capture."""
    common: int
    """Number of packets in both captures, of both directions."""
    appeared: int
    """Number of packets of input flows that are only in the output."""
    outside: int = 0
    """Number of packets of the first capture before the first or after the last common packet, of the same flows."""
    unseen: pd.DataFrame | None = None
    """Rows like those of `packets` for packets of input flows that are only in the output, between the first and the
    last common packet; in_s is their output less the median delay.
    """

    @property
    def lost_mask(self) -> pd.Series:
        """Mask of the lost packets."""
        return self.packets["out_s"].isna()

    @property
    def dscps(self) -> list[int]:
        """DSCPs of the input packets."""
        return sorted((self.packets["tos"] // 4).unique().tolist())

    def select_dscp(self, dscp: int | None) -> Joined:
        """Return the same for packets with this DSCP at the input, or for all. Raise `UserError` if there are none."""
        if dscp is None:
            return self
        if dscp not in self.dscps:
            found = ", ".join(map(str, self.dscps))
            raise UserError(f"found no input packet with DSCP {dscp}, expected one of DSCP {found}")
        unseen = None if self.unseen is None else self.unseen[self.unseen["tos"] // 4 == dscp]
        packets = self.packets[self.packets["tos"] // 4 == dscp].reset_index(drop=True)
        return replace(self, packets=packets, unseen=unseen)

    def with_unseen(self) -> Joined:
        """Return the same with the packets that are missing from the first capture, as if it had them."""
        every = pd.concat([self.packets, self.unseen]).sort_values("in_s", kind="stable", ignore_index=True)
        return replace(self, packets=every, unseen=None)

    def summarise_flows(self) -> pd.DataFrame:
        """Return a row for each flow and type of service (at the input): packets, lost, remarked, overtook, and the
        delay.

        delay_ms_min, delay_ms_p50, delay_ms_p99 and delay_ms_max are nan if all were lost.
        """
        delay = 1e3 * (self.packets["out_s"] - self.packets["in_s"])
        kept = self.packets.assign(
            lost=self.lost_mask,
            remarked=~self.lost_mask & (self.packets["tos"] != self.packets["after_tos"]),
            overtook=self.packets["overtook"] > 0,
            delay=delay,
        )
        groups = kept.groupby(["flow", "tos"], sort=False)
        counts = groups[["lost", "remarked", "overtook"]].sum().astype(int)
        delays = groups["delay"].agg(min="min", p50="median", p99=lambda each: each.quantile(0.99), max="max")
        found = pd.concat([groups.size().rename("packets"), counts, delays.add_prefix("delay_ms_")], axis=1)
        return found.reset_index().sort_values("packets", ascending=False, ignore_index=True)


def load(before: Path, after: Path, read: Reader, interfaces: Sequence[str] = ()) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the IP packets of both captures, in the order of the files. Raise `CaptureError` if one cannot be read.

    Packets are identified by the bytes that both captures have. Raise `UserError` if those are too few, or if a capture
    has packets more than once. `interfaces` has the interface of each capture, or one for those with several
    interfaces.
    """
    files = (before, after)
    wanted = [interfaces[0], interfaces[-1]] if interfaces else [None, None]
    alone = len(interfaces) == 1
    found = [_load(file, read, PAYLOAD_BYTES, each, alone) for file, each in zip(files, wanted, strict=True)]
    short = [int(each.loc[each["behind"] >= 0, "behind"].min()) for each in found if (each["behind"] >= 0).any()]
    if not short:
        return found[0], found[1]
    if min(short) < LEAST_BEHIND:
        raise UserError(
            f"{before}, {after}: found packets captured with only {min(short)} bytes after the IP header, "
            f"expected at least {LEAST_BEHIND}",
            hint="Capture with a snaplen of 128 bytes or more.",
        )
    again = [_load(file, read, min(short), each, alone) for file, each in zip(files, wanted, strict=True)]
    return again[0], again[1]


def join(before: pd.DataFrame, after: pd.DataFrame) -> Joined:
    """Match packets of two captures by the fields that routers do not change. Identical packets are matched in order.

    Raise `UserError` if the captures have too few common packets, or if their clocks cannot be aligned.
    """
    seen = len(before), len(after)
    for which, each in (("first", before), ("second", after)):
        _check_stamps(which, each)
    origin_ns = int(before["time_ns"].min())
    flows, names = _flows(before, after)
    left, right = (
        _number_duplicates(each.assign(time_ns=each["time_ns"] - origin_ns, flow=flow)[_JOINED])
        for each, flow in zip((before, after), flows, strict=True)
    )
    both = left.merge(right, on=["identity", "nth", "flow"], how="outer", suffixes=("", "_after"), indicator=True)
    common = int((both["_merge"] == "both").sum())
    if common < max(LEAST_COMMON, LEAST_SHARE * min(seen)):
        raise UserError(
            f"the captures are unrelated: they have {seen[0]:,} and {seen[1]:,} IP packets, but "
            f"only {common:,} are in both",
            hint=_unrelated_captures_hint(before, after),
        )
    went_in, appeared, outside, clocks = _select_direction(
        both, {name: key[:_SOURCE] for name, key in enumerate(names)}
    )
    flows_text = [packet_flow(*key) for key in names]
    packets = _build_packet_table(went_in, clocks, flows_text)
    unseen = _build_unseen_table(appeared, went_in, clocks, flows_text)
    return Joined(packets, clocks, seen, common, len(appeared), outside, unseen)


def _load(file: Path, read: Reader, behind: int, wanted: str | None, of_several: bool) -> pd.DataFrame:
    noted = Noted(read(file, behind, () if wanted is None else (wanted,)))
    pieces = [piece.select(_KEPT) for piece in noted]
    table = pa.Table.from_batches(pieces) if pieces else None
    if table is None:
        raise UserError(f"{file}: found no packets")
    found: pd.DataFrame = table.to_pandas()
    if of_several and found["interface"].nunique() < 2:
        wanted = None
    found = choose(file, found, noted.names, wanted)
    found = found[found["version"] > 0].reset_index(drop=True)
    if found.empty:
        raise UserError(f"{file}: found no IP packets")
    return found


def _check_stamps(which: str, packets: pd.DataFrame) -> None:
    stamps = packets["time_ns"].to_numpy()
    back = np.maximum.accumulate(stamps) - stamps
    if len(back) and back.max() > SET_BACK_NS:
        at = int((back > SET_BACK_NS).argmax())
        raise UserError(
            f"the clock of the {which} capture was set back: IP packet {at + 1} is stamped {back[at] / 1e9:.3f} s "
            f"before an earlier packet",
            hint="Capture again without adjusting the clocks.",
        )


def _number_duplicates(packets: pd.DataFrame) -> pd.DataFrame:
    """Return packets in the order of their stamps, with identical ones numbered."""
    ordered = packets.sort_values("time_ns", kind="stable")
    return ordered.assign(nth=ordered.groupby("identity").cumcount())


def _flows(before: pd.DataFrame, after: pd.DataFrame) -> tuple[tuple[Codes, Codes], list[tuple[int, ...]]]:
    """Return the number of each packet's flow, the same in both captures, and descriptions of the flows."""
    keys = pd.MultiIndex.from_frame(pd.concat([before[_FLOW], after[_FLOW]], ignore_index=True))
    codes, names = pd.factorize(keys)
    return (codes[: len(before)], codes[len(before) :]), [tuple(map(int, each)) for each in names]


def _select_direction(
    both: pd.DataFrame, senders: Mapping[int, tuple[int, ...]]
) -> tuple[pd.DataFrame, pd.DataFrame, int, Clocks]:
    """Return the packets from the first capture to the second, between the first and the last common packet, those that
    are only in the second capture, the number `outside` of `Joined`, and the clocks.
    """
    in_both = both["_merge"] == "both"
    joined = both[in_both]
    hops = (joined["ttl"] - joined["ttl_after"]).groupby(joined["flow"]).median()
    gap = (joined["time_ns_after"] - joined["time_ns"]).groupby(joined["flow"]).median()
    # A router decrements the time to live; without a router, time decides.
    there = (hops > 0) | ((hops == 0) & (gap >= 0))
    if not there.any():
        raise UserError(
            "no packet went from the first capture to the second; all common packets went the other way",
            hint="Give the captures in the opposite order.",
        )
    towards = set(there.index[there])
    # For a flow with no passed packets, only its sender is known.
    sources = {senders[flow] for flow in towards}
    known = set(there.index)
    sent = towards | {flow for flow, source in senders.items() if flow not in known and source in sources}
    forward, backward = (in_both & (both["flow"].isin(towards) == way) for way in (True, False))
    clocks = compare(
        *(
            (
                both.loc[which, "time_ns"].to_numpy(np.float64) / 1e9,
                (both["time_ns_after"] - both["time_ns"])[which].to_numpy(np.float64) / 1e9,
            )
            for which in (forward, backward)
        )
    )
    lost = (both["_merge"] == "left_only") & both["flow"].isin(sent)
    within = both["time_ns"].between(both.loc[forward, "time_ns"].min(), both.loc[forward, "time_ns"].max())
    appeared = both[(both["_merge"] == "right_only") & both["flow"].isin(towards)]
    return both[(forward | lost) & within], appeared, int((lost & ~within).sum()), clocks


def _build_unseen_table(
    appeared: pd.DataFrame, went_in: pd.DataFrame, clocks: Clocks, names: list[str]
) -> pd.DataFrame | None:
    """Return `Joined.unseen`; None if there are no such packets."""
    inside = appeared[appeared["time_ns_after"].between(went_in["time_ns_after"].min(), went_in["time_ns_after"].max())]
    if inside.empty:
        return None
    delay_ns = float((went_in["time_ns_after"] - went_in["time_ns"]).median())
    columns = {name: inside[f"{name}_after"] for name in ("tos", "bytes", "network_bytes")}
    return _build_packet_table(inside.assign(**columns, time_ns=inside["time_ns_after"] - delay_ns), clocks, names)


def _build_packet_table(packets: pd.DataFrame, clocks: Clocks, names: list[str]) -> pd.DataFrame:
    ordered = packets.sort_values("time_ns", kind="stable").reset_index(drop=True)
    in_s, out_s = (ordered[name].to_numpy(np.float64) / 1e9 for name in ("time_ns", "time_ns_after"))
    return pd.DataFrame(
        {
            "flow": ordered["flow"].map(dict(enumerate(names))),
            "tos": ordered["tos"].astype("int64"),
            "after_tos": ordered["tos_after"].astype("Int64"),
            "bytes": ordered["bytes"].astype("int64"),
            "network_bytes": ordered["network_bytes"].astype("int64"),
            "in_s": in_s,
            "out_s": clocks.to_first_clock(out_s),
            "overtook": _overtaken(out_s),
        }
    )


def _overtaken(out_s: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return, for each packet, the number of packets with earlier input and later output.

    The packets are sorted by the bits of their ranks at the output, from the highest bit, in their order of input. Two
    ranks differ first in one bit, so each step counts the earlier packets of the same group that have it.
    """
    there = np.flatnonzero(~np.isnan(out_s))
    rank = np.empty(len(there), dtype=np.int64)
    rank[np.argsort(out_s[there], kind="stable")] = np.arange(len(there))
    found = np.zeros(len(out_s), dtype=np.int64)
    # Packets in order have overtaken none.
    if not (np.diff(rank) < 0).any():
        return found
    order = np.arange(len(there))
    for bit in reversed(range(len(there).bit_length())):
        ranks = rank[order]
        group, has = ranks >> (bit + 1), (ranks >> bit) & 1
        before = np.cumsum(has) - has
        begins = np.flatnonzero(np.diff(group, prepend=-1))
        earlier = before - before[begins][np.searchsorted(begins, np.arange(len(order)), "right") - 1]
        found[there[order]] += np.where(has == 0, earlier, 0)
        order = order[np.argsort(ranks >> bit, kind="stable")]
    return found


def _unrelated_captures_hint(before: pd.DataFrame, after: pd.DataFrame) -> str:
    if max(int(before["network_bytes"].max()), int(after["network_bytes"].max())) > 9000:
        return (
            "Some packets are larger than the MTU: turn segmentation offload off at the capture point "
            "(ethtool -K DEVICE tso off gso off gro off)."
        )
    ends = [set(zip(each["source"], each["destination"], strict=True)) for each in (before, after)]
    if not ends[0] & ends[1]:
        shown = [_ends(each) for each in (before, after)]
        return (
            f"The captures have no host in common: the first has {shown[0]}, the second {shown[1]}. Packets with "
            f"addresses translated in between are not recognised."
        )
    return "The hosts are the same: were the captures taken at the same time, on both sides of one device?"


def _ends(packets: pd.DataFrame) -> str:
    first = packets.iloc[0]
    return packet_flow(*(int(first[name]) for name in _FLOW))
