"""Global configuration: names, users, services, terminal lines, static routes, banner."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.command_families import RANKS
from qoslab.ios.commands.inert_lines import inert_lines_of_rank
from qoslab.ios.model.device import Device, Secret, User
from qoslab.ios.model.password_hash import hash_password, verify
from qoslab.ios.registry import BLOCKS

PRINTED_DELIMITER = "^C"
# The wording of the following refusals is modelled on IOS, not taken from a printout.
BAD_HOSTNAME = "% Hostname contains one or more illegal characters."
BAD_BANNER = "% Error: a banner can not contain ^C, which delimits it in the running configuration"
BAD_SECRET = "ERROR: The secret you entered is not a valid encrypted secret."

_IP = {"ip": "Global IP configuration subcommands"}


@CONFIG.add(
    "config", "version <release:word>", help={"version": "Show running configuration's version", "release": "Release"}
)
def _configure_version(session: ConfigSession, args: Args) -> None:
    """Recognise a running configuration by its `version` line; the release is no setting."""
    session.restoring = True


@CONFIG.add(
    "config",
    "hostname <name:word>",
    no=True,
    help={"hostname": "Set system's network name", "name": "This system's network name"},
)
def _configure_hostname(session: ConfigSession, args: Args) -> None:
    name = "Router" if args.unset else args.value("name", str)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{0,62}", name):
        raise RejectedError(BAD_HOSTNAME)
    session.device.hostname = name


@CONFIG.add(
    "config",
    "service timestamps (debug|log) [uptime|datetime [(msec|localtime|show-timezone|year)+]]",
    no="service timestamps (debug|log) [uptime|datetime [(msec|localtime|show-timezone|year)+]]",
    help={
        "service": "Modify use of network based services",
        "timestamps": "Timestamp debug/log messages",
        "debug": "Timestamp debug messages",
        "log": "Timestamp log messages",
        "uptime": "Timestamp with system uptime",
        "datetime": "Timestamp with date and time",
        "msec": "Include milliseconds in timestamp",
        "localtime": "Use local time zone for timestamps",
        "show-timezone": "Add time zone information to timestamp",
        "year": "Include year in timestamp",
    },
)
def _configure_timestamps(session: ConfigSession, args: Args) -> None:
    kind = "debug" if "debug" in args else "log"
    if args.unset:
        session.device.timestamps.pop(kind, None)
        return
    options = [word for word in ("datetime", "msec", "localtime", "show-timezone", "year") if word in args]
    session.device.timestamps[kind] = " ".join(options) if options else "uptime"


_SEVERE = {
    "alerts": "Immediate action needed",
    "critical": "Critical conditions",
    "debugging": "Debugging messages",
    "emergencies": "System is unusable",
    "errors": "Error conditions",
    "informational": "Informational messages",
    "notifications": "Normal but significant conditions",
    "warnings": "Warning conditions",
}
_SEVERITIES = f"({'|'.join(_SEVERE)})"
USUAL_SEVERITY = "debugging"
USUAL_BUFFER = 4096
"""Size of the logging buffer in bytes if only a severity is given."""


@CONFIG.add(
    "config",
    f"logging console [{_SEVERITIES}]",
    no=True,
    help={"logging": "Modify message logging facilities", "console": "Set console logging parameters", **_SEVERE},
)
def _configure_logging_console(session: ConfigSession, args: Args) -> None:
    level = next((word for word in args.keywords if word in _SEVERE), None)
    session.device.logging_console = not args.is_negated
    session.device.logging_console_level = None if args.unset or level == USUAL_SEVERITY else level


@CONFIG.add(
    "config",
    f"logging buffered (<size:4096-2147483647> [{_SEVERITIES}]|{_SEVERITIES})",
    no=True,
    help={
        "logging": "Modify message logging facilities",
        "buffered": "Set buffered logging parameters",
        "size": "Logging buffer size",
        **_SEVERE,
    },
)
def _configure_logging_buffered(session: ConfigSession, args: Args) -> None:
    device = session.device
    level = next((word for word in args.keywords if word in _SEVERE), None)
    size = args.optional("size", int)
    device.logging_buffered = None if args.unset else USUAL_BUFFER if size is None else size
    device.logging_buffered_level = None if args.unset or level == USUAL_SEVERITY else level


_SECRET_HELP = {
    "0": "Specifies an UNENCRYPTED password will follow",
    "5": "Specifies an ENCRYPTED secret will follow",
    "text": "The UNENCRYPTED (cleartext) secret",
    "hash": "The ENCRYPTED secret string",
}


def _parse_secret(args: Args, present: Secret | None) -> Secret:
    """Return the secret of a line; `present` if the line has its password."""
    encrypted = args.optional("hash", str)
    if encrypted is not None:
        if not re.fullmatch(r"\$1\$[./0-9A-Za-z]{1,8}\$[./0-9A-Za-z]{22}", encrypted):
            raise RejectedError(BAD_SECRET)
        return Secret(5, encrypted)
    password = args.value("text", str)
    return present if present is not None and verify(present, password) else hash_password(password)


@CONFIG.add(
    "config",
    "enable secret (0 <text:line>|5 <hash:word>|<text:line>)",
    no=True,
    help={
        "enable": "Modify enable password parameters",
        "secret": "Assign the privileged level secret",
        **_SECRET_HELP,
    },
)
def _enable_secret(session: ConfigSession, args: Args) -> None:
    device = session.device
    device.enable_secret = None if args.unset else _parse_secret(args, device.enable_secret)
    # There is only one secret, of a known or an unknown kind.
    device.inert = device.inert.remove_line("enable secret")


@CONFIG.add(
    "config",
    "username <name:word> [privilege <level:0-15>] [secret (0 <text:line>|5 <hash:word>|<text:line>)]",
    undo=Undo(needs_removal=True),
    no="username <name:word> [privilege <level:0-15>] [secret (0 <text:line>|5 <hash:word>|<text:line>)]",
    help={
        "username": "Establish User Name Authentication",
        "name": "User name",
        "privilege": "Set user privilege level",
        "level": "User privilege level",
        "secret": "Specify the secret for the user",
        **_SECRET_HELP,
    },
)
def _configure_username(session: ConfigSession, args: Args) -> None:
    users = session.device.users
    name = args.value("name", str)
    if args.unset:
        users.pop(name, None)
    else:
        old = users.get(name, User(name))
        level = args.optional("level", int)
        secret = _parse_secret(args, old.secret) if "secret" in args else old.secret
        users[name] = User(name, old.privilege if level is None else level, secret)
    session.device.inert = session.device.inert.remove_line(f"username {name}")


def _register_ip_flag(word: str, attribute: str, text: str, requires: frozenset[str] = frozenset()) -> None:
    """Register `ip WORD`, which is on by default."""

    def handler(session: ConfigSession, args: Args) -> None:
        setattr(session.device, attribute, not args.is_negated)

    CONFIG.add("config", f"ip {word}", no=True, requires=requires, help={**_IP, word: text})(handler)


_register_ip_flag("cef", "ip_cef", "Cisco Express Forwarding", frozenset({"router"}))
_register_ip_flag("classless", "ip_classless", "Follow classless routing forwarding rules")
_register_ip_flag("subnet-zero", "ip_subnet_zero", "Allow 'subnet zero' subnets")


@CONFIG.add(
    "config",
    "ip (domain lookup|domain-lookup)",
    no=True,
    undo=Undo(key="ip (domain lookup|domain-lookup)"),
    help={
        **_IP,
        "domain": "IP DNS Resolver",
        "lookup": "Enable IP Domain Name System hostname translation",
        "domain-lookup": "Enable IP Domain Name System hostname translation",
    },
)
def _configure_domain_lookup(session: ConfigSession, args: Args) -> None:
    session.device.domain_lookup = not args.is_negated


@CONFIG.add(
    "config",
    "ip (domain name|domain-name) <name:word>",
    no="ip (domain name|domain-name) [<name:word>]",
    help={
        **_IP,
        "domain": "IP DNS Resolver",
        "name": "Define the default domain name",
        "domain-name": "Define the default domain name",
    },
)
def _configure_domain_name(session: ConfigSession, args: Args) -> None:
    session.device.domain_name = None if args.unset else args.value("name", str)


@CONFIG.add(
    "config",
    "banner (motd|login|exec|incoming) <text:line>",
    no="banner (motd|login|exec|incoming)",
    undo=Undo(key="banner (motd|login|exec|incoming)", verbatim=True),
    help={
        "banner": "Define a login banner",
        "motd": "Set Message of the Day banner",
        "login": "Set login banner",
        "exec": "Set EXEC process creation banner",
        "incoming": "Set incoming terminal line banner",
        "text": "c banner-text c, where 'c' is a delimiting character",
    },
)
def _configure_banner(session: ConfigSession, args: Args) -> None:
    device = session.device
    kind = args.keywords[-1]
    if args.unset:
        _set_banner(device, kind, None)
        return
    text = args.value("text", str)
    # A running configuration shows the control character that delimits a banner as these two characters.
    delimiter = PRINTED_DELIMITER if text.startswith(PRINTED_DELIMITER) else text[0]

    def keep(banner: str) -> None:
        if PRINTED_DELIMITER in banner:
            raise RejectedError(BAD_BANNER)
        # The session may have switched to another device since: the line that began the banner changed nothing.
        _set_banner(session.device, kind, banner)

    session.begin_banner(delimiter, keep, text.removeprefix(delimiter))


def _set_banner(device: Device, kind: str, text: str | None) -> None:
    if kind == "motd":
        device.banner_motd = text
    elif text is None:
        device.banners.pop(kind, None)
    else:
        device.banners[kind] = text


@BLOCKS.register_family(RANKS["services"])
def _heading_lines(device: Device) -> Iterator[list[str]]:
    timestamps = [f"service timestamps {kind} {device.timestamps[kind]}" for kind in sorted(device.timestamps)]
    yield [f"version {device.hardware.version}", *timestamps, *inert_lines_of_rank(device, RANKS["services"])]
    yield [f"hostname {device.hostname}"]


@BLOCKS.register_family(13)
def _logging_block(device: Device) -> Iterator[list[str]]:
    yield _logging_lines(device)


@BLOCKS.register_family(15)
def _ip_block(device: Device) -> Iterator[list[str]]:
    yield _ip_services(device)


@BLOCKS.register_family(66)
def _user_lines(device: Device) -> Iterator[list[str]]:
    yield [_find_user(device, name) for name in sorted(device.users)]


@BLOCKS.register_family(130)
def _banner_block(device: Device) -> Iterator[list[str]]:
    banners = device.banners | ({} if device.banner_motd is None else {"motd": device.banner_motd})
    for kind, text in sorted(banners.items()):
        yield f"banner {kind} {PRINTED_DELIMITER}{text}{PRINTED_DELIMITER}".split("\n")


def _logging_lines(device: Device) -> list[str]:
    level = "" if device.logging_buffered_level is None else f" {device.logging_buffered_level}"
    lines = [] if device.logging_buffered is None else [f"logging buffered {device.logging_buffered}{level}"]
    if not device.logging_console:
        lines.append("no logging console")
    elif device.logging_console_level is not None:
        lines.append(f"logging console {device.logging_console_level}")
    if device.enable_secret is not None:
        lines.append(f"enable secret {device.enable_secret.kind} {device.enable_secret.text}")
    return lines


def _ip_services(device: Device) -> list[str]:
    lines = [] if device.ip_subnet_zero else ["no ip subnet-zero"]
    if device.switch is not None:
        lines.append("ip routing")
    else:
        lines.append("ip cef" if device.ip_cef else "no ip cef")
    if not device.domain_lookup:
        lines.append("no ip domain lookup")
    if device.domain_name is not None:
        lines.append(f"ip domain name {device.domain_name}")
    return lines


def _find_user(device: Device, name: str) -> str:
    user = device.users[name]
    level = "" if user.privilege is None else f" privilege {user.privilege}"
    secret = "" if user.secret is None else f" secret {user.secret.kind} {user.secret.text}"
    return f"username {name}{level}{secret}"
