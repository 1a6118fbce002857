"""Settings on a host: changed, compared, restored, with a journal and a watchdog.

Data for restoring is saved in a journal on disk before a change; the watchdog, a separate process, restores the
settings when the agent ends in any way. If both are killed, the next agent does so. Only one run at a time has an
interface, see `lock`; the journal is locked while its content is restored.
"""

# pathlib and similar modules take longer to import than everything else here; some hosts are slow.
# ruff: noqa: PTH103, PTH116, PTH118

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import ipaddress
import json
import os
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable
from typing import Any

from qoslab.run.real.agent.kernel import (
    AgentRefusedError,
    active_settings,
    call,
    family_option,
    read_sysctl,
    recreate_arguments,
    route_lines,
    route_metric,
    route_metrics,
    substitute_remaining,
    write_sysctl,
)
from qoslab.run.real.agent.lock import UNKNOWN, InterfaceLock, lock_holder
from qoslab.run.real.agent.nic import check_movable, current_state_journal, global_addresses

CHUNK = 1 << 16
STATE_FOLDERS = ("/run/qoslab/.agent", "/var/tmp/qoslab-agent")
"""Folders for journals; the first usable one is taken."""
RESTORE_S = 4.0
"""Time limit for the watchdog of a dead agent to restore the settings."""
CARRIER_S = 10.0
"""Time limit for a NIC to have a link again after it was brought up."""
ALIKE = {("net.ipv4.tcp_ecn", "0"): ("2",), ("net.ipv6.icmp.ratelimit", "1000"): ("100",)}
"""Alternative values that are as good as the required one: defaults of newer kernels.

ECN is granted to no host that does not request it, and no host of the experiment does; ten short answers a second of a
closed port are hardly more than one.
"""
CLONE_NEWNET = 0x40000000
CONNECTED_METRIC = "256"
"""Metric of the kernel's route for an interface's own IPv6 prefix (IP6_RT_PRIO_ADDRCONF)."""
QUIET_IPV6 = ("accept_ra", "accept_dad", "autoconf", "router_solicitations", "use_tempaddr", "accept_redirects")
"""Settings that are 0 in qoslab's namespace: no router advertisements, no duplicate address detection."""

libc = ctypes.CDLL(None, use_errno=True)


def new_namespace() -> int:
    """Return the descriptor of a new network namespace; this thread stays in its own one."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        if libc.unshare(CLONE_NEWNET) == -1:
            raise AgentRefusedError(f"cannot create a namespace: {os.strerror(ctypes.get_errno())}")
        made = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        if libc.setns(home, CLONE_NEWNET) == -1:
            # All further commands would be in the wrong namespace.
            os._exit(1)
    finally:
        os.close(home)
    return made


def supported_settings(sysctls: dict[str, str]) -> dict[str, str]:
    """Return the settings that this kernel has: those of IPv6 only if it supports IPv6."""
    if read_sysctl("net.ipv6.conf.all.disable_ipv6") is not None:
        return sysctls
    return {key: value for key, value in sysctls.items() if not key.startswith("net.ipv6.")}


def settings_differences(
    sysctls: dict[str, str], far: dict[str, dict[str, str]], alike: bool = True
) -> list[list[str]]:
    """Return the differing settings with actual and required value; `alike` accepts alternative values.

    The required value is empty for a far address without a route.
    """
    found = []
    for key, value in supported_settings(sysctls).items():
        there = read_sysctl(key) or ""
        if there != value and not (alike and there in ALIKE.get((key, value), ())):
            found.append([key, there, value])
    for address, metrics in far.items():
        have = active_settings(address)
        if not have:
            found.append([f"route to {address}", "", ""])
            continue
        found += [[f"{name} to {address}", have[name], value] for name, value in metrics.items() if have[name] != value]
    return found


class Journal:
    """Journal of settings to restore, one line each, written before the change; the last is restored first."""

    def __init__(self, path: str, who: str) -> None:
        self.path = path
        self.token = f"{os.getpid()}-{time.time_ns()}"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        deadline = time.monotonic() + RESTORE_S
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    held = _read_lines(self._file)
                    os.close(self._file)
                    raise AgentRefusedError(f"locked by {held[0].get('who') if held else 'another run'}") from None
            time.sleep(0.01)
        self.failed = undo_entries(_read_lines(self._file)[1:])
        """Settings of an earlier agent that could not be restored."""
        os.ftruncate(self._file, 0)
        self.add({"who": who, "token": self.token})

    def add(self, entry: dict[str, Any]) -> None:
        """Save another entry."""
        os.write(self._file, json.dumps(entry).encode() + b"\n")
        os.fsync(self._file)

    def close(self) -> None:
        """Leave the journal to the watchdog."""
        os.close(self._file)


def _read_lines(file: int) -> list[dict[str, Any]]:
    found = []
    for line in os.pread(file, 1 << 22, 0).splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break  # The machine stopped during the write: nothing was changed yet.
    return found


def journal_path(folder: str, device: str) -> str:
    """Return the path of an interface's journal."""
    return os.path.join(folder, f"{os.stat('/proc/self/ns/net').st_ino}-{device}")


def undo_entries(entries: list[dict[str, Any]]) -> list[str]:
    """Undo the entries, the last first; return the failures, in words."""
    failed = []
    for entry in reversed(entries):
        steps: list[Callable[[], object]] = []
        steps += [functools.partial(_reset, key, value) for key, value in entry.get("sysctls", {}).items()]
        if "run" in entry:
            words = [substitute_remaining(word.replace("{self}", str(os.getpid()))) for word in entry["run"]]
            steps.append(functools.partial(call, *words))
        if "queues" in entry:
            steps.append(functools.partial(remove_qdiscs, entry["queues"]))
        for step in steps:
            try:
                step()
            except AgentRefusedError as error:
                failed.append(str(error))
    return failed


def remove_qdiscs(device: str) -> None:
    """Restore the default qdiscs of an interface. Raise `AgentRefusedError` if it fails.

    They are removed even if another process has changed them since, because their classes are unknown.
    """
    shown = ("tc", "-j", "qdisc", "show", "dev", device)
    places = {"ingress": "ingress", "clsact": "clsact"}
    found = [each for each in json.loads(call(*shown) or "[]") if each.get("handle", "0:") != "0:"]
    for place in sorted({places.get(each["kind"], "root") for each in found}):
        call("tc", "qdisc", "del", "dev", device, place)
    found = [each["kind"] for each in json.loads(call(*shown) or "[]") if each.get("handle", "0:") != "0:"]
    if found:
        raise AgentRefusedError(f"{device} still has the qdisc {found[0]}")


def _reset(key: str, value: str) -> None:
    if read_sysctl(key) != value:
        write_sysctl(key, value)


class Watchdog:
    """Process that restores the settings of the host when the agent ends."""

    def __init__(self, folder: str) -> None:
        self._channel, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self._channel.close()
            with contextlib.suppress(BaseException):
                self._keep(theirs, folder)
            os._exit(0)
        theirs.close()

    @staticmethod
    def _keep(channel: socket.socket, folder: str) -> None:
        os.setsid()
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        nowhere = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)  # Otherwise the connection would stay open as long as this process.
        journals: list[tuple[str, str]] = []
        with contextlib.suppress(OSError):
            while True:
                packet = channel.recv(4096)
                if not packet:
                    break
                order = json.loads(packet)
                if "journal" in order:
                    journals.append((order["journal"], order["token"]))
                    channel.send(b"0")
                else:
                    channel.send(str(os.open(f"/proc/{order['namespace']}/ns/net", os.O_RDONLY)).encode())
        failed = [each for path, token in journals for each in _restore_command(path, token)]
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            channel.sendall(json.dumps(failed).encode())

    def order(self, **keys: object) -> int:
        """Send it a request and return the number in its answer."""
        self._channel.send(json.dumps(keys).encode())
        return int(self._channel.recv(64))

    def finish(self) -> list[str]:
        """Restore the settings; return those that could not be restored."""
        self._channel.shutdown(socket.SHUT_WR)
        reply = b""
        while True:
            part = self._channel.recv(CHUNK)
            if not part:
                break
            reply += part
        os.waitpid(self.pid, 0)
        return list(json.loads(reply)) if reply else ["the watchdog did not report the settings that it restored"]


def _restore_command(path: str, token: str) -> list[str]:
    file = os.open(path, os.O_RDWR)
    while True:
        entries = _read_lines(file)
        # If another agent was faster, it has restored the settings, and the journal is its own.
        if not entries or entries[0].get("token") != token:
            return []
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
            continue
        if _read_lines(file)[:1] == entries[:1]:
            failed = undo_entries(entries[1:])
            os.ftruncate(file, 0)
            return failed


class HostSettings:
    """Interfaces, routes and kernel settings of the host: changed, compared, restored."""

    def __init__(self, watchdog: Watchdog, who: str) -> None:
        self._watchdog = watchdog
        self._who = who
        self._way = "as it is"
        self._journals: dict[str, Journal] = {}
        self._holds: list[InterfaceLock] = []
        self._saved: set[str] = set()
        self.failed: list[str] = []

    def isolate(self, way: str, interfaces: list[dict[str, Any]]) -> None:
        """Prepare the interfaces: `way` is "namespace", "in place" or "as it is"."""
        present = {link["ifname"] for link in json.loads(call("ip", "-j", "link", "show"))}
        for each in interfaces:
            if each["device"] not in present:
                raise AgentRefusedError(f"found no interface {each['device']}; there are {', '.join(sorted(present))}")
        for each in interfaces:
            self._lock_interface(each["device"])
        self._way = way
        if way == "as it is":
            for each in interfaces:
                missing = [address for address in each["addresses"] if address not in global_addresses(each["device"])]
                if missing:
                    raise AgentRefusedError(
                        f"{each['device']} lacks the address {missing[0]}, and qoslab may not change it"
                    )
            return
        if os.geteuid() != 0:
            raise AgentRefusedError(f'interfaces "{way}" require root')
        for each in interfaces:
            self._journals[each["device"]] = self._open_journal(each["device"])
        if way == "namespace":
            for each in interfaces:
                check_movable(each["device"])
            self._move([each["device"] for each in interfaces], ipv6=":" in str(interfaces))
        for each in interfaces:
            self._bring_up_interface(each["device"], each["addresses"])

    def _lock_interface(self, device: str) -> None:
        try:
            self._holds.append(InterfaceLock(device, self._who))
        except OSError:
            raise AgentRefusedError(f"{device} is locked by {lock_holder(device) or UNKNOWN}") from None

    def _open_journal(self, device: str) -> Journal:
        for folder in STATE_FOLDERS:
            try:
                os.makedirs(folder, mode=0o700, exist_ok=True)
                found = os.lstat(folder)
            except OSError:
                continue
            # The content of the folder is executed: it must be this user's, and not a link to another place.
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and os.access(folder, os.W_OK):
                break
        else:
            raise AgentRefusedError(f"no journal can be written in {' or '.join(STATE_FOLDERS)}")
        try:
            journal = Journal(journal_path(folder, device), self._who)
        except AgentRefusedError as error:
            raise AgentRefusedError(f"{device} is {error}") from None
        self.failed += journal.failed
        self._watchdog.order(journal=journal.path, token=journal.token)
        return journal

    def _move(self, devices: list[str], ipv6: bool) -> None:
        """Enter a new namespace, and move the interfaces into it."""
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        for device in devices:
            for entry in current_state_journal(device):
                self._journals[device].add(entry)
        if libc.unshare(CLONE_NEWNET) == -1:
            raise AgentRefusedError(f"cannot create a namespace: {os.strerror(ctypes.get_errno())}")
        there = self._watchdog.order(namespace=os.getpid())
        call("ip", "link", "set", "dev", "lo", "up")
        self._configure_ipv6(ipv6)
        for device in devices:
            back = ["nsenter", f"--net=/proc/{self._watchdog.pid}/fd/{there}"]
            self._journals[device].add({"run": [*back, "ip", "link", "set", "dev", device, "netns", "{self}"]})
            call(
                *("nsenter", f"--net=/proc/self/fd/{home}", "ip", "link", "set", "dev", device),
                *("netns", str(os.getpid())),
                pass_fds=(home,),
            )
        os.close(home)

    @staticmethod
    def _configure_ipv6(ipv6: bool) -> None:
        """Configure IPv6 in qoslab's namespace as in the virtual lab, or disable it."""
        values = dict.fromkeys(QUIET_IPV6, "0") if ipv6 else {"disable_ipv6": "1"}
        for key in [f"net.ipv6.conf.{scope}.{name}" for scope in ("all", "default") for name in values]:
            if read_sysctl(key) is not None:
                write_sysctl(key, values[key.rpartition(".")[2]])

    def _bring_up_interface(self, device: str, wanted: list[str]) -> None:
        keep = self._journals[device].add if self._way == "in place" else lambda entry: None
        for address in wanted:
            if address not in global_addresses(device):
                keep({"run": ["ip", "addr", "del", address, "dev", device]})
                # An address of IPv6 cannot be a source before duplicate detection has ended.
                kinds = ["nodad"] if ":" in address else []
                # The kernel would add a route with another metric, and keep it.
                kinds += ["noprefixroute"] if self._list_routes(str(ipaddress.ip_interface(address).network)) else []
                call("ip", "addr", "add", address, "dev", device, *kinds)
        if "UP" not in json.loads(call("ip", "-j", "link", "show", "dev", device))[0]["flags"]:
            keep({"run": ["ip", "link", "set", "dev", device, "down"]})
            call("ip", "link", "set", "dev", device, "up")
        deadline = time.monotonic() + CARRIER_S
        while "LOWER_UP" not in json.loads(call("ip", "-j", "link", "show", "dev", device))[0]["flags"]:
            if time.monotonic() > deadline:
                raise AgentRefusedError(f"{device} has no link: is the cable connected, and is the other end up?")
            time.sleep(0.05)

    def guard_queues(self, devices: list[str]) -> None:
        """Have the watchdog remove the qdiscs of these interfaces at the end; `isolate` has locked them."""
        if os.geteuid() != 0:
            raise AgentRefusedError("queueing disciplines require root")
        for device in devices:
            self._journals[device] = self._open_journal(device)
            self._journals[device].add({"queues": device})

    def apply(self, sysctls: dict[str, str], routes: list[dict[str, Any]], far: dict[str, Any]) -> dict[str, Any]:
        """Apply these settings to new connections; return the values that the kernel then has.

        `routes` are created, `far` has the required settings of connections to an address by an existing route.
        """
        sysctls = supported_settings(sysctls)
        if self._way != "as it is":
            for key, value in sysctls.items():
                self._set(key, value)
            for route in routes:
                self._replace_route(route)
        found: dict[str, Any] = {key: read_sysctl(key) for key in sysctls}
        found.update({f"to {address}": active_settings(address) for address in far})
        wrong = [
            f"{what} is {there or 'unknown to the kernel'}, not {value}" if value else f"there is no {what}"
            for what, there, value in settings_differences(sysctls, far, alike=self._way == "as it is")
        ]
        for route in routes:
            shown = self._list_routes(route["prefix"])
            have = route_metrics(shown[0]) if shown else {}
            found[f"route {route['prefix']}"] = shown[0].strip() if shown else "none"
            wrong += [
                f"the route to {route['prefix']} has {name} {have.get(name, 'of the kernel')}, not {value}"
                for name, value in route["metrics"].items()
                if have.get(name) != value
            ]
        if wrong:
            raise AgentRefusedError("; ".join(wrong))
        return found

    def _set(self, key: str, value: str) -> None:
        old = read_sysctl(key)
        if old is None:
            raise AgentRefusedError(f"the kernel has no setting {key}")
        if old != value:
            if self._way == "in place" and key not in self._saved:
                self._saved.add(key)
                next(iter(self._journals.values())).add({"sysctls": {key: old}})
            write_sysctl(key, value)

    @staticmethod
    def _list_routes(prefix: str) -> list[str]:
        """Return the routes of a prefix, the preferred one first."""
        return route_lines(call("ip", family_option(prefix), "route", "show", "exact", prefix))

    def _replace_route(self, route: dict[str, Any]) -> None:
        """Replace the preferred route by the experiment's route, with the same metric.

        With another metric, it would remain after restoring, or would not be used at all.
        """
        prefix, device = route["prefix"], route["device"]
        ip = ["ip", family_option(prefix), "route"]
        shown = self._list_routes(prefix)
        ipv6 = family_option(prefix) == "-6"
        if route["via"]:
            way = ["via", route["via"]]
        else:
            way = ["proto", "kernel", *([] if ipv6 else ["scope", "link", "src", route["source"]])]
        metric = route_metric(shown[0]) if shown else CONNECTED_METRIC if ipv6 else ""
        made = [prefix, "dev", device, *way, *(["metric", metric] if metric else [])]
        if self._way == "in place" and prefix not in self._saved:
            self._saved.add(prefix)
            back = ["replace", *recreate_arguments(shown[0])] if shown else ["del", *made]
            self._journals[device].add({"run": [*ip, *back]})
        units = {"rto_min": "ms"}
        metrics = [word for name, value in route["metrics"].items() for word in (name, value + units.get(name, ""))]
        call(*ip, "replace", *made, *metrics)

    def close(self) -> None:
        """Leave the journals to the watchdog."""
        for journal in self._journals.values():
            journal.close()
