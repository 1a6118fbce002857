"""`traffic-shape`: generic traffic shaping of an interface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import ConfigSession, router_command
from qoslab.ios.cli.undo import Undo
from qoslab.ios.commands.queue_lists import check_queueing
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Interface
from qoslab.ios.model.interface_queueing import Shaper
from qoslab.ios.registry import INTERFACE_LINES
from qoslab.system import program_formats

MIN_BURST_BITS = 256
"""Minimum burst of `shape`; that of this command is not known [I]."""
# Our own wording: no output of a refusal is known.
BURST_TOO_SMALL = f"% Bits per interval must be at least {MIN_BURST_BITS}, or 0"

_FIGURES = "<rate:8000-100000000> [<bc:0-100000000> [<be:0-100000000> [<buffers:1-4096>]]]"
_UNSET = "[<rate:8000-100000000> [<bc:0-100000000> [<be:0-100000000> [<buffers:1-4096>]]]]"


@router_command(
    "interface",
    f"traffic-shape (rate {_FIGURES}|group <list:1-2699> {_FIGURES})",
    no=f"traffic-shape (rate {_UNSET}|group <list:1-2699> {_UNSET})",
    undo=Undo("traffic-shape (rate|group <list:1-2699>)"),
    help={
        "traffic-shape": "Enable Traffic Shaping on an Interface or Sub-Interface",
        "rate": "configure token bucket: CIR (bps) [Bc (bits) [Be (bits)]]",
        "group": "configure token bucket: group <access-list> CIR (bps) [Bc (bits) [Be (bits)]]",
        "list": "selecting Access list",
        "bc": "bits per interval, sustained",
        "be": "bits per interval, excess in first interval",
        "buffers": "Set buffer limit",
    },
)
def _configure_traffic_shape(session: ConfigSession, args: Args) -> None:
    interface, number = session.interface, args.optional("list", int)
    others = tuple(each for each in interface.shapers if each.access_list != number)
    if args.unset:
        interface.shapers = others
        return
    made = replace(interface, shapers=(*others, _parse_shaper(args, number)))
    check_queueing(session.device, made, "traffic-shape")
    interface.shapers = tuple(sorted(made.shapers, key=_shaper_order_key))


def _shaper_order_key(shaper: Shaper) -> tuple[bool, int]:
    """Return the sort key of a shaper, by list number: [I] the order of IOS is not known.

    The order of typing could not be restored by retyping one line. Packets that match no list use the rate for all.
    """
    return shaper.access_list is None, shaper.access_list or 0


def _parse_shaper(args: Args, number: int | None) -> Shaper:
    """Return the shaper of a line, with IOS's defaults by the rule of the classic generation."""
    rate = args.value("rate", int)
    interval = max(
        engine_defaults.CLASSIC_SHAPE_INTERVAL_MS, engine_defaults.CLASSIC_LOW_RATE_BURST_BITS * 1000 // rate
    )
    # [I] A burst of 0 stands for the default one.
    bc = args.optional("bc", int) or rate * interval // 1000
    be = args.optional("be", int)
    if bc < MIN_BURST_BITS or 0 < (be or 0) < MIN_BURST_BITS:
        raise RejectedError(BURST_TOO_SMALL)
    buffers = args.optional("buffers", int)
    return Shaper(
        number, rate, bc, bc if be is None else be, engine_defaults.GTS_BUFFERS if buffers is None else buffers
    )


@INTERFACE_LINES.register_family(35, family="router")
def _config_lines(interface: Interface) -> Iterator[str]:
    for each in interface.shapers:
        subject = "rate" if each.access_list is None else f"group {each.access_list}"
        yield f"traffic-shape {subject} {each.rate_bps} {each.bc_bits} {each.be_bits} {each.buffers}"


def engine_shapers(interface: Interface) -> program_formats.InterfaceQueueing:
    """Return the shapers for the data plane."""
    return {
        "type": "shaped",
        "shapers": [
            {
                "access_list": None if each.access_list is None else str(each.access_list),
                "shape": {
                    "mode": "average",
                    "rate": {"bps": each.rate_bps},
                    "bc": {"bits": each.bc_bits},
                    "be": {"bits": each.be_bits},
                },
                "buffers": each.buffers,
            }
            for each in interface.shapers
        ],
    }
