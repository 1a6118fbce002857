"""Conversion of router output to a folder with a topology, templates and an experiment.

FOLDER/
  NAME.yml               the experiment: topology, policies, background load
  topology.yml           only the topology, for `qoslab lab up`
  templates/ROUTER.ios.j2  the policies of each router
  ignored.txt            the omitted lines, with the results that they could change
  import.json            the same information for programs
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from qoslab import __version__
from qoslab.errors import ExperimentError, UserError
from qoslab.exchange.base import write_atomically
from qoslab.exchange.readers.base import read_text
from qoslab.exchange.routers.chassis import select_chassis
from qoslab.exchange.routers.configured_interfaces import LINES, read_layout
from qoslab.exchange.routers.file_texts import experiment_text, ignored_text, template_files, topology_text
from qoslab.exchange.routers.ignored import OmittedLines, omitted_lines
from qoslab.exchange.routers.import_result import ImportResult
from qoslab.exchange.routers.input_router import InputRouter
from qoslab.exchange.routers.load import offered_load
from qoslab.exchange.routers.network import ImportedNetwork, join_routers
from qoslab.exchange.routers.policy_template import PolicyTemplate, build_template
from qoslab.exchange.routers.show_values import read_interfaces, read_policies, read_routes, read_version
from qoslab.exchange.routers.terminal_text import RouterOutput, split_outputs
from qoslab.ios.device_config.secret_lines import remove_secrets
from qoslab.model.experiment import Link, LinkEnd, Node, Route, Topology
from qoslab.model.units import Rate
from qoslab.policy.other_systems import refuse_other_systems, refuse_switch, refuse_unmodelled_switch
from qoslab.policy.pasted_configuration import read_configuration
from qoslab.policy.pasted_text import blank_banners, configuration_text
from qoslab.results.sealed_files import compute_seal

MAX_FILE_BYTES = 64_000_000
"""Maximum characters of all files together."""
HOST_LINK_BPS = 1_000_000_000
"""Rate of the link between a host and the router at the far end of a serial, ATM or PPPoE line."""
_SWITCH_MODULE = re.compile(r"(?m)^ *(?:mls qos|srr-queue|priority-queue out|auto qos voip).*$")
"""Lines for the switch ports of a router, which do not make it a Catalyst switch."""
_NAME = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True)
class ImportChoices:
    """Options of the import of routers."""

    model: str | None = None
    """Model of all routers; by default the nearest model for each."""
    anonymous: bool = False


def import_routers(files: Sequence[Path], to: Path, choices: ImportChoices) -> ImportResult:
    """Read the output of routers and write the folder `to`. Afterwards it is complete, or unchanged on failure.

    Raise UserError if a file has no configuration or counters of a router with IOS or IOS-XE.
    """
    texts = {str(file): read_text(file) for file in files}
    if sum(map(len, texts.values())) > MAX_FILE_BYTES:
        raise UserError(f"found more than {MAX_FILE_BYTES} characters, expected the output of a few routers")
    outputs = _join_configurations([each for file, text in texts.items() for each in _read_outputs(file, text)])
    _assign_routers(outputs)
    labels = {file: file for file in texts}
    if choices.anonymous:
        labels = {file: f"file{number}" for number, file in enumerate(texts, 1)}
        _replace_names(outputs, labels)
    routers, notes, others = _build_routers(outputs, choices)
    network = join_routers(routers)
    for router in routers:
        if not router.is_model:
            router.notes.append(router.missing_model_reason)
    topology = topology_model(network)
    templates = {each.name: build_template(each, topology) for each in routers}
    offered = offered_load(network, templates)
    left = [each for router in routers for each in omitted_lines(router, templates[router.name])]
    made = ImportResult(to, to / f"{_experiment_name(to)}.yml", network, offered, [*left, *others], notes)
    with write_atomically(to) as draft:
        draft.mkdir()
        _write(draft, made, topology, templates, {labels[str(file)]: file for file in files})
    return made


def _join_configurations(outputs: Sequence[RouterOutput]) -> list[RouterOutput]:
    """Join parts of a configuration in one file, such as from `show running-config | section` and `interface`."""
    made: list[RouterOutput] = []
    for each in outputs:
        whole_one = any(line.startswith(("hostname ", "version ")) for _, line in each.lines)
        first = next(
            (one for one in made if (one.file, one.kind, one.host) == (each.file, "configuration", each.host)), None
        )
        if each.kind == "configuration" and each.host and not whole_one and first is not None:
            first.lines = [*first.lines, *((number, line) for number, line in each.lines if line.strip() != "end")]
        else:
            made.append(each)
    return made


def _assign_routers(outputs: Sequence[RouterOutput]) -> None:
    """Assign routers to outputs without a prompt: by the only configuration, by the file, or by the file's name."""
    owners = [each for each in outputs if each.kind == "configuration"]
    for each in outputs:
        if each.host or each.kind == "configuration":
            continue
        same = [owner for owner in owners if owner.file == each.file]
        stem = Path(each.file).name.lower()
        named = [owner for owner in owners if owner.host and stem.startswith(owner.host.lower())]
        if len(owners) == 1 or len(same) == 1:
            each.host = (owners if len(owners) == 1 else same)[0].host
        elif named:
            each.host = max(named, key=lambda owner: len(owner.host)).host


def _replace_names(outputs: Sequence[RouterOutput], labels: Mapping[str, str]) -> None:
    from qoslab.exchange.routers.anonymous import Anonymiser

    Anonymiser().replace(list(outputs))
    for each in outputs:
        each.file = labels[each.file]


def _build_routers(
    outputs: Sequence[RouterOutput], choices: ImportChoices
) -> tuple[list[InputRouter], list[str], list[OmittedLines]]:
    """Return the routers of the outputs, remarks, and outputs without a router."""
    configurations = [each for each in outputs if each.kind == "configuration"]
    if not configurations:
        name = outputs[0].file
        raise UserError(
            f"{name}: found no router configuration, expected the output of `show running-config`",
            hint="add it to the file, or give it as another file",
        )
    routers: list[InputRouter] = []
    notes: list[str] = []
    for each in configurations:
        router = _build_router(each, {other.name for other in routers}, choices)
        same = next((other for other in routers if other.layout.hostname == router.layout.hostname), None)
        if same is not None and same.layout.hostname:
            notes.append(f"{each.file}: a second configuration of {same.layout.hostname} is left out")
            continue
        routers.append(router)
    others: list[OmittedLines] = []
    for each in outputs:
        if each.kind != "configuration":
            _add_output(each, routers, notes, others)
    for router in routers:
        own = (each for each in outputs if each.kind == "version" and _owning_router(each, routers) is router)
        version = read_version(line for each in own for _, line in each.lines)
        generation = router.configuration.device.generation
        ports = [each.name for each in router.layout.ports.values() if each.kind in LINES and each.parent is None]
        router.chassis = select_chassis(router.text, version, generation, choices.model, ports)
    return routers, notes, others


def _read_outputs(file: str, text: str) -> list[RouterOutput]:
    if not text.strip():
        raise UserError(f"{file}: found an empty file, expected the output of `show running-config`")
    found = split_outputs(file, text)
    if not any(each.kind != "other" for each in found):
        refuse_other_systems(text, file)
        raise UserError(
            f"{file}: found no router output, expected `show running-config` of Cisco IOS",
            hint="paste it with or without prompts",
        )
    own = [each.text for each in found if each.kind == "configuration" or (each.kind == "other" and not each.host)]
    refuse_other_systems("\n".join(blank_banners("".join(own).splitlines())), file)
    refuse_unmodelled_switch("".join(own), file)
    return found


def _build_router(output: RouterOutput, taken: set[str], choices: ImportChoices) -> InputRouter:
    text = configuration_text(output.text)
    refuse_switch(text, output.file)
    layout = read_layout(text)
    layout.hostname = layout.hostname or output.host
    if not layout.ports:
        raise UserError(
            f"{output.file}: found a configuration without an interface, expected a complete one",
            hint="is it incomplete? Paste the complete output of `show running-config`",
        )
    own = _SWITCH_MODULE.sub("", output.text)
    configuration = read_configuration(own, family="router", source=output.file, policy_needed=False)
    plain = _NAME.sub("-", layout.hostname).strip("-.")[:30]
    name = plain if plain[:1].isalpha() else f"R{len(taken) + 1}"
    name = next(each for each in (name, *(f"{name}-{number}" for number in range(2, 999))) if each not in taken)
    chassis = select_chassis(text, read_version(()), configuration.device.generation, choices.model)
    return InputRouter(name, output.file, text, layout, configuration, chassis)


def _owning_router(output: RouterOutput, routers: Sequence[InputRouter]) -> InputRouter | None:
    """Return the router of an output by its name; without a name, the only router."""
    if not output.host and len(routers) == 1:
        return routers[0]
    host = output.host.lower()
    # A prompt has the first characters of a long name.
    named = [each for each in routers if host and each.layout.hostname.lower().startswith(host)]
    return min(named, key=lambda each: len(each.layout.hostname), default=None)


def _add_output(
    output: RouterOutput, routers: Sequence[InputRouter], notes: list[str], others: list[OmittedLines]
) -> None:
    owner = _owning_router(output, routers)
    lines = [line for _, line in output.lines]
    first, last = output.lines[0][0], output.lines[-1][0]
    if owner is None and output.kind != "other":
        notes.append(
            f"{output.file}:{first}: output of {output.host or 'an unknown router'} is left out: "
            "found no configuration for it"
        )
    elif owner is not None and output.kind == "interfaces":
        owner.interfaces.update({each.name: each for each in read_interfaces(lines)})
    elif owner is not None and output.kind == "policies":
        owner.classes += read_policies(lines)
    elif owner is not None and output.kind == "routes":
        owner.table.update(read_routes(lines))
    elif output.kind == "other":
        text = remove_secrets(lines[0].strip())
        others.append(
            OmittedLines(
                output.file, first, last, text, "", "not an accepted output", "nothing: it is not a configuration"
            )
        )


def topology_model(network: ImportedNetwork) -> Topology:
    """Return the topology as a model."""
    nodes: dict[str, Node] = {}
    for name, router in network.routers.items():
        routes = (
            *(Route(prefix=prefix, via=via) for prefix, via in network.routes[name].items()),
            *(Route(prefix=prefix, via=via) for prefix, via in network.ipv6_routes[name].items()),
        )
        if router.is_model:
            own = router.chassis.generation
            nodes[name] = Node(platform="ios", model=router.chassis.model, generation=own, routes=routes)
        else:
            nodes[name] = Node(platform="engine", generation=router.chassis.generation, routes=routes)
    for host in network.hosts:
        if host.far is not None:
            back = Route(prefix=IPv4Network("0.0.0.0/0"), via=host.at.address.ip)
            generation = network.routers[host.at.router].chassis.generation
            nodes[host.far.name] = Node(platform="engine", generation=generation, routes=(back,))
        nodes[host.name] = Node(platform="host")
    links = [
        Link(
            name=f"link{number}",
            rate=one.rate,
            framing=one.framing,
            ends=tuple(  # type: ignore[arg-type]
                LinkEnd(node=end.router, interface=end.carrier, address=end.address, ipv6_address=end.ipv6)
                for end in (one, other)
            ),
        )
        for number, (one, other) in enumerate((each.ends for each in network.joined), 1)
    ]
    for host in network.hosts:
        ipv6 = None if host.ipv6 is None else host.at.ipv6
        near = LinkEnd(node=host.at.router, interface=host.at.carrier, address=host.at.address, ipv6_address=ipv6)
        end = LinkEnd(node=host.name, interface="eth0", address=host.address, ipv6_address=host.ipv6)
        framing, rate, number = host.at.framing, host.at.rate, len(links) + 1
        if host.far is not None:
            line = LinkEnd(node=host.far.name, interface=host.at.carrier, address=host.far.address)
            links.append(Link(name=f"link{number}", rate=rate, framing=framing, ends=(near, line)))
            near = LinkEnd(node=host.far.name, interface=host.far.port, address=host.far.gateway)
            framing, rate, number = "ethernet", Rate(HOST_LINK_BPS), number + 1
        links.append(Link(name=f"link{number}", rate=rate, framing=framing, ends=(near, end)))
    return Topology(nodes=nodes, links=tuple(links))


def _experiment_name(to: Path) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", to.name.lower()).strip("-")[:40] or "imported"
    return name if name[0].isalpha() else f"import-{name}"[:40]


def _write(
    draft: Path, made: ImportResult, topology: Topology, templates: dict[str, PolicyTemplate], files: Mapping[str, Path]
) -> None:
    from qoslab.schema import load_sweep
    from qoslab.schema.idle import idle_warnings

    (draft / "templates").mkdir()
    for name, template in templates.items():
        if template.text:
            for part, text in template_files(name, template.text).items():
                (draft / "templates" / part).write_text(text, encoding="utf-8")
    target = draft / made.experiment.name
    text = "".join(each.text for each in templates.values())
    idle = sorted(set(re.findall(r"(?m)^class-map \S+ (\S+)$", text)) - made.offered.loaded)
    for _ in range(3):
        target.write_text(experiment_text(made, topology, templates, idle), encoding="utf-8")
        try:
            sweep = load_sweep(target, {})
        except ExperimentError as error:
            description = "; ".join(f"{each.path}: {each.message}" for each in error.findings)
            if not any(each.text for each in templates.values()):
                raise UserError(f"the imported experiment is not valid: {description}") from error
            # The topology and the load are useful without them.
            made.notes.append(f"all policies are left out, because a check of the experiment failed: {description}")
            for each in templates.values():
                each.text, each.policies = "", []
            idle = []
            continue
        warned = {each.hint.rpartition("[")[2].rstrip("]") for each in idle_warnings(sweep) if "[" in each.hint}
        if warned <= set(idle):
            break
        idle = sorted({*idle, *warned})
    (draft / "topology.yml").write_text(topology_text(topology), encoding="utf-8")
    (draft / "ignored.txt").write_text(ignored_text(made), encoding="utf-8")
    (draft / "import.json").write_text(
        json.dumps(_import_record(made, templates, files), indent=2) + "\n", encoding="utf-8"
    )


def _file_record(name: str, file: Path) -> dict[str, Any]:
    """Return the record of an input file; without its checksum if the file was renamed, as the checksum would identify
    it.
    """
    return {"file": name, **(compute_seal(file).model_dump(exclude={"lines"}) if name == str(file) else {})}


def _import_record(
    made: ImportResult, templates: dict[str, PolicyTemplate], files: Mapping[str, Path]
) -> dict[str, Any]:
    return {
        "qoslab": __version__,
        "files": [_file_record(name, file) for name, file in files.items()],
        "routers": [
            {
                "name": name,
                "file": router.file,
                "model": router.chassis.description,
                "policies": [
                    {"interface": at.port, "carried_by": at.carrier, "direction": direction, "policy": policy}
                    for at, direction, policy in templates[name].policies
                ],
                "left_out": router.left_out,
                "notes": [*router.notes, *templates[name].notes],
            }
            for name, router in made.network.routers.items()
        ],
        "load": [
            {
                "flow": each.name,
                "from": each.source.name,
                "to": each.destination.name,
                "bps": each.bps,
                "source": each.reason,
            }
            for each in made.offered.flows
        ],
        "notes": [*made.notes, *made.offered.notes],
        "ignored": [asdict(each) for each in made.left],
    }
