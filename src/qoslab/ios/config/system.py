"""Global configuration: names, users, lines, services, routes."""

from __future__ import annotations

from qoslab.ios.config.session import CONFIG, ConfigSession
from qoslab.ios.grammar import Args


@CONFIG.add(
    "config",
    "hostname <name:word>",
    no=True,
    help={"hostname": "Set system's network name", "name": "This system's network name"},
)
def _hostname(session: ConfigSession, args: Args) -> None:
    session.device.hostname = "Router" if args.unset else args.value("name", str)
