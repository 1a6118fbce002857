"""Listeners on this machine answer only the user who started them, and close the connections of others silently.

As root the tests connect as another user. Without root, the server is given another user id as its owner, so that the
kernel reports a different user for each connection.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncssh
import pytest

HERE = Path(__file__).parent
NOBODY = 65534
SOMEBODY_ELSE = "import os; me = os.geteuid(); os.geteuid = lambda: me + 1\n"
PORTS = {
    "router": """
import sys
from pathlib import Path
from fake_device import FakeDevice
with FakeDevice(Path(sys.argv[1])) as device:
    print({"ssh": device.ssh, "telnet": device.telnet}[sys.argv[2]], flush=True)
    sys.stdin.read()
""",
    "host": """
import json, os, sys, threading, time
from pathlib import Path
from qoslab.virtual_lab import hostd
folder = Path(sys.argv[1])
spec = {"format": 1, "listen": "127.0.0.1", "authorized": sys.argv[2], "ready": str(folder / "ready"),
        "hosts": {"client": "/proc/self/ns/net"}}
(folder / "spec").write_text(json.dumps(spec))
def tell():
    while not (folder / "ready").exists():
        time.sleep(0.01)
    print(json.loads((folder / "ready").read_text())["hosts"]["client"]["port"], flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), 15)
threading.Thread(target=tell).start()
sys.exit(hostd.main([str(folder / "spec")]))
""",
    "proxy": """
from qoslab.run.real.access import proxy_process
proxy_process.main()
""",
}
"""Servers, each a program that prints its port and ends with its input."""
CALL = """
import encodings.idna, os, socket, sys
port, user = int(sys.argv[1]), int(sys.argv[2])
if user != os.geteuid():
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
try:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        print(connection.recv(4096))
except ConnectionResetError:
    print(b"")
"""


def call_as_user(port: int, user: int) -> str:
    """Return the first output to a caller with this user id."""
    argv = [sys.executable, "-I", "-c", CALL, str(port), str(user)]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


@contextmanager
def start_listener(name: str, way: str, folder: Path, before: str = "") -> Iterator[int]:
    """Yield the port of a server; `before` is the first code of its program."""
    argument = way
    if name == "host":
        argument = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    argv = [sys.executable, "-c", before + PORTS[name], str(folder), argument]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            if name == "proxy":
                ways = {"R1": {"host": "127.0.0.1", "port": 1}}
                server.stdin.write(json.dumps({"ways": ways, "passwords": {"R1": "x"}}) + "\n")
                server.stdin.flush()
            output = server.stdout.readline()
            yield json.loads(output)["ports"]["R1"] if name == "proxy" else int(output)
            server.stdin.close()
            server.wait(30)
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("name", "way", "greeting"),
    [
        pytest.param("router", "ssh", "SSH-2.0-", id="router by SSH"),
        pytest.param("router", "telnet", r"\xff\xfb", id="router by telnet", marks=pytest.mark.long),
        pytest.param("host", "ssh", "SSH-2.0-", id="host"),
        pytest.param("proxy", "ssh", "SSH-2.0-", id="proxy", marks=pytest.mark.long),
    ],
)
def test_ports_ignore_other_users(name: str, way: str, greeting: str, tmp_path: Path) -> None:
    me = os.geteuid()
    with start_listener(name, way, tmp_path) as port:
        assert greeting in call_as_user(port, me)
        if me == 0:
            assert call_as_user(port, NOBODY) == "b''"
            return
    (tmp_path / "ready").unlink(missing_ok=True)
    with start_listener(name, way, tmp_path, SOMEBODY_ELSE) as port:
        assert call_as_user(port, me) == "b''"
