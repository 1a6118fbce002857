"""`qoslab explain`: the path of one packet through a router, with the configuration lines that decide it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from qoslab.cli.completion import complete_experiments, complete_runs
from qoslab.cli.options import set_option
from qoslab.cli.output_options import json_option
from qoslab.errors import UserError
from qoslab.system.printing import echo

if TYPE_CHECKING:
    from qoslab.explain.capture_packet import Arrival
    from qoslab.explain.packet import Packet
    from qoslab.explain.subject import Subject
    from qoslab.results import CellFiles

IDLE = "Idle router: the token buckets are full, the queues are empty."


@click.command()
@click.argument("router", metavar="ROUTER|FILE", required=False)
@click.argument("packet", required=False)
@click.option(
    "--in",
    "experiment",
    metavar="EXPERIMENT",
    shell_complete=complete_experiments,
    help="Experiment with the router. [default: the only one in experiments/]",
)
@click.option(
    "--config", "config", metavar="FILE", type=click.Path(allow_dash=True), help="File with the configuration."
)
@click.option("--interface", metavar="NAME", help="Output interface. [default: from the route to the destination]")
@click.option("--from", "source", metavar="NAME", help="Input interface. [default: from the route to the source]")
@click.option("--rate", metavar="RATE", help="Line rate for a configuration file, such as 20m or 1.5 Mb/s.")
@click.option(
    "--model", metavar="MODEL", help="Router model or release for a configuration file, as for qoslab policy."
)
@click.option(
    "--during",
    "run",
    metavar="RUN",
    shell_complete=complete_runs,
    help="Run that provides the state of buckets and queues. [default: an idle router]",
)
@click.option("--at", metavar="TIME", help="Time of the packet from the start of the --during run, such as 3.2s.")
@click.option("--arm", metavar="ARM", help="Arm of the experiment or of the run. [default: the first]")
@set_option
@click.option(
    "--packet",
    "captured",
    metavar="CAPTURE:N",
    help="Packet N (from 1) of a capture file or of a capture of the run, in place of PACKET.",
)
@json_option
def command(
    router: str | None,
    packet: str | None,
    experiment: str | None,
    config: str | None,
    interface: str | None,
    source: str | None,
    rate: str | None,
    model: str | None,
    run: str | None,
    at: str | None,
    arm: str | None,
    sets: Sequence[str],
    captured: str | None,
    as_json: bool,
) -> None:
    """Trace one packet through a router, step by step.

    The first argument is a router of an experiment or a file with a pasted configuration; with --config it is optional.
    PACKET has the form 'udp 10.0.0.1:4000 > 10.0.0.2:5004 dscp ef 200 B': protocol, source, destination, marks, and
    bytes of the IP packet. The steps are interfaces, route, access lists, class, marking, policer with its bucket,
    queue, verdict and departure time, each with the configuration lines that decide it. Without --during the router is
    idle.
    """
    from qoslab.explain.render import trace_text
    from qoslab.explain.router_steps import trace_packet
    from qoslab.explain.simulator_query import ask_simulator

    router, packet, config = _split_arguments(router, packet, config, captured)
    of_file: dict[str, object] = {"--rate": rate, "--model": model}
    of_experiment: dict[str, object] = {"--in": experiment, "--set": sets or None}
    if config is not None:
        _refuse(of_experiment | {"--during": run, "--arm": arm}, "a configuration file")
        subject, cell = _explain_pasted(config, rate, model), None
        subject.label = router or subject.label
    elif run is not None:
        _refuse(of_file | of_experiment, "--during")
        subject, cell = _explain_in_run(run, router, arm)
    else:
        _refuse(of_file, "a router of an experiment")
        subject, cell = _explain_in_experiment(experiment, router, arm, sets), None
    if at is not None and cell is None:
        raise UserError("found --at without --during, expected both")
    asked, arrived = _packet_and_arrival(packet, captured, at, subject, cell)
    at_ns = _packet_time_ns(at, arrived, cell)
    came = "" if arrived is None or source is not None else arrived.interface
    passage = ask_simulator(subject, asked, interface=interface, source=source, came=came, at_ns=at_ns)
    found = trace_packet(passage, _router_state(cell, at_ns))
    if as_json:
        echo(json.dumps(found.as_dict(), indent=2))
    else:
        echo(trace_text(found), nl=False)


def _split_arguments(
    router: str | None, packet: str | None, config: str | None, captured: str | None
) -> tuple[str, str | None, str | None]:
    """Return the name of the router, the packet, and the configuration file, if there is one.

    With `--config`, a single argument is the packet. The router argument may also be a file.
    """
    if config is not None:
        return ("", router, config) if packet is None and captured is None else (router or "", packet, config)
    if router is None:
        raise UserError("found no router, expected a router of an experiment or a configuration file")
    if Path(router).is_file() or router == "-":
        return "", packet, router
    return router, packet, None


def _refuse(options: Mapping[str, object], what: str) -> None:
    """Refuse options that have no effect."""
    for name, given in options.items():
        if given is not None:
            raise UserError(
                f"found {name} with {what}, expected no {name}: it has no effect", hint="qoslab explain --help"
            )


def _explain_pasted(file: str, rate: str | None, model: str | None) -> Subject:
    from qoslab.cli.pasted_input import parse_model, parse_rate, read_pasted, source_name
    from qoslab.explain.subject import pasted_subject
    from qoslab.policy.pasted_configuration import read_configuration

    family, generation = parse_model(model)
    source = source_name(file)
    text = read_pasted(file)
    configuration = read_configuration(
        text, family=family, generation=generation, source=source, routes=True, policy_needed=False
    )
    if not configuration.device.interfaces and not configuration.device.policy_maps:
        raise UserError(
            f"{source}: found no interface and no policy-map, expected a configuration of Cisco IOS",
            hint="paste the output of `show running-config`",
        )
    return pasted_subject(configuration, source, parse_rate(rate))


def _explain_in_experiment(given: str | None, router: str, arm: str | None, sets: Sequence[str]) -> Subject:
    from qoslab.cli.places import open_sweep
    from qoslab.explain.experiments import experiment_subject, rendered_title
    from qoslab.plan import Options, make_plan

    file, sweep = open_sweep(given or _find_only_experiment(router), sets, "simulated")
    planned = make_plan(sweep, Options(arms=() if arm is None else (arm,))).cells[0]
    experiment = planned.experiment
    texts = sweep.configuration_text(experiment, experiment.arms[0])
    return experiment_subject(experiment, texts, router, rendered_title(file, experiment, router))


def _find_only_experiment(router: str) -> str:
    from qoslab.cli.places import EXPERIMENTS

    files = sorted(EXPERIMENTS.glob("*.yml"))
    if len(files) == 1:
        return str(files[0])
    hint = "give --in EXPERIMENT, or a configuration file in place of the router"
    if not files:
        raise UserError(
            f'found "{router}", expected a configuration file, or an experiment in {EXPERIMENTS}/', hint=hint
        )
    raise UserError(f'found "{router}" and {len(files)} experiments in {EXPERIMENTS}/, expected one of them', hint=hint)


def _explain_in_run(given: str, router: str, arm: str | None) -> tuple[Subject, CellFiles]:
    from qoslab.cli.places import RUNS
    from qoslab.explain.experiments import run_subject
    from qoslab.results import find_run

    folder = find_run(RUNS, given)
    every = folder.open().cells
    cells = [each for each in every if arm in (None, each.arm)]
    if not cells:
        known = ", ".join(dict.fromkeys(each.arm for each in every)) or "none"
        raise UserError(f'--arm: found "{arm}", expected an arm of the run with a complete cell: {known}')
    cell = cells[0]
    title = f"{folder.path}, cell {cell.name}: configuration of {router}"
    return run_subject(cell, router, title), cell


def _packet_and_arrival(
    text: str | None, captured: str | None, at: str | None, subject: Subject, cell: CellFiles | None
) -> tuple[Packet, Arrival | None]:
    """Return the packet, and its arrival at the router if it is from a capture of the run."""
    from qoslab.explain.packet import EXAMPLE, parse_packet

    if captured is None:
        if text is None:
            raise UserError("found no packet, expected one", hint=f"for example: '{EXAMPLE}'; or --packet CAPTURE:N")
        return parse_packet(text), None
    if text is not None:
        raise UserError(f'found "{text}" and --packet {captured}, expected only one of the two')
    from qoslab.explain.capture_packet import Arrival, find_arrival, read_captured_packet

    found = read_captured_packet(captured, cell)
    if found.time_ns is None or at is not None:
        return found.packet, None
    arrived = find_arrival(subject, found)
    if arrived is not None:
        time = f"{arrived.time_ns / 1e9:.9f} s"
        subject.notes.append(f"{captured} arrived at {subject.name} at {time}, 1 ns after the copy that is traced")
        return found.packet, Arrival(max(arrived.time_ns - 1, 0), arrived.interface)
    subject.notes.append(f"{captured} was not found at {subject.name}: the time in the capture is used")
    return found.packet, Arrival(found.time_ns, "")


def _packet_time_ns(at: str | None, arrived: Arrival | None, cell: CellFiles | None) -> int:
    """Return the time of the packet from the start of the run, in nanoseconds; 0 for an idle router."""
    if cell is None:
        return 0
    if at is not None:
        from qoslab.model.units import Duration, QuantityError

        try:
            return Duration.parse(at).ns
        except QuantityError as error:
            raise UserError(f"--at: {error}", hint="give a time such as 3.2 s") from None
    if arrived is not None:
        return arrived.time_ns
    from qoslab.explain.experiments import default_time_ns

    return default_time_ns(cell.experiment())


def _router_state(cell: CellFiles | None, at_ns: int) -> str:
    if cell is None:
        return IDLE
    return f"State at {at_ns / 1e9:.6f} s of the run, simulated again; the packet is added to its traffic."
