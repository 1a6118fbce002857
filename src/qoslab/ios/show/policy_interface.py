"""`show policy-map interface` in the output format of both software generations.

Indentation: interface 1, policy 2, class 4, body 6, policer parameters 10, results 8, actions 10; a nested policy
adds 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from qoslab.ios.commands.class_queue_lines import has_level, hqf_priority_queue_lines
from qoslab.ios.config import load
from qoslab.ios.model.device import Interface
from qoslab.ios.model.generations import GENERATIONS
from qoslab.ios.model.printed_rates import format_policy_rate, interval_text
from qoslab.ios.registry import SHOW_INTERFACE_CLASS, InterfacePolicyClass
from qoslab.ios.show.match import policy_match
from qoslab.system import program_formats

Direction = Literal["input", "output"]


def show_policy_map_interface(
    config: program_formats.RouterConfig,
    counters: program_formats.Counters,
    *,
    interface: str | None = None,
    direction: Direction | None = None,
    circuits: Mapping[str, Interface] | None = None,
) -> str:
    """Return the output for all attached policies, or those of one interface or direction.

    `config` is the active configuration and `counters` the data plane's, both as in internals/control-protocol.md.
    Interfaces without a policy are left out, as in IOS. `circuits` are the interfaces with a circuit, by their port.
    """
    blocks: list[str] = []
    for name, interval, policies in _attached_policies(counters):
        attached = [
            (way, policy) for way, policy in policies.items() if policy is not None and direction in (None, way)
        ]
        on = (circuits or {}).get(name)
        if interface not in (None, name, on and on.name) or not attached:
            continue
        lines = [f" {name} " if on is None or on.circuit is None else f" {on.name}: VC {on.circuit.name} - ", ""]
        for way, policy in attached:
            printer = _PolicyPrinter(config, interval)
            lines += [f"  Service-policy {way}: {policy['policy']}", "", *printer.print_policy(policy, 4), ""]
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def _attached_policies(
    counters: program_formats.Counters,
) -> Iterator[tuple[str, int, dict[Direction, program_formats.PolicyCounters | None]]]:
    """Yield name, load interval in seconds and policies of each interface, with subinterfaces after their port."""
    for name, port in counters["interfaces"].items():
        interval = port["load_interval_s"]
        yield name, interval, {"input": port["policy_input"], "output": port["policy_output"]}
        for own, each in sorted(port["subinterfaces"].items(), key=lambda item: int(item[0].partition(".")[2])):
            yield own, interval, {"input": each["policy_input"], "output": each["policy_output"]}


class _PolicyPrinter:
    """Printer of the policies of one interface."""

    def __init__(self, config: program_formats.RouterConfig, load_interval_s: int) -> None:
        self.config = config
        self.qos = GENERATIONS[config["generation"]]
        self.padded = self.qos.pads_counted_classes
        self.interval = interval_text(load_interval_s)

    def print_policy(self, policy: program_formats.PolicyCounters, indent: int) -> Iterator[str]:
        configured = {entry["name"]: entry for entry in self.config["policy_maps"][policy["policy"]]["classes"]}
        named = any(has_level(entry) for entry in configured.values())
        for queue in policy["priority_queues"]:
            yield " " * indent + "queue stats for all priority classes:"
            yield from (" " * (indent + 2) + line for line in hqf_priority_queue_lines(queue, named))
            yield ""
        for position, counters in enumerate(policy["classes"]):
            if position:
                yield ""
            # class-default always exists, also if it is not configured.
            name = counters["name"]
            yield from self._print_class(configured.get(name, {"name": name}), counters, indent)

    def _print_class(
        self, config: program_formats.PolicyClass, counters: program_formats.ClassCounters, indent: int
    ) -> Iterator[str]:
        pad = " " * indent
        body = " " * (indent + 2)
        # 15.x prints two blanks behind the parenthesis, 12.4 none.
        yield f"{pad}Class-map: {counters['name']} (match-{counters['match']})" + (
            "  " if self.qos.pads_counted_classes else ""
        )
        yield f"{body}{counters['packets']} packets, {counters['bytes']} bytes"
        # On IOS-XE the drops of a child policy are not counted by the class.
        own = not self.qos.parents_without_depth or counters["child"] is None or counters["shape"] is None
        drop_rate = counters["drop_rate_bps"] if own else 0.0
        offered, dropped = (
            format_policy_rate(counters["offered_rate_bps"], self.qos),
            format_policy_rate(drop_rate, self.qos),
        )
        yield f"{body}{self.interval} offered rate {offered} bps, drop rate {dropped} bps"
        yield from (body + line for line in self._print_matches(counters))
        for part in SHOW_INTERFACE_CLASS.family_functions("router"):
            # An empty line is indented by later software only.
            yield from (
                body + line if line or self.padded else ""
                for line in part(InterfacePolicyClass(config, counters, self.qos))
            )
        if counters["child"] is not None:
            yield ""
            yield f"{body}Service-policy : {counters['child']['policy']}"
            yield ""
            yield from self.print_policy(counters["child"], indent + 4)

    def _print_matches(self, counters: program_formats.ClassCounters) -> Iterator[str]:
        if counters["name"] == "class-default":
            yield "Match: any "
            return
        for criterion, matched in zip(
            self.config["class_maps"][counters["name"]]["criteria"], counters["criteria"], strict=True
        ):
            yield f"Match: {policy_match(criterion, self._match_mode(criterion))}"
            if counters["match"] == "any" and self.qos.counts_each_match:
                yield f"  {matched['packets']} packets, {matched['bytes']} bytes"
                yield f"  {self.interval} rate {format_policy_rate(matched['rate_bps'], self.qos)} bps"

    def _match_mode(self, criterion: program_formats.Criterion) -> program_formats.MatchMode:
        """Return the match mode of a nested class-map for the output."""
        if criterion["type"] != "class_map":
            return "all"
        return self.config["class_maps"][criterion["name"]]["match"]


load()
