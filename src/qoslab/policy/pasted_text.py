"""Conversion of terminal text to configuration text: prompts, pager prompts, wrapped lines and quote marks are removed.

Each line of the result has its line number in the input.
"""

from __future__ import annotations

import html
import re
from itertools import pairwise

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-B]|[=>78cDEHMNOZ])")
_PAGER = re.compile(r"(?: |(?<![\w-]))(?:<-+ *|-+ *)More *-+>?(?: {9}| ?)", re.IGNORECASE)
"""Pager; `-MORE-` within a name is none."""
"""Pager prompt; followed by nine blanks if the characters with which the terminal erased it are still there."""
_PROMPT = re.compile(r"^ ?[A-Za-z][\w.:/@-]{0,62}(?:\(([a-z][\w-]*)\))?[#>] ?")
CONFIGURATION_PROMPT = re.compile(r"^ ?[A-Za-z][\w.:/@-]{0,62}\(config[\w-]*\)# ?(.*)$")
"""Prompt of configuration mode and command."""
_LOG = re.compile(
    r"^(?:\d{6}: )?[*.]?(?:[A-Z][a-z]{2} +\d+ +)?[\d:.]* ?(?:[A-Z]+: )?%[A-Z0-9_]+(?:-[A-Z0-9_]+)*-[0-7]-\w+:"
)
_NUMBERED = re.compile(r"^ *(\d{1,6})(?: ?[:|│])?[ \t]?(.*)$")
_TIME = re.compile(r"^\[?(?:\d{4}[-/]\d\d[-/]\d\d[ T])?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?:?(?: |$)")
_TYPOGRAPHY = str.maketrans({"\xa0": " ", **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")})
"""Characters that word processors and chat programs write in place of those of a terminal."""
_EXEC = re.compile(
    r"^(?:do )?(?:sh(?:o|ow)?|conf(?:i|ig|igure)?|en(?:able)?|ter(?:m|minal)?|wr(?:ite)?|copy|exit|end)\b"
)
_SESSION = re.compile(
    r"^ *(?:[\w.-]+# ?)?conf(?:i|ig|igure)? +t\w*\b|^ *(?:[\w.-]+\(config[\w-]*\)# ?)?(?:class|policy)-map \S"
)
"""Beginnings of typed sessions and of policies."""
_END = re.compile(r" *(?:[\w.-]+\(config[\w-]*\)# ?)?end *")
_FENCE = re.compile(r"^ *(?:```\w*|~~~\w*) *$")
_ANSWERS = re.compile(r"^(?:Enter configuration commands|% Invalid input|% Incomplete|% Ambiguous| *\^ *$)")
_COMMANDS = (
    "aaa|access-list|action|address|address-family|arp|authentication|auto|bandwidth|bfd|bgp|cdp|channel-group|class"
    "|class-map|clock|codec|conform-action|crypto|default|delay|deny|description|destination-pattern|dialer|duplex"
    "|encapsulation|exceed-action|fair-queue|hold-queue|interface|ip|ipv6|keepalive|key|line|load-interval|logging"
    "|mac-address|match|media-type|mode|mpls|mtu|negotiation|neighbor|network|nhrp|ntp|peer|permit|police|policy-map|ppp"
    "|pppoe-client|priority|qos|queue-limit|random-detect|redistribute|remark|router|service-policy|session|set|shape"
    "|snmp-server|speed|standby|switchport|tunnel|username|violate-action|vrf|vrrp|zone|zone-member"
)
_BEGINS = re.compile(rf"^ *(?:no )?(?:{_COMMANDS})\b")
_TEXT = re.compile(
    r"(?P<head> *(?:[\w.-]+\(config\)# ?)?(?:(?:banner \S+|menu \S+ (?:title|prompt)|aaa authentication "
    r"(?:banner|fail-message)) +(?=[^\w\s])|macro name \S+$))(?P<end>\^.|\S)?(?P<text>.*)"
)
"""Beginning of a text with its delimiter, which routers print as `^C`. The text of a macro ends with `@`."""
_INTERFACE = re.compile(r"^( *)int(?:e|er|erf|erfa|erfac)? +(?=[A-Za-z-]+ ?\d)")
_DIRECTION = re.compile(r"^( *(?:no )?)(?:service-policy|service-pol|serv) (in|out)(?:p|pu)? +(?=\S)")
_WIDTHS = (80, 132)
"""Columns at which terminals wrap a line."""

_CAPITAL = re.compile(rf"^( *(?:no )?)((?=[A-Z])(?i:{_COMMANDS}|hostname|version))(?= \S)(?! \w+ ?:)")
"""First word of a command with a capital letter, as a word processor writes it; not `Service-policy output: NAME`."""
_QUOTES = (">", "|", "+")
"""Marks before each line of a quotation, of a table and of a difference."""
_SECTION = re.compile(r"^ *-{5,} *(sh(?:ow)? .*?) *-{5,} *$", re.IGNORECASE)
"""Heading in the output of `show tech-support`."""
_CONFIGURATION_SECTION = re.compile(r"sh(?:ow)? run|$", re.IGNORECASE)
_OUTERMOST = re.compile(
    r"^ *(?:hostname|version|interface|class-map|policy-map|router (?:bgp|ospf|eigrp|rip)|ip (?:route|access-list)"
    r"|line (?:con|vty)) \S"
)
"""Lines that begin at the left margin of a configuration."""

_BLOCK = re.compile(r" *(?:interface|class-map|policy-map|router) \S")
"""First lines of blocks."""
_COMMENT = re.compile(
    r"^( *(?:no )?(?:class|class-map|match|policy-map|police|(?:conform|exceed|violate)-action|bandwidth|priority|shape"
    r"|queue-limit|random-detect|fair-queue|set|service-policy|interface|ip address|hostname|version|speed)\b.*?"
    r"(?<=\S)) +(?:!|//|#|<-+|\u2190)(?: .*)?$"
)
"""Comment after a command, as tutorials and forum posts have it."""

_CIRCUIT = re.compile(r"^( *(?:no )?pvc) +[^/ ]+ +(?=\d+/\d+ *$)")
"""Circuit with a name, which no other line refers to."""


def configuration_text(pasted: str) -> str:
    """Return the pasted configuration line by line; other lines are empty."""
    return extract_commands(blank_banners(terminal_lines(pasted)))


def extract_commands(shown: list[str]) -> str:
    """Return the configuration in the lines of a terminal, without banners."""
    shown = _blank_ends_of_sessions(_blank_other_sections(shown))
    lines = [_expand_abbreviations(_strip_prompt(line)) for line in shown]
    return "\n".join(dedent_lines(_join_wrapped_lines(lines))) + "\n"


def section_command(line: str) -> str | None:
    """Return the command in a heading of `show tech-support`; None for another line."""
    found = _SECTION.match(line)
    return None if found is None else found[1]


def _blank_other_sections(lines: list[str]) -> list[str]:
    """Empty the sections of `show tech-support` without a configuration."""
    heads = [section_command(line) for line in lines]
    if not any(head is not None and _CONFIGURATION_SECTION.match(head) for head in heads):
        return lines
    made, head = [], ""
    for line, own in zip(lines, heads, strict=True):
        head = head if own is None else own
        made.append(line if own is None and _CONFIGURATION_SECTION.match(head) else "")
    return made


def _blank_ends_of_sessions(lines: list[str]) -> list[str]:
    """Empty each `end` that ends a typed session before another one, or before more policies."""
    last = max((at for at, line in enumerate(lines) if _SESSION.match(line)), default=-1)
    return ["" if at < last and _END.fullmatch(line) else line for at, line in enumerate(lines)]


def terminal_lines(pasted: str) -> list[str]:
    """Return the lines that a terminal showed, with their prompts."""
    text = html.unescape(pasted) if "&nbsp;" in pasted else pasted
    if "\n" not in text:
        text = text.replace("\r", "\n")
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r\r\n", "\n").translate(_TYPOGRAPHY)
    lines = [_strip_control_characters(line) for line in text.split("\n")]
    return _strip_line_numbers(_strip_timestamps(_strip_quote_marks(lines)))


def is_indented(text: str) -> bool:
    """Return whether the lines below a command are indented, as a router prints them.

    The first lines of blocks decide; without a block, any line.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.strip().startswith("!")]
    below = [line for head, line in pairwise(lines) if _BLOCK.match(head) and not _OUTERMOST.match(line)]
    if below:
        return sum(line.startswith((" ", "\t")) for line in below) * 2 >= len(below)
    return any(line.startswith((" ", "\t")) for line in lines)


def _strip_control_characters(line: str) -> str:
    """Remove control characters of a terminal around the text of a line."""
    line = _ESCAPES.sub("", line).replace("\t", " ")
    line = _PAGER.sub("", _apply_backspaces(line) if "\b" in line else line)
    # A carriage return inside a line: the terminal shows the last part.
    line = line.rstrip("\r").rpartition("\r")[2]
    return "".join(each for each in line if each.isprintable()).rstrip()


def _apply_backspaces(line: str) -> str:
    """Return a line as a terminal shows it after its backspaces."""
    shown: list[str] = []
    cursor = 0
    for each in line:
        if each == "\b":
            cursor = max(cursor - 1, 0)
        else:
            shown[cursor : cursor + 1] = each
            cursor += 1
    return "".join(shown)


def _strip_quote_marks(lines: list[str]) -> list[str]:
    """Remove the marks of a quotation, if every line has them; `>` also if most lines have it."""
    while written := [line for line in lines if line.strip()]:
        mark = written[0][0] if written[0][0] in _QUOTES else ">"
        marked = [line for line in written if line.startswith(mark)]
        if len(marked) < len(written) and (mark != ">" or len(marked) * 2 < len(written)):
            break
        width = 2 if all(line[1:2] in ("", " ") for line in marked) else 1
        lines = [line[width:] if line.startswith(mark) else line for line in lines]
    return lines


def _strip_timestamps(lines: list[str]) -> list[str]:
    """Remove the times that a terminal program writes before each line."""
    if any(line.strip() for line in lines) and all(_TIME.match(line) for line in lines if line.strip()):
        return [_TIME.sub("", line) for line in lines]
    return lines


def _strip_line_numbers(lines: list[str]) -> list[str]:
    """Remove line numbers, if every line has a higher one than the line before."""
    written = [line for line in lines if line.strip()]
    found = [_NUMBERED.match(line) for line in written]
    numbers = [int(each[1]) for each in found if each]
    if len(written) < 3 or len(numbers) < len(written) or any(b <= a for a, b in pairwise(numbers)):
        return lines
    return [each[2] if (each := _NUMBERED.match(line)) else line for line in lines]


def blank_banners(lines: list[str]) -> list[str]:
    """Empty the texts of banners, menus and macros, whose lines may look like commands."""
    made = list(lines)
    for index, line in enumerate(lines):
        begins = _TEXT.match(line)
        if begins is None or not made[index]:
            continue
        end = begins["end"] or "@"
        if begins["end"] and end in begins["text"]:
            continue
        last = next((at for at in range(index + 1, len(lines)) if end in lines[at]), None)
        if last is not None:
            made[index] = f"{begins['head']}{begins['end'] or ''}{begins['end'] or ''}"
            made[index + 1 : last + 1] = [""] * (last - index)
    return made


def _strip_prompt(line: str) -> str:
    """Return the command of a line without its prompt; empty for a message or a command of EXEC mode."""
    if _LOG.match(line) or _ANSWERS.match(line) or _FENCE.match(line):
        return ""
    if (configuring := CONFIGURATION_PROMPT.match(line)) is not None:
        return "" if configuring[1].startswith("do ") else configuring[1].strip()
    if (prompt := _PROMPT.match(line)) is not None:
        rest = line[prompt.end() :].strip()
        return "" if not rest or _EXEC.match(rest) or not _BEGINS.match(rest) else rest
    return "" if _EXEC.match(line) and re.match(r"sh|conf|ter|wr", line) else line


def _expand_abbreviations(line: str) -> str:
    """Return a line with the most common abbreviations expanded: `int gi0/0`, `service-policy out NAME`; a circuit
    loses its name, as in `pvc NAME 8/35`, and a command its capital letter and the comment after it.
    """
    line = _COMMENT.sub(r"\1", line)
    line = _CAPITAL.sub(lambda found: found[1] + found[2].lower(), line)
    line = _CIRCUIT.sub(r"\1 ", _INTERFACE.sub(r"\1interface ", line))
    return _DIRECTION.sub(lambda found: f"{found[1]}service-policy {found[2]}put ", line)


def _join_wrapped_lines(lines: list[str]) -> list[str]:
    """Join lines that a terminal wrapped: full lines whose next line is not a command, and no line is longer."""
    made = list(lines)
    longest = max(map(len, lines), default=0)
    widths = [width for width in _WIDTHS if longest <= width]
    for index in range(len(made) - 1, 0, -1):
        before, line = made[index - 1], made[index]
        full = len(before) in widths or (len(before) + 1 in widths and line.startswith(" "))
        if line.startswith(" ") and before.lstrip().startswith(("description ", "remark ")):
            continue
        if full and line.strip() and not line.startswith("!") and not _BEGINS.match(line):
            made[index - 1] = before + line
            made[index] = ""
    return made


def dedent_lines(lines: list[str]) -> list[str]:
    """Remove the blanks that all lines of a configuration begin with; lines of other text may have fewer."""
    outermost = [line for line in lines if _OUTERMOST.match(line)]
    depths = [_depth(line) for line in outermost or lines if line.strip() and not line.lstrip().startswith("!")]
    least = min(depths, default=0)
    return [line[least:] if line[:least].strip() == "" else line.lstrip() for line in lines] if least else lines


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())
