"""Script `qoslab`: missing system packages, on Debian and elsewhere, and the permission to install them."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from small_clone import TOP, bare_machine, calls, clone, environment, fresh, start, write_program

from qoslab.system.packages import ELSEWHERE, MANAGERS

__all__ = ["bare_machine", "clone", "fresh"]

GERMAN = """
case "$LC_ALL,$LANGUAGE" in
    C,* | C.UTF-8,) candidate=Candidate untranslated=1 ;;
    *) candidate=Installationskandidat untranslated= ;;
esac
"""
"""apt with German messages. Some of its C libraries obey LANGUAGE except in the locale C itself."""


def test_apt_output_is_parsed_in_any_language(clone: Path, bare_machine: dict[str, str]) -> None:
    folder = clone.parent / "bin"
    for name in ("cargo", "rustc"):
        (folder / name).unlink(missing_ok=True)
    candidates = 'case $2 in cargo) echo "  $candidate: 0.66.0" ;; *) echo "  $candidate: 1.90.0" ;; esac'
    write_program(folder / "apt-cache", GERMAN + candidates)
    could_not = 'if [ "$untranslated" ]; then echo "E: Could not resolve host"; else echo "E: Unbekannt"; fi; exit 100'
    write_program(folder / "apt-get", f'{GERMAN}echo "$@" >>"$STUB_CALLS"\n[ "$1" = update ] || {{ {could_not}; }}')
    failed = start(clone, **bare_machine, LC_ALL="de_DE.UTF-8", LANGUAGE="de")
    (asked,) = (call.split() for call in calls(clone) if call.startswith("install"))
    assert {"cargo-web", "rustc-web"} <= set(asked) and not {"cargo", "rustc"} & set(asked)
    assert failed.returncode == 2 and "a package index is unreachable" in failed.stderr


def test_no_package_is_installed_if_forbidden(clone: Path, bare_machine: dict[str, str]) -> None:
    failed = start(clone, QOSLAB_NO_APT="1", **bare_machine)
    assert failed.returncode == 2
    assert "missing: " in failed.stderr and "apt-get install --no-install-recommends" in failed.stderr
    assert "iperf3" in failed.stderr
    assert calls(clone) == []
    (clone.parent / "bin/apt-get").unlink()
    failed = start(clone, **bare_machine)
    assert failed.returncode == 2 and "only with apt-get" in failed.stderr


def test_removed_requirements_are_detected_at_the_next_start(clone: Path, bare_machine: dict[str, str]) -> None:
    (clone / ".qoslab/ready").write_text("")
    failed = start(clone, QOSLAB_NO_APT="1", **bare_machine)
    assert failed.returncode == 2 and "qoslab: missing: iperf3 " in failed.stderr
    folder = Path(bare_machine["PATH"])
    (folder / "iperf3").symlink_to("/bin/true")
    for python in folder.glob("python3*"):
        python.unlink()
    failed = start(clone, QOSLAB_NO_APT="1", **bare_machine)
    assert failed.returncode == 2 and "qoslab: missing: python>=3.11 " in failed.stderr
    assert "no packages were installed" in failed.stderr


SUDO = """
kept=${1#--preserve-env=}
shift
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    case ",$kept," in *",$name,"*) ;; *) unset "$name" ;; esac
done
exec "$@"
"""
"""A sudo that, like the real one, keeps only the named proxy variables."""


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"])
def test_packages_are_installed_through_a_proxy(clone: Path, bare_machine: dict[str, str], name: str) -> None:
    programs = {"sudo": SUDO, "id": "echo 1000", "apt-get": f'echo "$1 through ${{{name}}}" >>"$STUB_CALLS"'}
    for program, text in programs.items():
        write_program(clone.parent / "bin" / program, text)
    start(clone, **bare_machine, **{name: "proxy.example.net"})
    assert "install through proxy.example.net" in calls(clone)


def test_missing_network_for_system_packages_is_reported(clone: Path, bare_machine: dict[str, str]) -> None:
    apt = clone.parent / "bin/apt-get"
    apt.write_text("#!/bin/sh\necho 'E: Failed to fetch http://example.net/a  Could not resolve host' >&2; exit 100\n")
    (clone.parent / "bin/iperf").unlink(missing_ok=True)
    failed = start(clone, **bare_machine)
    assert failed.returncode == 2 and "E: Failed to fetch" in failed.stderr
    output = failed.stderr.partition("needed: ")[2].partition(".\n")[0]
    lists = output == "the package lists of apt"
    assert lists or {"iperf", "iperf3"} <= set(output.removeprefix("the system packages ").split()), failed.stderr


@pytest.mark.parametrize(
    ("manager", "words", "packages"),
    [
        (
            "dnf",
            "sudo dnf install ",
            {"iperf3", "iputils", "openssh-clients", "wireshark-cli", "rust"},
        ),
        ("pacman", "sudo pacman -S --needed ", {"iperf3", "iputils", "openssh", "wireshark-cli", "rust"}),
    ],
)
def test_other_distributions_get_their_package_commands(
    clone: Path, bare_machine: dict[str, str], manager: str, words: str, packages: set[str]
) -> None:
    folder = clone.parent / "bin"
    (folder / "apt-get").rename(folder / manager)
    # Images of Fedora and Arch have no `cmp`, some others neither `awk` nor `find`.
    without = ("apt-cache", "tshark", "dumpcap", "ssh", "ping", "cargo", "rustc")
    for name in (*without, "awk", "mawk", "gawk", "cmp", "find"):
        (folder / name).unlink(missing_ok=True)
    failed = start(clone, **bare_machine)
    output = failed.stderr.splitlines()[-1].strip()
    assert failed.returncode == 2 and output.startswith(words), failed.stderr
    named = set(output.removeprefix(words).split())
    assert packages | {"diffutils", "findutils", "gawk"} <= named
    assert (
        not named & {"tshark", "openssh-client", "iputils-ping", "rustc"} and "command not found" not in failed.stderr
    )
    assert calls(clone) == []


@pytest.mark.parametrize(
    ("column", "names"), [(2, "gcc iperf iproute iproute-tc rust rustfmt"), (3, "gcc iperf iproute2 rust")]
)
def test_package_names_are_mapped_to_other_distributions(column: int, names: str) -> None:
    text = (TOP / "qoslab").read_text()
    functions = text[text.index("elsewhere='") : text.index("install_system_packages() {")]
    words = ["bash", "-euc", f'{functions}\nother_names "$@"', "bash", str(column)]
    packages = ["rustc", "gcc", "iproute2", "rustfmt", "iperf"]
    output = subprocess.run([*words, *packages], capture_output=True, text=True, check=True).stdout
    assert output.split() == names.split()


def test_doctor_uses_the_same_package_names() -> None:
    text = (TOP / "qoslab").read_text()
    rows = text.partition("elsewhere='\n")[2].partition("'\n")[0].splitlines()
    assert {debian: (fedora, arch) for debian, fedora, arch in map(str.split, rows)} == ELSEWHERE
    assert set(re.findall(r'words="(sudo [^$]*) [$]', text)) == {command for _, command, _ in MANAGERS}


def run_at_terminal(clone: Path, answer: str, *words: str, **more: str) -> tuple[int, bytes]:
    """Return the status of a start that is answered at a terminal, and its output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [str(clone / "qoslab"), *words],
        env=environment(clone, **more),
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.DEVNULL,
    )
    os.close(theirs)
    os.write(ours, answer.encode())
    text = b""
    while True:
        try:
            text += os.read(ours, 4096)
        except OSError:
            break  # the other end is closed
    os.close(ours)
    return process.wait(), text


@pytest.mark.parametrize("program", ["rustc", "python3"])
def test_failing_program_installs_no_package(clone: Path, bare_machine: dict[str, str], program: str) -> None:
    for python in Path(bare_machine["PATH"]).glob("python3*"):
        python.unlink() if program == "python3" else None
    for name in ("rustc", "cargo"):
        write_program(Path(bare_machine["PATH"]) / name, f"echo {name} 1.99.0")
    write_program(Path(bare_machine["PATH"]) / program, "echo 'error: no such toolchain' >&2; exit 1")
    failed = start(clone, **bare_machine)
    assert failed.returncode == 2 and calls(clone) == []
    assert f"qoslab: {program} is installed but fails (error: no such toolchain)" in failed.stderr


@pytest.mark.parametrize(
    ("message", "installs"),
    [
        pytest.param({"CI": "true"}, True, marks=pytest.mark.long),
        ({"DEBIAN_FRONTEND": "noninteractive"}, True),
        ({}, False),
    ],
)
def test_without_a_terminal_packages_are_installed_only_with_yes(
    clone: Path, bare_machine: dict[str, str], message: dict[str, str], installs: bool
) -> None:
    ended = start(clone, "list", **{**bare_machine, "DEBIAN_FRONTEND": "", **message})
    assert ended.returncode == 2
    assert any("install -y" in call for call in calls(clone)) == installs
    assert ("or start with --yes, as in `./qoslab --yes test`" in ended.stderr) == (not installs)
    start(clone, "--yes", "list", **{**bare_machine, "DEBIAN_FRONTEND": ""})
    assert any("install -y" in call for call in calls(clone))


@pytest.mark.parametrize(("words", "answer", "installs"), [([], "n\n", False), ([], "\n", True), (["--yes"], "", True)])
def test_packages_need_confirmation_on_a_terminal(
    clone: Path, bare_machine: dict[str, str], words: list[str], answer: str, installs: bool
) -> None:
    status, text = run_at_terminal(clone, answer, *words, **{**bare_machine, "DEBIAN_FRONTEND": ""})
    # The package that the test's apt-get installs is still missing afterwards.
    assert status == 2
    assert (b"install with apt-get: " in text) == (not words)
    assert any("install -y" in call and "iperf3" in call for call in calls(clone)) == installs
    assert (b"still missing after the installation" in text) == installs


def test_packages_need_no_confirmation_in_ci(clone: Path, bare_machine: dict[str, str]) -> None:
    status, text = run_at_terminal(clone, "n\n", **{**bare_machine, "CI": "true"})
    assert status == 2 and b"still missing after the installation" in text
    assert b"install with apt-get: " not in text
    assert any("install -y" in call and "iperf3" in call for call in calls(clone))
