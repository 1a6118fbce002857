"""Virtual IOS routers over SSH, as seen by a person, Ansible and Unicon."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from labs import IOS_ROUTED, POLICE, ping

from qoslab.virtual_lab import Lab
from qoslab.virtual_lab.sshd import MAX_STARTUPS
from waiting import PATIENCE_S, wait_until

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("iosd")]

UNPOLICE = "interface FastEthernet0/1\n no service-policy output Police\n!\nno policy-map Police\n"


@pytest.fixture(scope="module")
def routed_lab() -> Iterator[Lab]:
    with Lab.up(IOS_ROUTED, name=f"test-iosd-{os.getpid()}") as lab:
        yield lab


def connection(lab: Lab, router: str = "R1", **options: Any) -> Any:
    ssh = lab.ssh(router)
    settings = {"username": ssh.user, "password": ssh.password, "known_hosts": None, "config": None}
    return asyncssh.connect(ssh.host, ssh.port, **{**settings, **options})


class HungUpError(Exception):
    """Connection closed by the router, like at a restart."""


class Login:
    """Login that sends a line and reads up to the next prompt."""

    def __init__(self, process: Any) -> None:
        self._process = process

    async def send(self, line: str, *ends: str) -> str:
        self._process.stdin.write(line + "\r")
        return await self.until(*ends or ("#", "[confirm]"))

    async def until(self, *ends: str) -> str:
        text = ""
        async with asyncio.timeout(PATIENCE_S):
            while not text.endswith(ends):
                received = await self._process.stdout.read(4096)
                if not received:
                    raise HungUpError(f"the router hung up after {text!r}")
                text += received.replace("\r\n", "\n")
        return text

    @classmethod
    async def enabled(cls, lab: Lab, client: Any, router: str = "R1") -> Login:
        """Log in at the privileged prompt."""
        login = cls(await client.create_process(term_type="vt100"))
        await login.until(f"{router}>")
        await login.send("enable", "Password: ")
        await login.send(lab.ssh(router).enable, f"{router}#")
        await login.send("terminal length 0")
        return login


def session(lab: Lab, *lines: str, router: str = "R1") -> str:
    """Send lines one after the other at the privileged prompt; return the whole output."""

    async def run() -> str:
        async with connection(lab, router) as client:
            login = await Login.enabled(lab, client, router)
            return "".join([await login.send(line) for line in lines])

    return asyncio.run(run())


def test_typed_configuration_takes_effect(routed_lab: Lab) -> None:
    assert ping(routed_lab, "client", "10.2.0.2") == 63
    session(routed_lab, "configure terminal", "interface Fa0/1", "shutdown", "end")
    assert ping(routed_lab, "client", "10.2.0.2", 0.3) is None
    brief = session(routed_lab, "configure terminal", "int fa0/1", "no shutdown", "do show ip interface brief", "end")
    assert "FastEthernet0/1            10.2.0.1        YES NVRAM  up                    up" in brief
    assert ping(routed_lab, "client", "10.2.0.2") == 63


def test_static_routes_are_in_the_kernel_table(routed_lab: Lab) -> None:
    text = session(
        routed_lab,
        *("configure terminal", "ip route 172.16.0.0 255.255.0.0 10.2.0.2", "do show ip route"),
        *("no ip route 172.16.0.0 255.255.0.0 10.2.0.2", "do show ip route", "end"),
    )
    with_route, without = text.split("no ip route", 1)
    assert "S    172.16.0.0/16 [1/0] via 10.2.0.2\n" in with_route
    assert "172.16" not in without.split("do show", 1)[1]
    assert "C       10.2.0.0 is directly connected, FastEthernet0/1\n" in without


def test_policy_counts_passing_packets(routed_lab: Lab) -> None:
    session(routed_lab, "configure terminal", *POLICE.splitlines(), "end")
    try:
        session(routed_lab, "clear counters", "")
        assert ping(routed_lab, "client", "10.2.0.2") == 63
        text = session(routed_lab, "ping 10.2.0.2 repeat 4 size 1500", "show policy-map interface")
        assert "\n!!!!\nSuccess rate is 100 percent (4/4)" in text
        # Four pings of 1514 bytes, one of 50, and perhaps address resolution.
        assert "          cir 1000000 bps, bc 31250 bytes\n        conformed 5 packets, 6106 bytes" in text
    finally:
        session(routed_lab, "configure terminal", *UNPOLICE.splitlines(), "end")


def test_show_commands_report_live_arp_processor_and_interfaces(routed_lab: Lab) -> None:
    text = session(routed_lab, "ping 10.2.0.2", "show arp", "show processes cpu", "show interfaces fa0/1")
    # Its age also covers the entries learnt in other tests.
    assert re.search(r"^Internet  10\.2\.0\.2 {14,16}\d{1,3}   0200\.", text, re.MULTILINE), text
    assert "CPU utilization for five seconds: " in text
    assert "FastEthernet0/1 is up, line protocol is up" in text
    assert "     5 packets output" in text or "packets output" in text


def test_two_logins_share_one_configuration(routed_lab: Lab) -> None:
    async def run() -> None:
        async with connection(routed_lab) as first, connection(routed_lab) as second:
            one, two = await asyncio.gather(Login.enabled(routed_lab, first), Login.enabled(routed_lab, second))
            await one.send("configure terminal")
            await one.send("interface FastEthernet0/0")
            await one.send("description seen by both")
            seen = await two.send("show running-config interface FastEthernet0/0")
            assert " description seen by both\n" in seen
            await one.send("no description")
            await one.send("end")

    asyncio.run(run())


def test_written_configuration_survives_a_reload(routed_lab: Lab) -> None:
    async def run() -> None:
        async with connection(routed_lab) as client:
            login = await Login.enabled(routed_lab, client)
            for line in ("configure terminal", "interface FastEthernet0/0", "description kept", "end", "write memory"):
                await login.send(line)
            for line in ("configure terminal", "interface FastEthernet0/0", "description lost", "end"):
                await login.send(line)
            await login.send("reload", "[yes/no]: ")
            await login.send("no", "[confirm]")
            login._process.stdin.write("\r")
            async with asyncio.timeout(PATIENCE_S):
                await login._process.wait_closed()
        async with connection(routed_lab) as client:
            login = await Login.enabled(routed_lab, client)
            text = await login.send("show running-config interface FastEthernet0/0")
            assert " description kept\n" in text
            assert "System returned to ROM by reload\n" in await login.send("show version")

    asyncio.run(run())
    assert ping(routed_lab, "client", "10.2.0.2") == 63


@pytest.mark.long
@pytest.mark.slow
def test_unconfirmed_change_is_rolled_back(routed_lab: Lab) -> None:
    archive = ("configure terminal", "archive", "path flash:saved", "end")
    session(routed_lab, *archive, "configure terminal revert timer 1", *POLICE.splitlines(), "end")
    wait_until(lambda: "Police" not in session(routed_lab, "show running-config"), "the policy is gone", 90, step_s=2)
    assert "Service-policy" not in session(routed_lab, "show policy-map interface")
    assert "No Rollback Confirmed Change pending" in session(routed_lab, "configure confirm")


@pytest.mark.long
@pytest.mark.slow
def test_scheduled_reload_restarts_the_router_on_time(routed_lab: Lab) -> None:
    session(routed_lab, "write memory", "configure terminal", *POLICE.splitlines(), "end")

    async def run() -> str:
        async with connection(routed_lab) as client:
            login = await Login.enabled(routed_lab, client)
            await login.send("reload in 1", "[yes/no]: ")
            await login.send("no", "[confirm]")
            await login.send("")
            shown = await login.send("show reload")
            async with asyncio.timeout(90):
                await login._process.wait_closed()
            return shown

    assert "Reload scheduled for " in asyncio.run(run())
    assert "Police" not in session(routed_lab, "show running-config")
    assert "No reload is scheduled." in session(routed_lab, "show reload")


def test_login_requires_the_configured_password(routed_lab: Lab) -> None:
    async def run(**options: str) -> None:
        async with connection(routed_lab, **options):
            pass

    for wrong in ({"password": "wrong"}, {"username": "nobody"}):
        with pytest.raises(asyncssh.PermissionDenied):
            asyncio.run(run(**wrong))


def test_command_can_be_given_at_login(routed_lab: Lab) -> None:
    async def run() -> str:
        async with connection(routed_lab) as client:
            return str((await client.run("show privilege")).stdout)

    assert asyncio.run(run()) == "Current privilege level is 1\r\n"


@pytest.mark.slow
def test_unresponsive_data_plane_is_reported(routed_lab: Lab) -> None:
    async def run() -> None:
        async with connection(routed_lab) as client:
            login = await Login.enabled(routed_lab, client)
            pid = int((await login.send("show processes cpu")).splitlines()[-2].split()[0])
            stopped = _run_outside(routed_lab, pid)
            os.kill(stopped, signal.SIGSTOP)
            try:
                text = await login.send("show policy-map interface")
                assert "% Data plane is not responding\n" in text
                await login.send("configure terminal")
                await login.send("interface FastEthernet0/1")
                assert "% Error: Data plane is not responding\n" in await login.send("bandwidth 5000")
                await login.send("end")
            finally:
                os.kill(stopped, signal.SIGCONT)
            assert "bandwidth" not in await login.send("show running-config interface FastEthernet0/1")
            assert "FastEthernet0/1 is up" in await login.send("show interfaces FastEthernet0/1")

    asyncio.run(run())


def _run_outside(lab: Lab, inside: int) -> int:
    """Return the process id, in this process's namespace, of a process of the lab."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            same = (status.parent / "ns/pid").readlink() == Path(f"/proc/{lab.pid}/ns/pid").readlink()
        except OSError:
            continue
        if same and fields["NSpid"].split()[-1] == str(inside):
            return int(status.parent.name)
    raise AssertionError(f"no process {inside} in the lab")


def inventory(lab: Lab) -> str:
    """Return the Ansible inventory of R1."""
    ssh = lab.ssh("R1")
    return (
        f"R1 ansible_host={ssh.host} ansible_port={ssh.port} ansible_user={ssh.user} ansible_password={ssh.password}"
        f" ansible_become=true ansible_become_method=enable ansible_become_password={ssh.enable}"
        " ansible_connection=ansible.netcommon.network_cli ansible_network_os=cisco.ios.ios\n"
    )


@pytest.mark.long
@pytest.mark.slow
def test_ansible_pushes_an_unchanged_configuration_once(routed_lab: Lab, tmp_path: Path) -> None:
    """Configure with Ansible: become, a push that changes, the same push without a change, saving, a refused line."""
    (tmp_path / "hosts").write_text(inventory(routed_lab))
    (tmp_path / "police.ios").write_text(POLICE)
    (tmp_path / "unpolice.ios").write_text(UNPOLICE)
    (tmp_path / "play.yml").write_text(
        """\
- hosts: all
  gather_facts: false
  tasks:
    - cisco.ios.ios_facts: {gather_subset: min}
    - ansible.builtin.assert: {that: [ansible_net_version == "12.4(15)T14", ansible_net_model == "3725"]}
    - cisco.ios.ios_config: {src: police.ios}
      register: first
    - cisco.ios.ios_config: {src: police.ios, defaults: true, save_when: modified}
      register: second
    - ansible.builtin.assert: {that: [first is changed, second.updates is not defined]}
    - cisco.ios.ios_config: {src: unpolice.ios, save_when: modified}
    - cisco.ios.ios_config: {lines: [frobnicate 3]}
      register: refused
      ignore_errors: true
    - ansible.builtin.assert: {that: ["'Invalid input detected' in refused.msg"]}
    - cisco.ios.ios_ping: {dest: 10.2.0.2, count: 2}
"""
    )
    run_playbook(tmp_path)


def run_playbook(folder: Path) -> None:
    """Run the play of a folder on the hosts of its inventory."""
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", "hosts", "play.yml"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_HOST_KEY_CHECKING": "0", "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.slow
def test_ansible_gathers_all_facts(routed_lab: Lab, tmp_path: Path) -> None:
    """Gather all facts with Ansible: the facts of inventories, and the configuration parsed by resource modules."""
    session(
        routed_lab,
        *("configure terminal", "ip access-list extended EDGE", "permit tcp any host 10.2.0.2 eq www", "exit"),
        *("interface FastEthernet0/0", "description lan", "mtu 1400", "ip access-group EDGE in", "exit"),
        *("ip route 10.99.0.0 255.255.0.0 10.2.0.2", "end", "write memory"),
    )
    (tmp_path / "hosts").write_text(inventory(routed_lab))
    (tmp_path / "play.yml").write_text(
        """\
- hosts: all
  gather_facts: false
  tasks:
    - cisco.ios.ios_facts: {gather_subset: all}
    - ansible.builtin.assert:
        that:
          - ansible_net_interfaces["FastEthernet0/0"].description == "lan"
          - ansible_net_interfaces["FastEthernet0/0"].mtu == 1400
          - ansible_net_interfaces["FastEthernet0/0"].ipv4[0].address == "10.1.0.1"
          - ansible_net_interfaces["FastEthernet0/0"].operstatus == "up"
          - ansible_net_memtotal_mb > 0
          - "'ip access-group EDGE in' in ansible_net_config"
          - ansible_net_neighbors == {}
    - cisco.ios.ios_interfaces: {state: gathered}
      register: interfaces
    - cisco.ios.ios_l3_interfaces: {state: gathered}
      register: addresses
    - cisco.ios.ios_acls: {state: gathered}
      register: lists
    - cisco.ios.ios_acl_interfaces: {state: gathered}
      register: filters
    - cisco.ios.ios_static_routes: {state: gathered}
      register: routes
    - ansible.builtin.assert:
        that:
          - interfaces.gathered | selectattr("name", "eq", "FastEthernet0/0") | map(attribute="mtu") | list == [1400]
          - (addresses.gathered | selectattr("name", "eq", "FastEthernet0/0") | first).ipv4[0].address == "10.1.0.1/24"
          - lists.gathered[0].acls[0].aces[0].destination.port_protocol.eq == "www"
          - (filters.gathered | selectattr("access_groups", "defined") | first).access_groups[0].acls[0].name == "EDGE"
          - routes.gathered[0].address_families[0].routes[0].dest == "10.99.0.0/16"
"""
    )
    try:
        run_playbook(tmp_path)
    finally:
        session(
            routed_lab,
            *("configure terminal", "interface FastEthernet0/0", "no ip access-group EDGE in", "no mtu"),
            *(
                "no description",
                "exit",
                "no ip access-list extended EDGE",
                "no ip route 10.99.0.0 255.255.0.0 10.2.0.2",
            ),
            *("end", "write memory"),
        )


@pytest.mark.long
@pytest.mark.slow
def test_unicon_connects_configures_and_parses(routed_lab: Lab) -> None:
    from genie.testbed import load

    ssh = routed_lab.ssh("R1")
    testbed = load(
        {
            "testbed": {
                "name": "lab",
                "credentials": {
                    "default": {"username": ssh.user, "password": ssh.password},
                    "enable": {"password": ssh.enable},
                },
            },
            "devices": {
                "R1": {
                    "os": "ios",
                    "type": "router",
                    "custom": {"abstraction": {"order": ["os"], "os": "iosxe"}},
                    "connections": {
                        "defaults": {"class": "unicon.Unicon"},
                        "cli": {
                            "protocol": "ssh",
                            "ip": ssh.host,
                            "port": ssh.port,
                            "ssh_options": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
                            "settings": {"GRACEFUL_DISCONNECT_WAIT_SEC": 0, "POST_DISCONNECT_WAIT_SEC": 0},
                        },
                    },
                }
            },
        }
    )
    device = testbed.devices["R1"]
    before = set(Path("/tmp").glob("*.log"))
    # With Unicon's default initial commands, which configure the console and the terminal lines. Unicon would write its
    # log file to /tmp, regardless of TMPDIR.
    device.connect(log_stdout=False, logfile=os.devnull)
    try:
        lines = [f"description line {number}" for number in range(50)]
        device.configure(["interface FastEthernet0/1", *lines], bulk=True)
        device.configure(POLICE.splitlines())
        interfaces = device.parse("show interfaces")
        assert interfaces["FastEthernet0/1"]["description"] == "line 49"
        policies = device.parse("show policy-map interface FastEthernet0/1")
        policy = policies["FastEthernet0/1"]["service_policy"]["output"]["policy_name"]["Police"]
        assert policy["class_map"]["class-default"]["police"]["cir_bc_bytes"] == 31250
        assert "line vty 0 4" in device.learn("config")
        with pytest.raises(Exception, match="sub_command failure"):
            device.configure("frobnicate 3")
        device.configure([*UNPOLICE.splitlines(), "interface FastEthernet0/1", "no description"])
        assert "OK" in device.copy(source="running-config", dest="startup-config")
    finally:
        device.disconnect()
    logs = [log for log in Path("/tmp").glob("*.log") if log not in before]
    assert [log for log in logs if f"ssh -l {ssh.user} {ssh.host} -p {ssh.port} " in log.read_text()] == []


def test_vanished_client_leaves_nothing_behind(routed_lab: Lab) -> None:
    async def run() -> None:
        async with connection(routed_lab) as client:
            login = await Login.enabled(routed_lab, client)
            login._process.stdin.write("configure terminal\rdo ping 10.2.0.77 repeat 1000\r")
            await login.until("seconds:\n")
            client.abort()
        async with connection(routed_lab) as client:
            await Login.enabled(routed_lab, client)

    log = routed_lab.runtime("iosd") / "log"
    before = log.read_text()
    asyncio.run(run())
    assert log.read_text() == before


def test_server_has_a_host_key_and_an_identification(routed_lab: Lab) -> None:
    async def run() -> tuple[str, str]:
        async with connection(routed_lab) as client:
            key = client.get_server_host_key().export_public_key().decode()
            return key, client.get_extra_info("server_version")

    key, version = asyncio.run(run())
    assert key.split()[:2] == str(routed_lab._state["host_key"]).split()[:2]
    assert version == "SSH-2.0-Cisco-1.25"


MANY_CONNECTIONS = """
import encodings.idna, resource, select, socket, sys, time
most = 2000
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
most = min(most, hard - 50) if hard != resource.RLIM_INFINITY else most
resource.setrlimit(resource.RLIMIT_NOFILE, (most + 50, hard))
held = []
for _ in range(2000):
    if len(held) == most:
        held.pop(0).close()
    held.append(socket.socket())
    held[-1].settimeout(300)
    try:
        held[-1].connect((sys.argv[1], int(sys.argv[2])))
    except ConnectionResetError:
        pass  # hung up on before the call has returned
try:
    said = held[-1].recv(100)
except OSError:
    said = b""
print(said[:4].decode() or "nothing", flush=True)
left, deadline = {each.fileno(): each for each in held}, time.monotonic() + 20
watched = select.poll()
for number in left:
    watched.register(number, select.POLLIN)
while len(left) > 100 and time.monotonic() < deadline:
    for number, _ in watched.poll(100):
        try:
            ended = not left[number].recv(4096)
        except OSError:
            ended = True
        if ended:
            watched.unregister(number)
            left.pop(number)
print(len(left), flush=True)
sys.stdin.read()
"""


def open_many_connections(lab: Lab) -> subprocess.Popen[str]:
    """Start a process that opens 2000 connections to R1.

    It prints the answer to the last one, and the number of open ones after 20 seconds, or once they are at most 100.
    """
    ssh = lab.ssh("R1")
    return subprocess.Popen(
        [sys.executable, "-I", "-c", MANY_CONNECTIONS, ssh.host, str(ssh.port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.long
def test_idle_connections_do_not_block_a_login(routed_lab: Lab) -> None:
    with open_many_connections(routed_lab) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "SSH-\n"
        assert int(process.stdout.readline()) <= MAX_STARTUPS == 100
        assert "R1" in session(routed_lab, "show running-config | include hostname")
        process.communicate()


FLOOD = """
import encodings.idna, os, socket, sys, time
os.setresuid(*[int(sys.argv[3])] * 3)
print(flush=True)
end = time.monotonic() + 15
while time.monotonic() < end:
    with socket.socket() as one:
        try:
            one.connect((sys.argv[1], int(sys.argv[2])))
        except OSError:
            pass
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user as well")
def test_repeated_connections_of_another_user_delay_no_login(routed_lab: Lab) -> None:
    ssh = routed_lab.ssh("R1")
    command = [sys.executable, "-I", "-c", FLOOD, ssh.host, str(ssh.port), "65534"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(3):
                assert "R1" in session(routed_lab, "show running-config | include hostname")
            assert process.poll() is None, "the logins waited for the end of the calls"
        finally:
            process.kill()


def test_login_allows_three_attempts(routed_lab: Lab) -> None:
    tries = 0

    class Guesser(asyncssh.SSHClient):
        def password_auth_requested(self) -> str:
            nonlocal tries
            tries += 1
            return f"guess {tries}"

    async def run() -> None:
        with pytest.raises(asyncssh.PermissionDenied):
            await connection(routed_lab, password=None, client_factory=Guesser)

    asyncio.run(run())
    assert tries == 3
