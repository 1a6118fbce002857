"""Proxies in front of devices: accepted and refused clients, messages, and records."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import asyncssh
import pytest
from fake_device import ENABLE, JUMP_PASSWORD, JUMP_USER, PASSWORD, USER, FakeDevice

from levels import long_cases
from misbehaving import MisbehavingRelay, telnet_server
from qoslab.model.inventory import RouterSettings
from qoslab.results.redaction import Redaction
from qoslab.run.devices.ansible_inventory import IosAccess
from qoslab.run.devices.login_failures import FailureKind
from qoslab.run.faults import TransientFault
from qoslab.run.real.access.device_logins import DeviceLogin, LoginDevice
from qoslab.run.real.access.inventory_proxies import access_method
from qoslab.run.real.access.methods import AccessError, AccessMethod, Hop
from qoslab.run.real.access.proxies import AccessFault, AccessProxies, ProxyClosedFault, output_pause_s
from qoslab.run.real.access.transport import DeviceLine, _algorithm_failure, connect_device
from waiting import wait_until

SECRETS = (PASSWORD, ENABLE, JUMP_PASSWORD)


@pytest.fixture(scope="module", params=["modern", "old"])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeDevice]:
    with FakeDevice(tmp_path_factory.mktemp("device"), request.param) as device:
        device.router.device.banner_motd = "\nAuthorised#\n# no admission>\n"
        yield device


@pytest.fixture(scope="module")
def modern_device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeDevice]:
    with FakeDevice(tmp_path_factory.mktemp("device")) as device:
        yield device


@pytest.fixture(scope="module")
def shared_proxy(modern_device: FakeDevice) -> Iterator[AccessProxies]:
    """Provide one access proxy of R1 for tests that leave it unchanged."""
    with AccessProxies({"R1": connect_by_ssh(modern_device)}) as proxies:
        yield proxies


def connect_by_ssh(device: FakeDevice) -> AccessMethod:
    known = f"[127.0.0.1]:{device.ssh} {device.host_key}\n"
    old = "ssh-rsa" in device.host_key
    return AccessMethod(
        "127.0.0.1", device.ssh, "ssh", USER, PASSWORD, ENABLE, old_ssh=old, known_hosts=known, pause_s=0.0
    )


def connect_by_telnet(device: FakeDevice) -> AccessMethod:
    return AccessMethod("127.0.0.1", device.telnet, "telnet", USER, PASSWORD, ENABLE, pause_s=0.0)


def session_output(proxies: AccessProxies, name: str, typed: str, *, until: str, **changes: Any) -> str:
    """Return the output that a client reads after its input, up to a text."""

    async def run() -> str:
        access = proxies.access()[name]
        login = {"username": access.user, "password": access.password, **changes}
        known = str(proxies.known_hosts())
        async with asyncssh.connect(access.host, access.port, known_hosts=known, config=None, **login) as client:
            process = await client.create_process(term_type="vt100")
            if typed:
                process.stdin.write(typed)
            text = ""
            async with asyncio.timeout(60):
                while not text.endswith(until) and (part := await process.stdout.read(4096)):
                    text += part
            return text

    return asyncio.run(run())


def privilege(proxies: AccessProxies, name: str) -> str:
    return session_output(proxies, name, "show privilege\r", until="15\r\nR1#")


ANSWER = "\r\nR1#show privilege\r\nCurrent privilege level is 15\r\nR1#"


def test_proxy_reaches_a_device_by_host_name(modern_device: FakeDevice) -> None:
    named = replace(
        connect_by_ssh(modern_device),
        host="localhost",
        known_hosts=f"[localhost]:{modern_device.ssh} {modern_device.host_key}\n",
    )
    with AccessProxies({"R1": named, "R2": replace(named, host="r2.invalid")}) as proxies:
        proxies.open("R1")
        with pytest.raises(ProxyClosedFault, match=r"^R2: .*: r2\.invalid port \d+ by ssh: ") as caught:
            proxies.open("R2")
    assert caught.value.kind is FailureKind.OUT_OF_REACH


@pytest.mark.parametrize(
    "way",
    [connect_by_ssh, *long_cases(connect_by_telnet, lambda device: replace(connect_by_telnet(device), console=True))],
)
def test_client_starts_at_the_privileged_prompt(
    device: FakeDevice, way: Callable[[FakeDevice], AccessMethod], tmp_path: Path
) -> None:
    with AccessProxies({"R1": way(device)}, transcripts=tmp_path) as proxies:
        # With the prepared login, then with a new one.
        proxies.open("R1")
        assert privilege(proxies, "R1") == ANSWER
        assert privilege(proxies, "R1") == ANSWER
    kept = [(tmp_path / f"R1.{number}.txt").read_text() for number in (1, 2)]
    for text in kept:
        assert "< Current privilege level is 15\n" in text and "> show privilege\n" in text
        assert "> <enable secret>\n" in text
        assert not [secret for secret in SECRETS if secret in text]


def test_proxy_password_is_valid_for_that_proxy_only(modern_device: FakeDevice, shared_proxy: AccessProxies) -> None:
    with AccessProxies({"R1": connect_by_ssh(modern_device), "R2": connect_by_ssh(modern_device)}) as proxies:
        access = proxies.access()
        for wrong in (access["R2"].password, shared_proxy.access()["R1"].password, PASSWORD):
            with pytest.raises(asyncssh.PermissionDenied):
                session_output(proxies, "R1", "", until="#", password=wrong)
        assert privilege(proxies, "R1") == ANSWER


def test_loss_of_the_proxies_is_reported_to_subscribers(modern_device: FakeDevice) -> None:
    session_output: list[str] = []
    with AccessProxies({"R1": connect_by_ssh(modern_device)}) as proxies:
        proxies.on_exit(session_output.append)
        proxies._helper.process.kill()
        with pytest.raises(TransientFault):
            proxies.ask("R1", "show privilege")
        proxies._helper.close(1.0)  # its reader has reported by then
        proxies.on_exit(session_output.append)
    gone = "no router can be reached any more: the access proxy of the routers was killed by SIGKILL"
    assert session_output == [gone, gone]


def test_closing_the_proxies_is_not_reported(modern_device: FakeDevice) -> None:
    session_output: list[str] = []
    with AccessProxies({"R1": connect_by_ssh(modern_device)}) as proxies:
        proxies.on_exit(session_output.append)
    assert session_output == []


OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ"


def failure_reasons(device: FakeDevice) -> dict[str, tuple[AccessMethod, FailureKind, str]]:
    """Connection problems: the access path, the message, and a part of the hint."""
    ssh, telnet, place = connect_by_ssh(device), connect_by_telnet(device), f"[127.0.0.1]:{device.ssh}"
    return {
        "password": (replace(ssh, password="wrong"), FailureKind.LOGIN_REFUSED, "Check user and password"),
        "telnet": (replace(telnet, password="wrong"), FailureKind.LOGIN_REFUSED, "Check user and password"),
        "nobody": (replace(telnet, user=None), FailureKind.LOGIN_REFUSED, "Give ansible_user in the inventory."),
        "enable": (replace(ssh, enable="wrong"), FailureKind.ENABLE_REFUSED, "Check ansible_become_password"),
        "unknown": (replace(ssh, known_hosts=""), FailureKind.KEY_UNKNOWN, "Log in once with ssh"),
        "changed": (replace(ssh, known_hosts=f"{place} {OTHER_KEY}\n"), FailureKind.KEY_CHANGED, "ssh-keygen -R"),
        "closed": (replace(ssh, port=1), FailureKind.OUT_OF_REACH, "Check its address, port and access method"),
    }


def test_reason_of_a_refused_client_is_reported(modern_device: FakeDevice, tmp_path: Path) -> None:
    expected = failure_reasons(modern_device)
    with AccessProxies({name: way for name, (way, _, _) in expected.items()}, transcripts=tmp_path) as proxies:
        for name, (_, kind, hint) in expected.items():
            with pytest.raises((AccessFault, ProxyClosedFault)) as found:
                proxies.open(name)
            assert found.value.kind is kind
            assert str(found.value).startswith(f"{name}: {kind}: 127.0.0.1 port ")
            assert hint in found.value.hint
        # All of them are named at once.
        with pytest.raises(AccessFault) as found:
            proxies.open()
        assert [line.split(":")[0] for line in str(found.value).splitlines()] == list(expected)
    text = "".join(file.read_text() for file in tmp_path.iterdir())
    assert "= login refused: 127.0.0.1" in text and not [secret for secret in SECRETS if secret in text]


def known_jump_host(device: FakeDevice, home: Path, patch: pytest.MonkeyPatch) -> Hop:
    """Provide the jump host before a device, whose key the user has accepted."""
    (home / ".ssh").mkdir()
    (home / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{device.jump} {device.jump_key}\n")
    patch.setenv("HOME", str(home))
    return Hop("127.0.0.1", device.jump, JUMP_USER, JUMP_PASSWORD)


@pytest.mark.parametrize("through", [" through 127.0.0.1", *long_cases("")])
def test_without_a_common_algorithm_the_missing_option_is_reported(
    through: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeDevice(tmp_path, "old") as device:
        hop = known_jump_host(device, tmp_path, monkeypatch) if through else None
        way = replace(connect_by_ssh(device), old_ssh=False, jump=hop)
        with AccessProxies({"R1": way}) as proxies, pytest.raises(AccessFault) as found:
            proxies.open("R1")
    assert found.value.kind is FailureKind.NO_ALGORITHM
    assert str(found.value) == (
        f"R1: no common algorithm: 127.0.0.1 port {device.ssh} by ssh{through}: "
        "it offers only diffie-hellman-group14-sha1, diffie-hellman-group1-sha1, ssh-rsa, "
        "aes128-cbc, 3des-cbc, aes192-cbc, aes256-cbc, hmac-sha1, hmac-md5"
    )
    assert "qoslab_old_ssh: true" in found.value.hint


def test_unknown_algorithms_are_reported_with_both_remedies() -> None:
    way = AccessMethod("127.0.0.1", 22, "ssh", USER)
    hint = _algorithm_failure(way, [], "no match").trouble.hint
    assert "qoslab_old_ssh: true" in hint and "qoslab_reach: telnet" in hint
    assert "qoslab_old_ssh" not in _algorithm_failure(replace(way, old_ssh=True), [], "no match").trouble.hint


def test_refused_login_is_not_retried(modern_device: FakeDevice) -> None:
    noted: list[str] = []
    before = modern_device.asked
    with AccessProxies({"R1": replace(connect_by_ssh(modern_device), password="wrong")}, note=noted.append) as proxies:
        texts = [session_output(proxies, "R1", "", until="never") for _ in range(3)]
        message = f"R1: login refused: 127.0.0.1 port {modern_device.ssh} by ssh refused user 'lab'"
        assert texts == [f"\r\n% Error: {message.removeprefix('R1: ')}\r\n"] * 3
        assert modern_device.asked == before + 1
        # A thread sends notes, after the text that the client reads.
        wait_until(lambda: len(noted) >= 3, "each refused login is noted")
        assert noted == [message] * 3
        explained = proxies.explain_failure("R1")
        assert explained is not None and explained.message == message


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("way", "delay_s", "piece", "pause_s"),
    [
        (connect_by_ssh, 0.3, None, 0.0),
        (connect_by_telnet, 0.3, None, 0.0),
        (connect_by_ssh, 0.0, 7, 0.001),
        (connect_by_telnet, 0.0, 1, 0.001),
    ],
)
def test_proxy_waits_for_late_and_fragmented_answers(
    modern_device: FakeDevice,
    way: Callable[[FakeDevice], AccessMethod],
    delay_s: float,
    piece: int | None,
    pause_s: float,
) -> None:
    here = way(modern_device)
    assert here.port is not None
    with MisbehavingRelay(here.port, delay_s=delay_s, piece=piece, pause_s=pause_s) as proxy:
        key = f"[127.0.0.1]:{proxy.port} {modern_device.host_key}\n"
        with AccessProxies({"R1": replace(here, port=proxy.port, known_hosts=key)}) as proxies:
            assert privilege(proxies, "R1") == ANSWER


@pytest.mark.parametrize(
    ("round_trip_s", "pause_s"),
    [(None, None), (0.0005, 0.02), (0.004, 0.02), (0.008, 0.04), (0.011, None), (0.3, None)],
)
def test_clients_of_a_fast_device_have_shorter_timeouts(round_trip_s: float | None, pause_s: float | None) -> None:
    assert output_pause_s(round_trip_s) == pause_s


def test_device_speed_is_measured_at_login(modern_device: FakeDevice) -> None:
    here = connect_by_ssh(modern_device)
    assert here.port is not None
    with MisbehavingRelay(here.port, delay_s=0.1) as proxy:
        far = replace(here, port=proxy.port, known_hosts=f"[127.0.0.1]:{proxy.port} {modern_device.host_key}\n")
        with AccessProxies({"R1": far}) as proxies:
            assert proxies.access()["R1"].pause_s is None, "not logged in yet"
            proxies.open()
            # Longer than any pause.
            (found,) = proxies._round_trips.values()
            assert found >= 0.1 and proxies.access()["R1"].pause_s is None


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", [connect_by_ssh, connect_by_telnet])
def test_unresponsive_device_is_reported(modern_device: FakeDevice, way: Callable[[FakeDevice], AccessMethod]) -> None:
    here = way(modern_device)
    assert here.port is not None
    with MisbehavingRelay(here.port) as proxy:
        proxy.stall()
        with (
            AccessProxies({"R1": replace(here, port=proxy.port, answer_s=0.5)}) as proxies,
            pytest.raises(ProxyClosedFault) as found,
        ):
            proxies.open("R1")
    assert found.value.kind is FailureKind.NO_ANSWER
    assert "did not answer within 0.5 s" in str(found.value)


def test_interrupt_ends_the_wait_for_a_device() -> None:
    def check() -> None:
        if asked.is_set():
            raise KeyboardInterrupt

    asked = threading.Event()
    with telnet_server(lambda client: asked.set() or threading.Event().wait()) as port:
        way = AccessMethod("127.0.0.1", port, "telnet", USER, PASSWORD, ENABLE, answer_s=3600.0)
        with AccessProxies({"R1": way}, check=check) as proxies, pytest.raises(KeyboardInterrupt):
            proxies.open("R1")


def test_logins_are_sequential_with_a_pause(modern_device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    pause_s = 0.3
    began: list[float] = []
    ended: list[float] = []

    async def connect_device_by(way: AccessMethod) -> DeviceLine:
        began.append(time.monotonic())
        return await connect_device(way)

    async def logged_in(device: LoginDevice) -> DeviceLogin:
        call = await device.call()
        ended.append(time.monotonic())
        return call

    async def two_at_once() -> None:
        device = LoginDevice("R1", replace(connect_by_ssh(modern_device), pause_s=pause_s), None, Redaction())
        for call in await asyncio.gather(logged_in(device), logged_in(device)):
            await device.leave(call)

    monkeypatch.setattr("qoslab.run.real.access.device_logins.connect_device", connect_device_by)
    asyncio.run(two_at_once())
    assert len(began) == len(ended) == 2
    # The pause begins an instant before the login is handed out.
    assert began[1] - ended[0] >= pause_s - 0.01


def test_renamed_device_is_still_used(modern_device: FakeDevice, shared_proxy: AccessProxies) -> None:
    (first,) = shared_proxy.ask("R1", "show privilege")
    modern_device.router.device.hostname = "elsewhere"
    try:
        (second,) = shared_proxy.ask("R1", "show privilege")
    finally:
        modern_device.router.device.hostname = "R1"
    assert first == second == "Current privilege level is 15"
    assert shared_proxy.ask("R1", "show privilege") == [first]


def test_device_with_a_long_name_is_configured(modern_device: FakeDevice) -> None:
    modern_device.router.device.hostname = "BRANCH-OFFICE-ROUTER-42.example"
    try:
        with AccessProxies({"R1": connect_by_ssh(modern_device)}) as proxies:
            lines = ("configure terminal", "interface FastEthernet0/0", "description to Bob", "end")
            *_, shown = proxies.ask("R1", *lines, "show running-config interface FastEthernet0/0")
            proxies.ask("R1", *lines[:2], "no description", "end")
    finally:
        modern_device.router.device.hostname = "R1"
    assert " description to Bob" in shown
    assert "BRANCH" not in shown


def test_reused_login_uses_the_present_name(modern_device: FakeDevice) -> None:
    with AccessProxies({"R1": connect_by_ssh(modern_device)}) as proxies:
        proxies.open()
        modern_device.router.device.hostname = "elsewhere"
        try:
            shown = session_output(proxies, "R1", "show privilege\r", until="15\r\nelsewhere#")
        finally:
            modern_device.router.device.hostname = "R1"
        assert shown == ANSWER.replace("R1#", "elsewhere#")


def test_reused_login_that_was_cut_is_repeated(modern_device: FakeDevice) -> None:
    with (
        MisbehavingRelay(modern_device.telnet) as proxy,
        AccessProxies({"R1": replace(connect_by_telnet(modern_device), port=proxy.port)}) as proxies,
    ):
        proxies.open()
        proxy.cut()
        assert proxies.ask("R1", "show privilege") == ["Current privilege level is 15"]
        assert privilege(proxies, "R1") == ANSWER
        assert proxy.connections == 2


def test_client_is_answered_after_any_error(shared_proxy: AccessProxies) -> None:
    with pytest.raises(AccessFault, match="defect of the access proxy: ") as caught:
        shared_proxy.ask("R1", 7)  # type: ignore[arg-type]
    assert caught.value.kind is FailureKind.DEFECT


@pytest.mark.parametrize(
    ("reach", "port", "expected"),
    [("ssh", 22, 22), ("ssh", 2222, 2222), ("telnet", 22, 23), ("telnet", 2023, 2023)],
)
def test_without_a_port_each_transport_has_its_default(
    reach: Literal["ssh", "telnet"], port: int, expected: int, tmp_path: Path
) -> None:
    way = access_method(tmp_path / "rack.yml", IosAccess("r1", USER, PASSWORD, port), RouterSettings(reach=reach))
    assert (way.protocol, way.port, way.address_text) == (reach, expected, f"r1 port {expected} by {reach}")


def test_next_client_logs_in_after_a_lost_connection(modern_device: FakeDevice, tmp_path: Path) -> None:
    with MisbehavingRelay(modern_device.telnet) as proxy:
        with AccessProxies(
            {"R1": replace(connect_by_telnet(modern_device), port=proxy.port)}, transcripts=tmp_path
        ) as proxies:

            async def connect_and_disconnect() -> str:
                access = proxies.access()["R1"]
                async with asyncssh.connect(
                    access.host, access.port, username=access.user, password=access.password, known_hosts=None
                ) as client:
                    process = await client.create_process(term_type="vt100")
                    await process.stdout.readuntil("R1#")
                    proxy.cut()
                    async with asyncio.timeout(10):
                        return str(await process.stdout.read())

            assert asyncio.run(connect_and_disconnect()) == ""
            assert privilege(proxies, "R1") == ANSWER
        assert proxy.connections == 2
    assert "= the device hung up\n" in (tmp_path / "R1.1.txt").read_text()


def test_login_uses_the_key_of_the_inventory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    file, locked = tmp_path / "rack.key", tmp_path / "locked.key"
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(file)
    key.write_private_key(locked, passphrase="grass-hopper", rounds=1)

    class Server(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return True

        def public_key_auth_supported(self) -> bool:
            return True

        def validate_public_key(self, username: str, key_shown: asyncssh.SSHKey) -> bool:
            return username == USER and key_shown.public_data == key.public_data

    def greet(process: asyncssh.SSHServerProcess[str]) -> None:
        process.stdout.write("R1#")

    async def first_words(named: Path | None) -> bytes:
        host_key = asyncssh.generate_private_key("ssh-ed25519")
        server = await asyncssh.create_server(
            Server, "127.0.0.1", 0, server_host_keys=[host_key], process_factory=greet
        )
        way = AccessMethod("127.0.0.1", server.get_port(), user=USER, key=named and str(named), check_host_key=False)
        async with server:
            line = await connect_device(way)
            text = await line.read()
            line.close()
            return text

    assert asyncio.run(first_words(file)) == b"R1#"
    for wrong, session_output in (
        (locked, "Passphrase"),
        (tmp_path / "none.key", "No such file"),
        (None, "refused user"),
    ):
        with pytest.raises(AccessError, match=session_output) as found:
            asyncio.run(first_words(wrong))
        assert found.value.trouble.kind is FailureKind.LOGIN_REFUSED


@pytest.mark.sample(2)
@pytest.mark.parametrize("way", [connect_by_ssh, connect_by_telnet])
def test_login_works_through_a_jump_host(
    modern_device: FakeDevice,
    way: Callable[[FakeDevice], AccessMethod],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hop = known_jump_host(modern_device, tmp_path, monkeypatch)
    through = replace(way(modern_device), jump=hop)
    refused = replace(through, jump=replace(hop, password="wrong"))
    with AccessProxies({"R1": through, "R2": refused}) as proxies:
        assert privilege(proxies, "R1") == ANSWER
        with pytest.raises(AccessFault, match=r"R2: login refused: the jump host .* refused user 'hopper'"):
            proxies.open("R2")


def test_console_accepts_one_client_and_leaves_the_previous_mode(modern_device: FakeDevice) -> None:
    with AccessProxies({"R1": replace(connect_by_telnet(modern_device), console=True)}) as proxies:

        async def two() -> str:
            access = proxies.access()["R1"]
            login = {"username": access.user, "password": access.password, "known_hosts": None}
            async with (
                asyncssh.connect(access.host, access.port, **login) as client,
                asyncssh.connect(access.host, access.port, **login) as other,
            ):
                process = await client.create_process(term_type="vt100")
                await process.stdout.readuntil("R1#")
                return str(await (await other.create_process(term_type="vt100")).stdout.read())

        assert "% Error: busy: " in asyncio.run(two())
        assert privilege(proxies, "R1") == ANSWER


def test_secrets_are_only_in_the_memory_of_the_process(modern_device: FakeDevice, shared_proxy: AccessProxies) -> None:
    shared_proxy.open("R1")
    process = Path(f"/proc/{shared_proxy._helper.process.pid}")
    seen = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    assert b"qoslab.run.real.access.proxy_process" in seen
    assert not [secret for secret in SECRETS if secret.encode() in seen]
    assert not [secret for secret in SECRETS if secret in repr(connect_by_ssh(modern_device))]


def test_proxy_process_ends_with_its_owner(modern_device: FakeDevice) -> None:
    proxies = AccessProxies({"R1": connect_by_ssh(modern_device)})
    proxies.open("R1")
    proxies.close()
    assert proxies._helper.process.returncode == 0
    assert not proxies._folder.path.exists()


def test_routers_of_a_virtual_lab_need_no_proxy() -> None:
    asked = (
        "import sys, qoslab.run.real.access.proxy_process; "
        "print([name for name in sys.modules if name.startswith('qoslab.virtual_lab')])"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
