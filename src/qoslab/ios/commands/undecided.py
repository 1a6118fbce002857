"""Class-map criteria on properties that no packet of a lab has, as defined in `ios.undecided`."""

from __future__ import annotations

from qoslab.ios.cli import syntax
from qoslab.ios.cli.grammar import UNDECIDED, Args
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.command_families import CommandFamily
from qoslab.ios.commands.class_map import change_match
from qoslab.ios.commands.inert_lines import full_line_text
from qoslab.ios.model.inert_lines import InertLine
from qoslab.ios.model.policy import Criterion
from qoslab.ios.undecided import CRITERIA


def _undecided_criterion(args: Args) -> Criterion:
    """Return the criterion of a line, with unabbreviated keywords."""
    negate = "not" in args
    text = full_line_text(args).removeprefix("match ").removeprefix("not ")
    if text.startswith("protocol "):
        return Criterion("protocol", negate, name=text.removeprefix("protocol "))
    return Criterion("unseen", negate, name=text)


def _register(family: CommandFamily, row: str) -> None:
    def handler(session: ConfigSession, args: Args) -> None:
        criterion = _undecided_criterion(args)
        change_match(session, args, criterion)
        if criterion.is_undecided and not args.unset:
            text, name = full_line_text(args), session.class_map.name
            about = f"class {name}: {family.subject}; no packet matches"
            session.remarks.append(InertLine(text, text, about, family.rank, undecided=True))

    help = dict.fromkeys(syntax.syntax_names(row), f"{UNDECIDED}{family.subject}")
    CONFIG.add(
        family.mode,
        row,
        no=row,
        help=help,
        requires={family.requires},
        undo=Undo(key=row, ordered=lambda args: True),
        fallback=True,
    )(handler)


for _family in CRITERIA:
    for _row in _family.rows:
        _register(_family, _row)
