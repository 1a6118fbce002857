"""Queue part of a class in `show policy-map interface`, for both software generations.

All lines are without the indentation of the class's body.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoslab.ios.model.generations import QosGeneration
from qoslab.ios.model.ios_names import dscp_text
from qoslab.system import program_formats

QUEUEING_FEATURES = ("shape", "queue_limit", "fair_queue", "bandwidth", "priority", "random_detect")

# [I] The wording for CoS and discard class.
_RED_WORDS = {"dscp": "dscp", "precedence": "class", "cos": "cos", "discard_class": "dclass"}
NO_QUEUE: program_formats.Count = {"packets": 0, "bytes": 0}


def has_level(config: program_formats.PolicyClass) -> bool:
    """Return whether the class is configured with a level of priority."""
    priority = config.get("priority")
    return priority is not None and priority.get("level") is not None


def _total_queue_drops(counters: program_formats.ClassCounters) -> int:
    """Return the packets dropped by the queue of a class, early or at its limits, including drops of flows."""
    drops = counters["drops"]
    return sum(drops[reason]["packets"] for reason in ("tail", "flow", "random", "random_tail"))


def _has_queueing_child(counters: program_formats.ClassCounters) -> bool:
    """Return whether the queues of a class are those of its child policy."""
    child = counters["child"]
    return child is not None and any(each["queue"] or each["priority"] for each in child["classes"])


# Later generation


def hqf_queueing_lines(
    config: program_formats.PolicyClass, counters: program_formats.ClassCounters, qos: QosGeneration
) -> Iterator[str]:
    """The lines of a class; `config` is its configuration."""
    queue, shape, priority = counters["queue"], counters["shape"], counters["priority"]
    accounted = config.get("account") is not None
    if priority is not None:
        exceed = f"b/w exceed drops: {priority['exceed_drops']['packets']}"
        if priority["unit"] == "strict":
            yield f"Priority: Strict, {exceed}"
        else:
            rate = f"{priority['kbps']} kbps"
            if priority["percent"] is not None:
                rate = f"{priority['percent']}% ({rate})"
            yield f"Priority: {rate}, burst bytes {priority['burst_bytes']}, {exceed}"
        yield ""
        if has_level(config):
            yield f"Priority Level: {priority['level']}"
            yield ""
        return
    if queue is not None:
        # A class that only inherits its queue has an empty line in place of the word.
        yield "Queueing" if any(config.get(feature) is not None for feature in QUEUEING_FEATURES) else ""
        yield _hqf_limit_text(queue)
        for each in config.get("queue_thresholds", []):
            # [I] The place and form in which a router shows these.
            value = dscp_text(each["value"]) if each["field"] == "dscp" else str(each["value"])
            ((unit, number),) = each["limit"].items()
            amount = f"percent {number}" if unit == "percent" else f"{number} {unit}"
            yield f"{each['field'].replace('_', '-')} {value} queue limit {amount}"
        yield _hqf_depth_lines(queue, counters, qos)
        yield f"(pkts output/bytes output) {queue['output']['packets']}/{queue['output']['bytes']}"
    if shape is not None:
        yield f"shape ({shape['mode']}) cir {shape['cir_bps']}, bc {shape['bc_bits']}, be {shape['be_bits']}"
        yield f"target shape rate {shape['target_bps']}"
        if accounted:
            yield " Overhead Accounting Enabled"
    yield from _hqf_bandwidth_text(counters)
    if accounted and counters["bandwidth"] is not None:
        # The spelling of one IOS XE router; others are assumed to use the same [I].
        yield "Overhead Accounting enabled"
    fair = queue is not None and queue["discipline"] == "fair_queue"
    if counters["random_detect"] is not None:
        yield from (f"  {line}" for line in _hqf_random_detect_lines(counters["random_detect"], fair))
    if queue is not None and queue["per_flow_limit"] is not None:
        yield f"Fair-queue: per-flow queue limit {queue['per_flow_limit']} packets"


def _hqf_limit_text(queue: program_formats.ClassQueueCounters | program_formats.PriorityQueueCounters) -> str:
    if (size := queue.get("limit_bytes")) is None:
        return f"queue limit {queue['limit_packets']} packets"
    time = "" if (milliseconds := queue.get("limit_ms")) is None else f"{milliseconds} ms/ "
    if (microseconds := queue.get("limit_us")) is not None:
        time = f"{microseconds} us/ "
    return f"queue limit {time}{size} bytes"


def _hqf_depth_lines(
    queue: program_formats.ClassQueueCounters, counters: program_formats.ClassCounters, qos: QosGeneration
) -> str:
    # Packets in the transmit ring are shown as queued, and drops at a flow's own limit count in both values. The depth
    # is in the unit of the limit, as in output of IOS XE; packets in the ring are not counted in bytes.
    depth, total = queue["depth_packets"] + queue["in_ring_packets"], _total_queue_drops(counters)
    if qos.parents_without_depth:
        # Without the ring; packets queued below a class belong to its children.
        depth = 0 if _has_queueing_child(counters) else queue["depth_packets"]
    if queue["limit_bytes"] is not None:
        depth = queue["depth_bytes"]
    if queue["discipline"] != "fair_queue":
        return f"(queue depth/total drops/no-buffer drops) {depth}/{total}/0"
    flow = counters["drops"]["flow"]["packets"]
    return f"(queue depth/total drops/no-buffer drops/flowdrops) {depth}/{total}/0/{flow}"


def _hqf_bandwidth_text(counters: program_formats.ClassCounters) -> Iterator[str]:
    bandwidth = counters["bandwidth"]
    if bandwidth is None:
        return
    if bandwidth["percent"] is not None:
        yield f"bandwidth {bandwidth['percent']}% ({bandwidth['kbps']} kbps)"
    elif bandwidth["remaining_percent"] is not None:
        yield f"bandwidth remaining {bandwidth['remaining_percent']}%"
    elif bandwidth["remaining_ratio"] is not None:
        yield f"bandwidth remaining ratio {bandwidth['remaining_ratio']}"
    else:
        yield f"bandwidth {bandwidth['kbps']} kbps"


def _hqf_random_detect_lines(red: program_formats.RandomDetectCounters, fair: bool) -> Iterator[str]:
    weight = red["exponential_weight"]
    yield f"Exp-weight-constant: {weight} (1/{2**weight})"
    if red["ecn_mark"] is not None:
        yield "explicit congestion notification"
    yield f"Mean queue depth: {int(red['mean_depth'])} {'bytes' if red['in_bytes'] else 'packets'}"
    word = f"{_RED_WORDS[red['basis']]:<5}"
    if fair:
        # [I] The words are known, but not the columns below them.
        yield f"{word}     Transmitted       Random drop      Tail/Flow drop Minimum Maximum Mark"
        yield "          pkts/bytes     pkts/bytes       pkts/bytes     thresh  thresh  prob"
    else:
        yield f"{word}     Transmitted       Random drop      Tail drop          Minimum        Maximum     Mark"
        yield "          pkts/bytes     pkts/bytes       pkts/bytes          thresh         thresh     prob"
    yield " " * 61 + "(bytes)        (bytes)" if red["in_bytes"] else ""
    for row in red["classes"]:
        yield _red_row(red, row, (8, 15, 14, 17, 19, 14))
    yield from _ecn_mark_table(red)


def _red_row(
    red: program_formats.RandomDetectCounters, row: program_formats.RandomDetectRow, widths: tuple[int, ...]
) -> str:
    """Return a row of early detection's table: left-aligned name, right-aligned numbers."""
    name = _red_row_name(red, row)
    volumes = (row["transmitted"], row["random_drop"], row["tail_drop"])
    values = [*(f"{each['packets']}/{each['bytes']}" for each in volumes), str(row["min"]), str(row["max"])]
    cells = "".join(f" {value}".rjust(width) for value, width in zip(values, widths[1:], strict=True))
    return f"{name:<{widths[0]}}{cells}  1/{row['denominator']}"


def _red_row_name(red: program_formats.RandomDetectCounters, row: program_formats.RandomDetectRow) -> str:
    return dscp_text(row["value"]) if red["basis"] == "dscp" else str(row["value"])


def _ecn_mark_table(red: program_formats.RandomDetectCounters) -> Iterator[str]:
    """Yield the table of ECN marks in the layout of Cisco's feature guide for 12.2(8)T.

    The layout is assumed for later software [I].
    """
    if red["ecn_mark"] is None:
        return
    yield ""
    yield f"{_RED_WORDS[red['basis']]:<8}   ECN Mark"
    yield "          pkts/bytes"
    for row in red["classes"]:
        marked = row["ecn_mark"]
        value = f"{marked['packets']}/{marked['bytes']}"
        yield f"{_red_row_name(red, row):<8} {value:>11}"


def hqf_priority_queue_lines(queue: program_formats.PriorityQueueCounters, named: bool) -> Iterator[str]:
    """Yield the shared queue of priority classes, below its heading; `named` is true if levels are configured."""
    drops = queue["drops"]["packets"]
    # Some integrated services routers have an empty line in place of the word, which Genie's parser trips over.
    yield "Queueing"
    if named:
        yield f"priority level {queue['level']}"
    yield _hqf_limit_text(queue)
    depth = queue.get("depth_bytes")
    yield f"(queue depth/total drops/no-buffer drops) {queue['depth_packets'] if depth is None else depth}/{drops}/0"
    yield f"(pkts output/bytes output) {queue['output']['packets']}/{queue['output']['bytes']}"


# Up to 12.4(15)T


def classic_queueing_lines(counters: program_formats.ClassCounters) -> Iterator[str]:
    """The lines of a class."""
    queue, priority, bandwidth, red = (
        counters["queue"],
        counters["priority"],
        counters["bandwidth"],
        counters["random_detect"],
    )
    if priority is not None:
        yield from _classic_priority_lines(counters)
    elif bandwidth is not None:
        yield "Queueing"
        yield from (f"  {line}" for line in _classic_class_lines(counters))
    elif counters["shape"] is None and queue is not None and queue["max_flows"] is not None:
        # [I] This block is not backed by a device's sample.
        yield "Queueing"
        yield "  Flow Based Fair Queueing"
        yield f"  Maximum Number of Hashed Queues {queue['max_flows']} "
        yield f"  (total queued/total drops/no-buffer drops) {queue['depth_packets']}/{_total_queue_drops(counters)}/0"
    elif red is not None and counters["shape"] is None:
        yield "Queueing"
    if red is not None:
        yield from classic_random_detect_lines(red)
    if counters["shape"] is not None:
        yield from _classic_shape_lines(counters["shape"], queue)


def _conversation_line(number: int | None) -> Iterator[str]:
    if number is not None:
        yield f"Output Queue: Conversation {number} "


def _congested_packets(queue: program_formats.ClassQueueCounters | None) -> str:
    """Return the packets that arrived while the interface was congested."""
    matched = NO_QUEUE if queue is None else queue["congested"]
    return f"(pkts matched/bytes matched) {matched['packets']}/{matched['bytes']}"


def _classic_priority_lines(counters: program_formats.ClassCounters) -> Iterator[str]:
    priority, tail = counters["priority"], counters["drops"]["tail"]
    assert priority is not None
    exceed = priority["exceed_drops"]
    yield "Queueing"
    yield "  Strict Priority"
    yield from (f"  {line}" for line in _conversation_line(priority["conversation"]))
    if priority["percent"] is not None:
        yield f"  Bandwidth {priority['percent']} (%)"
    if priority["kbps"] is not None:
        yield f"  Bandwidth {priority['kbps']} (kbps) Burst {priority['burst_bytes']} (Bytes)"
    yield f"  {_congested_packets(counters['queue'])}"
    packets, size = exceed["packets"] + tail["packets"], exceed["bytes"] + tail["bytes"]
    yield f"  (total drops/bytes drops) {packets}/{size}"


def _classic_class_lines(counters: program_formats.ClassCounters) -> Iterator[str]:
    bandwidth, queue = counters["bandwidth"], counters["queue"]
    assert bandwidth is not None
    limit = ""
    if queue is not None:
        yield from _conversation_line(queue["conversation"])
        if counters["random_detect"] is None:
            limit = f"Max Threshold {queue['limit_packets']} (packets)"
    if bandwidth["percent"] is not None:
        # There is no blank in between on routers either.
        yield f"Bandwidth {bandwidth['percent']} (%)"
        yield f"Bandwidth {bandwidth['kbps']} (kbps){limit}"
    elif bandwidth["remaining_percent"] is not None:
        yield f"Bandwidth remaining {bandwidth['remaining_percent']} (%){limit}"
    else:
        yield f"Bandwidth {bandwidth['kbps']} (kbps) {limit}".rstrip()
    yield _congested_packets(queue)
    depth = 0 if queue is None else queue["depth_packets"]
    yield f"(depth/total drops/no-buffer drops) {depth}/{_total_queue_drops(counters)}/0"


def classic_random_detect_lines(red: program_formats.RandomDetectCounters) -> Iterator[str]:
    """Yield the table of early detection."""
    # [I] The layout is from memory, not from an output; the thresholds are those of the data plane.
    yield f"   exponential weight: {red['exponential_weight']}"
    if red["ecn_mark"] is not None:
        yield "   explicit congestion notification"
    yield f"   mean queue depth: {int(red['mean_depth'])}"
    yield ""
    word = f"{_RED_WORDS[red['basis']]:<5}"
    yield f"{word}    Transmitted      Random drop      Tail drop    Minimum Maximum  Mark"
    yield "         pkts/bytes       pkts/bytes       pkts/bytes    thresh  thresh  prob"
    for row in red["classes"]:
        yield _red_row(red, row, (7, 13, 17, 17, 9, 8))
    yield from _ecn_mark_table(red)
    yield ""


def _classic_shape_lines(
    shape: program_formats.ShapeCounters, queue: program_formats.ClassQueueCounters | None
) -> Iterator[str]:
    depth = 0 if queue is None else queue["depth_packets"]
    yield "Traffic Shaping"
    yield "     Target/Average   Byte   Sustain   Excess    Interval  Increment"
    yield "       Rate           Limit  bits/int  bits/int  (ms)      (bytes)  "
    yield (
        f"  {shape['target_bps']:9}/{shape['cir_bps']:<9} {shape['byte_limit']:<7}{shape['bc_bits']:<10}"
        f"{shape['be_bits']:<10}{shape['interval_ms']:<10g}{shape['increment_bytes']:<9}"
    )
    yield ""
    yield "  Adapt  Queue     Packets   Bytes     Packets   Bytes     Shaping"
    yield "  Active Depth                         Delayed   Delayed   Active"
    sent, delayed = shape["sent"], shape["delayed"]
    yield (
        f"  -      {depth:<10}{sent['packets']:<10}{sent['bytes']:<10}"
        f"{delayed['packets']:<10}{delayed['bytes']:<10}{'yes' if shape['active'] else 'no'}"
    )
