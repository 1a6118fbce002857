"""`qoslab new experiment`: a new experiment file from a few answers."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from qoslab.cli.options import DURATION, RATE
from qoslab.cli.places import EXPERIMENTS
from qoslab.cli.program import program_name
from qoslab.errors import UserError
from qoslab.model.units import Duration, Rate
from qoslab.platforms import DEFAULT_MODEL, MODELS
from qoslab.results.file_access import create_folder, draft_folder
from qoslab.schema import load_sweep
from qoslab.system.printing import echo

if TYPE_CHECKING:
    from qoslab.ios.model.device import Family

T = TypeVar("T")

VOICE = Rate.parse("80 kb/s")
"""Rate of a G.711 call with 20 ms per packet: 50 IP packets of 200 bytes per second, with 160 bytes of speech each."""
POLICIES = {
    "police": ("Policed to {rate}", "a policer drops the excess traffic"),
    "shape": ("Shaped to {rate}", "a shaper delays the excess traffic"),
    "fair": ("Shaped to {rate}, a queue for each flow", "a shaper, and fair queueing of the waiting packets"),
    "priority": ("Shaped to {rate}, voice first", "a shaper, and a priority queue for packets marked EF"),
}
"""Title of the arm, and description of its effect."""
TRAFFIC = ("tcp", "voice", "both")
_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


@dataclass(frozen=True)
class NewExperimentAnswers:
    """Answers that define an experiment."""

    name: str
    routers: int
    policy: str
    rate: Rate
    traffic: str
    streams: int
    """Number of TCP connections; 0 without TCP."""
    delay: Duration
    duration: Duration
    model: str = DEFAULT_MODEL

    @property
    def ports(self) -> tuple[str, str]:
        """The first two Ethernet interfaces of the routers: towards the hosts, and towards the WAN."""
        ethernet = [each.name for each in MODELS[self.model].interfaces if each.kind == "ethernet"]
        return ethernet[0], ethernet[1]


@click.group()
def command() -> None:
    """Create an experiment file or a topology file."""


@command.command()
@click.argument("name")
@click.option(
    "--routers",
    type=click.IntRange(1, 2),
    help="Number of routers between client and server; 2 have a WAN between them.",
)
@click.option("--policy", type=click.Choice(tuple(POLICIES)), help="Policy of R1 towards the server.")
@click.option("--rate", type=RATE, help="Rate of the policer or shaper, such as '2 Mb/s'.")
@click.option("--traffic", type=click.Choice(TRAFFIC), help="TCP transfers, a voice call, or both.")
@click.option("--streams", type=click.IntRange(1, 128), help="Number of TCP connections, if the traffic contains TCP.")
@click.option("--delay", type=DURATION, help="One-way delay of the WAN, such as 10ms.")
@click.option("--duration", type=DURATION, help="Duration of the traffic, such as 10s.")
@click.option(
    "--model", default=DEFAULT_MODEL, help=f"Model of the routers, such as ISR4451. [default: {DEFAULT_MODEL}]"
)
def experiment(
    name: str,
    routers: int | None,
    policy: str | None,
    rate: Rate | None,
    traffic: str | None,
    streams: int | None,
    delay: Duration | None,
    duration: Duration | None,
    model: str,
) -> None:
    """Create experiments/NAME.yml and its template, both with comments.

    On a terminal, missing options are prompted for; otherwise the default shown in the prompt is used. Existing files
    are never overwritten.
    """
    if traffic == "voice" and streams is not None:
        raise click.UsageError("found --streams with --traffic voice, expected traffic with TCP: tcp or both")
    routers = _prompt_if_missing(
        routers, "Routers between client and server (2: with a WAN between them)", 1, click.IntRange(1, 2)
    )
    policy = _prompt_if_missing(policy, "Policy of R1 towards the server", "shape", click.Choice(tuple(POLICIES)))
    rate = _prompt_if_missing(rate, "Rate", Rate.parse("2 Mb/s"), RATE)
    # Only compatible choices: a priority queue needs marked traffic, and connections need TCP.
    unfit = ("tcp" if policy == "priority" else "", "voice" if streams is not None else "")
    traffic = _prompt_if_missing(
        traffic, "Traffic", "both", click.Choice([each for each in TRAFFIC if each not in unfit])
    )
    if traffic != "voice":
        streams = _prompt_if_missing(streams, "TCP connections", 2, click.IntRange(1, 128))
    delay = _prompt_if_missing(delay, "One-way delay of the WAN", Duration.parse("0 s"), DURATION)
    duration = _prompt_if_missing(duration, "Duration", Duration.parse("10 s"), DURATION)
    _check_model(model, ("router",))
    answers = NewExperimentAnswers(name, routers, policy, rate, traffic, streams or 0, delay, duration, model)
    for file in make_experiment(answers, EXPERIMENTS):
        echo(f"Written: {file}")
    echo("Next:")
    echo(f"  {program_name()} run {name} --lab simulated")


@command.command()
@click.argument("source", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--to", type=click.Path(path_type=Path), metavar="FILE", help="Output file. [default: NAME.topology.yml]")
@click.option("--model", help="Model of all routers with an IOS command line. [default: the nearest to each kind]")
@click.option("--rate", type=RATE, default="100 Mb/s", help="Rate of links without a rate in FILE. [default: 100 Mb/s]")
@click.option(
    "--as",
    "kinds",
    multiple=True,
    metavar="KIND=host|ios|linux",
    help="Treat nodes of this kind as a host, an IOS router or an engine router. Repeatable.",
)
def topology(source: Path, to: Path | None, model: str | None, rate: Rate, kinds: tuple[str, ...]) -> None:
    """Create a topology file from a containerlab or netlab topology.

    Nodes become hosts, routers with an IOS command line, or engine routers; links keep the addresses and rates of FILE.
    Omissions and invented values are reported; a node or link without a counterpart is refused with its location.
    """
    from qoslab.exchange.topologies import ConversionOptions, import_topology

    if model is not None:
        _check_model(model)
    target = to or Path(f"{source.name.split('.')[0]}.topology.yml")
    for note in import_topology(source, target, ConversionOptions(model, rate, dict(map(_platform_kind, kinds)))):
        echo(f"  {note}")
    echo(f"Written: {target}")
    echo("Next:")
    echo(f"  {program_name()} lab up {shlex.quote(str(target))}")


def _check_model(model: str, families: tuple[Family, ...] = ("router", "switch")) -> None:
    known = [name for name, each in MODELS.items() if each.family in families]
    if model not in known:
        raise UserError(f'found --model "{model}", expected one of {", ".join(known)}')


def _platform_kind(text: str) -> tuple[str, str]:
    from qoslab.platforms import PLATFORMS

    name, _, word = text.rpartition("=")
    if not name or word not in PLATFORMS:
        raise UserError(f'found --as "{text}", expected KIND=PLATFORM with one of {", ".join(PLATFORMS)}')
    return name, word


def _prompt_if_missing(given: T | None, question: str, default: T, kind: click.ParamType[T]) -> T:
    if given is not None:
        return given
    if not (os.isatty(0) and os.isatty(2)):
        return default
    answer: T = click.prompt(question, default=default, type=kind, err=True)
    return answer


def make_experiment(answers: NewExperimentAnswers, folder: Path) -> tuple[Path, Path]:
    """Write an experiment and its template below `folder`, and check them; write both files or neither.

    Raise `UserError` for an invalid experiment name, and if one of the files already exists.
    """
    if _NAME.fullmatch(answers.name) is None:
        raise UserError(
            f'found the name "{answers.name}", expected lowercase letters, digits and hyphens',
            hint="such as branch-uplink",
        )
    if answers.policy == "priority" and answers.traffic == "tcp":
        raise UserError(
            "found --policy priority with --traffic tcp, expected marked traffic", hint="use --traffic both"
        )
    if answers.rate.bps < 256_000 or answers.rate.bps > 50_000_000:
        raise UserError(f"found --rate {answers.rate}, expected 256 kb/s to 50 Mb/s on a 100 Mb/s line")
    made = (folder / f"{answers.name}.yml", folder / "templates" / f"{answers.name}.ios.j2")
    for file in made:
        if os.path.lexists(file):
            raise UserError(
                f"{file}: found an existing file, expected none", hint="choose another name, or remove the file"
            )
    with draft_folder(made[0]) as place, create_folder(made[1].parent):
        drafts = (place / made[0].name, place / "templates" / made[1].name)
        drafts[1].parent.mkdir()
        for draft, text in zip(drafts, _experiment_texts(answers), strict=True):
            draft.write_text(text, encoding="utf-8")
        load_sweep(drafts[0], {})
        drafts[1].rename(made[1])
        try:
            drafts[0].rename(made[0])
        except BaseException:
            made[1].unlink()
            raise
    return made


def _experiment_texts(answers: NewExperimentAnswers) -> tuple[str, str]:
    """Return the experiment and the template of R1's configuration."""
    from jinja2 import Environment, StrictUndefined

    own = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    title, does = POLICIES[answers.policy]
    source = files("qoslab.cli").joinpath("new_experiment.yml.j2").read_text(encoding="utf-8")
    text = own.from_string(source).render(
        comment=f"{title.format(rate=answers.rate)}: {does}.",
        name=answers.name,
        title=title.format(rate=answers.rate),
        policy=answers.policy,
        rate=answers.rate,
        bps=answers.rate.bps,
        bucket=_bucket_bytes(answers.rate),
        routers=answers.routers,
        delay=answers.delay,
        duration=answers.duration,
        tcp=answers.traffic != "voice",
        voice=VOICE if answers.traffic != "tcp" else None,
        streams=answers.streams,
        model=answers.model,
        lan_port=answers.ports[0],
        wan_port=answers.ports[1],
    )
    return text, _router_template(answers)


def _bucket_bytes(rate: Rate) -> int:
    """Return the bytes of a quarter of a second at a rate: TCP continues to send for that time."""
    return int(rate.bps) // 32


def _router_template(answers: NewExperimentAnswers) -> str:
    """Return IOS commands; `rate` is in bits per second and remains a variable of the template."""
    action = f"police cir {{{{ rate }}}} bc {_bucket_bytes(answers.rate)}" if answers.policy == "police" else _SHAPE
    below = "" if answers.policy in ("police", "shape") else "  service-policy Waiting\n"
    uplink = f"policy-map Uplink\n class class-default\n  {action}\n{below}"
    return f"{_PENDING.get(answers.policy, '')}{uplink}!\ninterface {answers.ports[1]}\n service-policy output Uplink\n"


_SHAPE = "shape average {{ rate }}"
_PENDING = {
    "fair": """\
! Packets that wait for the shaper: a queue for each flow.
policy-map Waiting
 class class-default
  fair-queue
!
""",
    "priority": """\
class-map match-all Voice
 match dscp ef
!
! Packets that wait for the shaper: voice first, up to 128 kb/s.
policy-map Waiting
 class Voice
  priority 128
 class class-default
  fair-queue
!
""",
}
