"""Global configuration: names, users, services, terminal lines, static routes, banner."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network
from typing import Literal

from qoslab.ios.cli.grammar import Args, RejectedError
from qoslab.ios.cli.session import CONFIG, ConfigSession
from qoslab.ios.cli.undo import Undo
from qoslab.ios.model.device import Line, Secret, StaticRoute, User
from qoslab.ios.model.secrets import secret_of, verify

MAX_VTY = 15
PRINTED_DELIMITER = "^C"
# The wording of the following refusals is modelled on IOS, not taken from a printout.
BAD_HOSTNAME = "% Hostname contains one or more illegal characters."
INCONSISTENT_MASK = "%Inconsistent address and mask"
OWN_ADDRESS = "%Invalid next hop address (it's this router)"
BAD_BANNER = "% Error: a banner can not contain ^C, which delimits it in the running configuration"
BAD_SECRET = "ERROR: The secret you entered is not a valid encrypted secret."

_IP = {"ip": "Global IP configuration subcommands"}


@CONFIG.add(
    "config", "version <release:word>", help={"version": "Show running configuration's version", "release": "Release"}
)
def _version(session: ConfigSession, args: Args) -> None:
    """Know by the line that heads every running configuration that one follows; the release is no setting."""
    session.restoring = True


@CONFIG.add(
    "config",
    "hostname <name:word>",
    no=True,
    help={"hostname": "Set system's network name", "name": "This system's network name"},
)
def _hostname(session: ConfigSession, args: Args) -> None:
    name = "Router" if args.unset else args.value("name", str)
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{0,62}", name):
        raise RejectedError(BAD_HOSTNAME)
    session.device.hostname = name


@CONFIG.add(
    "config",
    "service timestamps (debug|log) [uptime|datetime [(msec|localtime|show-timezone)+]]",
    no="service timestamps (debug|log) [uptime|datetime [(msec|localtime|show-timezone)+]]",
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
    },
)
def _timestamps(session: ConfigSession, args: Args) -> None:
    kind = "debug" if "debug" in args else "log"
    if args.unset:
        session.device.timestamps.pop(kind, None)
        return
    options = [word for word in ("datetime", "msec", "localtime", "show-timezone") if word in args]
    session.device.timestamps[kind] = " ".join(options) if options else "uptime"


@CONFIG.add(
    "config",
    "logging console",
    no=True,
    help={"logging": "Modify message logging facilities", "console": "Set console logging parameters"},
)
def _logging_console(session: ConfigSession, args: Args) -> None:
    session.device.logging_console = not args.negated


@CONFIG.add(
    "config",
    "logging buffered <size:4096-2147483647>",
    no=True,
    help={
        "logging": "Modify message logging facilities",
        "buffered": "Set buffered logging parameters",
        "size": "Logging buffer size",
    },
)
def _logging_buffered(session: ConfigSession, args: Args) -> None:
    session.device.logging_buffered = None if args.unset else args.value("size", int)


_SECRET_HELP = {
    "0": "Specifies an UNENCRYPTED password will follow",
    "5": "Specifies an ENCRYPTED secret will follow",
    "text": "The UNENCRYPTED (cleartext) secret",
    "hash": "The ENCRYPTED secret string",
}


def _secret(args: Args, present: Secret | None) -> Secret:
    """Return the secret that a line says; a password that `present` was made of leaves it as it is."""
    encrypted = args.optional("hash", str)
    if encrypted is not None:
        if not re.fullmatch(r"\$1\$[./0-9A-Za-z]{1,8}\$[./0-9A-Za-z]{22}", encrypted):
            raise RejectedError(BAD_SECRET)
        return Secret(5, encrypted)
    password = args.value("text", str)
    return present if present is not None and verify(present, password) else secret_of(password)


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
    device.enable_secret = None if args.unset else _secret(args, device.enable_secret)


@CONFIG.add(
    "config",
    "username <name:word> [privilege <level:0-15>] [secret (0 <text:line>|5 <hash:word>|<text:line>)]",
    undo=Undo(afresh=True),
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
def _username(session: ConfigSession, args: Args) -> None:
    users = session.device.users
    name = args.value("name", str)
    if args.unset:
        users.pop(name, None)
        return
    old = users.get(name, User(name))
    level = args.optional("level", int)
    secret = _secret(args, old.secret) if "secret" in args else old.secret
    users[name] = User(name, old.privilege if level is None else level, secret)


def _flag(word: str, attribute: str, text: str, requires: frozenset[str] = frozenset()) -> None:
    """Register `ip WORD`, which is on by default."""

    def handler(session: ConfigSession, args: Args) -> None:
        setattr(session.device, attribute, not args.negated)

    CONFIG.add("config", f"ip {word}", no=True, requires=requires, help={**_IP, word: text})(handler)


_flag("cef", "ip_cef", "Cisco Express Forwarding", frozenset({"router"}))
_flag("classless", "ip_classless", "Follow classless routing forwarding rules")
_flag("subnet-zero", "ip_subnet_zero", "Allow 'subnet zero' subnets")


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
def _domain_lookup(session: ConfigSession, args: Args) -> None:
    session.device.domain_lookup = not args.negated


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
def _domain_name(session: ConfigSession, args: Args) -> None:
    session.device.domain_name = None if args.unset else args.value("name", str)


_ROUTE = "ip route <prefix:address> <mask:mask> (<hop:address>|<out:interface> [<hop:address>]) [<distance:1-255>]"


@CONFIG.add(
    "config",
    _ROUTE,
    undo=Undo(key=_ROUTE),
    no="ip route <prefix:address> <mask:mask> [(<hop:address>|<out:interface> [<hop:address>]) [<distance:1-255>]]",
    help={
        **_IP,
        "route": "Establish static routes",
        "prefix": "Destination prefix",
        "mask": "Destination prefix mask",
        "hop": "Forwarding router's address",
        "out": "Interface type and number",
        "distance": "Distance metric for this route",
    },
)
def _route(session: ConfigSession, args: Args) -> None:
    device = session.device
    prefix, mask = args.value("prefix", IPv4Address), args.value("mask", IPv4Address)
    length = int(mask).bit_count()
    if int(mask) != (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF or int(prefix) & ~int(mask):
        raise RejectedError(INCONSISTENT_MASK)
    out, hop = args.optional("out", str), args.optional("hop", IPv4Address)
    network, distance = IPv4Network((prefix, length)), args.optional("distance", int)
    if args.unset:
        device.routes = [
            route
            for route in device.routes
            if route.prefix != network
            or ((out is not None or hop is not None) and (route.interface, route.next_hop) != (out, hop))
        ]
        return
    if out is not None and out not in device.interfaces:
        raise args.invalid("out")
    if hop is not None and any(i.address is not None and i.address.ip == hop for i in device.interfaces.values()):
        raise RejectedError(OWN_ADDRESS)
    route = StaticRoute(network, hop, out, None if distance == 1 else distance)
    same = [r for r in device.routes if (r.prefix, r.next_hop, r.interface) == (network, hop, out)]
    device.routes = [r for r in device.routes if r not in same] + [route]
    device.routes.sort(key=route_order)


def route_order(route: StaticRoute) -> tuple[int, int, str, int]:
    """Return the key by which a running configuration lists static routes."""
    hop = 0 if route.next_hop is None else int(route.next_hop)
    return int(route.prefix.network_address), route.prefix.prefixlen, route.interface or "", hop


@CONFIG.add(
    "config",
    "banner motd <text:line>",
    no="banner motd",
    undo=Undo(verbatim=True),
    help={
        "banner": "Define a login banner",
        "motd": "Set Message of the Day banner",
        "text": "c banner-text c, where 'c' is a delimiting character",
    },
)
def _banner(session: ConfigSession, args: Args) -> None:
    device = session.device
    if args.unset:
        device.banner_motd = None
        return
    text = args.value("text", str)
    # A running configuration shows the control character that delimits a banner as these two characters.
    delimiter = PRINTED_DELIMITER if text.startswith(PRINTED_DELIMITER) else text[0]

    def keep(banner: str) -> None:
        if PRINTED_DELIMITER in banner:
            raise RejectedError(BAD_BANNER)
        # The session may have been given another device since: the line that began the banner changed nothing.
        session.device.banner_motd = banner

    session.begin_banner(delimiter, keep, text.removeprefix(delimiter))


# Terminal lines.


def _single_lines(args: Args) -> list[str]:
    """Return `line vty 0 4` as one line for each terminal line."""
    if "console" in args:
        return ["line con 0"]
    first, last = args.value("first", int), args.optional("last", int)
    return [f"line vty {number}" for number in range(first, (first if last is None else last) + 1)]


@CONFIG.add(
    "config",
    "line (console <number:0-0>|vty <first:0-15> [<last:1-15>])",
    undo=Undo(split=_single_lines),
    help={
        "line": "Configure a terminal line",
        "console": "Primary terminal line",
        "vty": "Virtual terminal",
        "number": "Line number",
        "first": "First Line number",
        "last": "Last Line number",
    },
)
def _line(session: ConfigSession, args: Args) -> None:
    lines = session.device.lines
    if "console" in args:
        session.enter("line", "con 0")
        return
    first = args.value("first", int)
    last = args.optional("last", int)
    last = first if last is None else last
    if last < first:
        raise args.invalid("last")
    for number in range(last + 1):
        lines.setdefault(f"vty {number}", Line("vty", number))
    session.enter("line", ",".join(f"vty {number}" for number in range(first, last + 1)))


@CONFIG.add(
    "config",
    "line aux <number:0-0>",
    undo=Undo(split=lambda args: ["line aux 0"]),
    requires={"router"},
    help={"line": "Configure a terminal line", "aux": "Auxiliary line", "number": "Line number"},
)
def _auxiliary_line(session: ConfigSession, args: Args) -> None:
    session.enter("line", "aux 0")


@CONFIG.add_no(
    "config",
    "line vty <first:5-15> [<last:6-15>]",
    help={"line": "Configure a terminal line", "vty": "Virtual terminal", "first": "First Line number", "last": "Last"},
)
def _no_line(session: ConfigSession, args: Args) -> None:
    # IOS removes the line and all behind it; the first five are always there.
    for number in range(args.value("first", int), MAX_VTY + 1):
        session.device.lines.pop(f"vty {number}", None)


@CONFIG.add(
    "line",
    "exec-timeout <minutes:0-35791> [<seconds:0-2147483>]",
    no=True,
    undo=Undo(line="default exec-timeout"),
    help={
        "exec-timeout": "Set the EXEC timeout",
        "minutes": "Timeout in minutes",
        "seconds": "Timeout in seconds",
    },
)
def _exec_timeout(session: ConfigSession, args: Args) -> None:
    timeout: tuple[int, int] | None = None
    if args.negated:
        timeout = (0, 0)
    elif not args.unset:
        timeout = (args.value("minutes", int), args.optional("seconds", int) or 0)
    for line in session.terminal_lines:
        line.exec_timeout = None if timeout == (10, 0) else timeout


@CONFIG.add(
    "line",
    "logging synchronous",
    no=True,
    help={"logging": "Modify message logging facilities", "synchronous": "Synchronized message output"},
)
def _logging_synchronous(session: ConfigSession, args: Args) -> None:
    for line in session.terminal_lines:
        line.logging_synchronous = not args.unset


@CONFIG.add(
    "line",
    "login [local]",
    no=True,
    undo=Undo(line="default login"),
    help={"login": "Enable password checking", "local": "Local password checking"},
)
def _login(session: ConfigSession, args: Args) -> None:
    for line in session.terminal_lines:
        default: Literal["none", "password"] = "password" if line.kind == "vty" else "none"
        login: Literal["none", "password", "local"] = "local" if "local" in args else "password"
        if args.form == "default":
            login = default
        elif args.negated:
            login = "none"
        line.login = None if login == default else login


@CONFIG.add(
    "line",
    "password [0] <text:line>",
    no=True,
    help={
        "password": "Set a password",
        "0": "Specifies an UNENCRYPTED password will follow",
        "text": "The UNENCRYPTED line password",
    },
)
def _password(session: ConfigSession, args: Args) -> None:
    for line in session.terminal_lines:
        line.password = None if args.unset else args.value("text", str)


@CONFIG.add(
    "line",
    "transport input (all|none|(ssh|telnet)+)",
    no=True,
    help={
        "transport": "Define transport protocols for line",
        "input": "Define which protocols to use when connecting to the terminal server",
        "all": "All protocols",
        "none": "No protocols",
        "ssh": "TCP/IP SSH protocol",
        "telnet": "TCP/IP Telnet protocol",
    },
)
def _transport(session: ConfigSession, args: Args) -> None:
    protocols = tuple(word for word in ("all", "none", "telnet", "ssh") if word in args)
    for line in session.terminal_lines:
        line.transport_input = None if args.unset else protocols


@CONFIG.add(
    "line",
    "privilege level <level:0-15>",
    no=True,
    help={"privilege": "Change privilege level for line", "level": "Assign default privilege level for line"},
)
def _privilege(session: ConfigSession, args: Args) -> None:
    for line in session.terminal_lines:
        line.privilege = None if args.unset else args.value("level", int)
