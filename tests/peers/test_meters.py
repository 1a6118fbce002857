"""Policers of the engine decide like those of DPDK and of the Linux kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import against_act_police
import against_dpdk
import kernel
import pytest
from against_dpdk import Difference
from peer_programs import package_version
from peers_section import Comparison, markdown_table, wrap_paragraph

Note = Callable[[str, Comparison], None]
HEAD = ("algorithm", "meters", "packets", "conform", "exceed", "violate", "different")


def _rows(differences: Sequence[Difference]) -> list[Sequence[object]]:
    counts = ("meters", "packets", "conformed", "exceeded", "violated", "different")
    return [(each.algorithm, *(f"{getattr(each, name):,}" for name in counts)) for each in differences]


@pytest.mark.long
@pytest.mark.comparison("Policers and rte_meter")
def test_policers_decide_like_rte_meter(note: Note) -> None:
    version = package_version("libdpdk-dev")
    exact = against_dpdk.exact_rates()
    as_they_are, with_quantum = against_dpdk.any_rates()
    packets, different = (sum(getattr(each, key) for each in exact) for key in ("packets", "different"))
    columns = [
        (one[0].algorithm, one[0].meters, f"{one[0].packets:,}", *(f"{each.different:,}" for each in one))
        for one in zip(exact, as_they_are, with_quantum, strict=True)
    ]
    lines = [
        *wrap_paragraph(
            """`rte_meter` counts time in cycles and adds whole bytes after whole periods. At rates with whole
            nanoseconds a byte,
        and with arrivals at whole periods, both programs are exact, and every decision has to be the same. At other
        rates and arrivals, decisions differ because of the quantum of the peer: it adds no tokens for an unfinished
        period, and a full bucket does not lose them.
        With this quantum in the engine (arrivals
            rounded down to whole periods, the bytes of a period as rate; two rates have the same period of 100 cycles)
            none may differ. The packets pass a port's input policy (`admit`), which marks them with their colour; sizes
            are 64 to 1518 bytes, rates 8 kb/s to 80 Mb/s, bursts 1,518 to 200,000 bytes. The colour-aware meters and
            RFC 4115 of `rte_meter` are not compared: the engine has neither."""
        ),
        "",
        *markdown_table(("algorithm", "meters", "packets", "different", "at any rate", "with the quantum"), columns),
    ]
    each = [
        *markdown_table(HEAD, _rows(exact)),
        "",
        "At any rate and arrival, without and with the quantum:",
        "",
        *markdown_table(
            (*HEAD, "different, with the quantum"),
            [(*row, f"{each.different:,}") for row, each in zip(_rows(as_they_are), with_quantum, strict=True)],
        ),
    ]
    result = f"{different} of {packets:,} decisions differ; with the peer's quantum at any rate "
    result += f"{sum(each.different for each in with_quantum)} of {sum(each.packets for each in with_quantum):,}"
    note("Policers and rte_meter", Comparison(f"DPDK {version}", result, lines, each=each))
    assert [each.different for each in exact] == [0, 0, 0]
    assert [each.different for each in with_quantum] == [0, 0, 0]
    assert all(each.different for each in as_they_are), "the comparison sees a quantum of some bytes"


@pytest.mark.long
@pytest.mark.comparison("Policers and act_police")
def test_policers_decide_like_act_police(note: Note) -> None:
    version = kernel.version()
    found = against_act_police.compare_policers()
    lines = wrap_paragraph(
        f"""{found.policers} policers of {found.least_bps / 1000:,.0f} kb/s to {found.greatest_bps / 1e6:,.1f} Mb/s, as
        actions of filters on egress, in the kernel of user-mode Linux. It runs in virtual time
        (`tests/peers/virtual_clock.c`): the clock stands still while the kernel works, so that the time of each
        decision is known to the nanosecond. The kernel counts a burst in ticks of 64 ns and rounds the time of a packet
        down to a nanosecond, `tc` rounds the time of a burst down to a microsecond: rates with whole nanoseconds a byte
        and bursts of whole microseconds and ticks are exact. {found.packets:,} packets in {found.seconds:.0f} s,
        {found.conformed:,} of which conform: {found.different} decisions differ on layer-2 bytes. If the engine counted
        IP bytes, {found.different_with_ip_bytes:,} would."""
    )
    result = f"{found.different} of {found.packets:,} decisions differ on layer-2 bytes"
    note("Policers and act_police", Comparison(f"Linux, user-mode-linux {version}", result, lines))
    assert found.different == 0
    assert found.different_with_ip_bytes > found.packets / 1000, "the comparison sees 14 bytes"
