"""`show policy-map interface`, in the print of both software generations.

Indentation: interface 1, policy 2, class 4, body 6, policer parameters 10, results 8, actions 10; a nested policy
adds 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from qoslab.ios.counters import ClassCounters, Counters, DynamicBucketCounters, Police, PolicyCounters
from qoslab.ios.show.class_queue import classic_queueing, hqf_priority_queue, hqf_queueing
from qoslab.ios.show.match import percent_text, police_action, police_actions, policy_match, set_text

Direction = Literal["input", "output"]
Config = Mapping[str, Any]

RATE_UNIT = 1000
"""Printed rates are multiples of this many bits per second."""


def show_policy_map_interface(
    config: Config,
    counters: Counters,
    *,
    interface: str | None = None,
    direction: Direction | None = None,
) -> str:
    """All attached policies, or those of one interface or direction.

    `config` is the configuration in force and `counters` the data plane's, both as in docs/control-protocol.md.
    Interfaces without a policy are left out, as IOS does.
    """
    blocks: list[str] = []
    for name, interface_counters in counters["interfaces"].items():
        if interface not in (None, name):
            continue
        policies: list[tuple[Direction, PolicyCounters | None]] = [
            ("input", interface_counters["policy_input"]),
            ("output", interface_counters["policy_output"]),
        ]
        attached = [(way, policy) for way, policy in policies if policy is not None and direction in (None, way)]
        if not attached:
            continue
        lines = [f" {name} ", ""]
        for way, policy in attached:
            printer = _Printer(config, interface_counters["load_interval_s"])
            lines += [f"  Service-policy {way}: {policy['policy']}", "", *printer.policy(policy, 4), ""]
        blocks.append("\n".join(lines))
    return "\n".join(blocks)


def interval_text(seconds: int) -> str:
    """The load interval: `5 minute`, `30 second`."""
    return f"{seconds // 60} minute" if seconds % 60 == 0 else f"{seconds} second"


def rate_text(bits_per_second: float) -> int:
    """A rate as printed, rounded to whole kilobits."""
    return int(bits_per_second / RATE_UNIT + 0.5) * RATE_UNIT


class _Printer:
    """Prints the policies of one interface."""

    def __init__(self, config: Config, load_interval_s: int) -> None:
        self.config = config
        self.hqf = config["generation"] == "hqf"
        self.interval = interval_text(load_interval_s)

    def policy(self, policy: PolicyCounters, indent: int) -> Iterator[str]:
        configured = {entry["name"]: entry for entry in self.config["policy_maps"][policy["policy"]]["classes"]}
        named = any((entry.get("priority") or {}).get("level") is not None for entry in configured.values())
        for queue in policy["priority_queues"]:
            yield " " * indent + "queue stats for all priority classes:"
            yield from (" " * (indent + 2) + line for line in hqf_priority_queue(queue, named))
            yield ""
        for position, counters in enumerate(policy["classes"]):
            if position:
                yield ""
            # class-default is always there, also where nobody configured it.
            yield from self._class(configured.get(counters["name"], {}), counters, indent)

    def _class(self, config: Config, counters: ClassCounters, indent: int) -> Iterator[str]:
        pad = " " * indent
        body = " " * (indent + 2)
        # 15.x prints two blanks behind the parenthesis, 12.4 none.
        yield f"{pad}Class-map: {counters['name']} (match-{counters['match']})" + ("  " if self.hqf else "")
        yield f"{body}{counters['packets']} packets, {counters['bytes']} bytes"
        offered, dropped = rate_text(counters["offered_rate_bps"]), rate_text(counters["drop_rate_bps"])
        yield f"{body}{self.interval} offered rate {offered} bps, drop rate {dropped} bps"
        yield from (body + line for line in self._matches(counters))
        if self.hqf:
            yield from (body + line for line in hqf_queueing(config, counters))
        else:
            yield from (body + line if line else "" for line in classic_queueing(counters))
        if counters["set"]:
            yield f"{body}QoS Set"
            for marked in counters["set"]:
                yield f"{body}  {set_text(marked['field'], marked['value'])}"
                yield f"{body}    Packets marked {marked['packets']}"
        if counters["police"] is not None:
            yield from (body + line for line in _police(config["police"], counters["police"]))
        if counters["child"] is not None:
            yield ""
            yield f"{body}Service-policy : {counters['child']['policy']}"
            yield ""
            yield from self.policy(counters["child"], indent + 4)

    def _matches(self, counters: ClassCounters) -> Iterator[str]:
        if counters["name"] == "class-default":
            yield "Match: any "
            return
        for criterion, matched in zip(
            self.config["class_maps"][counters["name"]]["criteria"], counters["criteria"], strict=True
        ):
            yield f"Match: {policy_match(self._with_kind(criterion))}"
            if counters["match"] == "any":
                yield f"  {matched['packets']} packets, {matched['bytes']} bytes"
                yield f"  {self.interval} rate {rate_text(matched['rate_bps'])} bps"

    def _with_kind(self, criterion: Config) -> Config:
        """A nested class-map is printed with its kind, match-all or match-any."""
        if criterion["type"] != "class_map":
            return criterion
        return {**criterion, "match": self.config["class_maps"][criterion["name"]]["match"]}


def _police(config: Config, police: Police) -> Iterator[str]:
    yield "police:"
    yield from ("    " + line for line in _police_parameters(config, police))
    actions = police_actions(config)
    rates = [f"conformed {rate_text(police['conformed']['rate_bps'])} bps"]
    yield from _coloured("conformed", police["conformed"]["packets"], police["conformed"]["bytes"], actions["conform"])
    yield from _coloured("exceeded", police["exceeded"]["packets"], police["exceeded"]["bytes"], actions["exceed"])
    rates.append(f"exceed {rate_text(police['exceeded']['rate_bps'])} bps")
    violated = police["violated"]
    if violated is not None:
        yield from _coloured("violated", violated["packets"], violated["bytes"], actions["violate"])
        rates.append(f"violate {rate_text(violated['rate_bps'])} bps")
    yield "  " + ", ".join(rates)
    if police["dynamic"] is not None:
        yield from _dynamic_bucket(police["dynamic"])


def _dynamic_bucket(bucket: DynamicBucketCounters) -> Iterator[str]:
    # No IOS prints this.
    yield "qoslab-extension dynamic-bucket:"
    yield f"  bucket {bucket['bucket_bytes']} bytes, level {bucket['level_bytes']}, mean {bucket['mean_bucket_bytes']}"
    yield (
        f"  initial {bucket['initial_bytes']} bytes, minimum {bucket['minimum_bytes']}, "
        f"maximum {bucket['maximum_bytes']}, monitoring {bucket['monitoring_ms']} ms"
    )
    yield (
        f"  growths {bucket['growths']}, shrinks {bucket['shrinks']}, "
        f"overflow {bucket['overflow_bytes']} bytes, most {bucket['most_overflow_bytes']}"
    )


def _police_parameters(config: Config, police: Police) -> Iterator[str]:
    # The words of the form `police rate`; the peak line of that form is [I].
    rate_form = police["form"] == "rate"
    cir, bc, pir, be = ("rate", "burst", "peak-rate", "peak-burst") if rate_form else ("cir", "bc", "pir", "be")
    if police["cir_percent"] is not None:
        yield f"{cir} {percent_text(police['cir_percent'])} %" + _milliseconds(bc, config.get("bc"))
    first = f"{cir} {police['cir_bps']} bps, {bc} {police['bc_bytes']} bytes"
    if police["pir_bps"] is None:
        yield first if police["be_bytes"] is None else f"{first}, {be} {police['be_bytes']} bytes"
        return
    yield first
    if police["pir_percent"] is not None:
        yield f"{pir} {percent_text(police['pir_percent'])} %" + _milliseconds(be, config.get("be"))
    yield f"{pir} {police['pir_bps']} bps, {be} {police['be_bytes']} bytes"


def _milliseconds(word: str, burst: Config | None) -> str:
    if burst is None or "ms" not in burst:
        return ""
    return f" {word} {burst['ms']} ms"


def _coloured(colour: str, packets: int, size: int, actions: Sequence[Config]) -> Iterator[str]:
    yield f"  {colour} {packets} packets, {size} bytes; actions:"
    yield from (f"    {police_action(action)} " for action in actions)
