"""Commands that IOS has and that are not modelled: refused with the reason; `ios.unsupported` has them."""

from __future__ import annotations

from qoslab.ios.cli import syntax
from qoslab.ios.cli.grammar import Args
from qoslab.ios.cli.session import CONFIG, HOST_INTERFACE, ConfigSession, UnsupportedError
from qoslab.ios.unsupported import REFUSED, Refused


def _register(refused: Refused, row: str) -> None:
    text = row.lstrip(">")

    def handler(session: ConfigSession, args: Args) -> None:
        if row.startswith(">"):
            session.skip_block()
        raise UnsupportedError(refused.reason)

    CONFIG.add(
        ("interface", "subinterface", HOST_INTERFACE) if refused.mode == "interface" else refused.mode,
        text,
        help=dict.fromkeys(syntax.names(text), f"Not supported: {refused.reason}"),
        requires={refused.requires} - {""},
    )(handler)


for _refused in REFUSED:
    for _row in _refused.rows.strip().splitlines():
        _register(_refused, _row.strip())
