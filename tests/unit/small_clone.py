"""Fresh clone of a very small qoslab, in which tests start the script `qoslab`.

The lock file and pip are real. Environments with pip are copies of one. A script replaces uv: it makes an environment
with one package and logs its calls.
"""

from __future__ import annotations

import base64
import ensurepip
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]
PROGRAMS = ("qos-router", "flood", "sla", "qos-sim", "qos-pcap")
UV = """\
#!/bin/sh
[ "$1" = --no-config ] || exit 99
shift
echo "$@" >>"$STUB_CALLS"
if [ "${STUB_SAYS+given}" ]; then
    { printf '%s\\n' "$STUB_SAYS" && yes '   Compiling something' | head -n "${STUB_GOES_ON:-0}"; } >&2
    exit 1
fi
case " $* " in *' --clear '*) clear=--clear ;; *) clear= ;; esac
for word in "$@"; do
    if [ "$before" = --python ]; then python=$word; fi
    before=$word
done
if [ "$1" = venv ]; then
    sleep "${STUB_TAKES:-0}"
    exec "$python" -m venv --without-pip $clear "$word"
elif [ "$2" = install ]; then
    for site in "${python%/bin/python}"/lib/python3*/site-packages; do echo "$word/src" >"$site/it.pth"; done
fi
"""
"""Script that replaces uv; an environment takes STUB_TAKES seconds, so that another start finds it unfinished."""


def wheel(folder: Path) -> str:
    """Build a package with that script; return its line in a lock file."""
    info = "uv-1.dist-info"
    files = {
        "uv-1.data/scripts/uv": UV,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: uv\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }

    def digest(text: str) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()

    record = "".join(f"{name},sha256={digest(text)},{len(text.encode())}\n" for name, text in files.items())
    path = folder / "uv-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16
            archive.writestr(entry, text)
    return f"{path} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


def write_version(clone: Path, version: str) -> None:
    """Write the version of the package of a clone."""
    (clone / "src/qoslab/__main__.py").write_text(f"import sys\nprint('qoslab', {version!r}, *sys.argv[1:])\n")


COPYING = """\
#!/bin/sh
if [ "$1 $2 $3 $4" = "-I -m venv --clear" ]; then
    rm -rf "$5"
    exec cp -a '{made}' "$5"
fi
exec '{python}' "$@"
"""


def write_script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def write_program(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    write_script(path, f"#!/bin/sh\n{text}\n")


@pytest.fixture(scope="module")
def quick_venv_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a folder with a Python that makes an environment with pip by copying one: pip takes seconds to
    install.
    """
    folder, python = tmp_path_factory.mktemp("quick"), Path(sys.executable).resolve()
    made = folder / "made"
    subprocess.run([python, "-m", "venv", "--without-pip", made], check=True)
    # Debian has pip's wheel in another folder.
    wheels = Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or Path(ensurepip.__file__).parent / "_bundled")
    (pip,), (site,) = wheels.glob("pip-*.whl"), made.glob("lib/python3*/site-packages")
    shutil.unpack_archive(pip, site, "zip")
    # Compiles the modules that each copy imports at its start.
    subprocess.run([made / "bin/python", "-I", "-m", "pip", "install", "--help"], check=True, stdout=subprocess.DEVNULL)
    write_script(folder / "python3", COPYING.format(made=made, python=python))
    return folder


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """Provide a fresh clone of a very small qoslab, on a machine with all system packages and the built programs."""
    made = tmp_path / "a clone"
    for folder in ("requirements", "src/qoslab", "target/release", "crates", ".qoslab"):
        (made / folder).mkdir(parents=True)
    shutil.copy(TOP / "qoslab", made)
    for name in ("pyproject.toml", "Cargo.toml", "Cargo.lock", "requirements/run.txt", "requirements/build.txt"):
        (made / name).write_text("")
    (made / "requirements/tools.txt").write_text(wheel(tmp_path))
    (made / "src/qoslab/__init__.py").write_text("")
    write_version(made, "1")
    for name in PROGRAMS:
        (made / "target/release" / name).write_text("")
        (made / "target/release" / name).chmod(0o755)
    (made / ".qoslab/ready").write_text("")
    return made


@pytest.fixture
def clone(fresh: Path, tmp_path: Path) -> Path:
    """Provide the clone with the tools."""
    tools = fresh / ".qoslab/tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "bin/python").symlink_to(Path(sys.executable).resolve())
    write_script(tools / "bin/uv", UV)
    shutil.copy(fresh / "requirements/tools.txt", tools / "installed.txt")
    (tools / "place").write_text(f"{fresh}\n{Path(sys.executable).resolve()}\n")
    return fresh


PYTHON = f"""\
#!/bin/sh
case "$2 $3" in
    '-c import sys;'*) echo {sys.version_info[0]}.{sys.version_info[1]} ;;
    '-c import venv,'*) ;;
    *) exec '{Path(sys.executable).resolve()}' "$@" ;;
esac
"""
"""Python that needs no start to name its version and to find its modules; each first start asks for both twice."""


def path_with(folder: Path) -> str:
    """Return the search path with this folder first."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def environment(clone: Path, **more: str) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("SUDO_", "QOSLAB_", "UV_", "PYTHON"))
    }
    if not (named := clone.parent / "named/python3").exists():
        named.parent.mkdir()
        write_script(named, PYTHON)
    return {**inherited, "PATH": path_with(named.parent), "STUB_CALLS": str(clone.parent / "calls"), **more}


def start(clone: Path, *words: str, folder: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(clone / "qoslab"), *words],
        env=environment(clone, **more),
        cwd=folder or clone.parent,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def calls(clone: Path) -> list[str]:
    path = clone.parent / "calls"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def bare_machine(clone: Path) -> dict[str, str]:
    """Machine without iperf3; its apt-get prints its arguments and its package lists are complete."""
    folder = clone.parent / "bin"
    folder.mkdir()
    programs = {entry.name: entry.path for place in ("/bin", "/usr/bin") for entry in os.scandir(place)}
    for name in programs.keys() - {"iperf3", "apt-get", "apt-cache", "sudo"}:
        os.symlink(programs[name], f"{folder}/{name}")  # noqa: PTH211 (thousands of them)
    stubs = {
        "apt-get": 'echo "$@" >>"$STUB_CALLS"',
        "apt-cache": 'echo "  Candidate: 2:99.0-1"',
        "sudo": 'shift; exec "$@"',
    }
    for name, text in stubs.items():
        write_program(folder / name, text)
    (clone / ".qoslab/ready").unlink()
    return {"PATH": str(folder), "CI": "", "DEBIAN_FRONTEND": "noninteractive"}
