"""Refusals of well-formed lines by an IOS router: the patterns by which clients recognise them.

The lists of Ansible and Unicon have the messages of the command-line parser, and few about quality of service. Both get
these patterns in addition: Ansible through the lookup `ios_refusals` of the playbooks, Unicon in the testbed. Each
pattern is searched line by line.
"""

from __future__ import annotations

import re

REFUSALS: tuple[str, ...] = (
    r"^Sum total of class bandwidths exceeds",
    r"^(?:CBWFQ|GTS) : ",
    r"requested bandwidth \d+ \(kbps\),? (?:available )?only \d+",
    r"^All classes with bandwidth should have consistent units",
    r"can(?: ?not| only) be configured (?:in|under) ",
    r"^random-detect needs ",
    r"^% ?(?:[Pp]olicy|[Cc]lass)[- ]map \S+ (?:not configured|is being used|can not |has the maximum)",
    r"^% class-default is a well-known class",
    r"^% Policy-map hierarchy exceeds",
    r"^Policy map \S+ is already attached",
    r"^Attaching service policy to main and sub-interface ",
    r"must be a power of 2",
    r"^PIR must not be less than CIR",
    r"^% (?:A policer with a dynamic bucket|The initial size must be|The class has no policer)",
    r"^% Load interval must be",
    r"^Bad mask ",
    r"^% \S+ overlaps with ",
    r"^%\S+: Error: ",
    r"^% Interface has to be specified for a link-local nexthop",
    r"^ERROR: ",
    r"^Command rejected: ",
    r"^% ?Inconsistent address and mask",
    r"^% ?Invalid ",
    r"^% Hostname contains",
    r"^% A named \w+ (IP )?access list with this name",
    r"^% Duplicate sequence number",
    r"^% Address not found on this interface",
    r"^% Must delete secondary before deleting primary",
    r"^% The object being configured has been removed",
    r"^Must remove .* configuration first",
    r"^% (?:Normal burst|Bits per interval) must be at least ",
    r"^% At most \d+ rate-limit lines",
    r"^% (?:There is no \w+ object group|Object groups? )",
    r"^Entry already running and cannot be modified",
    r"^% ?Entry not configured",
    r"^% ?Illegal Value: ",
    r"^% Not supported: ",
    r"^Command authorization failed",
)

_PARSER = (r"^%(?!\w+-\d-)", "[Ii]nvalid input", "[Ii]ncomplete command", "[Aa]mbiguous command")
"""Messages of the parser; `%SYS-5-…` is a log message."""
REFUSAL_PATTERN = re.compile("|".join((*_PARSER, *REFUSALS)), re.MULTILINE)
"""Any of the refusals, in one line of a router's output."""

NO_SUCH_COMMAND = re.compile(r"^% ?(?:Invalid|Incomplete|Ambiguous|Unknown)\b.*$", re.MULTILINE)
"""A router's answer to an unknown show command."""


def find_refusal(output: str) -> str | None:
    """Return the line of a router's output that refuses the input; None without a refusal."""
    return next((line.strip() for line in output.splitlines() if REFUSAL_PATTERN.search(line)), None)
