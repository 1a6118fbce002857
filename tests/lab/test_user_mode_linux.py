"""User-mode kernel: it forwards between interfaces of this machine, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qoslab.errors import DeviceError, MachineError
from qoslab.system.waiting import wait_until
from qoslab.tc.kernel_kinds import probe
from qoslab.tc.user_mode_linux import Device, UserModeKernel, find

pytestmark = [
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.skipif(find() is None, reason="needs the Debian package user-mode-linux or QOSLAB_UML"),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes network namespaces"),
]


def shell(text: str) -> str:
    return subprocess.run(["sh", "-ec", text], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def spaces() -> Iterator[str]:
    """Yield three network namespaces in a row; return the name of the middle one, which has the interfaces k0 and
    k1.
    """
    mark = f"uml{os.getpid()}"
    names = [f"{mark}{letter}" for letter in "akb"]
    a, k, b = names
    try:
        for name in names:
            shell(f"ip netns add {name}")
        shell(
            f"""
            ip -n {k} link add k0 type veth peer name a0 netns {a}
            ip -n {k} link add k1 type veth peer name b0 netns {b}
            ip -n {a} link set a0 up; ip -n {b} link set b0 up; ip -n {k} link set k0 up; ip -n {k} link set k1 up
            ip -n {a} address add 10.0.0.1/24 dev a0; ip -n {a} route add default via 10.0.0.2
            ip -n {b} address add 10.0.1.1/24 dev b0; ip -n {b} route add default via 10.0.1.2
            """
        )
        yield k
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def test_kernel_runs_commands_and_scripts_without_remains() -> None:
    with UserModeKernel() as kernel:
        folder = kernel.folder
        assert kernel.refused_modules == {}
        assert kernel.run(["uname", "-r"]).check().strip() == kernel.release == kernel.image.release
        long = "x" * 300_000
        assert kernel.run(["cat"], input=long).check() == long
        written = "import qoslab; open('/run/job/out', 'w').write(qoslab.__name__); print(6 * 7)"
        assert kernel.run_script(written).check() == "42\n"
        assert (folder / "out").read_text(encoding="utf-8") == "qoslab"
        with pytest.raises(DeviceError, match=r"exit status 2: .*unknown"):
            kernel.run(["tc", "qdisc", "add", "dev", "lo", "root", "nonesuch"]).check()
        with pytest.raises(DeviceError, match="Read-only file system"):
            kernel.run(["touch", str(Path(sys.executable).parent / "touched")]).check()
        with pytest.raises(MachineError, match=r"did not finish within 0\.5 s"):
            kernel.run(["sleep", "60"], timeout_s=0.5)

        def run(argv: object) -> tuple[int, str]:
            done = kernel.run(argv)  # type: ignore[arg-type]
            return done.status, done.stdout + done.stderr

        assert probe(run) == kernel.image.kinds()
        process = kernel._process
    assert process.returncode is not None
    assert not folder.exists()


def test_kernel_forwards_between_interfaces_of_the_machine(spaces: str) -> None:
    devices = [Device("eth0", "k0", "02:00:00:00:00:01"), Device("eth1", "k1", "02:00:00:00:00:02")]
    with UserModeKernel(devices, prefix=["ip", "netns", "exec", spaces]) as kernel:
        kernel.run(
            [
                *("sh", "-ec"),
                "ip address add 10.0.0.2/24 dev eth0; ip address add 10.0.1.2/24 dev eth1;"
                "sysctl -qw net.ipv4.ip_forward=1; tc qdisc add dev eth1 root cake bandwidth 20mbit",
            ]
        ).check()
        text = shell(f"ip netns exec {spaces[:-1]}a ping -c 20 -i 0.02 10.0.1.1")
        assert " 0% packet loss" in text
        assert '"packets":2' in kernel.run(["tc", "-s", "-j", "qdisc", "show", "dev", "eth1"]).check()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_kernel_ends_with_the_process_that_started_it(number: signal.Signals) -> None:
    program = """if True:
        from qoslab.tc.user_mode_linux import Kernel
        with Kernel() as kernel:
            print(kernel.folder, flush=True)
            kernel.run(["sleep", "600"], timeout_s=600)
    """
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        found = processes_naming_folder(folder)
        process.send_signal(number)
    assert found

    def check(late: bool) -> None:
        assert not late, processes_naming_folder(folder)

    wait_until(lambda: not processes_naming_folder(folder) and not folder.exists(), 10, check)


def processes_naming_folder(folder: Path) -> list[str]:
    """Return the command lines of processes that name a folder."""
    listed = subprocess.run(["ps", "-ewwo", "args"], check=True, capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if str(folder) in line]
