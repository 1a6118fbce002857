"""`qoslab try`: a pasted configuration under named traffic, in virtual time, before and after a change."""

from __future__ import annotations

import json
from pathlib import Path

import click

from qoslab.cli.pasted_input import STDIN, parse_model, parse_rate, parse_rtt, read_pasted, source_name
from qoslab.errors import UserError
from qoslab.system.printing import echo

DEFAULT_RTT_S = 0.02
DEFAULT_SECONDS = 30.0
MAX_SECONDS = 3600.0


@click.command(name="try")
@click.argument("file", default=STDIN, type=click.Path(allow_dash=True))
@click.option(
    "--traffic", required=True, metavar="LIST", help="Traffic, such as 'voice 20 calls, video 4, web 50, backup'."
)
@click.option(
    "--change",
    "changes",
    multiple=True,
    metavar="LINES",
    help="Configuration lines to add for a comparison, separated by `;`. Repeatable.",
)
@click.option(
    "--interface", metavar="NAME", help="Interface with the policy. [default: the slowest with an output policy]"
)
@click.option("--rate", metavar="RATE", help="Line rate, such as 20m. [default: from the configuration]")
@click.option("--rtt", metavar="TIME", help="Round-trip time of the path, such as 50 ms. [default: 20 ms]")
@click.option(
    "--seconds",
    type=float,
    metavar="SECONDS",
    default=DEFAULT_SECONDS,
    show_default=True,
    help="Duration of the traffic in virtual time.",
)
@click.option(
    "--model",
    metavar="MODEL",
    help="Router model (3725, 2811, ISR4451) or release (classic, hqf, ios-xe). [default: from the `version` line]",
)
@click.option("--picture", metavar="FILE", type=click.Path(dir_okay=False), help="SVG file for graphs of the results.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON to standard output.")
def command(
    file: str,
    traffic: str,
    changes: tuple[str, ...],
    interface: str | None,
    rate: str | None,
    rtt: str | None,
    seconds: float,
    model: str | None,
    picture: str | None,
    as_json: bool,
) -> None:
    """Simulate a QoS policy under traffic, with and without a change.

    FILE contains a policy-map or a whole running configuration, as pasted from a terminal. Without FILE, the command
    reads standard input. The tables show throughput, delay, loss, jitter and voice score for each class and each kind
    of traffic.

    Traffic is a comma-separated list of KIND [COUNT] [rate RATE] [dscp DSCP] [port PORT] [from ADDRESS] [to ADDRESS].
    Kinds: voice (G.711), g729, opus, video, streaming, web, transactions, backup, bulk, scavenger, gaming, dns, imix.

    Traffic has the direction of the policy. After `out:` it leaves through that interface, after `in:` it arrives
    there, after `both:` it goes both ways: 'both: voice 20, out: backup, in: web 50'. The policies of both interfaces
    then apply in both directions.
    """
    from qoslab.policy.pasted_configuration import read_configuration
    from qoslab.trial.answer import to_json, try_policy
    from qoslab.trial.demand import parse_traffic
    from qoslab.trial.edge import find_edge
    from qoslab.trial.picture import draw
    from qoslab.trial.render import trial_text
    from qoslab.trial.simulate import simulate

    if not 1 <= seconds <= MAX_SECONDS:
        raise UserError(f"--seconds: found {seconds:g}, expected 1 to {MAX_SECONDS:g}")
    demands = parse_traffic(traffic)
    family, generation = parse_model(model)
    rtt_s = parse_rtt(rtt)
    configuration = read_configuration(
        read_pasted(file), family=family, generation=generation, source=source_name(file)
    )
    two_way = any(each.way for each in demands)
    edge = find_edge(configuration, interface, parse_rate(rate), two_way=two_way)
    trial = try_policy(
        edge, demands, changes, simulate, seconds=seconds, rtt_s=DEFAULT_RTT_S if rtt_s is None else rtt_s
    )
    if picture is not None:
        try:
            Path(picture).write_text(draw(trial), encoding="utf-8")
        except OSError as error:
            raise UserError(f"--picture: {picture}: {error.strerror}") from error
        echo(f"Picture: {picture}", err=True)
    if as_json:
        echo(json.dumps(to_json(trial), indent=2))
    else:
        echo(trial_text(trial), nl=False)
