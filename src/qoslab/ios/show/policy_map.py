"""`show policy-map [P]` and `show class-map [C]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from qoslab.ios.model.names import dscp_text
from qoslab.ios.running_config import DYNAMIC_BUCKET, DYNAMIC_BUCKET_WORDS
from qoslab.ios.show.match import class_map_match, percent_text, police_action, police_actions, set_text

Config = Mapping[str, Any]

DEFAULT_QUEUE_LIMIT = 64
DEFAULT_WEIGHT = 9
"""The exponential weighting constant of early detection."""
DEFAULT_DENOMINATOR = 10
"""Just below the maximum threshold one packet in this many is dropped."""


def show_policy_map(config: Config, resolved: Config, *, name: str | None = None) -> str:
    """Every policy-map, or one.

    `config` is the configuration in force; `resolved` its policy-maps with every default filled in (the control
    protocol's `resolve`), since IOS prints the burst that it chose.
    """
    lines: list[str] = []
    for policy_name, policy in resolved.items():
        if name not in (None, policy_name):
            continue
        if lines:
            lines.append("")
        lines.append(f"  Policy Map {policy_name}")
        typed = {entry["name"]: entry for entry in config["policy_maps"][policy_name]["classes"]}
        for entry in policy["classes"]:
            lines.append(f"    Class {entry['name']}")
            lines += _class(config, typed.get(entry["name"], {}), entry)
    return "".join(line + "\n" for line in lines)


def _class(config: Config, typed: Config, entry: Config) -> Iterator[str]:
    if typed.get("priority") is not None:
        yield from _priority(config, typed["priority"], entry)
    if typed.get("bandwidth") is not None:
        yield from _bandwidth(config, typed)
    if typed.get("shape") is not None:
        yield from _shape(typed["shape"])
    if typed.get("queue_limit") is not None and (config["generation"] == "hqf" or typed.get("bandwidth") is None):
        yield f"      queue-limit {typed['queue_limit']['packets']} packets"
    if typed.get("fair_queue") is not None:
        queues = typed["fair_queue"].get("queues")
        yield "      fair-queue " if queues is None else f"      fair-queue {queues}"
    if typed.get("random_detect") is not None:
        yield from _random_detect(config, typed["random_detect"])
    for action in typed.get("set") or []:
        yield f"      set {set_text(action['field'], action['value'])}"
    if typed.get("police") is not None:
        yield from _police(typed["police"], entry["police"])
    if typed.get("service_policy") is not None:
        yield f"      service-policy {typed['service_policy']}"


def _priority(config: Config, priority: Config, entry: Config) -> Iterator[str]:
    unit, number = priority["unit"], priority["number"]
    if config["generation"] == "classic":
        yield "      Strict Priority"
        if unit != "strict":
            # A percentage has no burst before it is attached.
            burst = (entry.get("priority") or {}).get("burst_bytes")
            text = f"Bandwidth {number} ({'kbps' if unit == 'kbps' else '%'})"
            yield f"      {text}" + (f" Burst {burst} (Bytes)" if burst is not None else "")
        return
    words = ["priority"]
    if priority["level"] is not None:
        words.append(f"level {priority['level']}")
    if unit != "strict":
        words.append(f"{number} ({'kbps' if unit == 'kbps' else '%'})")
    if priority["burst_bytes"] is not None:
        # [I] How a configured burst is printed.
        words.append(f"burst {priority['burst_bytes']} (Bytes)")
    yield "      " + " ".join(words)


def _bandwidth(config: Config, typed: Config) -> Iterator[str]:
    ((unit, number),) = typed["bandwidth"].items()
    classic = config["generation"] == "classic"
    text = {
        "kbps": f"{number} (kbps)",
        "percent": f"{number} (%)",
        "remaining_percent": f"remaining {number} (%)",
        "remaining_ratio": f"remaining ratio {number}",
    }[unit]
    if not classic:
        yield f"      bandwidth {text}"
        return
    limit = (typed.get("queue_limit") or {"packets": DEFAULT_QUEUE_LIMIT})["packets"]
    threshold = "" if typed.get("random_detect") is not None else f" Max Threshold {limit} (packets)"
    yield f"      Bandwidth {text}{threshold}"


def _random_detect(config: Config, red: Config) -> Iterator[str]:
    # [I] The table is remembered, not read. What is left to the defaults is a dash.
    weight = DEFAULT_WEIGHT if red["exponential_weight"] is None else red["exponential_weight"]
    classic = config["generation"] == "classic"
    yield (
        f"           exponential weight {weight}"
        if classic
        else f"      packet-based wred, exponential weight {weight}"
    )
    yield ""
    by_code = red["basis"] == "dscp"
    yield f"      {'dscp ' if by_code else 'class'}    min-threshold    max-threshold    mark-probability"
    yield "      ----------------------------------------------------------"
    typed = {each["value"]: each for each in red["thresholds"]}
    for value in sorted(typed) if by_code else range(8):
        each = typed.get(value, {"min": "-", "max": "-", "denominator": None})
        denominator = DEFAULT_DENOMINATOR if each["denominator"] is None else each["denominator"]
        name = dscp_text(value) if by_code else str(value)
        yield f"      {name:<8}{each['min']:<17}{each['max']:<17}1/{denominator}"
    yield ""


def _shape(shape: Config) -> Iterator[str]:
    yield f"      {shape['mode'].capitalize()} Rate Traffic Shaping"
    rate, bc, be = shape["rate"], shape.get("bc"), shape.get("be")
    text = f"cir {percent_text(rate['percent'])}%" if "percent" in rate else f"cir {rate['bps']} (bps)"
    for word, burst in (("bc", bc), ("be", be)):
        if burst is not None:
            text += f" {word} {burst['bits']} (bits)" if "bits" in burst else f" {word} {burst['ms']} (msec)"
    yield f"      {text}"


def _police(typed: Config, resolved: Config) -> Iterator[str]:
    rate_form = typed.get("form") == "rate"
    cir, bc, pir, be = ("rate", "burst", "peak-rate", "peak-burst") if rate_form else ("cir", "bc", "pir", "be")
    words = ["police"]
    for rate_word, rate, burst_word, burst, burst_bytes in (
        (cir, typed["cir"], bc, typed.get("bc"), resolved["bc_bytes"]),
        (pir, typed.get("pir"), be, typed.get("be"), resolved["be_bytes"]),
    ):
        if rate is not None and "percent" in rate:
            words.append(f"{rate_word} percent {percent_text(rate['percent'])}")
        elif rate is not None:
            words.append(f"{rate_word} {rate['bps']}" + (" bps" if rate_form else ""))
        if burst is not None and "ms" in burst:
            words.append(f"{burst_word} {burst['ms']} ms")
        elif burst_bytes is not None:
            words.append(f"{burst_word} {burst_bytes}" + (" bytes" if rate_form else ""))
    yield "     " + " ".join(words)
    actions = police_actions(typed)
    for colour, of_colour in actions.items():
        if colour == "violate" and typed.get("violate") is None:
            continue
        yield from (f"       {colour}-action {police_action(action)} " for action in of_colour)
    if resolved.get("dynamic") is not None:
        values = (f" {word} {resolved['dynamic'][name]}" for name, word in DYNAMIC_BUCKET_WORDS.items())
        yield f"     {DYNAMIC_BUCKET}{''.join(values)}"


def show_class_map(config: Config, *, name: str | None = None) -> str:
    """Every class-map, or one; the id counts in order of definition, with class-default as 0."""
    class_default: Config = {"match": "any", "criteria": [{"type": "any"}]}
    lines: list[str] = []
    for number, (class_name, class_map) in enumerate({"class-default": class_default, **config["class_maps"]}.items()):
        if name not in (None, class_name):
            continue
        lines.append(f" Class Map match-{class_map['match']} {class_name} (id {number})")
        # IOS prints `none` for a class-map without criteria; it matches nothing.
        lines += [f"   Match {class_map_match(criterion)}" for criterion in class_map["criteria"]] or ["   Match none"]
        lines.append("")
    return "".join(line + "\n" for line in lines)
