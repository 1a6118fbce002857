"""Commands that IOS has and that are not modelled: refused with the reason; `ios.unsupported` has them."""

from __future__ import annotations

import re

from qoslab.ios.cli import syntax
from qoslab.ios.cli.grammar import NOT_SUPPORTED, Args
from qoslab.ios.cli.session import CIRCUIT_MODES, CONFIG, HOST_INTERFACE, ConfigSession, UnsupportedError
from qoslab.ios.commands.ip_sla import DEFINED, SIZED
from qoslab.ios.unsupported import REFUSED, Refused
from qoslab.ios.unsupported_queueing import REFUSED_QUEUEING
from qoslab.ios.unsupported_xe import REFUSED_XE

MODES_OF = {
    "interface": ("interface", "subinterface", HOST_INTERFACE),
    "atm-vc": CIRCUIT_MODES,
    "sla-icmp-echo": SIZED,
    "sla-icmp-jitter": DEFINED,
}
"""The modes that a row's word stands for."""
NAMED_BY = 3
"""Words from which the first ones of a line are enough for `no`: two keywords and a value."""
ALL_REFUSED = (*REFUSED, *REFUSED_QUEUEING, *REFUSED_XE)


def _no_form(row: str) -> str:
    """The form with `no`, which as in IOS needs no values: except for blocks, and for lines with one keyword,
    which begin like lines that are modelled.
    """
    text = row.lstrip(">")
    if row.startswith(">") or len(text.split()) < NAMED_BY:
        return text
    return re.sub(r"(?<!\[)<rest:line>", "[<rest:line>]", text)


def _register(refused: Refused, row: str) -> None:
    text = row.lstrip(">")

    def handler(session: ConfigSession, args: Args) -> None:
        if row.startswith(">") and not args.negated:
            session.skip_block()
        raise UnsupportedError(refused.reason)

    CONFIG.add(
        MODES_OF.get(refused.mode, refused.mode),
        text,
        no=_no_form(row),
        help=dict.fromkeys(syntax.names(text), f"{NOT_SUPPORTED}{refused.reason}"),
        requires={refused.requires} - {""},
        fallback=True,
    )(handler)


for _refused in ALL_REFUSED:
    for _row in _refused.rows.strip().splitlines():
        _register(_refused, _row.strip())
