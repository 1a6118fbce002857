"""The script `qoslab`: first starts, also two at once, broken off, offline; clones that were copied or moved.

Environments, pip and the lock are real; but for a first start, which makes its own, environments with pip are copies
of one. In place of uv there is a script that makes an environment with one package, and says what it was asked for.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

import pytest

from alive import alive
from qoslab.system.packages import ELSEWHERE, MANAGERS

TOP = Path(__file__).parents[2]
PROGRAMS = ("qos-router", "flood", "sla", "qos-sim", "qos-pcap")
UV = """\
import os, subprocess, sys, time
from pathlib import Path
assert sys.argv[1] == "--no-config"
words = sys.argv[2:]
with open(os.environ["STUB_CALLS"], "a") as calls:
    print(*words, file=calls)
if "STUB_SAYS" in os.environ:
    sys.exit(os.environ["STUB_SAYS"] + int(os.environ.get("STUB_GOES_ON", "0")) * "\\n   Compiling something")
if words[0] == "venv":
    time.sleep(float(os.environ.get("STUB_TAKES", "0.5")))  # so that another start meets it
    command = [words[words.index("--python") + 1], "-m", "venv", "--without-pip"]
    sys.exit(subprocess.call([*command, *(["--clear"] if "--clear" in words else []), words[-1]]))
if words[1] == "install":
    (site,) = Path(words[words.index("--python") + 1]).parents[1].glob("lib/python3*/site-packages")
    (site / "it.pth").write_text(words[-1] + "/src\\n")
"""


def uv_script(folder: Path) -> str:
    """That script, started by a shell since paths may have blanks."""
    (folder / "stub_uv.py").write_text(UV)
    return f"#!/bin/sh\nexec '{sys.executable}' '{folder}/stub_uv.py' \"$@\"\n"


def wheel(folder: Path) -> str:
    """The package with that script, and its line in a lock file."""
    info = "uv-1.dist-info"
    files = {
        "uv-1.data/scripts/uv": uv_script(folder),
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
    """What the package of a clone says of itself."""
    (clone / "src/qoslab/__main__.py").write_text(f"import sys\nprint('qoslab', {version!r}, *sys.argv[1:])\n")


COPYING = """\
#!/bin/sh
if [ "$1 $2 $3 $4" = "-I -m venv --clear" ]; then
    rm -rf "$5"
    exec cp -a '{made}' "$5"
fi
exec '{python}' "$@"
"""


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a Python that makes an environment with pip by copying one: pip takes seconds to install."""
    folder, python = tmp_path_factory.mktemp("quick"), Path(sys.executable).resolve()
    subprocess.run([python, "-m", "venv", folder / "made"], check=True)
    (folder / "python3").write_text(COPYING.format(made=folder / "made", python=python))
    (folder / "python3").chmod(0o755)
    return folder


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A fresh clone of a very small qoslab, on a machine that has all system packages and the built programs."""
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
    """The same with the tools."""
    tools = fresh / ".qoslab/tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "bin/python").symlink_to(Path(sys.executable).resolve())
    (tools / "bin/uv").write_text(uv_script(tmp_path))
    (tools / "bin/uv").chmod(0o755)
    shutil.copy(fresh / "requirements/tools.txt", tools / "installed.txt")
    (tools / "place").write_text(f"{fresh}\n{Path(sys.executable).resolve()}\n")
    return fresh


def path_with(folder: Path) -> str:
    """The search path on which what is in this folder comes first."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def environment(clone: Path, **more: str) -> dict[str, str]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("SUDO_", "QOSLAB_", "UV_", "PYTHON"))
    }
    # Without a detour over what chooses among Pythons, such as pyenv: that starts a shell for each.
    path = path_with(Path(sys.executable).resolve().parent)
    return {**inherited, "PATH": path, "STUB_CALLS": str(clone.parent / "calls"), **more}


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


def test_a_first_start_and_a_second(fresh: Path) -> None:
    clone = fresh
    first = start(clone, "list", "--json")
    assert (first.returncode, first.stdout) == (0, "qoslab 1 list --json\n"), first.stderr
    said = [line for line in first.stderr.splitlines() if line]
    assert len(said) == 2 and all(line.startswith("qoslab: installing the Python ") for line in said)
    assert all("--build-constraints" in call for call in calls(clone) if call.startswith("pip"))
    assert "pip install --disable-pip-version-check" in (clone / ".qoslab/log/setup.log").read_text()
    done = len(calls(clone))
    second = start(clone, "list")
    assert (second.returncode, second.stdout, second.stderr) == (0, "qoslab 1 list\n", "")
    assert len(calls(clone)) == done == 3
    (clone / "requirements/run.txt").write_text("# another\n")
    assert start(clone, "list").returncode == 0
    assert [call.split()[0] for call in calls(clone)[3:]] == ["pip", "pip"], "packages change in place"


def test_checks_need_no_environment_but_their_own(clone: Path) -> None:
    (clone / ".qoslab/ready-test").write_text("")
    (clone / "tests").mkdir()
    (clone / "tests/run.py").write_text("import sys\nprint('checks', *sys.argv[1:])\n")
    done = start(clone, "test", "-e", "lint")
    assert (done.returncode, done.stdout, done.stderr) == (0, "checks -e lint\n", "")
    assert calls(clone) == [] and not (clone / ".venv").exists()
    # As tox does where there is none.
    (clone / ".venv").write_text(".tox/lint\n")
    assert start(clone).stdout == "qoslab 1\n", "that one is made when it is needed"
    assert (clone / ".venv").is_dir()


@pytest.mark.long
def test_a_copy_and_a_moved_clone_run_their_own_code(clone: Path, quick: Path) -> None:
    assert start(clone).stdout == "qoslab 1\n"
    copy = clone.with_name("copy")
    subprocess.run(["cp", "-a", str(clone), str(copy)], check=True)
    write_version(copy, "9.9.9")
    assert start(copy, PATH=path_with(quick)).stdout == "qoslab 9.9.9\n"
    assert start(clone).stdout == "qoslab 1\n"
    moved = clone.rename(clone.with_name("moved"))
    again = start(moved, PATH=path_with(quick))
    assert (again.returncode, again.stdout) == (0, "qoslab 1\n"), again.stderr


@pytest.mark.long
def test_an_environment_that_is_half_made_or_without_interpreter_is_made_again(clone: Path, quick: Path) -> None:
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/pyvenv.cfg").write_text("half")
    assert start(clone).stdout == "qoslab 1\n"
    for python in (clone / ".venv/bin/python", clone / ".qoslab/tools/bin/python"):
        python.unlink()
        python.symlink_to("/usr/bin/python3.gone")
        again = start(clone, PATH=path_with(quick))
        assert (again.returncode, again.stdout) == (0, "qoslab 1\n"), again.stderr
    # Broken off while packages were being installed: the environment has no word of where it is.
    (clone / ".venv/place").unlink()
    assert start(clone).stdout == "qoslab 1\n"
    assert [call.split()[0] for call in calls(clone)].count("venv") == 3


@pytest.mark.long
def test_two_first_starts_at_once(clone: Path) -> None:
    both = [
        subprocess.Popen(
            [str(clone / "qoslab")],
            env=environment(clone),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert [output for output, _ in said] == ["qoslab 1\n"] * 2
    assert [call.split()[0] for call in calls(clone)] == ["venv", "pip", "pip"]
    assert sum("another start is setting up this clone" in errors for _, errors in said) == 1


def test_without_network(clone: Path) -> None:
    (clone / "requirements/run.txt").write_text("click==8.2.1 \\\n    --hash=sha256:00\nrich==14.0.0 ; x == 'y'\n")
    failed = start(clone, STUB_SAYS="error: error sending request for url (https://pypi.org/simple/click/): dns error")
    assert failed.returncode == 2
    assert "dns error" in failed.stderr and "HTTPS_PROXY" in failed.stderr and "setup.log" in failed.stderr
    assert "to be fetched were the Python packages of requirements/run.txt: click, rich.\n" in failed.stderr
    (clone / "requirements/run.txt").write_text("".join(f"p{number}==1\n" for number in range(11)))
    failed = start(clone, STUB_SAYS="error: dns error")
    assert "requirements/run.txt: p0, p1, p2, p3, p4, p5, p6, p7 and 3 more.\n" in failed.stderr
    assert start(clone).stdout == "qoslab 1\n", "it goes on where it was"


@pytest.mark.long
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "said",
    [
        "error: failed to fetch: `https://example.net/a`: No space left on device (os error 28)",
        "E: Failed to fetch http://example.net/a  Write error - write (28: No space left on device)",
        "E: You don't have enough free space in /var/cache/apt/archives/.",
        "error: failed to download from `https://example.net/a`: Disk quota exceeded (os error 122)",
    ],
)
def test_a_full_disk_is_no_lack_of_a_network(clone: Path, said: str) -> None:
    failed = start(clone, STUB_SAYS=said)
    assert failed.returncode == 2 and said in failed.stderr
    assert "qoslab: a disk is full" in failed.stderr and "HTTPS_PROXY" not in failed.stderr
    assert start(clone).stdout == "qoslab 1\n", "it goes on where it was"


@pytest.mark.sample(2)
@pytest.mark.parametrize(("said", "told"), [("dns error", "HTTPS_PROXY"), ("Disk quota exceeded", "a disk is full")])
def test_the_reason_is_found_before_much_else(clone: Path, said: str, told: str) -> None:
    """A compiler that goes on with what it has begun writes more than a pipe takes."""
    failed = start(clone, STUB_SAYS=f"error: {said}", STUB_GOES_ON="40000")
    assert failed.returncode == 2 and told in failed.stderr


@pytest.mark.parametrize("before", ["", "WARNING: Retrying (Retry(total=0)) after connection broken by 'Timeout()'\n"])
def test_a_version_that_an_index_has_not_is_no_lack_of_a_network(clone: Path, before: str) -> None:
    """pip says the same of both, without a connection something before it."""
    failed = start(clone, STUB_SAYS=f"{before}ERROR: Could not find a version that satisfies the requirement uv==0.1")
    assert failed.returncode == 2
    assert ("HTTPS_PROXY" in failed.stderr) == bool(before)


def test_a_hash_that_is_not_the_locked_one(fresh: Path, quick: Path) -> None:
    clone = fresh
    lock = clone / "requirements/tools.txt"
    lock.write_text(lock.read_text()[:-9] + "00000000\n")
    failed = start(clone, PATH=path_with(quick))
    assert failed.returncode == 2 and "DO NOT MATCH THE HASHES" in failed.stderr
    assert not (clone / ".qoslab/tools/place").exists()


def test_without_network_for_its_tools(fresh: Path, quick: Path) -> None:
    """The real pip, told of an index at which nobody listens."""
    (fresh / "requirements/tools.txt").write_text(f"uv==0.1 --hash=sha256:{'0' * 64}\n")
    failed = start(fresh, PATH=path_with(quick), PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_CONFIG_FILE=os.devnull)
    assert failed.returncode == 2
    assert "to be fetched were the Python packages of requirements/tools.txt: uv.\n" in failed.stderr, failed.stderr
    assert not (fresh / ".qoslab/tools/place").exists()


def cargo_that(clone: Path, does: str) -> dict[str, str]:
    """The environment in which `cargo` is a script of the shell; what it was asked for is among the calls."""
    (clone / "bin").mkdir()
    (clone / "bin/cargo").write_text(f'#!/bin/sh\necho cargo "$@" >>"$STUB_CALLS"\n{does}\n')
    (clone / "bin/cargo").chmod(0o755)
    return {"PATH": path_with(clone / "bin")}


@pytest.mark.long
def test_without_network_for_crates(clone: Path) -> None:
    (clone / "target/release/qos-sim").unlink()
    said = "error: failed to download from `https://example.net/a`"
    cargo = cargo_that(clone, f"echo '{said}' >&2; exit 101")
    for _ in ("beside the installation of the packages", "alone"):
        failed = start(clone, "notebook", **cargo)
        assert failed.returncode == 2
        assert failed.stderr.count(said) == 1
        assert "to be fetched were the crates of Cargo.lock.\n" in failed.stderr
        assert (clone / ".venv/place").exists(), "what was installed beside it stays"


BUILDING = """\
for word in "$@"; do
    case $word in
        */Cargo.toml) clone=${word%/*} ;;
        --bin=*) install -m 755 /dev/null "$clone/target/release/${word#--bin=}" ;;
    esac
done
"""


def test_what_a_command_starts_is_built_and_no_more(clone: Path) -> None:
    for name in PROGRAMS:
        (clone / "target/release" / name).unlink()
    cargo = cargo_that(clone, BUILDING)
    for words, built in (
        (("list",), ()),
        (("policy", "it.txt"), ()),
        (("try", "it.txt"), ("qos-sim",)),
        (("run", "it.yml", "--lab", "simulated"), ("qos-sim", "qos-pcap")),
        (("run", "it.yml"), ("qos-router", "flood", "sla", "qos-pcap")),
        (("run", "--resume", "it", "--lab", "simulated"), ()),
        (("report", "that"), ()),
        (("run", "it.yml"), ()),
        (("lab", "up"), ()),
        (("doctor",), PROGRAMS),  # of sources that have changed, below
    ):
        before = len(calls(clone))
        if words == ("doctor",):
            later = time.time() + 60
            (clone / "Cargo.lock").write_text("")
            os.utime(clone / "Cargo.lock", (later, later))
        assert start(clone, *words, **cargo).returncode == 0
        asked = [call.split() for call in calls(clone)[before:] if call.startswith("cargo")]
        assert len(asked) == (1 if built else 0), words
        for call in asked:
            assert [word[6:] for word in call if word.startswith("--bin=")] == list(built)
            # What a crate is compiled with depends on who else is chosen.
            assert [word[10:] for word in call if word.startswith("--package=")] == list(PROGRAMS)
        missing = [name for name in built if not (clone / "target/release" / name).exists()]
        assert not missing


@pytest.mark.sample(4)
@pytest.mark.parametrize("words", [("--resume",), ("--resume", "it"), ("--resume=it",), ("it.yml", "--resume")])
def test_a_run_goes_on_in_any_kind_of_lab(clone: Path, words: tuple[str, ...]) -> None:
    (clone / "target/release/qos-sim").unlink()
    cargo = cargo_that(clone, BUILDING)
    assert start(clone, "run", *words, **cargo).returncode == 0
    assert (clone / "target/release/qos-sim").exists()


def test_a_build_ends_with_its_parallel_work(clone: Path) -> None:
    (clone / "target/release/qos-sim").unlink()
    cargo = cargo_that(clone, 'echo "$$" >"$STUB_CALLS.cargo"; exec sleep 60')
    failed = start(clone, "notebook", STUB_SAYS="error: no space left on device", **cargo)
    assert failed.returncode == 2 and "no space left" in failed.stderr
    number = clone.parent / "calls.cargo"
    if number.exists():  # it may have been ended before it began
        for _ in range(100):
            if not alive(int(number.read_text())):
                break
            time.sleep(0.05)
        assert not alive(int(number.read_text()))


STEP = """\
#!/bin/sh
# A step begins, or has ended: at the one that is asked for the start is killed, and what it had called ends too.
echo "$@" >>"$STEPS"
if [ "$1" = "$KILLED" ] && [ "$(grep -c "^$1" "$STEPS")" = "$KILLED_AT" ]; then
    kill -KILL "$(ps -o sid= -p $$ | tr -d ' ')" $PPID
fi
"""
STEPS = ("venv", "pip", "uv venv", "uv pip", "uv pip", "cargo")
"""Of a first start; the last one runs beside those of uv."""


def stepping(clone: Path) -> dict[str, str]:
    """The environment of a first start each of whose steps is a script that says so, and none of which takes long."""
    folder, python = clone.parent / "stepping", Path(sys.executable).resolve()
    folder.mkdir()

    def script(name: str, step: str, does: str, only: str = "") -> Path:
        steps = [f"'{folder}/step' before {step}", f"{does} || exit", f"'{folder}/step' after {step}", "exit 0"]
        steps = (
            [f"if [ \"$1 $2 $3 $4\" = '-I {only}' ]; then", *steps, "fi", f"exec '{python}' \"$@\""] if only else steps
        )
        (folder / name).write_text("\n".join(["#!/bin/sh", *steps, ""]))
        (folder / name).chmod(0o755)
        return folder / name

    (folder / "step").write_text(STEP)
    (folder / "step").chmod(0o755)
    (folder / "stub_uv.py").write_text(UV)
    uv = script("uv", "uv $2", f"'{python}' '{folder}/stub_uv.py' \"$@\"")
    tools = script("python", "pip", f'cp \'{uv}\' "$(dirname "$0")"', only="-m pip install")
    made = f'rm -rf "$5" && mkdir -p "$5/bin" && cp \'{tools}\' "$5/bin"'
    script("python3", "venv", made, only="-m venv --clear")
    script("cargo", "cargo", f"install -m 755 /dev/null '{clone}/target/release/qos-sim'")
    return {"PATH": path_with(folder), "STEPS": str(folder / "steps"), "STUB_TAKES": "0"}


def steps_of(stepping: dict[str, str], when: str) -> list[str]:
    said = Path(stepping["STEPS"]).read_text().splitlines()
    return [line.partition(" ")[2] for line in said if line.startswith(when)]


@pytest.mark.long
@pytest.mark.sample(5)
@pytest.mark.parametrize("number", range(1, len(STEPS) + 1))
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_first_start_that_was_killed_at_any_step_is_made_up_for(fresh: Path, when: str, number: int) -> None:
    (fresh / "target/release/qos-sim").unlink()
    how = stepping(fresh)
    killed = subprocess.run(
        [str(fresh / "qoslab"), "notebook"],
        env=environment(fresh, **how, KILLED=when, KILLED_AT=str(number)),
        cwd=fresh.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        start_new_session=True,
    )
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, b""), killed.stderr
    assert len(steps_of(how, when)) >= number
    again = start(fresh, "notebook", **how)
    assert (again.returncode, again.stdout) == (0, "qoslab 1 notebook\n"), again.stderr
    assert (fresh / "target/release/qos-sim").exists()
    done = len(steps_of(how, "before"))
    third = start(fresh, "notebook", **how)
    assert (third.returncode, third.stdout, third.stderr) == (0, "qoslab 1 notebook\n", "")
    assert len(steps_of(how, "before")) == done, "nothing was left to do"


@pytest.mark.long
def test_the_steps_of_a_first_start_are_those_at_which_it_is_killed(fresh: Path) -> None:
    (fresh / "target/release/qos-sim").unlink()
    how = stepping(fresh)
    first = start(fresh, "notebook", **how)
    assert (first.returncode, first.stdout) == (0, "qoslab 1 notebook\n"), first.stderr
    assert sorted(steps_of(how, "before")) == sorted(steps_of(how, "after")) == sorted(STEPS)


@pytest.fixture
def bare(clone: Path) -> dict[str, str]:
    """A machine without iperf3, whose apt-get says what it was asked for and whose package lists have everything."""
    folder = clone.parent / "bin"
    folder.mkdir()
    for program in (*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()):
        link = folder / program.name
        if program.name not in ("iperf3", "apt-get", "apt-cache", "sudo") and not link.is_symlink():
            link.symlink_to(program)
    stubs = {
        "apt-get": 'echo "$@" >>"$STUB_CALLS"',
        "apt-cache": 'echo "  Candidate: 2:99.0-1"',
        "sudo": 'shift; exec "$@"',
    }
    for name, text in stubs.items():
        write_program(folder / name, text)
    (clone / ".qoslab/ready").unlink()
    return {"PATH": str(folder), "CI": "", "DEBIAN_FRONTEND": "noninteractive"}


GERMAN = """
case "$LC_ALL,$LANGUAGE" in
    C,* | C.UTF-8,) candidate=Candidate untranslated=1 ;;
    *) candidate=Installationskandidat untranslated= ;;
esac
"""
"""As apt where its German words are installed. Some of its C libraries heed LANGUAGE but for the very locale C."""


def write_program(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_words_of_apt_are_read_in_any_language(clone: Path, bare: dict[str, str]) -> None:
    folder = clone.parent / "bin"
    for name in ("cargo", "rustc"):
        (folder / name).unlink(missing_ok=True)
    candidates = 'case $2 in cargo) echo "  $candidate: 0.66.0" ;; *) echo "  $candidate: 1.90.0" ;; esac'
    write_program(folder / "apt-cache", GERMAN + candidates)
    could_not = 'if [ "$untranslated" ]; then echo "E: Could not resolve host"; else echo "E: Unbekannt"; fi; exit 100'
    write_program(folder / "apt-get", f'{GERMAN}echo "$@" >>"$STUB_CALLS"\n[ "$1" = update ] || {{ {could_not}; }}')
    failed = start(clone, **bare, LC_ALL="de_DE.UTF-8", LANGUAGE="de")
    (asked,) = (call.split() for call in calls(clone) if call.startswith("install"))
    assert {"cargo-web", "rustc-web"} <= set(asked) and not {"cargo", "rustc"} & set(asked)
    assert failed.returncode == 2 and "a package index cannot be reached" in failed.stderr


def test_no_package_is_installed_where_none_may_be(clone: Path, bare: dict[str, str]) -> None:
    failed = start(clone, QOSLAB_NO_APT="1", **bare)
    assert failed.returncode == 2
    assert "missing: " in failed.stderr and "apt-get install --no-install-recommends" in failed.stderr
    assert "iperf3" in failed.stderr
    assert calls(clone) == []
    (clone.parent / "bin/apt-get").unlink()
    failed = start(clone, **bare)
    assert failed.returncode == 2 and "only with apt-get" in failed.stderr


def test_what_was_removed_since_the_first_start_is_missed(clone: Path, bare: dict[str, str]) -> None:
    (clone / ".qoslab/ready").write_text("")
    failed = start(clone, QOSLAB_NO_APT="1", **bare)
    assert failed.returncode == 2 and "qoslab: missing: iperf3 " in failed.stderr
    folder = Path(bare["PATH"])
    (folder / "iperf3").symlink_to("/bin/true")
    for python in folder.glob("python3*"):
        python.unlink()
    failed = start(clone, QOSLAB_NO_APT="1", **bare)
    assert failed.returncode == 2 and "qoslab: missing: python>=3.11 " in failed.stderr
    assert "no packages are installed" in failed.stderr


SUDO = """
kept=${1#--preserve-env=}
shift
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
    case ",$kept," in *",$name,"*) ;; *) unset "$name" ;; esac
done
exec "$@"
"""
"""As the real one: of the variables that may lead through a proxy only those that it is told to keep."""


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"])
def test_behind_a_proxy_packages_come_through_it(clone: Path, bare: dict[str, str], name: str) -> None:
    programs = {"sudo": SUDO, "id": "echo 1000", "apt-get": f'echo "$1 through ${{{name}}}" >>"$STUB_CALLS"'}
    for program, text in programs.items():
        write_program(clone.parent / "bin" / program, text)
    start(clone, **bare, **{name: "proxy.example.net"})
    assert "install through proxy.example.net" in calls(clone)


def test_without_network_for_system_packages(clone: Path, bare: dict[str, str]) -> None:
    apt = clone.parent / "bin/apt-get"
    apt.write_text("#!/bin/sh\necho 'E: Failed to fetch http://example.net/a  Could not resolve host' >&2; exit 100\n")
    (clone.parent / "bin/iperf").unlink(missing_ok=True)
    failed = start(clone, **bare)
    assert failed.returncode == 2 and "E: Failed to fetch" in failed.stderr
    told = failed.stderr.partition("to be fetched were ")[2].partition(".\n")[0]
    lists = told == "the package lists of apt"
    assert lists or {"iperf", "iperf3"} <= set(told.removeprefix("the system packages ").split()), failed.stderr


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
def test_other_distributions_get_their_own_commands(
    clone: Path, bare: dict[str, str], manager: str, words: str, packages: set[str]
) -> None:
    folder = clone.parent / "bin"
    (folder / "apt-get").rename(folder / manager)
    # Images of Fedora and Arch have no `cmp`, some others neither `awk` nor `find`.
    without = ("apt-cache", "tshark", "dumpcap", "ssh", "ping", "cargo", "rustc")
    for name in (*without, "awk", "mawk", "gawk", "cmp", "find"):
        (folder / name).unlink(missing_ok=True)
    failed = start(clone, **bare)
    told = failed.stderr.splitlines()[-1].strip()
    assert failed.returncode == 2 and told.startswith(words), failed.stderr
    named = set(told.removeprefix(words).split())
    assert packages | {"diffutils", "findutils", "gawk"} <= named
    assert (
        not named & {"tshark", "openssh-client", "iputils-ping", "rustc"} and "command not found" not in failed.stderr
    )
    assert calls(clone) == []


@pytest.mark.parametrize(
    ("column", "names"), [(2, "gcc iperf iproute iproute-tc rust rustfmt"), (3, "gcc iperf iproute2 rust")]
)
def test_a_package_may_be_two_elsewhere_and_two_may_be_one(column: int, names: str) -> None:
    text = (TOP / "qoslab").read_text()
    functions = text[text.index("elsewhere='") : text.index("install_system_packages() {")]
    words = ["bash", "-euc", f'{functions}\nother_names "$@"', "bash", str(column)]
    packages = ["rustc", "gcc", "iproute2", "rustfmt", "iperf"]
    told = subprocess.run([*words, *packages], capture_output=True, text=True, check=True).stdout
    assert told.split() == names.split()


def test_doctor_knows_packages_by_the_same_names() -> None:
    text = (TOP / "qoslab").read_text()
    rows = text.partition("elsewhere='\n")[2].partition("'\n")[0].splitlines()
    assert {debian: (fedora, arch) for debian, fedora, arch in map(str.split, rows)} == ELSEWHERE
    assert set(re.findall(r'words="(sudo [^$]*) [$]', text)) == {command for _, command, _ in MANAGERS}


def at_a_terminal(clone: Path, answer: str, *words: str, **more: str) -> tuple[int, bytes]:
    """The status of a start that somebody answers, and all that it said."""
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
    said = b""
    while True:
        try:
            said += os.read(ours, 4096)
        except OSError:
            break  # the other end is closed
    os.close(ours)
    return process.wait(), said


def test_nothing_of_the_folder_that_it_is_called_in_is_executed_or_obeyed(fresh: Path, quick: Path) -> None:
    hostile = fresh.parent / "hostile"
    (hostile / "bin").mkdir(parents=True)
    done = fresh.parent / "executed"
    for module in ("venv", "ensurepip", "pip", "compileall", "hashlib", "site", "usercustomize", "tox"):
        (hostile / f"{module}.py").write_text(f"open({str(done)!r}, 'a').write({module!r})\n")
    for program in ("python3", "uv", "cargo", "sed", "cmp"):
        write_program(hostile / program, f"echo {program} >>'{done}'")
    (hostile / "uv.toml").write_text("[pip]\nverify-hashes = false\n")
    (hostile / "pyproject.toml").write_text("[tool.uv.pip]\nverify-hashes = false\n")
    (hostile / "rust-toolchain.toml").write_text("[toolchain]\nchannel = 'not there'\n")
    (fresh.parent / "a").mkdir()  # `cd a clone` would go there
    settings = {
        "PATH": f".::{hostile.name}:bin:{path_with(quick)}",
        "CDPATH": str(hostile),
        "PYTHONPATH": str(hostile),
        "PYTHONUSERBASE": str(hostile),
        "UV_NO_VERIFY_HASHES": "1",
        "UV_CONFIG_FILE": "uv.toml",
        "PIP_TARGET": "elsewhere",
    }
    started = start(fresh, "list", folder=hostile, **settings)
    assert (started.returncode, started.stdout) == (0, "qoslab 1 list\n"), started.stderr
    assert not done.exists(), done.read_text()
    assert not (hostile / "elsewhere").exists()
    log = (fresh / ".qoslab/log/setup.log").read_text()
    assert log.count("/python3 -I -m venv") == log.count("/bin/python -I -m pip install") == 1
    assert "UV_NO_VERIFY_HASHES" not in log


def test_the_command_runs_in_the_folder_that_it_was_called_in(clone: Path, quick: Path) -> None:
    (clone / "src/qoslab/__main__.py").write_text("import os\nprint(os.getcwd())\n")
    folder = clone.parent / "where it is called"
    folder.mkdir()
    for _ in ("first", "second"):
        assert start(clone, "list", folder=folder, PATH=path_with(quick)).stdout == f"{folder}\n"


@pytest.mark.parametrize(("given", "expected"), [(":/opt/lib:.:", "/opt/lib"), ("packages", "packages"), (":", "None")])
def test_empty_entries_of_pythonpath_do_not_name_the_current_folder(
    clone: Path, quick: Path, given: str, expected: str
) -> None:
    (clone / "src/qoslab/__main__.py").write_text("import os\nprint(os.environ.get('PYTHONPATH'))\n")
    started = start(clone, "list", PATH=path_with(quick), PYTHONPATH=given)
    assert started.stdout == f"{expected}\n", started.stderr


@pytest.mark.parametrize("program", ["rustc", "python3"])
def test_no_package_is_installed_for_a_program_that_is_there_and_fails(
    clone: Path, bare: dict[str, str], program: str
) -> None:
    for python in Path(bare["PATH"]).glob("python3*"):
        python.unlink() if program == "python3" else None
    for name in ("rustc", "cargo"):
        write_program(Path(bare["PATH"]) / name, f"echo {name} 1.99.0")
    write_program(Path(bare["PATH"]) / program, "echo 'error: no such toolchain' >&2; exit 1")
    failed = start(clone, **bare)
    assert failed.returncode == 2 and calls(clone) == []
    assert f"qoslab: {program} is there and fails (error: no such toolchain)" in failed.stderr


@pytest.mark.parametrize(
    ("said", "installs"), [({"CI": "true"}, True), ({"DEBIAN_FRONTEND": "noninteractive"}, True), ({}, False)]
)
def test_without_a_terminal_packages_are_installed_only_where_that_was_said(
    clone: Path, bare: dict[str, str], said: dict[str, str], installs: bool
) -> None:
    ended = start(clone, "list", **{**bare, "DEBIAN_FRONTEND": "", **said})
    assert ended.returncode == 2
    assert any("install -y" in call for call in calls(clone)) == installs
    assert ("or start with --yes, as in `./qoslab --yes test`" in ended.stderr) == (not installs)
    start(clone, "--yes", "list", **{**bare, "DEBIAN_FRONTEND": ""})
    assert any("install -y" in call for call in calls(clone))


@pytest.mark.parametrize(("words", "answer", "installs"), [([], "n\n", False), ([], "\n", True), (["--yes"], "", True)])
def test_it_asks_on_a_terminal(
    clone: Path, bare: dict[str, str], words: list[str], answer: str, installs: bool
) -> None:
    status, said = at_a_terminal(clone, answer, *words, **{**bare, "DEBIAN_FRONTEND": ""})
    # What the test's apt-get installs is still missing afterwards.
    assert status == 2
    assert (b"install with apt-get: " in said) == (not words)
    assert any("install -y" in call and "iperf3" in call for call in calls(clone)) == installs
    assert (b"still missing after the installation" in said) == installs


def test_it_asks_nobody_in_ci_even_where_that_has_a_terminal(clone: Path, bare: dict[str, str]) -> None:
    status, said = at_a_terminal(clone, "n\n", **{**bare, "CI": "true"})
    assert status == 2 and b"still missing after the installation" in said
    assert b"install with apt-get: " not in said
    assert any("install -y" in call and "iperf3" in call for call in calls(clone))


def test_another_s_clone_is_not_set_up_by_sudo(clone: Path) -> None:
    if os.geteuid() != 0:
        # Only root is taken for somebody who came by sudo.
        assert start(clone, SUDO_UID="1000").returncode == 0
        return
    for each in (clone, *clone.rglob("*")):
        os.chown(each, 65534, 65534)
    failed = start(clone, SUDO_UID="65534")
    assert failed.returncode == 2 and "without sudo" in failed.stderr
    assert not (clone / ".venv").exists()


def test_what_is_compiled_beforehand_is_there() -> None:
    """Nobody sees that the list names something else: what is not compiled then is where it is imported."""
    text = (TOP / "qoslab").read_text(encoding="utf-8")
    chosen = re.search(r"^imported=\(.*?\)$", text, re.MULTILINE | re.DOTALL)
    assert chosen is not None
    listed = subprocess.run(
        ["bash", "-c", f"{chosen[0]}\nprintf '%s\\n' \"${{imported[@]}}\""], check=True, capture_output=True, text=True
    ).stdout.split()
    site = Path(sysconfig.get_path("purelib"))
    assert len(listed) > 20
    assert [each for each in listed if not (site / each).is_dir()] == []
