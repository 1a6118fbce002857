"""Check that the parts of an experiment fit together: names, addresses, files, metrics."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, cast

from qoslab.errors import ExperimentError, Finding, did_you_mean, format_alternatives
from qoslab.model.capture_filters import filter_text_problem
from qoslab.model.comparison import Answer, Average, Comparison, MinimumParameter, NoteValue, Pair
from qoslab.model.experiment import (
    MAX_TRIGGERS,
    TCP_PROFILES,
    BurstLoss,
    Configuration,
    Experiment,
    Family,
    Flow,
    Tcp,
    Trigger,
)
from qoslab.model.expressions import Expression, ExpressionError, parse_expression, read_value
from qoslab.model.limits import quantities_above_limits
from qoslab.model.matrix import Matrix, Scalar, combinations, is_same_value
from qoslab.model.metrics import METRICS, Bound, Reference, as_float
from qoslab.model.units import Percent, QuantityError
from qoslab.platforms import host_names, is_switch, node_platform, router_names
from qoslab.schema.devices import refused_lines
from qoslab.schema.document import Document, Steps
from qoslab.schema.expectations import ExpectationChecker, parameters_of
from qoslab.schema.families import family_findings, special_address_use
from qoslab.schema.memory import MAX_BYTES, bytes_in_flight
from qoslab.schema.named_files import allowed_folders, normalise_path, path_refusal
from qoslab.schema.observations import observation_problem, trigger_problem
from qoslab.schema.probes import check_probes
from qoslab.schema.published import published_values
from qoslab.schema.selectors import Selectors, unknown_metric
from qoslab.schema.templates import render_configuration, template_variables
from qoslab.traffic import TOOLS
from qoslab.traffic.endpoints import FAMILIES, node_families, with_family

ALL = Percent.parse("100 %")


class _NamedItem(Protocol):
    @property
    def name(self) -> str: ...


def check_references(experiment: Experiment, document: Document, file: Path) -> list[Finding]:
    """Return all inconsistencies in the order of the file; those of options and other files last."""
    checker = _Checker(experiment, document, file)
    found = [
        *checker.check_bounds(),
        *checker.check_nodes(),
        *checker.check_links(),
        *checker.check_cells(),
        *checker.check_observations(),
        *checker.check_unique(("probes",), experiment.probes),
        *check_probes(experiment, document),
        *checker.check_comparison(),
        *checker.check_stopping_rule(),
        *checker.check_graphs(),
        *checker.check_traces(),
        *checker.check_answer(),
        *checker.check_notes(),
    ]
    if not found:
        found += refused_lines(experiment, document, file)
    order = {document.file: 0}
    return sorted(dict.fromkeys(found), key=lambda each: (order.get(each.file, 1), each.file, each.line, each.column))


class _Checker:
    def __init__(self, experiment: Experiment, document: Document, file: Path) -> None:
        self.experiment = experiment
        self.document = document
        self.folder = file.parent
        self.file = file
        self.roots = allowed_folders(file)
        self.selectors = Selectors(experiment, lambda configuration: render_configuration(file, configuration))

    def unknown_name(self, steps: Steps, word: str, known: Collection[str], what: str = "") -> Finding:
        message = f'found "{word}", expected {what}{format_alternatives(known)}'
        return self.document.finding(steps, message, did_you_mean(word, known))

    def check_unique(self, steps: Steps, items: Sequence[_NamedItem]) -> Iterator[Finding]:
        """Check that the names of a list's items differ."""
        first: dict[str, int] = {}
        for index, item in enumerate(items):
            before = first.setdefault(item.name, index)
            if before != index:
                place = self.document.place((*steps, before, "name"))
                yield self.document.finding(
                    (*steps, index, "name"),
                    f'found the name "{item.name}" a second time, expected it once; '
                    f"the first is at {place.file}:{place.line}:{place.column}",
                )

    def check_bounds(self) -> Iterator[Finding]:
        """Check that no quantity is above the limits of a lab."""
        for steps, seen in quantities_above_limits(self.experiment):
            yield self.document.finding(steps, seen)

    # Topology

    def check_nodes(self) -> Iterator[Finding]:
        if not self.experiment.topology.nodes:
            yield self.document.finding(("topology", "nodes"), "found no node, expected at least one")
        for name, node in self.experiment.topology.nodes.items():
            here: Steps = ("topology", "nodes", name)
            for problem in node_platform(node).check(node):
                steps = (*here, problem.key) if getattr(node, problem.key) is not None else here
                hint = did_you_mean(getattr(node, problem.key) or "", problem.suggestions)
                message = f"found {problem.found}, expected {problem.expected}"
                yield self.document.finding(steps, message, hint)
            links = self.experiment.topology.node_links(name)
            gateways = [address.ip for _, _, far in links for address in far.addresses]
            for index, route in enumerate(node.routes):
                if route.via not in gateways:
                    known = [str(address) for address in gateways]
                    yield self.unknown_name(
                        (*here, "routes", index, "via"), str(route.via), known, "a neighbour's address, "
                    )
                if route.via.version != route.prefix.version:
                    yield self.document.finding(
                        (*here, "routes", index, "via"),
                        f"found {route.via}, expected an IPv{route.prefix.version} address, like {route.prefix}",
                    )

    def check_links(self) -> Iterator[Finding]:
        topology = self.experiment.topology
        here: Steps = ("topology", "links")
        yield from self.check_unique(here, topology.links)
        used: dict[tuple[str, str], Steps] = {}
        subnets: list[tuple[IPv4Network | IPv6Network, str]] = []
        held = 0
        for index, link in enumerate(topology.links):
            for side, end in enumerate(link.ends):
                steps: Steps = (*here, index, "ends", side)
                node = topology.nodes.get(end.node)
                if node is None:
                    yield self.unknown_name((*steps, "node"), end.node, topology.nodes)
                    continue
                platform = node_platform(node)
                expected = platform.interface_problem(node, end.interface, link.framing)
                if expected is not None:
                    yield self.document.finding(
                        (*steps, "interface"),
                        f'found "{end.interface}", expected {expected}',
                        did_you_mean(end.interface, platform.interfaces(node) or ()),
                    )
                before = used.setdefault((end.node, end.interface), steps)
                if before != steps:
                    place = self.document.place((*before, "interface"))
                    yield self.document.finding(
                        (*steps, "interface"),
                        f"found {end.interface} of {end.node} a second time, expected an interface that no link uses; "
                        f"the first use is at {place.file}:{place.line}:{place.column}",
                    )
            near, far = link.ends
            if near.node == far.node:
                steps = (*here, index, "ends", 1, "node")
                yield self.document.finding(steps, f"found {far.node} at both ends, expected two nodes")
            yield from self.check_emulation(index)
            for family in FAMILIES:
                yield from self.check_addresses(index, family, subnets)
            held += bytes_in_flight(link)
            if held > MAX_BYTES >= held - bytes_in_flight(link):
                yield self.document.finding(
                    (*here, index, "delay") if link.delay else (*here, index),
                    f"found {bytes_in_flight(link)} bytes in transit on this link (rate times delay, both directions), "
                    f"{held} with the links above, expected at most {MAX_BYTES}",
                    "lower its delay or its rate",
                )

    def check_emulation(self, index: int) -> Iterator[Finding]:
        """Check that the link can have its delay, jitter and loss."""
        topology = self.experiment.topology
        link = topology.links[index]
        here: Steps = ("topology", "links", index)
        if link.jitter is not None:
            steps: Steps = (*here, "jitter")
            # Limit at which the data plane cuts normally distributed jitter (`NORMAL_JITTER_CUT`).
            early = link.jitter.size * {"uniform": 1, "normal": 4, "exponential": 0}[link.jitter.distribution]
            if early > link.delay:
                message = f"found {link.jitter.size}: a frame could be {early} early, more than the delay of "
                hint = f"give a delay of at least {early}, or exponential jitter"
                yield self.document.finding(
                    (*steps, "size"), f"{message}{link.delay}, expected at most that delay", hint
                )
            if link.jitter.correlation >= ALL:
                message = f"found {link.jitter.correlation}, expected less than 100 %"
                yield self.document.finding((*steps, "correlation"), message)
        if link.loss is not None:
            steps = (*here, "loss")
            for key, value in link.loss:
                if isinstance(value, Percent) and value > ALL:
                    yield self.document.finding((*steps, key), f"found {value}, expected at most 100 %")
            if isinstance(link.loss, BurstLoss) and not link.loss.r and link.loss.p:
                message = "found 0 %, expected more: the channel would never leave the bad state"
                yield self.document.finding((*steps, "r"), message)

    def check_addresses(
        self, index: int, family: Family, subnets: list[tuple[IPv4Network | IPv6Network, str]]
    ) -> Iterator[Finding]:
        """Check that both ends are in one subnet that no other link uses; a switched port needs no address."""
        link = self.experiment.topology.links[index]
        steps: Steps = ("topology", "links", index, "ends")
        key = "address" if family == 4 else "ipv6_address"
        near, far = (end.family_address(family) for end in link.ends)
        side = 0 if near is None else 1
        if (near is None) != (far is None) and not self._is_switch(link.ends[side].node):
            expected = "found no address" if family == 4 else "found no ipv6_address"
            yield self.document.finding((*steps, side), f"{expected}, expected one, as at the other end")
        for side, address in enumerate((near, far)):
            if address is None:
                continue
            if family == 6 and self._is_switch(link.ends[side].node):
                message = f"found {address} of the switch {link.ends[side].node}, expected none: it runs IPv4 only here"
                yield self.document.finding((*steps, side, key), message)
            if special := special_address_use(address):
                message = f"found {address}, {special} address, expected a host's address"
                yield self.document.finding((*steps, side, key), message)
        if near is None or far is None:
            return
        there: Steps = (*steps, 1, key)
        if near.network != far.network:
            yield self.document.finding(
                there, f"found {far}, expected an address in {near.network}, the subnet of the other end"
            )
            return
        if near.ip == far.ip:
            yield self.document.finding(there, f"found {far} at both ends, expected two addresses")
        for network, name in subnets:
            if network.overlaps(near.network):
                message = f"found {near.network}, overlapping {network} of link {name}, expected another subnet"
                yield self.document.finding((*steps, 0, key), message)
        subnets.append((near.network, link.name))

    def _is_switch(self, name: str) -> bool:
        node = self.experiment.topology.nodes.get(name)
        return node is not None and is_switch(node)

    # Actions in each cell

    def check_cells(self) -> Iterator[Finding]:
        experiment = self.experiment
        yield from self.check_unique(("arms",), experiment.arms)
        yield from self.check_tcp(("tcp",), experiment.tcp)
        yield from self.check_flows(("traffic",), experiment.traffic)
        yield from self.check_configurations(("configure",), experiment.configure)
        for index, arm in enumerate(experiment.arms):
            yield from self.check_configurations(("arms", index, "configure"), arm.configure)
            if arm.tcp is not None:
                yield from self.check_tcp(("arms", index, "tcp"), arm.tcp)
            if arm.traffic is not None:
                yield from self.check_flows(("arms", index, "traffic"), arm.traffic)

    def check_tcp(self, steps: Steps, tcp: Tcp) -> Iterator[Finding]:
        if isinstance(tcp, str) and tcp not in TCP_PROFILES:
            yield self.unknown_name(steps, tcp, TCP_PROFILES, "settings or ")

    def check_ports(self, here: Steps, flows: tuple[Flow, ...]) -> Iterator[Finding]:
        """Check that each port of a host belongs to one flow: every server listens from the start."""
        for index, flow in enumerate(flows):
            for before in flows[:index] if flow.port is not None else ():
                alike = (before.port, before.destination, before.family) == (flow.port, flow.destination, flow.family)
                if alike and (before.protocol == flow.protocol or before.tool == flow.tool):
                    message = (
                        f'found port {flow.port} of {flow.destination}, in use by traffic "{before.name}", '
                        "expected another one"
                    )
                    yield self.document.finding((*here, index, "port"), message, "omit it to use a free port")
                    break

    def check_client_ports(self, here: Steps, flows: tuple[Flow, ...]) -> Iterator[Finding]:
        """Check that the client ports of each host are ports, and that each belongs to one flow."""
        taken: list[tuple[Flow, range]] = []
        for index, flow in enumerate(flows):
            if flow.client_port is None:
                continue
            steps: Steps = (*here, index, "client_port")
            ports = range(flow.client_port, flow.client_port + flow.streams)
            if ports.stop > 65536:
                message = f"found {flow.client_port} as the first of {flow.streams} ports, expected all up to 65535"
                yield self.document.finding(steps, message)
            for before, used in taken:
                alike = (before.source, before.protocol) == (flow.source, flow.protocol)
                if alike and ports.start < used.stop and used.start < ports.stop:
                    message = (
                        f"found ports {ports.start} to {ports.stop - 1} of {flow.source}, of which traffic "
                        f'"{before.name}" uses {used.start} to {used.stop - 1}, expected other ports'
                    )
                    yield self.document.finding(steps, message)
                    break
            taken.append((flow, ports))

    def check_flows(self, here: Steps, flows: tuple[Flow, ...]) -> Iterator[Finding]:
        yield from self.check_unique(here, flows)
        yield from self.check_ports(here, flows)
        yield from self.check_client_ports(here, flows)
        hosts = host_names(self.experiment.topology)
        for index, flow in enumerate(flows):
            steps: Steps = (*here, index)
            for key, name in (("from", flow.source), ("to", flow.destination)):
                if name not in hosts:
                    yield self.unknown_name((*steps, key), name, hosts, "a host, ")
                elif not node_families(self.experiment.topology, name):
                    yield self.document.finding(
                        (*steps, key), f"found {name}, expected a host with an address on a link"
                    )
            yield from family_findings(self.document, steps, flow, self.experiment.topology)
            if flow.source == flow.destination:
                yield self.document.finding(
                    (*steps, "to"), f"found {flow.destination} at both ends, expected two hosts"
                )
            if flow.tool not in TOOLS:
                yield self.unknown_name((*steps, "tool"), flow.tool, TOOLS)
                continue
            for problem in TOOLS[flow.tool].check(with_family(self.experiment.topology, flow)):
                place: Steps = (*steps, problem.key)
                yield self.document.finding(place if place in self.document.values else steps, problem.message)
            if flow.background and flow.duration is not None:
                message = f"found {flow.duration}, expected no duration: a background flow lasts as long as the others"
                yield self.document.finding((*steps, "duration"), message)

    def check_configurations(self, here: Steps, configure: Mapping[str, Configuration]) -> Iterator[Finding]:
        for device, configuration in configure.items():
            if device not in router_names(self.experiment.topology):
                known = router_names(self.experiment.topology)
                message = f'found "{device}", expected a router, {format_alternatives(known)}'
                yield self.document.finding((*here, device), message, did_you_mean(device, known), at_key=True)
            yield from self.check_template((*here, device), configuration)

    def check_template(self, steps: Steps, configuration: Configuration) -> Iterator[Finding]:
        path = normalise_path(self.folder / configuration.template)
        if outside := path_refusal(self.folder / configuration.template, self.roots):
            yield self.document.finding((*steps, "template"), f'found "{configuration.template}", {outside}')
            return
        if not path.is_file():
            near = chain.from_iterable(self.folder.glob(pattern) for pattern in ("*.j2", "*/*.j2"))
            known = sorted(str(each.relative_to(self.folder)) for each in islice(near, 1000))
            yield self.document.finding(
                (*steps, "template"),
                f'found "{configuration.template}", expected a template: there is no file {path}',
                did_you_mean(configuration.template, known),
            )
            return
        try:
            used = template_variables(self.file, configuration.template)
        except ExperimentError as error:
            yield from error.findings
            return
        missing = sorted(used.names - configuration.variables.keys())
        for name in missing:
            yield self.document.finding(
                (*steps, "variables"), f'found no variable "{name}", although {configuration.template} uses it'
            )
        if used.complete:
            expected = f"one that {configuration.template} uses: {format_alternatives(sorted(used.names))}"
            for name in configuration.variables.keys() - used.names:
                yield self.document.finding(
                    (*steps, "variables", name),
                    f'found the variable "{name}", expected {expected}',
                    did_you_mean(name, used.names),
                    at_key=True,
                )
        if not missing:
            try:
                render_configuration(self.file, configuration)
            except ExperimentError as error:
                yield from error.findings

    # Observations

    def check_observations(self) -> Iterator[Finding]:
        topology = self.experiment.topology
        yield from self.check_unique(("captures",), self.experiment.captures)
        for index, capture in enumerate(self.experiment.captures):
            message, hint = filter_text_problem(capture.filter)
            if message:
                yield self.document.finding(("captures", index, "filter"), message, hint)
            if capture.node not in topology.nodes:
                yield self.unknown_name(("captures", index, "node"), capture.node, topology.nodes)
                continue
            known = [near.interface for _, near, _ in topology.node_links(capture.node)]
            if capture.interface not in known:
                what = f"an interface of {capture.node} that a link uses, "
                yield self.unknown_name(("captures", index, "interface"), capture.interface, known, what)
        routers = router_names(self.experiment.topology)
        for index, observation in enumerate(self.experiment.observe):
            steps: Steps = ("observe", index)
            if observation.node not in routers:
                yield self.unknown_name((*steps, "node"), observation.node, routers, "a router, ")
            message, hint = observation_problem(observation.command)
            if message:
                yield self.document.finding((*steps, "command"), message, hint)
            arms = [arm.name for arm in self.experiment.arms]
            for place, arm in enumerate(observation.arms):
                if arm not in arms:
                    yield self.unknown_name((*steps, "arms", place), arm, arms)
            for place, moment in enumerate(observation.moments):
                if isinstance(moment, Trigger) and (message := trigger_problem(moment)):
                    where = (place,) if isinstance(observation.when, tuple) else ()
                    yield self.document.finding((*steps, "when", *where), message)
        yield from self._trigger_count_findings()

    def _trigger_count_findings(self) -> Iterator[Finding]:
        """Return one finding for each router that an arm would examine too often."""
        seen = set()
        for arm in self.experiment.arms:
            moments: dict[str, set[Trigger]] = {}
            for index, each in enumerate(self.experiment.observe):
                if each.node in seen or (each.arms and arm.name not in each.arms):
                    continue
                of_router = moments.setdefault(each.node, set())
                of_router.update(moment for moment in each.moments if isinstance(moment, Trigger))
                if len(of_router) > MAX_TRIGGERS:
                    seen.add(each.node)
                    message = (
                        f"found more than {MAX_TRIGGERS} observation triggers for {each.node} in arm"
                        f" {arm.name}, expected at most that many"
                    )
                    yield self.document.finding(("observe", index, "when"), message, "move some of them to another arm")

    # References

    def check_published(self, compare: Comparison) -> Iterator[Finding]:
        if compare.published is None or compare.article is None:
            if compare.published != compare.article:
                given, lacking = ("article", "published") if compare.published is None else ("published", "article")
                message = f'found "{given}" without "{lacking}", expected both or neither'
                yield self.document.finding(("compare", given), message)
            return
        path = normalise_path(self.folder / compare.published)
        if outside := path_refusal(self.folder / compare.published, self.roots):
            yield self.document.finding(("compare", "published"), f'found "{compare.published}", {outside}')
        elif path.is_file():
            try:
                published_values(self.file, self.experiment, self.selectors)
            except ExperimentError as error:
                yield from error.findings
        else:
            message = f'found "{compare.published}", expected a CSV file: there is no file {path}'
            known = [each.name for each in islice(path.parent.glob("*.csv"), 1000)]
            hint = did_you_mean(path.name, known)
            yield self.document.finding(("compare", "published"), message, hint)

    def check_comparison(self) -> Iterator[Finding]:
        compare = self.experiment.compare
        if compare is None:
            return
        arms = [arm.name for arm in self.experiment.arms]
        for number, table in enumerate(compare.tables):
            here: Steps = ("compare", "tables", number)
            for name in (*table.where, table.by):
                if name not in parameters_of(self.experiment):
                    yield self.unknown_name(here, name, list(parameters_of(self.experiment)), "a parameter, ")
            for place, column in enumerate(table.columns):
                if column.arm not in arms:
                    yield self.unknown_name((*here, "columns", place, "arm"), column.arm, arms)
                for index, metric in enumerate(column.metrics):
                    try:
                        Reference.parse(metric)
                    except KeyError:
                        yield self.unknown_name((*here, "columns", place, "metrics", index), metric, METRICS)
        yield from self.check_published(compare)
        checker = ExpectationChecker(self.experiment, self.document, self.check_metric)
        yield from checker.check_quantities(compare)
        seen: set[str] = set()
        for index, expectation in enumerate(compare.expectations):
            shown = expectation.model_dump_json(exclude={"reason", "explained", "fitted"})
            if shown in seen:
                message = "found the same expectation again, which would count twice; remove one of the two"
                yield self.document.finding(("compare", "expectations", index), message)
            seen.add(shown)
            yield from checker.expectation_findings(("compare", "expectations", index), expectation, compare.quantities)
        for index, average in enumerate(compare.averages):
            yield from self.check_average(("compare", "averages", index), average)
        for index, pair in enumerate(compare.pairs):
            yield from self.check_pair(("compare", "pairs", index), pair)
        for arm, metrics in compare.show.items():
            steps: Steps = ("compare", "show", arm)
            if arm not in arms:
                yield self.unknown_name(steps, arm, arms)
            for index, metric in enumerate(metrics):
                yield from self.check_metric((*steps, index), metric, (arm,))

    def check_average(self, steps: Steps, average: Average) -> Iterator[Finding]:
        """Check that arm, metric and parameters exist, and that the values have the metric's kind."""
        yield from self.check_cell_selection(steps, average.arm, average.metric, average.condition)
        for name in average.each:
            yield from self.check_parameter((*steps, "each"), name, average.arm)
        if average.least is not None:
            yield from self.check_minimum_parameter((*steps, "least"), average, average.least)
        if average.metric.partition("(")[0] not in METRICS:
            return  # reported
        for key in ("published", "at_least", "at_most", "worst_at_least", "worst_at_most"):
            try:
                average.in_unit(getattr(average, key))
            except QuantityError as error:
                yield self.document.finding((*steps, key), error.message, error.hint)

    def check_minimum_parameter(self, steps: Steps, average: Average, least: MinimumParameter) -> Iterator[Finding]:
        """Check that arm, metric and parameters exist, and that the parameter's values have the kind of the average's
        metric.
        """
        yield from self.check_cell_selection(steps, least.arm, least.metric, "")
        yield from self.check_metric((*steps, "metric"), least.metric, (average.arm,))
        yield from self.check_parameter((*steps, "parameter"), least.parameter, least.arm)
        for name in least.same:
            for arm in dict.fromkeys((average.arm, least.arm)):
                yield from self.check_parameter((*steps, "same"), name, arm)
        arms = [arm for arm in self.experiment.arms if arm.name == least.arm]
        matrix = self.experiment.arm_matrix(arms[0]) if arms else None
        if matrix is None or average.metric.partition("(")[0] not in METRICS:
            return  # reported
        unit = Reference.parse(average.metric).metric.unit
        for value in matrix.parameters.get(least.parameter, ()):
            try:
                as_float(cast(Bound, read_value(value)), unit)
            except QuantityError as error:
                yield self.document.finding((*steps, "parameter"), f"{least.parameter}: {error.message}", error.hint)
                return

    def check_pair(self, steps: Steps, pair: Pair) -> Iterator[Finding]:
        """Check that arm, metric and parameter exist, and that the parameter can have both values."""
        yield from self.check_cell_selection(steps, pair.arm, pair.metric, pair.condition)
        yield from self.check_parameter((*steps, "parameter"), pair.parameter, pair.arm)
        if is_same_value(*(read_value(value) for value in pair.values)):
            yield self.document.finding((*steps, "values"), f"found {pair.values[0]} twice, expected two values")

    def check_cell_selection(self, steps: Steps, arm: str, metric: str, condition: str) -> Iterator[Finding]:
        """Check the common part of averages and pairs."""
        arms = [each.name for each in self.experiment.arms]
        if arm not in arms:
            yield self.unknown_name((*steps, "arm"), arm, arms)
            return
        yield from self.check_metric((*steps, "metric"), metric, (arm,))
        if not condition:
            return
        try:
            expression = parse_expression(condition)
        except ExpressionError as error:
            yield self.document.finding((*steps, "condition"), error.message, error.hint)
            return
        names = parameters_of(self.experiment, (arm,))
        unknown = sorted(expression.names - {*names, "arm"})
        for name in unknown:
            yield self.unknown_name((*steps, "condition"), name, names, "a parameter, ")
        matrix = self.experiment.arm_matrix(self.experiment.arm(arm))
        if unknown or matrix is None:
            return
        asked, found = (*steps, "condition"), self.document.work.found
        if asked not in found:
            found[asked] = list(self.check_condition(asked, arm, matrix, expression))
        yield from found[asked]

    def check_condition(self, steps: Steps, arm: str, matrix: Matrix, condition: Expression) -> Iterator[Finding]:
        """Check that the condition holds for at least one combination."""
        entries: list[Mapping[str, Scalar | tuple[Scalar, ...]]] = [
            *([matrix.parameters] if matrix.parameters else []),
            *matrix.include,
        ]
        try:
            for cell in (cell for entry in entries for cell in combinations(entry)):
                self.document.count_work(steps, condition.words)
                if condition.is_true({**cell, "arm": arm}):
                    return
        except ExpressionError as error:
            yield self.document.finding(steps, error.message, error.hint)
        else:
            message = f'found "{condition.text}", true in no cell of arm "{arm}"'
            yield self.document.finding(steps, message)

    def check_parameter(self, steps: Steps, name: str, arm: str) -> Iterator[Finding]:
        """Check that the arm has a parameter of this name."""
        known = parameters_of(self.experiment, (arm,))
        if name not in known:
            yield self.unknown_name(steps, name, known, f'a parameter of arm "{arm}", ')

    def check_stopping_rule(self) -> Iterator[Finding]:
        """Check that the metric exists in every arm, and that there are repetitions to leave out."""
        wanted = self.experiment.enough
        if wanted is None:
            return
        yield from self.check_metric(("enough", "metric"), wanted.metric, [arm.name for arm in self.experiment.arms])
        if self.experiment.repetitions <= wanted.at_least:
            yield self.document.finding(
                ("enough",),
                f"found repetitions: {self.experiment.repetitions}, expected more than at_least: {wanted.at_least}",
                "otherwise every repetition must be valid",
            )

    def check_graphs(self) -> Iterator[Finding]:
        """Check that arms, metrics and parameters exist; a graph has either curves or a map."""
        arms = [arm.name for arm in self.experiment.arms]
        for index, graph in enumerate(self.experiment.graphs):
            steps: Steps = ("graphs", index)
            for place, arm in enumerate(graph.arms):
                if arm not in arms:
                    yield self.unknown_name((*steps, "arms", place), arm, arms)
            yield from self.check_metric((*steps, "metric"), graph.metric, [arm for arm in graph.arms if arm in arms])
            if (graph.over is None) == (not graph.rows) or bool(graph.rows) != bool(graph.columns):
                yield self.document.finding(
                    steps,
                    "found neither or both of curves and a map, expected the key over, or the keys rows and columns",
                    "over: bucket draws curves; rows: [rtt] with columns: [pir] draws a map",
                )
            known = parameters_of(self.experiment, graph.arms)
            for key, names in (
                ("over", [graph.over] if graph.over is not None else []),
                ("rows", graph.rows),
                ("columns", graph.columns),
                ("where", graph.where),
            ):
                for name in names:
                    if name not in known:
                        yield self.unknown_name((*steps, key), name, known)

    def check_traces(self) -> Iterator[Finding]:
        """Check that arm and parameters exist."""
        arms = [arm.name for arm in self.experiment.arms]
        for index, trace in enumerate(self.experiment.traces):
            if trace.arm not in arms:
                yield self.unknown_name(("traces", index, "arm"), trace.arm, arms)
                continue
            for name in trace.where:
                yield from self.check_parameter(("traces", index, "where"), name, trace.arm)

    def check_notes(self) -> Iterator[Finding]:
        arms = [arm.name for arm in self.experiment.arms]
        for index, note in enumerate(self.experiment.notes):
            steps: Steps = ("notes", index)
            rows = note.table.arms if note.table else ()
            for name in note.table.each if note.table else ():
                for arm in rows:
                    yield from self.check_parameter((*steps, "table", "each"), name, arm)
            for value in note.values:
                in_table = note.table and value.arm in rows and value.metric in note.table.metrics
                yield from self.check_text_value((*steps, "table" if in_table else "text"), value, arms)

    def check_answer(self) -> Iterator[Finding]:
        """Check that arms, metrics and parameters exist."""
        answer = self.experiment.answer
        if answer is None:
            return
        arms = [arm.name for arm in self.experiment.arms]
        for value in answer.values:
            yield from self.check_text_value(("answer", "text"), value, arms)
        for index, arm in enumerate(answer.streams):
            if arm not in arms:
                yield self.unknown_name(("answer", "streams", index), arm, arms)
        yield from self.check_bars(answer, arms)

    def check_bars(self, answer: Answer, arms: Sequence[str]) -> Iterator[Finding]:
        """Check that the metrics of bars exist in the arms that have an expectation of them, and have one unit."""
        compared = self.experiment.compare.expectations if self.experiment.compare else ()
        for index, name in enumerate(answer.bar_metrics):
            place: Steps = ("answer", "bars") if isinstance(answer.bars, str) else ("answer", "bars", index)
            shown = [each.arm for each in compared if each.metric == name and each.arm in arms]
            yield from self.check_metric(place, name, shown or arms)
        names = [name.partition("(")[0] for name in answer.bar_metrics]
        units = {name: METRICS[name].unit for name in names if name in METRICS}
        for name, unit in units.items():
            first, expected = next(iter(units.items()))
            if unit != expected:
                message = f'found "{name}" in {unit}, expected metrics in {expected} like "{first}"'
                yield self.document.finding(("answer", "bars"), message, "use metrics with the same unit for the bars")

    def check_text_value(self, steps: Steps, value: NoteValue, arms: Sequence[str]) -> Iterator[Finding]:
        """Check a value in a text: its arm, metric and parameters must exist."""
        if value.arm not in arms:
            yield self.unknown_name(steps, value.arm, arms)
            return
        yield from self.check_metric(steps, value.metric, (value.arm,))
        for name, _ in value.where:
            yield from self.check_parameter(steps, name, value.arm)

    def check_metric(self, steps: Steps, found: str, arms: Collection[str]) -> Iterator[Finding]:
        """Check that a metric exists, and that its selector names a part of the arms."""
        try:
            reference = Reference.parse(found)
        except KeyError:
            problem = unknown_metric(found, "a metric (`qoslab schema --metrics` lists them)")
            yield self.document.finding(steps, problem.message, problem.hint)
            return
        for problem in self.selectors.problems(reference, arms):
            yield self.document.finding(steps, problem.message, problem.hint)
