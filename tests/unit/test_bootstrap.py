"""Script `qoslab`: first starts, also two at once, interrupted, or offline; copied or moved clones."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from small_clone import (
    PROGRAMS,
    TOP,
    UV,
    calls,
    clone,
    environment,
    fresh,
    path_with,
    quick_venv_python,
    start,
    write_program,
    write_script,
    write_version,
)

from levels import run_all_cases
from process_alive import is_alive
from waiting import wait_until

__all__ = ["clone", "fresh", "quick_venv_python"]


def test_second_start_reuses_the_first_setup(fresh: Path, quick_venv_python: Path) -> None:
    clone = fresh
    # The real environment with pip takes seconds, so it belongs to the long level.
    python = {} if run_all_cases() else {"PATH": path_with(quick_venv_python)}
    first = start(clone, "list", "--json", **python)
    assert (first.returncode, first.stdout) == (0, "qoslab 1 list --json\n"), first.stderr
    output = [line for line in first.stderr.splitlines() if line]
    assert len(output) == 2 and all(line.startswith("qoslab: installing the Python ") for line in output)
    assert all("--build-constraints" in call for call in calls(clone) if call.startswith("pip"))
    assert "pip install --disable-pip-version-check" in (clone / ".qoslab/log/setup.log").read_text()
    done = len(calls(clone))
    second = start(clone, "list", **python)
    assert (second.returncode, second.stdout, second.stderr) == (0, "qoslab 1 list\n", "")
    assert len(calls(clone)) == done == 3
    (clone / "requirements/run.txt").write_text("# another\n")
    assert start(clone, "list", **python).returncode == 0
    assert [call.split()[0] for call in calls(clone)[3:]] == ["pip", "pip"], "packages change in place"


def test_checks_use_a_separate_environment(clone: Path) -> None:
    (clone / ".qoslab/ready-test").write_text("")
    (clone / "tests").mkdir()
    (clone / "tests/run.py").write_text("import sys\nprint('checks', *sys.argv[1:])\n")
    done = start(clone, "test", "-e", "lint")
    assert (done.returncode, done.stdout, done.stderr) == (0, "checks -e lint\n", "")
    assert calls(clone) == [] and not (clone / ".venv").exists()
    # As tox does if there is none.
    (clone / ".venv").write_text(".tox/lint\n")
    assert start(clone).stdout == "qoslab 1\n", "that one is made when it is needed"
    assert (clone / ".venv").is_dir()


@pytest.mark.long
def test_copy_and_a_moved_clone_run_their_own_code(clone: Path, quick_venv_python: Path) -> None:
    assert start(clone).stdout == "qoslab 1\n"
    copy = clone.with_name("copy")
    subprocess.run(["cp", "-a", str(clone), str(copy)], check=True)
    write_version(copy, "9.9.9")
    assert start(copy, PATH=path_with(quick_venv_python)).stdout == "qoslab 9.9.9\n"
    assert start(clone).stdout == "qoslab 1\n"
    moved = clone.rename(clone.with_name("moved"))
    again = start(moved, PATH=path_with(quick_venv_python))
    assert (again.returncode, again.stdout) == (0, "qoslab 1\n"), again.stderr


@pytest.mark.long
def test_incomplete_environment_is_rebuilt(clone: Path, quick_venv_python: Path) -> None:
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/pyvenv.cfg").write_text("half")
    assert start(clone).stdout == "qoslab 1\n"
    for python in (clone / ".venv/bin/python", clone / ".qoslab/tools/bin/python"):
        python.unlink()
        python.symlink_to("/usr/bin/python3.gone")
        again = start(clone, PATH=path_with(quick_venv_python))
        assert (again.returncode, again.stdout) == (0, "qoslab 1\n"), again.stderr
    # Interrupted while packages were being installed: the environment has no record of its location.
    (clone / ".venv/place").unlink()
    assert start(clone).stdout == "qoslab 1\n"
    assert [call.split()[0] for call in calls(clone)].count("venv") == 3


@pytest.mark.long
def test_two_simultaneous_first_starts_share_one_setup(clone: Path) -> None:
    both = [
        subprocess.Popen(
            [str(clone / "qoslab")],
            env=environment(clone, STUB_TAKES="0.5"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    text = [process.communicate() for process in both]
    assert [process.returncode for process in both] == [0, 0], text
    assert [output for output, _ in text] == ["qoslab 1\n"] * 2
    assert [call.split()[0] for call in calls(clone)] == ["venv", "pip", "pip"]
    assert sum("another start is setting up this clone" in errors for _, errors in text) == 1


def test_first_start_without_network_is_reported(clone: Path) -> None:
    (clone / "requirements/run.txt").write_text("click==8.2.1 \\\n    --hash=sha256:00\nrich==14.0.0 ; x == 'y'\n")
    failed = start(clone, STUB_SAYS="error: error sending request for url (https://pypi.org/simple/click/): dns error")
    assert failed.returncode == 2
    assert "dns error" in failed.stderr and "HTTPS_PROXY" in failed.stderr and "setup.log" in failed.stderr
    assert "needed: the Python packages of requirements/run.txt: click, rich.\n" in failed.stderr
    (clone / "requirements/run.txt").write_text("".join(f"p{number}==1\n" for number in range(11)))
    failed = start(clone, STUB_SAYS="error: dns error")
    assert "requirements/run.txt: p0, p1, p2, p3, p4, p5, p6, p7 and 3 more.\n" in failed.stderr
    assert start(clone).stdout == "qoslab 1\n", "the installation continues"


@pytest.mark.long
@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "message",
    [
        "error: failed to fetch: `https://example.net/a`: No space left on device (os error 28)",
        "E: Failed to fetch http://example.net/a  Write error - write (28: No space left on device)",
        "E: You don't have enough free space in /var/cache/apt/archives/.",
        "error: failed to download from `https://example.net/a`: Disk quota exceeded (os error 122)",
    ],
)
def test_full_disk_is_not_reported_as_missing_network(clone: Path, message: str) -> None:
    failed = start(clone, STUB_SAYS=message)
    assert failed.returncode == 2 and message in failed.stderr
    assert "qoslab: a disk or a quota is full" in failed.stderr and "HTTPS_PROXY" not in failed.stderr
    assert start(clone).stdout == "qoslab 1\n", "the installation continues"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("message", "expected"), [("dns error", "HTTPS_PROXY"), ("Disk quota exceeded", "a disk or a quota is full")]
)
def test_bootstrap_finds_the_reason_in_long_output(clone: Path, message: str, expected: str) -> None:
    """Let a compiler continue after an error and write more than a pipe holds."""
    failed = start(clone, STUB_SAYS=f"error: {message}", STUB_GOES_ON="40000")
    assert failed.returncode == 2 and expected in failed.stderr


@pytest.mark.parametrize("before", ["", "WARNING: Retrying (Retry(total=0)) after connection broken by 'Timeout()'\n"])
def test_unavailable_version_is_not_reported_as_missing_network(clone: Path, before: str) -> None:
    """Request a missing version: pip prints the same as without a connection, except for an earlier line."""
    failed = start(clone, STUB_SAYS=f"{before}ERROR: Could not find a version that satisfies the requirement uv==0.1")
    assert failed.returncode == 2
    assert ("HTTPS_PROXY" in failed.stderr) == bool(before)


def test_package_with_a_wrong_hash_is_refused(fresh: Path, quick_venv_python: Path) -> None:
    clone = fresh
    lock = clone / "requirements/tools.txt"
    lock.write_text(lock.read_text()[:-9] + "00000000\n")
    failed = start(clone, PATH=path_with(quick_venv_python))
    assert failed.returncode == 2 and "DO NOT MATCH THE HASHES" in failed.stderr
    assert not (clone / ".qoslab/tools/place").exists()


@pytest.mark.long
def test_missing_network_for_tools_is_reported(fresh: Path, quick_venv_python: Path) -> None:
    """Run the real pip, with an index on a closed port."""
    (fresh / "requirements/tools.txt").write_text(f"uv==0.1 --hash=sha256:{'0' * 64}\n")
    failed = start(
        fresh, PATH=path_with(quick_venv_python), PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_CONFIG_FILE=os.devnull
    )
    assert failed.returncode == 2
    assert "needed: the Python packages of requirements/tools.txt: uv.\n" in failed.stderr, failed.stderr
    assert not (fresh / ".qoslab/tools/place").exists()


def fake_cargo(clone: Path, does: str) -> dict[str, str]:
    """Return the environment in which `cargo` is this shell script; its calls are logged."""
    (clone / "bin").mkdir()
    write_program(clone / "bin/cargo", f'echo cargo "$@" >>"$STUB_CALLS"\n{does}')
    return {"PATH": path_with(clone / "bin")}


@pytest.mark.long
def test_missing_network_for_crates_is_reported(clone: Path) -> None:
    (clone / "target/release/qos-sim").unlink()
    text = "error: failed to download from `https://example.net/a`"
    cargo = fake_cargo(clone, f"echo '{text}' >&2; exit 101")
    for _ in ("in parallel to the installation of the packages", "alone"):
        failed = start(clone, "notebook", **cargo)
        assert failed.returncode == 2
        assert failed.stderr.count(text) == 1
        assert "needed: the crates of Cargo.lock.\n" in failed.stderr
        assert (clone / ".venv/place").exists(), "packages installed in parallel stay"


BUILDING = """\
for word in "$@"; do
    case $word in
        */Cargo.toml) clone=${word%/*} ;;
        --bin=*) install -m 755 /dev/null "$clone/target/release/${word#--bin=}" ;;
    esac
done
"""


def test_only_the_programs_of_the_command_are_built(clone: Path) -> None:
    for name in PROGRAMS:
        (clone / "target/release" / name).unlink()
    cargo = fake_cargo(clone, BUILDING)
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
        (("doctor",), PROGRAMS),  # of changed sources, below
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
            # The features of a crate depend on the other selected crates.
            assert [word[10:] for word in call if word.startswith("--package=")] == list(PROGRAMS)
        missing = [name for name in built if not (clone / "target/release" / name).exists()]
        assert not missing


@pytest.mark.long
@pytest.mark.sample(4)
@pytest.mark.parametrize("words", [("--resume",), ("--resume", "it"), ("--resume=it",), ("it.yml", "--resume")])
def test_first_start_continues_the_run_in_any_kind_of_lab(clone: Path, words: tuple[str, ...]) -> None:
    (clone / "target/release/qos-sim").unlink()
    cargo = fake_cargo(clone, BUILDING)
    assert start(clone, "run", *words, **cargo).returncode == 0
    assert (clone / "target/release/qos-sim").exists()


def test_failed_build_ends_parallel_steps(clone: Path) -> None:
    (clone / "target/release/qos-sim").unlink()
    cargo = fake_cargo(clone, 'echo "$$" >"$STUB_CALLS.cargo"; exec sleep 60')
    failed = start(clone, "notebook", STUB_SAYS="error: no space left on device", **cargo)
    assert failed.returncode == 2 and "no space left" in failed.stderr
    number = clone.parent / "calls.cargo"
    if number.exists():  # it may have ended before it began
        wait_until(lambda: not is_alive(int(number.read_text())), "the build has ended")


STEP = """\
#!/bin/sh
# A step begins, or has ended: at the one that is asked for the start is killed, and what it had called ends too.
echo "$@" >>"$STEPS"
if [ "$1" = "$KILLED" ] && [ "$(grep -c "^$1" "$STEPS")" = "$KILLED_AT" ]; then
    kill -KILL "$(ps -o sid= -p $$ | tr -d ' ')" $PPID
fi
"""
STEPS = ("venv", "pip", "uv venv", "uv pip", "uv pip", "cargo")
"""Steps of a first start; the last one runs in parallel with those of uv."""


def step_script(clone: Path) -> dict[str, str]:
    """Return the environment of a first start whose steps are short scripts that print their names."""
    folder, python = clone.parent / "stepping", Path(sys.executable).resolve()
    folder.mkdir()

    def script(name: str, step: str, does: str, only: str = "") -> Path:
        steps = [f"'{folder}/step' before {step}", f"{does} || exit", f"'{folder}/step' after {step}", "exit 0"]
        steps = (
            [f"if [ \"$1 $2 $3 $4\" = '-I {only}' ]; then", *steps, "fi", f"exec '{python}' \"$@\""] if only else steps
        )
        write_script(folder / name, "\n".join(["#!/bin/sh", *steps, ""]))
        return folder / name

    write_script(folder / "step", STEP)
    write_script(folder / "stub_uv", UV)
    uv = script("uv", "uv $2", f"'{folder}/stub_uv' \"$@\"")
    tools = script("python", "pip", f'cp \'{uv}\' "$(dirname "$0")"', only="-m pip install")
    made = f'rm -rf "$5" && mkdir -p "$5/bin" && cp \'{tools}\' "$5/bin"'
    script("python3", "venv", made, only="-m venv --clear")
    script("cargo", "cargo", f"install -m 755 /dev/null '{clone}/target/release/qos-sim'")
    return {"PATH": path_with(folder), "STEPS": str(folder / "steps")}


def recorded_steps(stepping: dict[str, str], when: str) -> list[str]:
    output = Path(stepping["STEPS"]).read_text().splitlines()
    return [line.partition(" ")[2] for line in output if line.startswith(when)]


@pytest.mark.long
@pytest.mark.sample(5)
@pytest.mark.parametrize("number", range(1, len(STEPS) + 1))
@pytest.mark.parametrize("when", ["before", "after"])
def test_first_start_killed_at_any_step_is_completed_later(fresh: Path, when: str, number: int) -> None:
    (fresh / "target/release/qos-sim").unlink()
    how = step_script(fresh)
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
    assert len(recorded_steps(how, when)) >= number
    again = start(fresh, "notebook", **how)
    assert (again.returncode, again.stdout) == (0, "qoslab 1 notebook\n"), again.stderr
    assert (fresh / "target/release/qos-sim").exists()
    done = len(recorded_steps(how, "before"))
    third = start(fresh, "notebook", **how)
    assert (third.returncode, third.stdout, third.stderr) == (0, "qoslab 1 notebook\n", "")
    assert len(recorded_steps(how, "before")) == done, "nothing was left to do"


@pytest.mark.long
def test_every_step_of_a_first_start_has_a_kill_test(fresh: Path) -> None:
    (fresh / "target/release/qos-sim").unlink()
    how = step_script(fresh)
    first = start(fresh, "notebook", **how)
    assert (first.returncode, first.stdout) == (0, "qoslab 1 notebook\n"), first.stderr
    assert sorted(recorded_steps(how, "before")) == sorted(recorded_steps(how, "after")) == sorted(STEPS)


def test_code_and_settings_of_the_current_folder_are_ignored(fresh: Path, quick_venv_python: Path) -> None:
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
    (fresh.parent / "a").mkdir()  # `cd "a clone"` would go there
    settings = {
        "PATH": f".::{hostile.name}:bin:{path_with(quick_venv_python)}",
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


def test_command_runs_in_the_current_folder(clone: Path, quick_venv_python: Path) -> None:
    (clone / "src/qoslab/__main__.py").write_text("import os\nprint(os.getcwd())\n")
    folder = clone.parent / "where it is called"
    folder.mkdir()
    for _ in ("first", "second"):
        assert start(clone, "list", folder=folder, PATH=path_with(quick_venv_python)).stdout == f"{folder}\n"


@pytest.mark.sample(3)
@pytest.mark.parametrize(("given", "expected"), [(":/opt/lib:.:", "/opt/lib"), ("packages", "packages"), (":", "None")])
def test_empty_entries_of_pythonpath_do_not_name_the_current_folder(
    clone: Path, quick_venv_python: Path, given: str, expected: str
) -> None:
    (clone / "src/qoslab/__main__.py").write_text("import os\nprint(os.environ.get('PYTHONPATH'))\n")
    started = start(clone, "list", PATH=path_with(quick_venv_python), PYTHONPATH=given)
    assert started.stdout == f"{expected}\n", started.stderr


def test_sudo_does_not_set_up_a_clone_of_another_user(clone: Path) -> None:
    if os.geteuid() != 0:
        # Only root can have come by sudo.
        assert start(clone, SUDO_UID="1000").returncode == 0
        return
    for each in (clone, *clone.rglob("*")):
        os.chown(each, 65534, 65534)
    failed = start(clone, SUDO_UID="65534")
    assert failed.returncode == 2 and "without sudo" in failed.stderr
    assert not (clone / ".venv").exists()


def test_precompiled_modules_exist() -> None:
    """Check the list of precompiled modules: a wrong name goes unnoticed, since the module is then compiled at its
    first import.
    """
    text = (TOP / "qoslab").read_text(encoding="utf-8")
    chosen = re.search(r"^imported=\(.*?\)$", text, re.MULTILINE | re.DOTALL)
    assert chosen is not None
    listed = subprocess.run(
        ["bash", "-c", f"{chosen[0]}\nprintf '%s\\n' \"${{imported[@]}}\""], check=True, capture_output=True, text=True
    ).stdout.split()
    site = Path(sysconfig.get_path("purelib"))
    assert len(listed) > 20
    assert [each for each in listed if not (site / each).is_dir()] == []
