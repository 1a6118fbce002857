"""Queues of interfaces in `show interfaces`, `show queueing` and `show controllers serial`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qoslab.ios.commands.class_queue_lines import classic_random_detect_lines
from qoslab.ios.model import engine_defaults
from qoslab.ios.model.device import Device, Interface
from qoslab.ios.model.generations import QosGeneration
from qoslab.ios.model.hardware import Chassis
from qoslab.ios.model.interface_queueing import PRIORITIES
from qoslab.ios.show.queue_lists import show_queueing_custom, show_queueing_priority
from qoslab.system import program_formats

# The strategies of lists are printed with their numbers.
STRATEGIES = {"fifo": "fifo", "weighted_fair": "weighted fair", "class_based": "Class-based queueing"}
KINDS = {"fifo": "none", "weighted_fair": "fair", "class_based": "fair", "priority": "priority", "custom": "custom"}
"""Names of the strategies in `show queueing interface`."""
FIFO_NOT_SUPPORTED = "'Show queue' not supported with FIFO queueing."
HQF_NOT_SUPPORTED = "'Show queue' not supported with HQF."
"""Assumed wording [I]: a policy of the later generation has no conversations.

The article that compares an interface's fair queueing with HQF shows only the output of the former.
"""

LINK_QUEUES = 8
"""Queues for the link's own packets in addition to those of conversations."""
PRIORITY_QUEUES = 1
RESERVABLE_QUEUES = {"weighted_fair": 0, "class_based": 256}
"""Default number of reservable conversations; the 0 of plain fair queueing is assumed [I]."""
UNLIMITED_RING = 128
"""Packets of a 2811's transmit ring without fair queueing, policy and `tx-ring-limit`."""


def queue_lines(interface: Interface, counters: program_formats.InterfaceCounters, qos: QosGeneration) -> Iterator[str]:
    """Yield the lines about the queues of an interface, without indentation."""
    hold = qos.input_hold_queue if interface.hold_queue_in is None else interface.hold_queue_in
    yield (
        f"Input queue: 0/{hold}/{counters['input']['drops']}/0 (size/max/drops/flushes);"
        f" Total output drops: {counters['output']['drops']}"
    )
    queue = counters["queue"]
    if queue["strategy"] in ("priority", "custom"):
        yield from _list_lines(interface, counters)
        return
    # Wording of a 7200 with interface-level WRED [R].
    red = counters["random_detect"] is not None
    yield f"Queueing strategy: {'random early detection(RED)' if red else STRATEGIES[queue['strategy']]}"
    depth, limit, drops, threshold = queue["depth"], queue["limit"], queue["drops"], queue["threshold"]
    if qos.output_queue_of_fifo:
        # The queues of classes are not shown here.
        yield f"Output queue: 0/{engine_defaults.FIFO_HOLD_QUEUE} (size/max)"
        return
    if queue["strategy"] == "fifo":
        yield f"Output queue: {depth}/{limit} (size/max)"
        return
    if threshold is None:
        # Later software has no conversations on an interface.
        yield f"Output queue: {depth}/{limit}/{drops} (size/max total/drops)"
        return
    yield f"Output queue: {depth}/{limit}/{threshold}/{drops} (size/max total/threshold/drops) "
    conversations = (queue["conversations"], queue["max_active_conversations"], queue["max_conversations"])
    yield f"   Conversations  {'/'.join(str(each or 0) for each in conversations)} (active/max active/max total)"
    reserved = queue["reserved_conversations"] or {"allocated": 0, "max": 0}
    yield f"   Reserved Conversations {reserved['allocated']}/{reserved['max']} (allocated/max allocated)"
    if queue["available_bandwidth_kbps"] is not None:
        yield f"   Available Bandwidth {queue['available_bandwidth_kbps']} kilobits/sec"


def _list_lines(interface: Interface, counters: program_formats.InterfaceCounters) -> Iterator[str]:
    """Yield the lines about the queues of a priority list or a custom queue list."""
    values = [
        f"{each['depth_packets']}/{each['limit_packets']}/{each['drops']['packets']}"
        for each in counters["numbered_queues"]
    ]
    if counters["queue"]["strategy"] == "priority":
        yield f"Queueing strategy: priority-list {interface.priority_group}"
        yield "Output queue (queue priority: size/max/drops):"
        yield "   " + ", ".join(f"{name}: {value}" for name, value in zip(PRIORITIES, values, strict=False))
        return
    yield f"Queueing strategy: custom-list {interface.custom_queue_list}"
    yield "Output queues: (queue #: size/max/drops)"
    for first in range(0, len(values), 5):
        yield "   " + " ".join(f"{first + n}: {value}" for n, value in enumerate(values[first : first + 5]))


def show_queue(interface: Interface, counters: program_formats.InterfaceCounters, qos: QosGeneration) -> str:
    """Return `show queue X`: the interface's queues, and the next packet of each conversation with packets."""
    if counters["queue"]["strategy"] == "fifo":
        return FIFO_NOT_SUPPORTED + "\n"
    if counters["queue"]["strategy"] == "class_based" and counters["queue"]["threshold"] is None:
        return HQF_NOT_SUPPORTED + "\n"
    lines = [f"  {line}" for line in queue_lines(interface, counters, qos)]
    for each in counters["conversations"]:
        lines += ["", *(f"  {line}" for line in _conversation_lines(each))]
    return "".join(line + "\n" for line in lines)


def _conversation_lines(conversation: program_formats.ConversationCounters) -> Iterator[str]:
    """Yield a conversation's counters and next packet; counts of missing buffers and interleaving are always zero."""
    values = (conversation["depth_packets"], conversation["weight"], conversation["drops"], 0, 0)
    yield f"(depth/weight/total drops/no-buffer drops/interleaves) {'/'.join(map(str, values))}"
    head = conversation["head"]
    ip = head["ip"]
    # [I] Output for a packet that is not IP.
    kind = "ip" if ip is not None else "other"
    yield f"Conversation {conversation['number']}, linktype: {kind}, length: {head['bytes']}"
    if ip is None:
        return
    yield f"source: {ip['source']}, destination: {ip['destination']}, id: 0x{ip['id']:04X}, ttl: {ip['ttl']},"
    ports = ""
    if ip["source_port"] is not None and ip["destination_port"] is not None:
        ports = f", source port {ip['source_port']}, destination port {ip['destination_port']}"
    yield f"TOS: {ip['tos']} prot: {ip['protocol']}{ports}"


def show_queueing_interface(
    interface: Interface, counters: program_formats.InterfaceCounters, qos: QosGeneration
) -> str:
    """Return `show queueing interface X`."""
    red = counters["random_detect"] is not None
    strategy = "red" if red else KINDS[counters["queue"]["strategy"]]
    lines = [f"Interface {interface.name} queueing strategy: {strategy}"]
    lines += [f"  {line}" for line in queue_lines(interface, counters, qos)]
    return "".join(line + "\n" for line in lines)


def show_queueing_fair(device: Device, counters: Mapping[str, program_formats.InterfaceCounters]) -> str:
    """Return `show queueing fair`: the interfaces with fair queueing."""
    # [I] The wording of the heading is known, its columns are those of a known row.
    lines = [
        "Current fair queue configuration:",
        "",
        "  Interface           Discard    Dynamic  Reserved Link    Priority",
        "                      threshold  queues   queues   queues  queues",
    ]
    for name, each in counters.items():
        queue = each["queue"]
        if queue["threshold"] is None:
            continue
        typed = device.interfaces[name].fair_queue
        reservable = None if typed is None else typed.reserved_queues
        if reservable is None:
            reservable = RESERVABLE_QUEUES[queue["strategy"]]
        lines.append(
            f"  {name:<20}{queue['threshold']:<11}{queue['max_conversations'] or 0:<9}{reservable:<9}"
            f"{LINK_QUEUES:<8}{PRIORITY_QUEUES}"
        )
    return "".join(line + "\n" for line in lines)


def show_queueing(device: Device, counters: Mapping[str, program_formats.InterfaceCounters]) -> str:
    """Return `show queueing`: all kinds of queueing."""
    lists = show_queueing_priority(device) + show_queueing_custom(device)
    return show_queueing_fair(device, counters) + lists + show_queueing_random_detect(counters)


def show_queueing_random_detect(counters: Mapping[str, program_formats.InterfaceCounters]) -> str:
    """Return `show queueing random-detect`: early detection of interfaces, without that of policy-maps."""
    lines = ["Current random-detect configuration:"]
    for name, each in counters.items():
        if each["random_detect"] is not None:
            # [I] The layout of the lines is from memory, not from an output.
            lines += [f"  {name}", "    Queueing strategy: random early detection(RED)"]
            lines += [f"    {line}" for line in classic_random_detect_lines(each["random_detect"])]
    return "".join(line.rstrip() + "\n" for line in lines)


def show_controllers_serial(interface: Interface, counters: program_formats.InterfaceCounters, chassis: Chassis) -> str:
    """Return `show controllers serial X`: the known data of the port, with the transmit ring limit in the last line."""
    hardware = chassis.interface(interface.name)
    chip = "" if hardware is None else hardware.chip.removesuffix(" Serial")
    # [I] Wording for the clock source of a port.
    cable = f"DCE V.35, clock rate {interface.clock_rate_bps}"
    if interface.clock_rate_bps is None:
        cable = "DTE V.35 TX and RX clocks detected."
    limit = counters["tx_ring"]["limit"]
    limited = 0 if interface.tx_ring_limit is None and limit == UNLIMITED_RING else 1
    lines = [
        f"Interface {interface.name}",
        f"Hardware is {chip}",
        cable,
        f"tx_limited = {limited}({limit}), errata19 count1 - 0, count2 - 0",
    ]
    return "".join(line + "\n" for line in lines)
