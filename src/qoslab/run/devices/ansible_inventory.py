"""Ansible inventories: the one of a virtual lab is generated, one for hardware is read."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from qoslab.errors import DeviceError, MachineError, UserError
from qoslab.model.inventory import PREFIX, HostSettings, LinuxRouterSettings, RouterSettings
from qoslab.platforms.base import PROGRAMS, TC_COMMANDS
from qoslab.results.redaction import KNOWN, LITERAL
from qoslab.schema.inventory import Nodes, Reader
from qoslab.system.extras import extra_install_command
from qoslab.system.shipped import shipped_path

LAB_BUFFER_READ_S = 0.02
"""Time that Ansible waits, after a prompt, for more output of a virtual router.

Its default of 0.1 s is meant for slow lines; on loopback an answer arrives whole, and the wait would delay every pushed
line.
"""

RESOLVE_S = 60.0

_FROM_ENVIRONMENT = re.compile(r"""lookup\(\s*['"](?:ansible\.builtin\.)?env['"]\s*,\s*['"](\w+)['"]\s*\)""")
_SECRET = re.compile(r"pass(?:word|phrase)?$|secret|token")
"""Pattern in the name of a secret variable."""

InventoryPart = Literal["password", "enable"]
_HIDDEN_VARIABLES: dict[str, str] = {}
"""Variables removed from this process's environment, for programs of Ansible that read an inventory again."""
UTF8 = {"LC_ALL": "C.UTF-8"}
"""Locale for Ansible, which needs UTF-8; every system with glibc or musl has it."""

_TYPED_PASSWORDS: dict[Path, Mapping[str, Mapping[InventoryPart, str]]] = {}
"""Passwords typed by the user for an inventory without them, by its file and node."""

PASSWORDS = ("ansible_password", "ansible_ssh_password", "ansible_ssh_pass")
ENABLE_SECRETS = ("ansible_become_password", "ansible_become_pass")
ANSWER_TIME = "ansible_command_timeout"
KEY_FILE = "ansible_ssh_private_key_file"
SSH_ARGUMENTS = ("ansible_ssh_common_args", "ansible_ssh_extra_args")
SECRETS: dict[InventoryPart, tuple[str, ...]] = {"password": PASSWORDS, "enable": ENABLE_SECRETS}
"""Names of secret variables by secret."""
VARIABLES = (
    "ansible_connection",
    "ansible_host",
    "ansible_ssh_host",
    "ansible_port",
    "ansible_ssh_port",
    "ansible_user",
    "ansible_ssh_user",
    *PASSWORDS,
    *ENABLE_SECRETS,
    ANSWER_TIME,
    "ansible_host_key_checking",
    KEY_FILE,
    *SSH_ARGUMENTS,
    "ansible_become",
    "ansible_become_user",
    "ansible_become_method",
    "ansible_python_interpreter",
    "engine_router_socket",
    "engine_router_program",
)
"""Variables of a node that qoslab reads; Ansible itself uses all others."""

RAW_VARIABLES = "_as_written"
"""Key of the variables with their templates, in addition to Ansible's list; it is not a valid group name."""
IOS_GROUP = "ios"
SWITCH_GROUP = "ios_switch"
"""Group of switches within the group of IOS routers."""
ENGINE_GROUP = "engine_router"
"""Groups of an inventory, named as the roles of `playbooks/`."""
HOST_GROUP = PROGRAMS.group
"""Group of machines that send, receive and capture."""
LINUX_GROUP = TC_COMMANDS.group
"""Group of Linux routers, whose kernel forwards and queues."""


GROUPS = (IOS_GROUP, ENGINE_GROUP, HOST_GROUP, LINUX_GROUP)


@dataclass(frozen=True)
class IosAccess:
    """Access to an IOS router's command line."""

    host: str
    user: str | None
    password: str | None
    """Password; None: Ansible and ssh use a key."""
    port: int = 22
    enable: str | None = None
    """Enable secret, if a login does not start at privilege level 15."""
    group: str = IOS_GROUP
    """Group of the router, or a subgroup, as for Catalyst switches."""
    proxied: bool = False
    """True for an access proxy (`qoslab.run.real.access`), which has checked the device's host key itself."""
    check_host_key: bool = True
    """True if Ansible compares its host key with those of the user."""
    pause_s: float | None = None
    """Time that clients wait for more output after a possible prompt, in seconds; None: their own default."""
    key: str | None = None
    """File of a private key; None: the user's keys, if there is no password."""
    answer_s: int | None = None
    """Longest silence before an answer; None: each client's default."""


@dataclass(frozen=True)
class EngineAccess:
    """Access to the data plane of an engine router."""

    socket: str
    """Path of the control socket, on the machine that runs the control program."""
    program: str = "qos-router"
    """Path of the control program there."""
    host: str | None = None
    """Host name; None: this machine; otherwise reached by ssh."""
    user: str | None = None
    password: str | None = None
    port: int = 22
    group: str = ENGINE_GROUP


Access = IosAccess | EngineAccess


@dataclass(frozen=True)
class HostAccess:
    """Access to a host by the system's ssh, with a key."""

    host: str
    port: int | None = None
    """Port; None: as in ssh's own configuration, like everything else."""
    user: str | None = None
    key: str | None = None
    """File of a private key."""
    known_hosts: str | None = None
    become: tuple[str, ...] = ()
    """Prefix of commands that root must run."""
    python: str = "python3"
    arguments: tuple[str, ...] = ()
    """Further arguments of ssh."""


@dataclass(frozen=True)
class LabInventory:
    """Nodes of an inventory, with their access and settings."""

    file: Path
    routers: Mapping[str, Access]
    """Routers with a command line or a control socket."""
    hosts: Mapping[str, HostAccess]
    linux_routers: Mapping[str, HostAccess]
    nodes: Nodes


def ansible_inventory(routers: Mapping[str, Access], *, lab: bool = True) -> dict[str, Any]:
    """Return the inventory of `routers`, by name, in Ansible's YAML structure.

    `lab`: they are virtual routers on this machine, so host keys are not checked and answers arrive at once.
    """
    groups: dict[str, dict[str, Any]] = {}
    for name, access in routers.items():
        variables = _ios_variables(access) if isinstance(access, IosAccess) else _engine_variables(access)
        groups.setdefault(access.group, {})[name] = variables
    children: dict[str, Any] = {group: {"hosts": hosts} for group, hosts in groups.items()}
    within = {access.group for access in routers.values() if isinstance(access, IosAccess)} - {IOS_GROUP}
    if within:
        children.setdefault(IOS_GROUP, {})["children"] = {group: children.pop(group) for group in sorted(within)}
    if IOS_GROUP in children:
        children[IOS_GROUP]["vars"] = {
            "ansible_connection": "ansible.netcommon.network_cli",
            "ansible_network_os": "cisco.ios.ios",
        }
        if lab:
            children[IOS_GROUP]["vars"] |= {
                "ansible_host_key_checking": False,
                "ansible_buffer_read_timeout": LAB_BUFFER_READ_S,
            }
    return {"all": {"children": children}}


def _ios_variables(access: IosAccess) -> dict[str, Any]:
    variables: dict[str, Any] = {"ansible_host": access.host, "ansible_port": access.port}
    if access.user is not None:
        variables["ansible_user"] = access.user
    if access.password is not None:
        variables["ansible_password"] = access.password
    if access.key is not None:
        variables[KEY_FILE] = access.key
    if access.proxied or not access.check_host_key:
        variables["ansible_host_key_checking"] = False
    if access.pause_s is not None:
        variables["ansible_buffer_read_timeout"] = access.pause_s
    if access.answer_s is not None:
        variables[ANSWER_TIME] = access.answer_s
    if access.enable is not None:
        variables |= {
            "ansible_become": True,
            "ansible_become_method": "ansible.netcommon.enable",
            "ansible_become_password": access.enable,
        }
    return variables


def _engine_variables(access: EngineAccess) -> dict[str, Any]:
    variables: dict[str, Any] = {"engine_router_socket": access.socket, "engine_router_program": access.program}
    if access.host is None:
        # The interpreter is named, since a search for one takes a second.
        return variables | {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    variables |= {"ansible_host": access.host, "ansible_port": access.port}
    if access.user is not None:
        variables["ansible_user"] = access.user
    if access.password is not None:
        variables["ansible_password"] = access.password
    return variables


def write_inventory(path: Path, routers: Mapping[str, Access], *, lab: bool = True) -> None:
    """Write the inventory to `path`, a name ending in `.json`, readable only by its owner, because of the passwords."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)
        json.dump(ansible_inventory(routers, lab=lab), file, indent=1)


def read_inventory(source: Path) -> dict[str, Access]:
    """Return the routers of a hardware inventory, as `ansible-inventory` resolves it, by name.

    Only hosts of the groups `ios` and `engine_router` are returned. Raise `UserError` if the inventory does not exist
    or cannot be read, `DeviceError` if the variables of a router do not suffice.
    """
    routers = parse_inventory(_list_inventory(source))
    if not routers:
        raise UserError(
            f"found no router in {source}", hint=f"Put routers into the groups {IOS_GROUP} or {ENGINE_GROUP}."
        )
    return routers


def read_lab(source: Path) -> LabInventory:
    """Return routers and hosts of an inventory, with their settings. Raise `UserError` with all of its errors."""
    return parse_lab(_list_inventory(source), source)


def parse_lab(listed: Mapping[str, Any], source: Path) -> LabInventory:
    """Parse the output of `ansible-inventory --list` for `source`, like `read_lab`."""
    if not _group_hosts(listed, HOST_GROUP):
        raise UserError(
            f"found no host in {source}", hint=f"Put the sending and receiving machines into the group {HOST_GROUP}."
        )
    return _parse_nodes(listed, source)


def read_nodes(source: Path) -> LabInventory:
    """Read the nodes like `read_lab`, also from an inventory without hosts."""
    return _parse_nodes(_list_inventory(source), source)


def _parse_nodes(listed: Mapping[str, Any], source: Path) -> LabInventory:
    variables: Mapping[str, Mapping[str, Any]] = listed["_meta"]["hostvars"]
    routers = parse_inventory(listed)
    names, linux = _group_hosts(listed, HOST_GROUP), _group_hosts(listed, LINUX_GROUP)
    for name in (*names, *linux):
        if name in routers or (name in names and name in linux):
            group = HOST_GROUP if name in names else LINUX_GROUP
            raise UserError(f"{source}: found {name} in the group {group} and in another group of routers")
    reader = Reader(source)
    nodes = Nodes(
        hosts={name: reader.read(HostSettings, name, variables.get(name, {})) for name in names},
        routers={name: reader.read(RouterSettings, name, variables.get(name, {})) for name in routers},
        addresses={name: _access_method(name, variables.get(name, {})) for name in (*names, *linux, *routers)},
        linux_routers={name: reader.read(LinuxRouterSettings, name, variables.get(name, {})) for name in linux},
        emulated_by=reader.read_emulated_by(variables),
    )
    _refuse_unread(reader, routers, (*names, *linux), variables)
    if reader.findings:
        raise UserError("\n".join(map(str, reader.findings)))
    hosts = {name: _read_host_access(name, variables.get(name, {}), nodes.hosts[name], source) for name in names}
    boxes = {
        name: _read_host_access(name, variables.get(name, {}), nodes.linux_routers[name], source) for name in linux
    }
    return LabInventory(source, routers, hosts, boxes, nodes)


def read_routers(source: Path) -> tuple[dict[str, Access], dict[str, RouterSettings]]:
    """Read the routers of an inventory and their settings, with or without hosts. Errors as for `read_lab`."""
    listed = _list_inventory(source)
    variables: Mapping[str, Mapping[str, Any]] = listed["_meta"]["hostvars"]
    routers = parse_inventory(listed)
    reader = Reader(source)
    settings = {name: reader.read(RouterSettings, name, variables.get(name, {})) for name in routers}
    _refuse_unread(reader, routers, (), variables)
    if reader.findings:
        raise UserError("\n".join(map(str, reader.findings)))
    return routers, settings


def _refuse_unread(
    reader: Reader, routers: Mapping[str, Access], hosts: Iterable[str], variables: Mapping[str, Mapping[str, Any]]
) -> None:
    """Refuse settings that Ansible would apply but qoslab does not, so that they are not silently ignored."""
    for name, access in routers.items():
        for word in SSH_ARGUMENTS if isinstance(access, IosAccess) else ():
            if given := _text_variable(variables.get(name, {}), word):
                hint = "no ssh program connects to it: qoslab_jump gives a jump host, qoslab_old_ssh old algorithms"
                reader.refuse(name, word, f'found "{given}" on a router, expected it on hosts only', hint)
    for name in hosts:
        given_here = variables.get(name, {})
        if not _is_true(given_here.get("ansible_become")):
            continue
        for word, only in (("ansible_become_user", "root"), ("ansible_become_method", "sudo")):
            given = _text_variable(given_here, word)
            if given is not None and given.removeprefix("ansible.builtin.") != only:
                hint = "leave it out; the host's agent runs behind `sudo -n`"
                reader.refuse(name, word, f'found "{given}" on a host, expected {only}', hint)


def password_variables(source: Path) -> dict[str, dict[InventoryPart, str]]:
    """Return the environment variables of passwords by node, under the keys `password` and `enable`."""
    found: dict[str, dict[InventoryPart, str]] = {}
    for node, values in _list_inventory(source)[RAW_VARIABLES].items():
        for what, names in SECRETS.items():
            taken = _FROM_ENVIRONMENT.search(_text_variable(values, *names) or "")
            if taken is not None:
                found.setdefault(node, {})[what] = taken[1]
    return found


def known_hosts_file(source: Path, settings: HostSettings | LinuxRouterSettings | RouterSettings) -> Path | None:
    """Return the file with a node's host key, if the inventory names one."""
    if settings.known_hosts is None:
        return None
    return source.absolute().parent / Path(settings.known_hosts).expanduser()


def _access_method(name: str, variables: Mapping[str, Any]) -> str:
    host = _text_variable(variables, "ansible_host", "ansible_ssh_host") or name
    return f"{host} port {_read_port(name, variables)}"


def _read_host_access(
    name: str, variables: Mapping[str, Any], settings: HostSettings | LinuxRouterSettings, source: Path
) -> HostAccess:
    _register_secrets(variables)
    key = _text_variable(variables, KEY_FILE)
    if key is None and _text_variable(variables, *PASSWORDS):
        raise UserError(
            f"{source}: found a password for {name}, expected a key",
            hint="Install a key there (ssh-copy-id), and leave the password out.",
        )
    known_hosts = known_hosts_file(source, settings)
    arguments = [_text_variable(variables, word) or "" for word in SSH_ARGUMENTS]
    has_port = _text_variable(variables, "ansible_port", "ansible_ssh_port") is not None
    return HostAccess(
        host=_text_variable(variables, "ansible_host", "ansible_ssh_host") or name,
        port=_read_port(name, variables) if has_port else None,
        user=_text_variable(variables, "ansible_user", "ansible_ssh_user"),
        key=key and str(Path(key).expanduser()),
        known_hosts=None if known_hosts is None else str(known_hosts),
        become=("sudo", "-n") if _is_true(variables.get("ansible_become")) else (),
        python=_python_interpreter(variables),
        arguments=tuple(shlex.split(" ".join(arguments))),
    )


def _python_interpreter(variables: Mapping[str, Any]) -> str:
    named = _text_variable(variables, "ansible_python_interpreter") or ""
    # Ansible's values `auto`, `auto_silent` and so on name none.
    return "python3" if named.startswith("auto") or not named else named


def _is_true(value: object) -> bool:
    return str(value).lower() in ("true", "yes", "on", "1")


def give_secrets(source: Path, given: Mapping[str, Mapping[InventoryPart, str]]) -> None:
    """Add variables to the nodes of the inventory `source` for this process; empty texts are ignored."""
    _TYPED_PASSWORDS[source.resolve()] = given


def _list_inventory(source: Path) -> dict[str, Any]:
    """Return the output of `ansible-inventory --list` with templates rendered, secrets decrypted and given values."""
    if not source.exists():
        raise UserError(
            f"there is no inventory {source}", hint="Start from inventory/hardware.example.yml and give its path."
        )
    stat = source.stat()
    listed = _list_inventory_cached(source, stat.st_mtime_ns, stat.st_size)
    variables = dict(listed["_meta"]["hostvars"])
    for node, secrets in _TYPED_PASSWORDS.get(source.resolve(), {}).items():
        variables[node] = {**variables.get(node, {}), **{SECRETS[what][0]: text for what, text in secrets.items()}}
    return {**listed, "_meta": {"hostvars": variables}}


@functools.cache
def _list_inventory_cached(source: Path, changed_ns: int, size: int) -> dict[str, Any]:
    """Return the list, read only once: variables from the environment are removed after the first reading."""
    try:
        listed: dict[str, Any] = json.loads(_run_ansible(source, "ansible-inventory", "--list"))
    except ValueError as error:
        raise UserError(f"ansible-inventory printed no JSON for {source}: {error}") from error
    variables = listed.get("_meta", {}).get("hostvars", {})
    written = variables
    own = {name for values in variables.values() for name in values if name.startswith(PREFIX)}
    names = (*VARIABLES, *sorted(own))
    if any(not _is_final_value(values.get(name)) for values in variables.values() for name in names):
        resolved = _resolve(source, names)
        variables = {
            node: {name: value for name, value in values.items() if value is not None}
            for node, values in resolved.items()
        }
    return {**listed, "_meta": {"hostvars": variables}, RAW_VARIABLES: written}


def _is_final_value(value: object) -> bool:
    """Return whether `ansible-inventory` prints the final value: neither a template nor encrypted."""
    return "{{" not in str(value) and not (isinstance(value, dict) and "__ansible_vault" in value)


def _resolve(source: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Resolve these variables of the nodes: render templates and decrypt secrets that `--list` leaves unchanged."""
    wanted = ", ".join(f"'{name}': {name} | default(none)" for name in names)
    arguments = ["-m", "ansible.builtin.debug", "-a", f"msg={{{{ {{{wanted}}} }}}}"]
    printed = _run_ansible(source, "ansible", ":".join(GROUPS), *arguments, callback="ansible.posix.json")
    try:
        results = json.loads(printed)["plays"][0]["tasks"][0]["hosts"]
        return {name: dict(result["msg"]) for name, result in results.items()}
    except (ValueError, LookupError, TypeError) as error:
        raise UserError(f"the variables in {source} cannot be resolved: {printed.strip()[:500]}") from error


def _run_ansible(source: Path, name: str, *arguments: str, callback: str | None = None) -> str:
    """Return the output of one of Ansible's programs for the inventory."""
    program = Path(sys.executable).parent / name
    playbooks = shipped_path("playbooks")
    # Same settings as in a run: otherwise Ansible reads ansible.cfg and variables from the current folder.
    own = {"ANSIBLE_CONFIG": str(playbooks.parent / "ansible.cfg")}
    plain = {**UTF8, "ANSIBLE_NOCOLOR": "true", "ANSIBLE_DEPRECATION_WARNINGS": "false"}
    # Otherwise a file that no plugin can parse is an inventory without hosts.
    plain["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"] = "true"
    environment = {**_HIDDEN_VARIABLES, **own, **os.environ, **plain}
    if callback is not None:
        environment |= {"ANSIBLE_LOAD_CALLBACK_PLUGINS": "true", "ANSIBLE_STDOUT_CALLBACK": callback}
    try:
        done = subprocess.run(
            [str(program), "-i", str(source), "--playbook-dir", str(playbooks), *arguments],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=RESOLVE_S,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise MachineError(f"{program} is missing", hint="Install the package ansible.") from error
    except subprocess.TimeoutExpired as error:
        raise UserError(f"the inventory {source} was not resolved within {RESOLVE_S:.0f} s") from error
    if done.returncode != 0:
        raise _read_error(source, name, done.stdout, done.stderr)
    return done.stdout


def _read_error(source: Path, name: str, printed: str, errors: str) -> UserError:
    """Return why an inventory could not be read: Ansible's message on each node, else its whole output."""
    try:
        hosts = json.loads(printed)["plays"][0]["tasks"][0]["hosts"]
        failed = {node: str(result["msg"]) for node, result in hosts.items() if result.get("failed")}
    except (ValueError, LookupError, TypeError, AttributeError):
        failed = {}
    if parsed := _parse_error(source, errors):
        return UserError(f"{parsed}, expected an inventory of Ansible in YAML or INI form")
    listed = "\n".join(f"  {node}: {message.removeprefix('Task failed: ')}" for node, message in failed.items())
    output = f"\n{listed}" if listed else f" {(errors or printed).strip()}"
    return UserError(f"{name} cannot read {source}:{output}", hint=_missing_secret_hint(output))


def _parse_error(source: Path, errors: str) -> str:
    """Return why a file cannot be parsed, with its line if Ansible prints it; empty for any other error."""
    plugin = "yaml" if source.suffix in (".yml", ".yaml", ".json") else "ini"
    _, _, section = errors.partition(f"Failed to parse inventory with '{plugin}' plugin: ")
    section = section.partition("[WARNING]")[0]
    reason = section.partition("\n")[0].removeprefix("Failed to parse inventory: ").partition(", got: <class")[0]
    reason = reason.rstrip(". ")
    place = re.search(rf"^Origin: {re.escape(str(source))}:(\d+)", errors, re.MULTILINE)
    return f"{source}{f':{place[1]}' if place else ''}: found no inventory: {reason}" if reason else ""


def _missing_secret_hint(output: str) -> str:
    """Return the hint for a missing secret."""
    if "LOOKUP(keyring)" in output:
        return extra_install_command("keyring")
    if "servicename:" in output:
        return "Put it into the keyring: keyring set SERVICE USER."
    locked = "vault" in output or "ecrypt" in output
    return "Name the file with the vault's password in ANSIBLE_VAULT_PASSWORD_FILE." if locked else ""


def parse_inventory(listed: Mapping[str, Any]) -> dict[str, Access]:
    """Return the routers in the output of `ansible-inventory --list`."""
    variables: Mapping[str, Mapping[str, Any]] = listed.get("_meta", {}).get("hostvars", {})
    routers: dict[str, Access] = {}
    switches = _group_hosts(listed, SWITCH_GROUP)
    for name in _group_hosts(listed, IOS_GROUP):
        group = SWITCH_GROUP if name in switches else IOS_GROUP
        routers[name] = replace(_read_ios_access(name, variables.get(name, {})), group=group)
    for name in _group_hosts(listed, ENGINE_GROUP):
        if name in routers:
            raise DeviceError(
                f"{name} is in both groups {IOS_GROUP} and {ENGINE_GROUP}", hint="Remove it from one of them."
            )
        routers[name] = _read_engine_access(name, variables.get(name, {}))
    return routers


def _group_hosts(listed: Mapping[str, Any], group: str) -> list[str]:
    entry = listed.get(group, {})
    names = list(entry.get("hosts", []))
    for child in entry.get("children", []):
        names += [name for name in _group_hosts(listed, child) if name not in names]
    return names


def _text_variable(variables: Mapping[str, Any], *names: str) -> str | None:
    for name in names:
        # A missing environment variable appears as an empty text.
        if variables.get(name) not in (None, ""):
            return str(variables[name])
    return None


def _read_port(name: str, variables: Mapping[str, Any]) -> int:
    text = _text_variable(variables, "ansible_port", "ansible_ssh_port")
    if text is None:
        return 22
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise DeviceError(f"{name}: found ansible_port {text!r}, expected a TCP port")
    return int(text)


def _read_answer_s(name: str, variables: Mapping[str, Any]) -> int | None:
    text = _text_variable(variables, ANSWER_TIME)
    if text is None:
        return None
    if not text.isdecimal() or not int(text):
        raise DeviceError(f"{name}: found {ANSWER_TIME} {text!r}, expected whole seconds, such as 120")
    return int(text)


def _read_ios_access(name: str, variables: Mapping[str, Any]) -> IosAccess:
    _register_secrets(variables)
    key = _text_variable(variables, KEY_FILE)
    return IosAccess(
        host=_text_variable(variables, "ansible_host", "ansible_ssh_host") or name,
        port=_read_port(name, variables),
        user=_text_variable(variables, "ansible_user", "ansible_ssh_user"),
        password=_text_variable(variables, *PASSWORDS),
        key=key and str(Path(key).expanduser()),
        enable=_text_variable(variables, *ENABLE_SECRETS),
        check_host_key=str(variables.get("ansible_host_key_checking", True)).lower() not in ("false", "no", "0"),
        answer_s=_read_answer_s(name, variables),
    )


def _register_secrets(variables: Mapping[str, Any]) -> None:
    """Mask the passwords of an inventory in all further output and files."""
    secrets = {str(value) for name, value in variables.items() if _SECRET.search(name) and value not in (None, "")}
    KNOWN.know(*secrets)
    # Variables from the environment are removed for child processes: any process of this user can read theirs.
    for name, value in list(os.environ.items()):
        if value in secrets and len(value) >= LITERAL:
            _HIDDEN_VARIABLES[name] = os.environ.pop(name)


def _read_engine_access(name: str, variables: Mapping[str, Any]) -> EngineAccess:
    _register_secrets(variables)
    local = variables.get("ansible_connection") in ("local", "ansible.builtin.local")
    return EngineAccess(
        socket=_text_variable(variables, "engine_router_socket") or f"/run/qoslab/{name}/control.sock",
        program=_text_variable(variables, "engine_router_program") or "qos-router",
        host=None if local else _text_variable(variables, "ansible_host", "ansible_ssh_host") or name,
        port=_read_port(name, variables),
        user=_text_variable(variables, "ansible_user", "ansible_ssh_user"),
        password=_text_variable(variables, *PASSWORDS),
    )
