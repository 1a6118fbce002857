"""Action, templates and files of a new project in CI: their scripts, with programs that record their calls."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from qoslab.cli.doctor import TOOLS
from qoslab.cli.run import command as RUN  # noqa: N812
from qoslab.lab_kinds import LABS

TOP = Path(__file__).parents[2]
HERE = [name for name, kind in LABS.items() if not kind.has_place]
"""Labs that a runner supports by itself."""
BY_NAME = re.compile(
    r"""(?:\bpipx?|\buv(?: tool| pip)?) (?:install|run|download)\b[^`\n]*?[ '"]qoslab(?=[\[\s`'"=@<>~]|$)"""
)
WHEEL = "https://example.net/qoslab-0.1.0-py3-none-manylinux_2_17_x86_64.whl"
RECORDS = """\
#!/bin/bash
printf '%s' "${0##*/}" >> "$CALLS"
printf ' <%s>' "$@" >> "$CALLS"
echo >> "$CALLS"
"""
"""Program that records its call."""


def load_yaml(name: str) -> Any:
    return YAML(typ="safe").load((TOP / name).read_text(encoding="utf-8"))


@dataclass
class CiMachine:
    """Environment of scripts: programs in front of the system's in PATH record their calls."""

    folder: Path

    def program(self, *names: str, text: str = RECORDS) -> None:
        for name in names:
            file = self.folder / "bin" / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run like on a forge: with bash, which ends at the first failure. Temporary files are removed afterwards."""
        temporary = self.folder / "temporary"
        temporary.mkdir(exist_ok=True)
        own = {"PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "CALLS": str(self.folder / "calls")}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder,
            env=own | {"TMPDIR": str(temporary)} | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert list(temporary.iterdir()) == []
        return done

    def calls(self) -> list[str]:
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def ci_machine(tmp_path: Path) -> CiMachine:
    made = CiMachine(tmp_path)
    made.program("qoslab", "recording-pip", "uv")
    made.program("pip", text=PIP)
    made.program("python3", text=VENV)
    return made


PIP = """\
#!/bin/bash
"${0%/*}/recording-pip" "$@"
if [ "$1" = wheel ]; then
    mkdir -p "$5"
    python3 - "$5/qoslab-0.1.0-py3-none-any.whl" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for lock in ("run", "tools"):
        wheel.writestr(f"qoslab/data/requirements/{lock}.txt", "")
END
elif [ "$1" = install ]; then
    cat "$5" > /dev/null
fi
"""
"""Script of pip that makes a wheel, too: `pip wheel --quiet --no-deps --wheel-dir FOLDER WHAT`, and reads a file of
requirements: `pip install --quiet --require-hashes -r FILE`.
"""
VENV = """\
#!/bin/bash
if [ "$2" = venv ]; then
    mkdir -p "$3/bin"
    for program in pip uv; do cp "${0%/*}/$program" "${0%/*}/recording-pip" "$3/bin/"; done
else
    exec /usr/bin/python3 "$@"
fi
"""
"""Script of python3 whose environments have these programs: `python3 -m venv FOLDER`."""


def job_script(name: str, lab: str = "simulated") -> str:
    """Return the script of a CI job in this lab."""
    content = load_yaml(name)
    if "jobs" in content:
        steps = [step for step in content["jobs"]["qos"]["steps"] if "run" in step]
        return "\n".join(step["run"] for step in steps if step.get("if") in (None, f"matrix.lab == '{lab}'"))
    job = content.get("qos") or content[".qoslab"]
    return "\n".join([*job.get("before_script", []), *job["script"]])


FILES = ["project/.github/workflows/qos.yml", "project/.gitlab-ci.yml", "templates/qoslab.gitlab-ci.yml"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("variables", [{}, {"QOSLAB": ""}], ids=["unset", "empty"])
def test_missing_wheel_prevents_the_installation(name: str, variables: dict[str, str], ci_machine: CiMachine) -> None:
    """Install nothing from the index: qoslab is not there, and a stranger's package of that name must not be run."""
    done = ci_machine.run(job_script(name), LAB="simulated", QOSLAB_LAB="simulated", **variables)
    assert done.returncode != 0 and ci_machine.calls() == []
    assert re.search("QOSLAB.*set it to the wheel of qoslab|Set the variable QOSLAB", done.stdout + done.stderr)


@pytest.mark.parametrize("name", FILES)
def test_templates_name_no_wheel(name: str) -> None:
    output = re.findall(r"^ *QOSLAB: *(.*)", (TOP / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert output in ([], ["${{ vars.QOSLAB }}"])


@pytest.mark.parametrize("name", FILES)
def test_named_wheel_is_installed(name: str, ci_machine: CiMachine) -> None:
    given = {"QOSLAB": WHEEL, "LAB": "simulated", "QOSLAB_LAB": "simulated", "EXPERIMENT": "mine.yml"}
    done = ci_machine.run(job_script(name), GITHUB_STEP_SUMMARY="summary.md", **given)
    assert done.returncode == 0, done.stderr
    *installed, ran = ci_machine.calls()
    wheel, tools, whole = installed
    assert wheel.startswith("recording-pip <wheel>") and wheel.endswith(f" <{WHEEL}>")
    locks = r"\S*/inside/qoslab/data/requirements"
    assert re.search(rf"^recording-pip <install> .*<--require-hashes> <-r> <{locks}/tools.txt>$", tools), tools
    assert re.search(rf"^uv <--no-config> .*<--constraints> <{locks}/run.txt> <\S+\.whl>$", whole), whole
    assert ran.startswith("qoslab <run> <")


@pytest.mark.parametrize(("lab", "extras"), [("simulated", ""), ("virtual", "[lab,devices]")])
def test_project_workflow_supports_both_labs(lab: str, extras: str, ci_machine: CiMachine) -> None:
    name = "project/.github/workflows/qos.yml"
    job = load_yaml(name)["jobs"]["qos"]
    assert sorted(job["strategy"]["matrix"]["lab"]) == sorted(HERE) and job["env"]["LAB"] == "${{ matrix.lab }}"
    ci_machine.program("sudo")
    kept = ci_machine.folder / "reports/saved" / lab
    for before in ([], ["--compare", f"reports/saved/{lab}"]):
        done = ci_machine.run(job_script(name, lab), QOSLAB=WHEEL, LAB=lab, GITHUB_STEP_SUMMARY="summary.md")
        assert done.returncode == 0, done.stderr
        calls = ci_machine.calls()
        words = f"run first-policy --lab {lab} --attempts 3 --junit junit.xml --summary summary.md".split()
        assert calls[-1] == "qoslab" + "".join(f" <{word}>" for word in [*words, *before])
        assert any(call.endswith(f".whl{extras}>") for call in calls if call.startswith("uv "))
        packages = [call for call in calls if call.startswith("sudo <env>")]
        assert all(set(re.findall("<(.*?)>", call)) >= NEEDED for call in packages)
        assert bool(packages) == (lab == "virtual")
        kept.mkdir(parents=True, exist_ok=True)
    known = {option for parameter in RUN.params for option in parameter.opts}
    assert set(re.findall("<(--.*?)>", ci_machine.calls()[-1])) <= known


TEMPLATE = "templates/qoslab.gitlab-ci.yml"
NEEDED = {package for _, _, package, need in TOOLS if need == "required"} - {"coreutils"}
"""System packages for the virtual lab."""


def run_gitlab_job(ci_machine: CiMachine, **variables: str) -> subprocess.CompletedProcess[str]:
    own = load_yaml(TEMPLATE)[".qoslab"]["variables"]
    return ci_machine.run(job_script(TEMPLATE), **own | {"QOSLAB": WHEEL, "EXPERIMENT": "mine.yml"} | variables)


@pytest.mark.parametrize(
    ("lab", "extras"), [("simulated", ""), ("virtual", "[lab,devices]"), ("inventory/mine.yml", "[lab,devices]")]
)
def test_template_installs_the_requirements_of_its_lab(lab: str, extras: str, ci_machine: CiMachine) -> None:
    ci_machine.program("apt-get", "unshare")
    done = run_gitlab_job(ci_machine, QOSLAB_LAB=lab)
    assert done.returncode == 0, done.stderr
    calls = ci_machine.calls()
    (packages,) = [call for call in calls if call.startswith("apt-get <install>")] or [""]
    assert (set(re.findall("<(.*?)>", packages)) >= NEEDED) == (lab == "virtual")
    assert ("apt-get <update> <-q>" in calls) == (lab == "virtual")
    assert calls[-2].endswith(f"/qoslab-0.1.0-py3-none-any.whl{extras}>")
    assert calls[-1].startswith(f"qoslab <run> <mine.yml> <--lab> <{lab}> <--junit> ")


def test_runner_without_namespaces_is_refused_before_installation(ci_machine: CiMachine) -> None:
    ci_machine.program("unshare", text="#!/bin/sh\nexit 1\n")
    ci_machine.program("apt-get")
    done = run_gitlab_job(ci_machine, QOSLAB_LAB="virtual")
    assert (done.returncode, ci_machine.calls()) == (2, [])
    assert "QOSLAB_LAB: virtual needs a runner with containers that may create namespaces" in done.stderr


OPTIONS = [
    ("", "", []),
    ("--duration 10s", "runs/a b", ["--duration", "10s", "--compare", "runs/a b"]),
    ("--duration 10s\n--arm 'a b'\n", "", ["--duration", "10s", "--arm", "a b"]),
    ("", "reports/saved/a b", ["--compare", "reports/saved/a b"]),
    ("--set 'x=$(id) `id`' *", "", ["--set", "x=$(id) `id`", "*"]),
]


@pytest.mark.parametrize(("options", "baseline", "words"), OPTIONS)
def test_template_options_are_split_like_in_a_shell(
    options: str, baseline: str, words: list[str], ci_machine: CiMachine
) -> None:
    done = run_gitlab_job(ci_machine, QOSLAB_OPTIONS=options, QOSLAB_BASELINE=baseline)
    assert done.returncode == 0, done.stderr
    assert ci_machine.calls()[-1].endswith("".join(f" <{word}>" for word in ["qoslab.md", *words]))


def test_options_with_an_open_quote_are_refused(ci_machine: CiMachine) -> None:
    done = run_gitlab_job(ci_machine, QOSLAB_OPTIONS="--arm 'a b")
    assert done.returncode == 2 and not ci_machine.calls()[-1].startswith("qoslab")
    assert "QOSLAB_OPTIONS: found --arm 'a b, expected words with closed quotes" in done.stderr


def test_no_script_installs_qoslab_by_name() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    files = [Path(name) for name in listed.split("\0") if name and not name.startswith(("tests/", "crates/"))]
    kinds = {"", ".md", ".py", ".yml", ".yaml", ".json", ".toml", ".ini", ".txt"}
    found = {}
    for file in files:
        if file.suffix in kinds and (TOP / file).is_file():
            text = (TOP / file).read_text(encoding="utf-8", errors="replace")
            found[str(file)] = BY_NAME.findall(text)
    assert {name: words for name, words in found.items() if words} == {}


def find_step(text: str) -> str:
    """Return the script of the only step of the action that contains this text."""
    (script,) = [step["run"] for step in load_yaml("action.yml")["runs"]["steps"] if text in step.get("run", "")]
    return str(script)


def run_github_step(ci_machine: CiMachine, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    paths = {name: str(ci_machine.folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    places = {"GITHUB_ACTION_PATH": f"{TOP}/./", "RUNNER_TEMP": str(ci_machine.folder)}
    return ci_machine.run(find_step(text), **paths | places | variables)


@pytest.mark.parametrize(
    ("lab", "extras"), [("simulated", ""), ("virtual", "[lab,devices]"), ("i.yml", "[lab,devices]")]
)
def test_action_installs_the_locked_versions(lab: str, extras: str, ci_machine: CiMachine) -> None:
    ci_machine.program("python")
    for name in ("python", "uv"):
        tool = ci_machine.folder / "qoslab-tools/bin" / name
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text(RECORDS)
        tool.chmod(0o755)
    for _ in range(2):  # twice in a job
        done = run_github_step(ci_machine, "--require-hashes", LAB=lab)
        assert done.returncode == 0, done.stderr
    place = ci_machine.folder / "qoslab"
    assert ci_machine.calls()[-3:] == [
        "python <-I> <-m> <pip> <install> <--quiet> <--require-hashes> <-r> <requirements/tools.txt>",
        f"uv <--no-config> <venv> <--quiet> <--clear> <--python> <{ci_machine.folder / 'bin/python'}> <{place}>",
        f"uv <--no-config> <pip> <install> <--quiet> <--python> <{place / 'bin/python'}> <--build-constraints> "
        f"<requirements/build.txt> <--constraints> <requirements/run.txt> <.{extras}>",
    ]


@pytest.mark.parametrize("restricted", [True, False])
def test_action_prepares_a_runner_for_the_virtual_lab(restricted: bool, ci_machine: CiMachine) -> None:
    ci_machine.program("sudo", text=RECORDS + 'exec "$@"\n')
    ci_machine.program("sysctl", "apt-get", text=RECORDS.replace("echo >>", 'echo " $DEBIAN_FRONTEND" >>'))
    key = ci_machine.folder / "kernel/apparmor_restrict_unprivileged_userns"
    if restricted:
        key.parent.mkdir()
        key.touch()
    script = find_step("apt-get").replace("/proc/sys", str(ci_machine.folder))
    assert str(key) in script
    done = ci_machine.run(script)
    assert done.returncode == 0, done.stderr
    calls = [call for call in ci_machine.calls() if not call.startswith("sudo")]
    assert ("sysctl <-q> <-w> <kernel.apparmor_restrict_unprivileged_userns=0> " in calls) == restricted
    update, install = calls[-2:]
    assert update == "apt-get <update> <-q> "
    assert set(re.findall("<(.*?)>", install)) >= NEEDED and install.endswith(" noninteractive")


@pytest.mark.parametrize(("options", "baseline", "words"), OPTIONS)
def test_action_options_are_split_like_in_a_shell(
    options: str, baseline: str, words: list[str], ci_machine: CiMachine
) -> None:
    done = run_github_step(
        ci_machine, "qoslab run", EXPERIMENT="m.yml", LAB="simulated", OPTIONS=options, BASELINE=baseline
    )
    assert done.returncode == 0, done.stderr
    given = ["run", "m.yml", "--lab", "simulated", "--junit", "qoslab-junit.xml", "--summary"]
    summary = str(ci_machine.folder / "GITHUB_STEP_SUMMARY")
    assert ci_machine.calls() == ["qoslab" + "".join(f" <{word}>" for word in [*given, summary, *words])]


def test_options_of_the_action_with_an_open_quote_are_refused(ci_machine: CiMachine) -> None:
    done = run_github_step(
        ci_machine, "qoslab run", EXPERIMENT="m.yml", LAB="simulated", OPTIONS="--arm 'a b", BASELINE=""
    )
    assert (done.returncode, ci_machine.calls()) == (2, [])
    assert "::error title=options::Found words whose quotes are not closed." in done.stdout


@pytest.mark.parametrize("status", [1, 2, 3, 4])
def test_action_step_has_the_exit_status_of_the_run(status: int, ci_machine: CiMachine) -> None:
    ci_machine.program("qoslab", text=f"#!/bin/sh\nexit {status}\n")
    (ci_machine.folder / "qoslab-junit.xml").touch()
    done = run_github_step(ci_machine, "qoslab run", EXPERIMENT="m.yml", LAB="simulated", OPTIONS="", BASELINE="")
    assert done.returncode == status
    assert not (ci_machine.folder / "qoslab-junit.xml").exists()  # of the previous use


def test_each_use_of_the_action_in_a_job_has_its_own_artifact(ci_machine: CiMachine) -> None:
    for _ in range(3):
        done = run_github_step(ci_machine, "artifact=", JOB="qos", INDEX="1")
        assert done.returncode == 0, done.stderr
    output = (ci_machine.folder / "GITHUB_OUTPUT").read_text().splitlines()
    assert output == ["artifact=qoslab-qos-1", "artifact=qoslab-qos-1-2", "artifact=qoslab-qos-1-3"]
    upload = load_yaml("action.yml")["runs"]["steps"][-1]
    assert upload["with"]["name"] == "${{ steps.use.outputs.artifact }}" and upload["if"] == "always()"


def test_template_accepts_a_matrix_of_labs(ci_machine: CiMachine) -> None:
    page = (TOP / "docs/comparing.md").read_text(encoding="utf-8")
    blocks = [YAML(typ="safe").load(each) for each in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    (job,) = [each["policies"] for each in blocks if "parallel" in each.get("policies", {})]
    assert job["extends"] == ".qoslab" in load_yaml(TEMPLATE)
    (matrix,) = job["parallel"]["matrix"]
    assert matrix.keys() <= load_yaml(TEMPLATE)[".qoslab"]["variables"].keys()
    assert sorted(matrix["QOSLAB_LAB"]) == sorted(HERE)
    ci_machine.program("apt-get", "unshare")
    for lab in matrix["QOSLAB_LAB"]:
        done = run_gitlab_job(ci_machine, **job["variables"] | {"QOSLAB_LAB": lab})
        assert done.returncode == 0, done.stderr
        ran = ci_machine.calls()[-1]
        assert ran.startswith(f"qoslab <run> <experiments/mine.yml> <--lab> <{lab}> ")
        assert ran.endswith(" <--attempts> <3>")


RELEASED = [
    f"qoslab-0.1.0-py3-none-{tag}.whl"
    for tag in ("macosx_11_0_arm64", "manylinux_2_17_aarch64", "manylinux_2_17_x86_64")
]


def release() -> tuple[dict[str, Any], str]:
    """Return the publishing job, and its script."""
    job = load_yaml(".github/workflows/wheels.yml")["jobs"]["release"]
    (script,) = [step["run"] for step in job["steps"] if "run" in step]
    return job, script


def test_tag_creates_a_release_with_checksums(ci_machine: CiMachine) -> None:
    ci_machine.program("gh")
    made = [*RELEASED, "qoslab-0.1.0.tar.gz"]
    dist = ci_machine.folder / "dist"
    dist.mkdir()
    for name in [*made, ".gitignore"]:
        (dist / name).write_text(name)
    done = ci_machine.run(release()[1], TAG="v0.1.0")
    assert done.returncode == 0, done.stderr
    (call,) = ci_machine.calls()
    words = re.findall("<(.*?)>", call)
    assert words[:4] == ["release", "create", "v0.1.0", "--verify-tag"] and words[-len(made) - 1 :] == [
        *made,
        "SHA256SUMS",
    ]
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=dist, capture_output=True, text=True
    )
    assert checked.returncode == 0 and checked.stdout.splitlines() == [f"{name}: OK" for name in made]
    page = (TOP / "docs/comparing.md").read_text(encoding="utf-8")
    (address,) = re.findall(r"https://github\.com/OWNER/qoslab/releases/download/(\S+)", page)
    assert address == f"v0.1.0/{RELEASED[-1]}"


def test_tag_of_another_version_is_not_released(ci_machine: CiMachine) -> None:
    ci_machine.program("gh")
    (ci_machine.folder / "dist").mkdir()
    for name in (*RELEASED, "qoslab-0.1.0.tar.gz"):
        (ci_machine.folder / "dist" / name).touch()
    assert ci_machine.run(release()[1], TAG="v0.2.0").returncode != 0 and ci_machine.calls() == []


def test_only_tested_files_are_released_by_the_only_writing_job() -> None:
    workflow = load_yaml(".github/workflows/wheels.yml")
    job, _ = release()
    assert workflow["permissions"] == {"contents": "read"}
    assert {name: each["permissions"] for name, each in workflow["jobs"].items() if "permissions" in each} == {
        "release": {"contents": "write", "id-token": "write", "attestations": "write"}
    }
    needed = re.findall(r"needs\.(\w+)\.result == 'success'", job["if"])
    assert set(needed) == {"linux", "try"} and "&& github.ref_type == 'tag' &&" in job["if"]
    # The job with write permission runs nothing of the repository, and reads the artifacts that the other jobs upload
    # at their end.
    taken, attested = [step["with"] for step in job["steps"] if "uses" in step]
    assert attested["subject-path"].split() == ["dist/*.whl", "dist/*.tar.gz"]
    assert taken == {"pattern": "dist-*", "path": "dist", "merge-multiple": True}
    assert set(job["needs"]) == {*needed, "macos"} and workflow["jobs"]["try"]["needs"] == "linux"
    *_, tried, kept = workflow["jobs"]["macos"]["steps"]
    assert "qoslab run policing-vs-shaping --lab simulated" in tried["run"]
    assert kept["with"] == {"name": "dist-macos", "path": "dist/*.whl", "if-no-files-found": "error"}
    built = [step["with"] for step in workflow["jobs"]["linux"]["steps"] if "upload-artifact" in step.get("uses", "")]
    assert {"name": "dist-linux", "path": "dist"} in built
