"""Texts of the files of an imported router configuration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from qoslab.exchange.routers.import_result import ImportResult
from qoslab.exchange.routers.load import ClassLoad
from qoslab.exchange.routers.policy_template import PolicyTemplate
from qoslab.model.experiment import Topology
from qoslab.model.units import Rate
from qoslab.schema.templates import TEMPLATE_LIMIT

LONGEST_S = 10
MAX_PACKETS = 2_000_000
"""Maximum packets of the load; the traffic is shortened above it."""
PART_BYTES = TEMPLATE_LIMIT - 1024
_BRACES = re.compile(r"\{[{%#]")
"""Characters with a special meaning in templates."""


def template_files(name: str, text: str) -> dict[str, str]:
    """Return the files of a template by name; a long template includes its parts."""
    lines = [_BRACES.sub(r"{{ '\g<0>' }}", line) for line in text.splitlines(keepends=True)]
    parts = [""]
    for line in lines:
        if len((parts[-1] + line).encode()) > PART_BYTES:
            parts.append("")
        parts[-1] += line
    main = f"{name}.ios.j2"
    if len(parts) == 1:
        return {main: parts[0]}
    named = {f"{name}.part{number}.ios.j2": part for number, part in enumerate(parts, 1)}
    return {main: "".join(f'{{% include "{each}" %}}\n' for each in named), **named}


def topology_text(topology: Topology) -> str:
    """Return the text of a topology file."""
    return "\n".join(["# Made by qoslab import.", *_topology_lines(topology)]) + "\n"


def _topology_lines(topology: Topology) -> Iterator[str]:
    yield "nodes:"
    for name, node in topology.nodes.items():
        parts = [f"platform: {node.platform}"]
        parts += [f"model: {_quote_text(node.model)}"] if node.model else []
        parts += [f"generation: {node.generation}"] if node.generation else []
        if not node.routes:
            yield f"  {_quote_text(name)}: {{{', '.join(parts)}}}"
            continue
        yield f"  {_quote_text(name)}:"
        yield from (f"    {part}" for part in parts)
        yield "    routes:"
        yield from (
            f"      - {{prefix: {_yaml_address(each.prefix)}, via: {_yaml_address(each.via)}}}" for each in node.routes
        )
    yield "links:"
    for link in topology.links:
        yield f"  - name: {link.name}"
        yield f"    rate: {link.rate}"
        if link.framing != "ethernet":
            yield f"    framing: {link.framing}"
        yield "    ends:"
        for end in link.ends:
            own = f"address: {end.address}"
            if end.ipv6_address is not None:
                own += f', ipv6_address: "{end.ipv6_address}"'
            yield f"      - {{node: {_quote_text(end.node)}, interface: {end.interface}, {own}}}"


def _yaml_address(address: object) -> str:
    """Return an address for YAML: an IPv6 address in quotation marks."""
    return f'"{address}"' if ":" in str(address) else str(address)


def experiment_text(
    made: ImportResult, topology: Topology, templates: dict[str, PolicyTemplate], idle: Sequence[str]
) -> str:
    """Return the text of the experiment file."""
    names = ", ".join(made.network.routers)
    seconds = _traffic_seconds(made.offered.flows)
    lines = [
        "# Made by qoslab import: edit it, add arms, change templates.",
        f"name: {made.experiment.stem}",
        f"title: {_quote_text(f'{names} as configured')}",
        "description: >",
        "  The policies of the routers with the load that they counted. The flow call is the measured one: 50 packets",
        "  of 200 bytes a second, as a call with G.711. Lines that are left out are in ignored.txt.",
        "",
        "topology:",
        *(f"  {line}" for line in _topology_lines(topology)),
        "",
        f"duration: {seconds} s",
    ]
    configured = [name for name, template in templates.items() if template.text]
    if configured:
        lines += [
            "configure:",
            *(f"  {_quote_text(name)}: {{template: {_quote_text(f'templates/{name}.ios.j2')}}}" for name in configured),
        ]
    lines += [
        "traffic:",
        *_flow_lines(made.offered.flows),
        "",
        "arms:",
        "  - {name: as-configured, title: As configured}",
    ]
    observed = [
        f"  - {{node: {_quote_text(name)}, command: show policy-map interface, when: [during, after]}}"
        for name in configured
        if templates[name].policies
    ]
    lines += ["", "observe:", *observed] if observed else []
    if idle:
        lines += ["", "# Without packets of the load:", f"allow_idle: [{', '.join(map(_quote_text, idle))}]"]
    return "\n".join(lines) + "\n"


def _traffic_seconds(flows: Sequence[ClassLoad]) -> int:
    packets = sum(each.bps / 8 / each.size for each in flows)
    return max(1, min(LONGEST_S, int(MAX_PACKETS / packets))) if packets else LONGEST_S


def _flow_lines(flows: Sequence[ClassLoad]) -> Iterator[str]:
    if flows:
        # On the path of the first flow, which passes a policy.
        ends = f"from: {_quote_text(flows[0].source.name)}, to: {_quote_text(flows[0].destination.name)}"
        yield f"  - {{name: call, tool: flood, {ends}, protocol: udp, rate: 80 kb/s, size: 200 B, dscp: ef}}"
    for each in flows:
        parts = [f"name: {_quote_text(each.name)}", f"tool: {'flood' if each.protocol == 'udp' else 'iperf3'}"]
        parts += [
            f"from: {_quote_text(each.source.name)}",
            f"to: {_quote_text(each.destination.name)}",
            f"protocol: {each.protocol}",
        ]
        parts += [f"rate: {Rate(each.bps)}"]
        # iperf3 sends in pieces of this size: large ones would be bursts.
        parts += [f"size: {each.size} B"]
        parts += [f"dscp: {each.dscp}"] if each.dscp else []
        parts += [f"port: {each.port}"] if each.port else []
        yield f"  # {each.reason}"
        yield f"  - {{{', '.join([*parts, 'background: true'])}}}"


def ignored_text(made: ImportResult) -> str:
    """Return the list of omitted lines as text."""
    changing = [each for each in made.left if each.matters]
    others = [each for each in made.left if not each.matters]
    lines = [f"Lines that could change a result: {sum(each.last - each.first + 1 for each in changing)}", ""]
    for part in (changing, others):
        for each in part:
            span = f"{each.first}" if each.first == each.last else f"{each.first}-{each.last}"
            below = f" (below {each.place})" if each.place and each.place != each.text else ""
            lines.append(f"{each.file}:{span}: {each.text}{below}")
            lines.append(
                f"    could change: {each.could_change}; {each.reason}" if each.matters else f"    {each.could_change}"
            )
        if part is changing:
            lines += ["", f"Lines without effect on a result: {sum(each.last - each.first + 1 for each in others)}", ""]
    return "\n".join(lines) + "\n"


def _quote_text(text: str | None) -> str:
    return json.dumps(text, ensure_ascii=False)
