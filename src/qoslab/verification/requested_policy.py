"""Comparison of the policies that a router shows with the requested ones.

The running configuration only repeats the typed lines; `show policy-map interface` shows the active policy, with the
values that the router derived. The requested policy is the configuration of the data plane
(`internals/control-protocol.md`), compiled from the same IOS text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from qoslab.ios.commands.drop import represents_drop

DIRECTIONS = ("input", "output")


def policy_differences(shown: Mapping[str, Any], config: Mapping[str, Any]) -> list[str]:
    """Return the differences, one sentence each; none if the policies agree.

    `shown` is the parsed `show policy-map interface` (empty if no interface has a policy), `config` the compiled
    configuration. Percentages, and values that the configuration leaves to the router's defaults, are not compared.
    """
    found: list[str] = []
    interfaces = dict(config["interfaces"])
    for port in config["interfaces"].values():
        interfaces |= port.get("subinterfaces", {})
    for interface in sorted({*interfaces, *shown}):
        intended = interfaces.get(interface, {})
        attached = shown.get(interface, {}).get("service_policy", {})
        for direction in DIRECTIONS:
            where = f"{interface} {direction}"
            wanted = intended.get(f"service_policy_{direction}")
            policies = attached.get(direction, {}).get("policy_name", {})
            if wanted is None:
                found += [f"{where}: found policy-map {name}, expected none" for name in policies]
            elif wanted not in policies:
                has = f"policy-map {', '.join(policies)}" if policies else "no policy-map"
                found.append(f"{where}: found {has}, expected {wanted}")
            else:
                found += _compare_policy(where, policies[wanted], wanted, config)
    return found


def ports_with_policy(config: Mapping[str, Any]) -> list[str]:
    """Return the ports with a policy in a compiled configuration, also on one of their subinterfaces."""
    keys = ("service_policy_input", "service_policy_output", "subinterfaces")
    return [name for name, port in config["interfaces"].items() if any(port.get(key) for key in keys)]


def _compare_policy(where: str, shown: Mapping[str, Any], name: str, config: Mapping[str, Any]) -> Iterator[str]:
    if config.get("switch") is not None:
        # A switch shows the classes without their actions here.
        return
    classes = shown.get("class_map", {})
    for intended in config["policy_maps"][name]["classes"]:
        place = f"{where}, {name}, class {intended['name']}"
        has = classes.get(intended["name"])
        if has is None:
            yield f"{place}: missing in the output"
            continue
        if not represents_drop(intended.get("police")):
            yield from _compare_police(place, has.get("police"), intended.get("police"))
        elif not has.get("drop"):
            yield f"{place}: found no drop, expected one"
        yield from _compare_shape(place, has, intended.get("shape"))
        yield from _compare_priority(place, has, intended.get("priority"))
        if "priority" not in has:
            yield from _compare_bandwidth(place, has, intended.get("bandwidth"))
        for unit, number in (intended.get("queue_limit") or {}).items():
            if (shown_limit := has.get(f"queue_limit_{unit}")) is not None:
                yield from _compare_value(place, "queue-limit", unit, int(shown_limit), number)
        child = intended.get("service_policy")
        if child is not None:
            shown_child = has.get("child_policy_name", {}).get(child)
            if shown_child is None:
                yield f"{place}: service-policy {child} is missing in the output"
            else:
                yield from _compare_policy(place, shown_child, child, config)


def _compare_police(place: str, shown: Mapping[str, Any] | None, intended: Mapping[str, Any] | None) -> Iterator[str]:
    if shown is None or intended is None:
        yield from _compare_presence(place, "policer", shown is not None, intended is not None)
        return
    cir = intended["cir"].get("bps")
    if cir is not None:
        yield from _compare_value(place, "police cir", "bps", shown.get("cir_bps", shown.get("rate_bps")), cir)
    burst = shown.get("cir_bc_bytes", shown.get("burst_bytes"))
    yield from _compare_burst(place, "police bc", "bytes", burst, intended.get("bc"), cir, 8)
    pir = (intended.get("pir") or {}).get("bps")
    if pir is not None:
        yield from _compare_value(place, "police pir", "bps", shown.get("pir_bps"), pir)
    excess = shown.get("pir_be_bytes", shown.get("cir_be_bytes"))
    yield from _compare_burst(
        place, "police be", "bytes", excess, intended.get("be"), pir if pir is not None else cir, 8
    )
    yield from _compare_dynamic_bucket(place, shown.get("dynamic_bucket"), intended.get("dynamic"))


def _compare_dynamic_bucket(
    place: str, shown: Mapping[str, Any] | None, intended: Mapping[str, Any] | None
) -> Iterator[str]:
    if shown is None or intended is None:
        yield from _compare_presence(place, "dynamic bucket", shown is not None, intended is not None)
        return
    for name, unit in (
        ("initial_bytes", "bytes"),
        ("minimum_bytes", "bytes"),
        ("maximum_bytes", "bytes"),
        ("monitoring_ms", "ms"),
    ):
        if (wanted := intended.get(name)) is not None:
            what = f"dynamic-bucket {name.partition('_')[0]}"
            yield from _compare_value(place, what, unit, shown.get(name), wanted)


def _compare_shape(place: str, shown: Mapping[str, Any], intended: Mapping[str, Any] | None) -> Iterator[str]:
    rate = shown.get("shape_cir_bps")
    if rate is None or intended is None:
        yield from _compare_presence(place, "shaper", rate is not None, intended is not None)
        return
    if shown.get("shape_type") not in (None, intended["mode"]):
        yield f"{place}: found shape {shown['shape_type']}, expected shape {intended['mode']}"
    wanted = intended["rate"].get("bps")
    if wanted is not None:
        yield from _compare_value(place, f"shape {intended['mode']}", "bps", rate, wanted)
    yield from _compare_burst(place, "shape bc", "bits", shown.get("shape_bc_bps"), intended.get("bc"), wanted, 1)
    yield from _compare_burst(place, "shape be", "bits", shown.get("shape_be_bps"), intended.get("be"), wanted, 1)


def _compare_bandwidth(place: str, shown: Mapping[str, Any], intended: Mapping[str, Any] | None) -> Iterator[str]:
    units = {"kbps": "kbps", "percent": "%", "remaining_percent": "% of the rest", "remaining_ratio": "parts"}
    found = [unit for unit in units if shown.get(f"bandwidth_{unit}") is not None]
    if not found or intended is None:
        yield from _compare_presence(place, "bandwidth", bool(found), intended is not None)
        return
    ((unit, number),) = intended.items()
    yield from _compare_value(place, "bandwidth", units[unit], shown.get(f"bandwidth_{unit}"), number)


def _compare_priority(place: str, has: Mapping[str, Any], intended: Mapping[str, Any] | None) -> Iterator[str]:
    shown = has.get("priority")
    if shown is None or intended is None:
        yield from _compare_presence(place, "priority", shown is not None, intended is not None)
        return
    if intended["unit"] in ("kbps", "percent"):
        unit = {"kbps": "kbps", "percent": "%"}[intended["unit"]]
        # Up to 12.4(15)T, the percentage has a separate line, like the percentage of a bandwidth.
        found = shown.get("kbps") if unit == "kbps" else shown.get("percent", has.get("bandwidth_percent"))
        yield from _compare_value(place, "priority", unit, found, intended["number"])
    if intended["burst_bytes"] is not None:
        yield from _compare_value(place, "priority burst", "bytes", shown.get("burst_bytes"), intended["burst_bytes"])


def _compare_presence(place: str, what: str, found: bool, expected: bool) -> Iterator[str]:
    if found != expected:
        yield f"{place}: found {'a' if found else 'no'} {what}, expected {'one' if expected else 'none'}"


def _compare_burst(
    place: str, what: str, unit: str, found: int | None, intended: Mapping[str, Any] | None, rate: int | None, bits: int
) -> Iterator[str]:
    """Compare a burst; `bits` is the number of bits per unit."""
    if intended is None:
        return
    if unit in intended:
        yield from _compare_value(place, what, unit, found, intended[unit])
    elif rate is not None:
        yield from _compare_value(place, what, unit, found, rate * intended["ms"] // (1000 * bits))


def _compare_value(place: str, what: str, unit: str, found: int | None, expected: int) -> Iterator[str]:
    if found != expected:
        yield f"{place}: found {what} {'none' if found is None else f'{found} {unit}'}, expected {expected} {unit}"
