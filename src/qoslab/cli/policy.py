"""`qoslab policy`: effective values and findings of a pasted router configuration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from qoslab.cli.pasted_input import STDIN, parse_model, parse_rate, parse_rtt, read_pasted, source_name
from qoslab.errors import ExitStatus, UserError
from qoslab.system.printing import echo

if TYPE_CHECKING:
    from qoslab.policy.answer import PolicyAnswer


@click.command()
@click.argument("file", default=STDIN, type=click.Path(allow_dash=True))
@click.option("--rate", metavar="RATE", help="Line rate of all interfaces, such as 20m or 1.5 Mb/s.")
@click.option("--rtt", metavar="TIME", help="Round-trip time, such as 50 ms, to check policer bursts for TCP.")
@click.option(
    "--model",
    metavar="MODEL",
    help="Router or switch model (such as 3725, 2911, ISR4451, C8000V, 3750G) or release (classic, hqf, ios-xe). "
    "[default: from the `version` line]",
)
@click.option("--diff", "old", metavar="OLD", type=click.Path(), help="Show the class values that changed since OLD.")
@click.option("--kernel", is_flag=True, help="Show the policy as tc commands for the Linux kernel, with differences.")
@click.option(
    "--device",
    "devices",
    metavar="INTERFACE=NAME",
    multiple=True,
    help="With --kernel: network device in place of an interface, such as Gi0/1=eth0. Repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON to standard output.")
def command(
    file: str,
    rate: str | None,
    rtt: str | None,
    model: str | None,
    old: str | None,
    kernel: bool,
    devices: tuple[str, ...],
    as_json: bool,
) -> ExitStatus:
    """Show the effective values of a QoS policy, with findings.

    FILE contains a policy-map or a whole running configuration, as pasted from a terminal. Without FILE, the command
    reads standard input. It lists the lines that it does not read, and never prints secrets. Exit status: 0 no errors,
    1 findings of severity error, or with --kernel an action that the kernel cannot carry out, 2 the input cannot be
    read.
    """
    if kernel:
        if old is not None or rtt is not None:
            raise UserError(
                "found --kernel with --diff or --rtt, expected --kernel alone", hint="omit the other options"
            )
        return _print_kernel_plan(file, rate, model, devices, as_json=as_json)
    if devices:
        raise UserError("found --device without --kernel", hint="add --kernel, or omit --device")
    from qoslab.policy.answer import answer_policy, class_differences, to_json
    from qoslab.policy.render import answer_text

    family, generation = parse_model(model)
    rate_bps, rtt_s = parse_rate(rate), parse_rtt(rtt)

    def answered(name: str) -> PolicyAnswer:
        text, source = read_pasted(name), source_name(name)
        return answer_policy(text, rate_bps=rate_bps, rtt_s=rtt_s, family=family, generation=generation, source=source)

    new = answered(file)
    changed = None if old is None else class_differences(answered(old), new)
    if as_json:
        found = to_json(new) if changed is None else to_json(new) | {"differences": changed}
        echo(json.dumps(found, indent=2))
    elif changed is None:
        echo(answer_text(new), nl=False)
    else:
        echo("\n".join(changed) if changed else "No class value changed.")
    return ExitStatus.OUTSIDE if new.errors else ExitStatus.WITHIN


def _print_kernel_plan(
    file: str, rate: str | None, model: str | None, devices: tuple[str, ...], *, as_json: bool
) -> ExitStatus:
    """Print the plan for the Linux kernel."""
    from qoslab.policy.kernel_plan import plan_pasted
    from qoslab.policy.pasted_configuration import read_configuration
    from qoslab.tc.plan_lines import line_finder
    from qoslab.tc.plan_text import plan_script, to_json

    family, generation = parse_model(model)
    rate_bps = parse_rate(rate)
    configuration = read_configuration(
        read_pasted(file), family=family, generation=generation, source=source_name(file)
    )
    made = plan_pasted(configuration, rate_bps, dict(map(_parse_device, devices)))
    lines = line_finder(configuration.reading)
    echo(json.dumps(to_json(made, lines), indent=2) if as_json else plan_script(made, lines), nl=as_json)
    return ExitStatus.OUTSIDE if made.refused_actions else ExitStatus.WITHIN


def _parse_device(text: str) -> tuple[str, str]:
    """Return interface and device of --device. Raise UserError if it has another form."""
    from qoslab.ios.model.ios_names import interface_name

    interface, found, name = text.partition("=")
    if not found or not name:
        raise UserError(f'--device: found "{text}", expected INTERFACE=NAME, such as Gi0/1=eth0')
    return interface_name(interface) or interface, name
