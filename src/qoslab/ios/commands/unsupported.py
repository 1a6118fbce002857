"""IOS commands that are not modelled, as defined in `ios.unsupported`: refused with the reason."""

from __future__ import annotations

import re

from qoslab.ios.cli import syntax
from qoslab.ios.cli.grammar import NOT_SUPPORTED, Args
from qoslab.ios.cli.session import CIRCUIT_MODES, CONFIG, HOST_INTERFACE, ConfigSession, UnsupportedError
from qoslab.ios.command_families import CommandFamily
from qoslab.ios.commands.ip_sla import DEFINED, SIZED
from qoslab.ios.unsupported import REFUSED

MODES_OF = {
    "interface": ("interface", "subinterface", HOST_INTERFACE),
    "atm-vc": CIRCUIT_MODES,
    "sla-icmp-echo": SIZED,
    "sla-icmp-jitter": DEFINED,
}
"""Modes by the word of a row."""


def _register(refused: CommandFamily, row: str) -> None:
    text = row.lstrip(">")

    def handler(session: ConfigSession, args: Args) -> None:
        if row.startswith(">") and not args.is_negated:
            session.skip_block()
        raise UnsupportedError(refused.subject)

    modes = MODES_OF.get(refused.mode, refused.mode)
    help = dict.fromkeys(syntax.syntax_names(text), f"{NOT_SUPPORTED}{refused.subject}")
    requires = {refused.requires} - {""}
    CONFIG.add(modes, text, help=help, requires=requires, fallback=True)(handler)
    # A separate command: the refusal covers the whole line, and `no` accepts it without values, as in IOS.
    negative = re.sub(r"(?<!\[)<rest:line>", "[<rest:line>]", text)
    CONFIG.add_no(modes, negative, help=help, requires=requires, fallback=True)(handler)


for _refused in REFUSED:
    for _row in _refused.rows:
        _register(_refused, _row)
