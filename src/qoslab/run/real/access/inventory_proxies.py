"""Access methods for the routers of an inventory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qoslab.errors import UserError
from qoslab.model.inventory import ANSWER_S, RouterSettings
from qoslab.run.devices.ansible_inventory import Access, IosAccess, known_hosts_file
from qoslab.run.real.access.methods import SSH_PORT, TELNET_PORT, AccessMethod, Hop


def access_methods(
    source: Path, routers: Mapping[str, Access], settings: Mapping[str, RouterSettings]
) -> dict[str, AccessMethod]:
    """Return the access method of each IOS router of the inventory `source`; engine routers have no command line."""
    return {
        name: access_method(source, access, settings.get(name, RouterSettings()))
        for name, access in routers.items()
        if isinstance(access, IosAccess)
    }


def access_method(source: Path, access: IosAccess, settings: RouterSettings) -> AccessMethod:
    """Return the access method of one router. Raise `UserError` if its known_hosts file cannot be read."""
    keys = known_hosts_file(source, settings)
    try:
        known = None if keys is None else keys.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{keys} with the routers' host keys cannot be read: {error.strerror}") from error
    # Port 22 is the value of an inventory without a port.
    telnet_port = TELNET_PORT if access.port == SSH_PORT else access.port
    return AccessMethod(
        access.host,
        access.port if settings.reach == "ssh" else telnet_port,
        settings.reach,
        access.user,
        access.password,
        access.enable,
        old_ssh=settings.old_ssh,
        jump=None if settings.jump is None else _parse_hop(settings.jump),
        check_host_key=access.check_host_key or known is not None,
        known_hosts=known,
        key=access.key,
        answer_s=access.answer_s or ANSWER_S,
    )


def _parse_hop(text: str) -> Hop:
    user, _, place = text.rpartition("@")
    host, _, port = place.partition(":")
    return Hop(host, int(port) if port else SSH_PORT, user or None)
