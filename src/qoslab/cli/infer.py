"""`qoslab infer`: the limiter between two captures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from qoslab.cli.output_options import json_option
from qoslab.errors import ExitStatus, UserError
from qoslab.system.printing import echo

if TYPE_CHECKING:
    from qoslab.analysis.limiter_inference import Joined, Limiter

_ROWS = 20
"""Maximum number of flows that are shown."""


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option(
    "--count",
    type=click.Choice(["frame", "ip", "wire"]),
    default="frame",
    show_default=True,
    help="Bytes counted by the limiter: frames without FCS, IP packets, or all bytes on the wire.",
)
@click.option("--dscp", type=click.IntRange(0, 63), help="Use only packets that entered with this DSCP.")
@click.option(
    "--interface",
    "interfaces",
    multiple=True,
    metavar="NAME",
    help="Interface, by name or number, if a capture has several. Give it twice for BEFORE and AFTER.",
)
@click.option("--table", type=click.Path(path_type=Path), help="Parquet file for the matched packets.")
@json_option
def command(
    before: Path,
    after: Path,
    count: str,
    dscp: int | None,
    interfaces: tuple[str, ...],
    table: Path | None,
    as_json: bool,
) -> ExitStatus:
    """Infer the policer, shaper or line rate between two captures.

    BEFORE was captured where packets enter a device, AFTER where they leave it, at the same time. Both are pcap or
    pcapng files, compressed by gzip or not. The command matches each packet of BEFORE with AFTER, and counts lost,
    remarked, reordered and delayed packets for each flow and DSCP. It reports a limiter only if a replay of the packets
    through that limiter explains them; docs/reference/captures.md describes the method and its limits.
    """
    from qoslab.analysis.capture_interfaces import unreadable
    from qoslab.analysis.limiter_inference import infer, join, load
    from qoslab.capture import CaptureError
    from qoslab.capture.packet_tables import read_packets

    if len(interfaces) > 2:
        raise UserError(f"found --interface {len(interfaces)} times, expected it once, or twice for BEFORE and AFTER")
    try:
        packets = load(
            before, after, lambda file, behind, only: read_packets(file, behind=behind, interfaces=only), interfaces
        )
    except CaptureError as error:
        raise unreadable(error) from error
    joined = join(*packets)
    limiter = infer(joined.select_dscp(dscp), count)  # type: ignore[arg-type]
    if table is not None:
        from qoslab.results.file_access import draft_path

        with draft_path(table) as draft:
            joined.packets.to_parquet(draft, index=False)
    if as_json:
        echo(json.dumps(_limiter_json(joined, limiter), indent=2))
    else:
        _print_limiter(joined, limiter, (before, after))
    return ExitStatus.WITHIN


def _print_limiter(joined: Joined, limiter: Limiter, files: tuple[Path, Path]) -> None:
    echo(f"{files[0]}: {joined.seen[0]:,} IP packets; {files[1]}: {joined.seen[1]:,}; {joined.common:,} are in both")
    echo(f"Clocks {joined.clocks}")
    if joined.appeared:
        echo(f"{joined.appeared:,} packets in the second capture are missing from the first.")
    if joined.outside:
        echo(
            f"Not evaluated: {joined.outside:,} of the packets in the first capture, before the first or after the "
            "last common packet (lost, or the second capture did not run)."
        )
    flows = joined.summarise_flows()
    counts = " ".join(f"{name:>8}" for name in ("packets", "lost", "remarked", "overtook"))
    echo(f"{counts}  {'delay, ms: min, median, 99 %, max':36} flow, DSCP")
    for row in flows.head(_ROWS).to_dict("records"):
        counts = " ".join(f"{row[name]:8,}" for name in ("packets", "lost", "remarked", "overtook"))
        shown = " ".join(f"{row[f'delay_ms_{each}']:8.3f}" for each in ("min", "p50", "p99", "max"))
        echo(f"{counts}  {shown:36} {row['flow']}, {row['tos'] >> 2}")
    if len(flows) > _ROWS:
        echo(f"  and {len(flows) - _ROWS} more")
    for line in limiter.lines():
        echo(line)


def _limiter_json(joined: Joined, limiter: Limiter) -> dict[str, Any]:
    clocks = joined.clocks
    flows = joined.summarise_flows().astype(object)
    return {
        "packets": {"before": joined.seen[0], "after": joined.seen[1], "both": joined.common},
        "appeared": joined.appeared,
        "outside": joined.outside,
        "clocks": {"state": clocks.state, "ahead_s": clocks.ahead_s, "drift": clocks.drift, "error_s": clocks.error_s},
        "flows": flows.where(flows.notna(), None).to_dict("records"),
        "limiter": limiter.as_json(),
    }
