"""Parser of `show policy-map interface` of IOS 12.4 and 15, with the structure of Genie's parser for IOS XE.

Keys of Genie have the same meaning. Added keys of a class: `traffic_shaping` (the shaper's table up to 12.4),
`flow_drops`, `bytes_drops`, `queue_limit_ms`, `queue_thresholds`, `flow_based_fair_queueing`, `maximum_hashed_queues`,
`unrecognised` (unknown lines; also for a policy-map before its first class). Added in `random_detect`:
`explicit_congestion_notification`, in its classes `ecn_mark_packets` and `ecn_mark_bytes`. Added in `police`:
`cir_percent`, `pir_percent`, `dynamic_bucket` (in no IOS). The excess burst of a policer with one line of parameters,
which Genie stores under `pir_bc_bytes`, is `cir_be_bytes` here.

Each of interface, `Service-policy`, `Class-map` and counters is indented deeper than the one before; a nested
policy-map is indented deeper than its class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from re import Match
from typing import Any

from qoslab.genie.line_patterns import line_pattern

Values = dict[str, Any]

BOOLEAN_ACTIONS = frozenset({"drop", "transmit", "set_clp_transmit", "set_frde_transmit"})
"""Actions without a value."""


@dataclass
class _Level:
    """An open block and its indentation."""

    indent: int
    values: Values


@dataclass
class _Reader:
    """Position of the reader in the output."""

    result: Values = field(default_factory=dict)
    interface: Values | None = None
    policies: list[_Level] = field(default_factory=list)
    classes: list[_Level] = field(default_factory=list)
    counters: Values | None = None
    """Target of counters: a class, or the queue shared by all priority classes."""
    shared_queue: Values | None = None
    indent: int = 0
    match: tuple[int, str] | None = None
    """Indentation and text of the last `Match` line."""
    colour: Values | None = None
    """Colour of the policer for the following actions."""
    marks: bool = False
    """True if the following lines are markings."""
    marking: Values | None = None
    """The marking for the following counter; None if it is unknown."""

    # structure

    def open_interface(self, name: str) -> None:
        self.interface = self.result.setdefault(name, {})
        self.policies, self.classes, self.counters = [], [], None

    def open_policy(self, direction: str, name: str) -> None:
        assert self.interface is not None
        policies = self.interface.setdefault("service_policy", {}).setdefault(direction, {})
        policy = policies.setdefault("policy_name", {}).setdefault(name, {})
        self.policies, self.classes, self.counters = [_Level(self.indent, policy)], [], None

    def open_child(self, name: str) -> None:
        while len(self.classes) > 1 and self.classes[-1].indent >= self.indent:
            self.classes.pop()
        policy = self.classes[-1].values.setdefault("child_policy_name", {}).setdefault(name, {})
        while len(self.policies) > 1 and self.policies[-1].indent >= self.indent:
            self.policies.pop()
        self.policies.append(_Level(self.indent, policy))
        self.counters = None

    def open_class(self, name: str, evaluation: str) -> None:
        while len(self.policies) > 1 and self.policies[-1].indent >= self.indent:
            self.policies.pop()
        while self.classes and self.classes[-1].indent >= self.indent:
            self.classes.pop()
        found = self.policies[-1].values.setdefault("class_map", {}).setdefault(name, {})
        found["match_evaluation"] = evaluation
        self.classes.append(_Level(self.indent, found))
        self.counters, self.shared_queue = found, None
        self.match = self.colour = self.marking = None
        self.marks = False

    def open_shared_queue(self) -> None:
        while len(self.policies) > 1 and self.policies[-1].indent >= self.indent:
            self.policies.pop()
        self.shared_queue = self.policies[-1].values.setdefault("queue_stats_for_all_priority_classes", {})
        self.counters = self.shared_queue.setdefault("priority_level", {}).setdefault("default", {})

    def open_part(self, *names: str) -> Values:
        """Return a dictionary in the open class; create it if missing."""
        assert self.counters is not None
        found = self.counters
        for name in names:
            found = found.setdefault(name, {})
        return found


Handler = Callable[[_Reader, Match[str]], None]


def _matched_integers(match: Match[str]) -> Values:
    """Return the matched named groups as whole numbers."""
    return {name: int(text) for name, text in match.groupdict().items() if text is not None}


def _read_numbers(reader: _Reader, match: Match[str]) -> None:
    reader.open_part().update(_matched_integers(match))


def _storing_handler(*names: str) -> Handler:
    def handle(reader: _Reader, match: Match[str]) -> None:
        reader.open_part(*names).update(_matched_integers(match))

    return handle


def _flag_handler(name: str) -> Handler:
    def handle(reader: _Reader, match: Match[str]) -> None:
        reader.open_part()[name] = True

    return handle


def _read_packets(reader: _Reader, match: Match[str]) -> None:
    if reader.match is not None and reader.indent > reader.match[0]:
        reader.open_part("match_stats", reader.match[1]).update(_matched_integers(match))
    else:
        _read_numbers(reader, match)


def _parse_seconds(match: Match[str]) -> int:
    return int(match["interval"]) * (60 if match["unit"] == "minute" else 1)


def _read_rate(reader: _Reader, match: Match[str]) -> None:
    rate = {"interval": _parse_seconds(match), "offered_rate_bps": int(match["offered"])}
    if reader.match is not None and reader.indent > reader.match[0]:
        reader.open_part("match_stats", reader.match[1])["rate"] = rate
        return
    if match["drop"] is not None:
        rate["drop_rate_bps"] = int(match["drop"])
    reader.open_part()["rate"] = rate


def _read_match(reader: _Reader, match: Match[str]) -> None:
    text = match["criterion"].strip()
    reader.open_part().setdefault("match", []).append(text)
    reader.match = (reader.indent, text)


def _read_colour(reader: _Reader, match: Match[str]) -> None:
    reader.colour = reader.open_part("police", match["colour"])
    for name in ("packets", "bytes"):
        if match[name] is not None:
            reader.colour[name] = int(match[name])
    reader.colour["actions"] = {}
    if match["action"]:
        _take_action(reader.colour["actions"], match["action"], "")


def _read_action(reader: _Reader, match: Match[str]) -> None:
    if reader.colour is None:
        _store_unrecognised(reader, match.string)
    else:
        _take_action(reader.colour["actions"], match["action"], match["value"] or "")


def _take_action(actions: Values, action: str, value: str) -> None:
    name = action.replace("-", "_")
    actions[name] = True if name in BOOLEAN_ACTIONS else value.strip()


def _read_police_rates(reader: _Reader, match: Match[str]) -> None:
    for colour, rate in _matched_integers(match).items():
        reader.open_part("police", colour)["bps"] = rate
    reader.colour = None


def _read_marking(reader: _Reader, match: Match[str]) -> None:
    if reader.marks:
        reader.marking = reader.open_part("qos_set", match["field"], match["value"])
    else:
        _store_unrecognised(reader, match.string)


def _start_marking(reader: _Reader, match: Match[str]) -> None:
    reader.marks, reader.marking = True, None


def _read_marked_packets(reader: _Reader, match: Match[str]) -> None:
    if reader.marking is None:
        _store_unrecognised(reader, match.string)
    else:
        reader.marking["packets_marked"] = int(match["packets"])


def _read_queue_limit(reader: _Reader, match: Match[str]) -> None:
    # a text in Genie's structure
    reader.open_part()["queue_limit_packets"] = match["limit"]


def _read_queue_threshold(reader: _Reader, match: Match[str]) -> None:
    limits = reader.open_part("queue_thresholds", match["field"])
    limits[match["value"]] = f"{match['limit']} {match['unit']}"


def _read_shape(reader: _Reader, match: Match[str]) -> None:
    reader.open_part().update(
        shape_type=match["kind"],
        shape_cir_bps=int(match["cir"]),
        shape_bc_bps=int(match["bc"]),
        shape_be_bps=int(match["be"]),
    )


def _text_handler(name: str) -> Handler:
    def handle(reader: _Reader, match: Match[str]) -> None:
        reader.open_part()[name] = match[1].strip()

    return handle


def _read_priority(reader: _Reader, match: Match[str]) -> None:
    reader.open_part("priority").update(_matched_integers(match))


def _read_strict_priority(reader: _Reader, match: Match[str]) -> None:
    priority = reader.open_part("priority")
    priority["type"] = "Strict"
    if match["exceed_drops"] is not None:
        priority["exceed_drops"] = int(match["exceed_drops"])


def _read_priority_level(reader: _Reader, match: Match[str]) -> None:
    if reader.shared_queue is not None:
        levels = reader.shared_queue["priority_level"]
        if levels.get("default", {"": None}).keys() <= {"queueing", "unrecognised"}:
            opened = levels.pop("default")
        else:
            opened = {"queueing": True}
        reader.counters = levels.setdefault(match["level"], opened)
    else:
        reader.open_part()["priority_level"] = int(match["level"])


def _read_shaping_rates(reader: _Reader, match: Match[str]) -> None:
    """Store the first table of a 12.4 shaper. Target and average are equal except for `shape peak`."""
    row = _matched_integers(match)
    reader.open_part("traffic_shaping").update(row)
    reader.open_part().update(
        shape_type="average" if row["target_rate_bps"] == row["average_rate_bps"] else "peak",
        shape_cir_bps=row["average_rate_bps"],
        shape_bc_bps=row["sustain_bits_per_interval"],
        shape_be_bps=row["excess_bits_per_interval"],
        target_shape_rate=row["target_rate_bps"],
    )


def _read_shaping_counters(reader: _Reader, match: Match[str]) -> None:
    numbers = ("queue_depth", "packets", "bytes", "packets_delayed", "bytes_delayed")
    row: Values = {name: int(match[name]) for name in numbers}
    row["adapt_active"] = match["adapt_active"]
    row["shaping_active"] = match["shaping_active"] == "yes"
    reader.open_part("traffic_shaping").update(row)
    reader.open_part()["queue_depth"] = row["queue_depth"]


def _read_weight(reader: _Reader, match: Match[str]) -> None:
    key = "exponential_weight" if match["name"].lower().startswith("exponential") else "exp_weight_constant"
    reader.open_part("random_detect")[key] = match["value"].strip()


def _read_random_detect(reader: _Reader, match: Match[str]) -> None:
    row = match.groupdict()
    reader.open_part("random_detect", "class")[row.pop("class")] = {k: v for k, v in row.items() if v is not None}


def _read_ecn_mark(reader: _Reader, match: Match[str]) -> None:
    row = reader.open_part("random_detect", "class").setdefault(match["class"], {})
    row |= {"ecn_mark_packets": match["packets"], "ecn_mark_bytes": match["bytes"]}


def _read_ecn(reader: _Reader, match: Match[str]) -> None:
    reader.open_part("random_detect")["explicit_congestion_notification"] = True


def _store_unrecognised(reader: _Reader, text: str) -> None:
    """Store a line in its class, shared queue or policy-map."""
    # A counter below it belongs to an unknown mark.
    reader.marking = None
    if reader.counters is not None:
        reader.counters.setdefault("unrecognised", []).append(text)
    elif reader.policies:
        reader.policies[-1].values.setdefault("unrecognised", []).append(text)


def _read_drop(reader: _Reader, match: Match[str]) -> None:
    """Store the drop action of a class or of its policer."""
    if reader.counters is not None and reader.colour is None:
        reader.counters["drop"] = True
    elif reader.colour is not None:
        _take_action(reader.colour["actions"], "drop", "")
    else:
        _store_unrecognised(reader, match.string)


def _ignore_line(reader: _Reader, match: Match[str]) -> None:
    """Ignore a line without values, such as a heading."""


_POLICY = line_pattern(r"Service-policy (?P<direction>input|output): *(?P<name>\S+).*")
_CHILD = line_pattern(r"Service-policy *: *(?P<name>\S+)")
_CLASS = line_pattern(r"Class-map *: *(?P<name>\S+)(?: +\((?P<evaluation>match-a(?:ll|ny))\))?(?: .*)?")
_SHARED_QUEUE = "queue stats for all priority classes:"

_BODY: list[tuple[str, Handler]] = [
    (r"<packets> packets, <bytes> bytes", _read_packets),
    (r"<interval> (?P<unit>second|minute) (?:offered )?rate <offered> bps(?:, drop rate <drop> bps)?", _read_rate),
    (r"Match: *(?P<criterion>.+)", _read_match),
    # policer
    (r"police:", lambda r, m: r.open_part("police").clear()),
    (
        r"(?:police: *)?cir <cir_bps> bps, bc <cir_bc_bytes> bytes(?:, be <cir_be_bytes> bytes)?",
        _storing_handler("police"),
    ),
    (r"pir <pir_bps> bps, be <pir_be_bytes> bytes", _storing_handler("police")),
    (r"rate <rate_bps> bps, burst <burst_bytes> bytes", _storing_handler("police")),
    (r"cir <cir_percent> ?%(?:.*)", _storing_handler("police")),
    (r"pir <pir_percent> ?%(?:.*)", _storing_handler("police")),
    (
        r"(?P<colour>conformed|exceeded|violated) (?:<packets> packets, )?<bytes> bytes; actions?:(?P<action>[\w-]+)?",
        _read_colour,
    ),
    (r"conformed <conformed> bps, exceed(?:ed)? <exceeded> bps(?:, violated? <violated> bps)?", _read_police_rates),
    (r"drop", _read_drop),
    (r"(?P<action>drop|transmit|set-[\w-]+-transmit)(?: +(?P<value>.+))?", _read_action),
    # a bucket with automatic size, which no IOS has
    (r"qoslab-extension dynamic-bucket:", _ignore_line),
    (
        r"bucket <bucket_bytes> bytes, level <level_bytes>, mean <mean_bucket_bytes>",
        _storing_handler("police", "dynamic_bucket"),
    ),
    (
        r"initial <initial_bytes> bytes, minimum <minimum_bytes>, maximum <maximum_bytes>,"
        r" monitoring <monitoring_ms> ms",
        _storing_handler("police", "dynamic_bucket"),
    ),
    (
        r"growths <growths>, shrinks <shrinks>, overflow <overflow_bytes> bytes, most <most_overflow_bytes>",
        _storing_handler("police", "dynamic_bucket"),
    ),
    # marking
    (r"QoS Set", _start_marking),
    (
        r"(?P<field>(?:ip )?(?:dscp|precedence)|cos|qos-group|discard-class) +(?P<value>[\w-]+(?: table \S+)?)",
        _read_marking,
    ),
    (r"Packets marked <packets>", _read_marked_packets),
    # shaper up to 12.4
    (r"Traffic Shaping", _ignore_line),
    (r"Adapt +Queue +Packets +Bytes +Packets +Bytes +Shaping", _ignore_line),
    (r"Target/Average +Byte .*|Rate +Limit +bits/int .*|Active +Depth +Delayed .*", _ignore_line),
    (
        r"<target_rate_bps>/<average_rate_bps> +<byte_limit> +<sustain_bits_per_interval> +<excess_bits_per_interval>"
        r" +<interval_ms> +<increment_bytes>",
        _read_shaping_rates,
    ),
    (
        r"(?P<adapt_active>\S+) +<queue_depth> +<packets> +<bytes> +<packets_delayed>"
        r" +<bytes_delayed> +(?P<shaping_active>yes|no)",
        _read_shaping_counters,
    ),
    # queues up to 12.4
    (r"Queueing", _flag_handler("queueing")),
    (r"Strict Priority", lambda r, m: r.open_part("priority").update(type="Strict")),
    (r"Output Queue: (Conversation .+)", _text_handler("output_queue")),
    (r"Bandwidth <kbps> \(kbps\) Burst <burst_bytes> \(Bytes\)", _read_priority),
    (r"Bandwidth <bandwidth_percent> \(%\)", _read_numbers),
    (
        r"Bandwidth remaining <bandwidth_remaining_percent> \(%\) *"
        r"(?:Max Threshold <bandwidth_max_threshold_packets> \(packets\))?",
        _read_numbers,
    ),
    (
        r"Bandwidth <bandwidth_kbps> \(kbps\) *(?:Max Threshold <bandwidth_max_threshold_packets> \(packets\))?",
        _read_numbers,
    ),
    (r"\(pkts matched/bytes matched\) <pkts_matched>/<bytes_matched>", _read_numbers),
    (r"\(total drops/bytes drops\) <total_drops>/<bytes_drops>", _read_numbers),
    (
        r"\((?:queue depth|depth|total queued)/total drops/no-buffer drops\)"
        r" <queue_depth>/<total_drops>/<no_buffer_drops>",
        _read_numbers,
    ),
    (r"Flow Based Fair Queueing", _flag_handler("flow_based_fair_queueing")),
    (r"Maximum Number of Hashed Queues <maximum_hashed_queues>", _read_numbers),
    # queues since 12.4(20)T
    (
        r"\(queue depth/total drops/no-buffer drops/flowdrops\)"
        r" <queue_depth>/<total_drops>/<no_buffer_drops>/<flow_drops>",
        _read_numbers,
    ),
    (r"queue limit <limit> packets", _read_queue_limit),
    (r"queue limit <queue_limit_bytes> bytes", _read_numbers),
    (r"queue limit <queue_limit_ms> ms/ *<queue_limit_bytes> bytes", _read_numbers),
    (
        r"(?P<field>dscp|precedence|cos) (?P<value>\w+) queue limit <limit> (?P<unit>packets|bytes|ms)",
        _read_queue_threshold,
    ),
    (r"\(bytes\) +\(bytes\)", _ignore_line),
    (r"queue limit <queue_limit_us> us/ *<queue_limit_bytes> bytes", _read_numbers),
    (r"\(pkts output/bytes output\) <pkts_output>/<bytes_output>", _read_numbers),
    (r"\(pkts queued/bytes queued\) <pkts_queued>/<bytes_queued>", _read_numbers),
    (r"shape \((?P<kind>\w+)\) cir <cir>, *bc <bc>, *be <be>", _read_shape),
    (r"Overhead Accounting ([Ee]nabled)", _text_handler("overhead_accounting")),
    (r"target shape rate <target_shape_rate>", _read_numbers),
    (r"bandwidth <bandwidth_kbps> \(?kbps\)?", _read_numbers),
    (r"bandwidth <bandwidth_percent>% \(<bandwidth_kbps> kbps\)", _read_numbers),
    (r"bandwidth remaining <bandwidth_remaining_percent>%(?: \(<bandwidth_kbps> kbps\))?", _read_numbers),
    (r"bandwidth remaining ratio <bandwidth_remaining_ratio>.*", _read_numbers),
    (r"Fair-queue: per-flow queue limit <fair_queue_limit_per_flow>(?: packets)?", _read_numbers),
    (
        r"Priority: (?:<percent>% \()?<kbps> kbps\)?, burst bytes <burst_bytes>(?:, b/w exceed drops: <exceed_drops>)?",
        _read_priority,
    ),
    (r"Priority: Strict(?:, b/w exceed drops: <exceed_drops>)?", _read_strict_priority),
    (r"[Pp]riority [Ll]evel:? <level>", _read_priority_level),
    # weighted random early detection
    (r"(?P<name>Exp-weight-constant|[Ee]xponential weight) *: *(?P<value>.+)", _read_weight),
    (r"[Mm]ean queue depth *: *<mean_queue_depth>.*", _storing_handler("random_detect")),
    (r"explicit congestion notification", _read_ecn),
    (r"(?:class|dscp) +ECN Mark|pkts/bytes", _ignore_line),
    (r"(?P<class>\w+) +<packets>/<bytes>", _read_ecn_mark),
    (r"(?:class|dscp) +Transmitted +Random drop .*", _ignore_line),
    (r"pkts/bytes .*|thresh .*", _ignore_line),
    (
        r"(?P<class>[\w]+) +<transmitted_packets>/<transmitted_bytes> +<random_drop_packets>/<random_drop_bytes>"
        r" +<tail_drop_packets>/<tail_drop_bytes> +<minimum_thresh> +<maximum_thresh> +(?P<mark_prob>\d+/\d+)",
        _read_random_detect,
    ),
]
"""Patterns of lines inside a class, in the order of their use."""

_PARTS = ("police", "priority", "qos_set", "random_detect", "traffic_shaping", "queue_stats_for_all_priority_classes")
"""Parts of a class or policy-map that may remain empty."""
_BODY_LINES = [(line_pattern(text), handler) for text, handler in _BODY]
_INTERFACE = line_pattern(r"(?P<name>[A-Z][A-Za-z-]*[A-Za-z]\d+(?:/\d+)*(?:[.:]\d+)*)(?P<more>:? .*)?")
"""An interface, and the rest of its line: a circuit of ATM or Frame Relay."""
_DLCI = line_pattern(r": DLCI <number>\b.*")
_CONTROL_PLANE = line_pattern(r"Control Plane(?: (?:Host|Transit|Cef-exception))?")


def _parse_heading(line: str, indent: int) -> str | None:
    """Return the interface of a heading; None for any other line.

    Circuits of Frame Relay are distinguished by their DLCI, such as `Serial4/1: DLCI 16`.
    """
    if _CONTROL_PLANE.fullmatch(line):
        return line
    match = _INTERFACE.fullmatch(line)
    if match is None or (match["more"] and indent > 1):
        return None
    dlci = _DLCI.fullmatch(match["more"] or "")
    return f"{match['name']}: DLCI {dlci['number']}" if dlci else match["name"]


def parse_policy_map_interface(text: str, interface: str = "") -> Values:
    """Parse `text`; empty if no interface has a policy.

    `interface` is the interface in the command: some releases do not print its name then.
    """
    reader = _Reader()
    for raw in text.splitlines():
        line = raw.strip()
        if not line:
            continue
        reader.indent = len(raw) - len(raw.lstrip())
        if (name := _parse_heading(line, reader.indent)) is not None:
            reader.open_interface(name)
            continue
        if reader.interface is None:
            if not interface or not line.startswith("Service-policy"):
                continue
            reader.open_interface(interface)
        if not _read(reader, line):
            _store_unrecognised(reader, line)
    return {name: _drop_empty_parts(values) for name, values in reader.result.items() if values}


def _drop_empty_parts(values: Values) -> Values:
    """Return the values without empty parts."""
    found = {name: _drop_empty_parts(value) if isinstance(value, dict) else value for name, value in values.items()}
    return {name: value for name, value in found.items() if value != {} or name not in _PARTS}


def _read(reader: _Reader, line: str) -> bool:
    """Parse one line; return False if it does not belong to this output."""
    if found := _POLICY.fullmatch(line):
        reader.open_policy(found["direction"], found["name"])
    elif not reader.policies:
        return False
    elif found := _CLASS.fullmatch(line):
        reader.open_class(found["name"], found["evaluation"] or "")
    elif line == _SHARED_QUEUE:
        reader.open_shared_queue()
    elif not reader.classes and reader.counters is None:
        return False
    elif found := _CHILD.fullmatch(line):
        if not reader.classes:
            return False
        reader.open_child(found["name"])
    elif reader.counters is None:
        return False
    else:
        return _read_body(reader, line)
    return True


def _read_body(reader: _Reader, line: str) -> bool:
    for pattern, handler in _BODY_LINES:
        if found := pattern.fullmatch(line):
            try:
                handler(reader, found)
            except ValueError:
                # A number with more digits than Python converts.
                return False
            return True
    return False
