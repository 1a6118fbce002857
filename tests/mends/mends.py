"""The mends of weaknesses, each with a change that takes it back and the tests that notice.

What is not here: that all fuzz targets compile. They are a crate of the workspace, which `cargo test` builds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mend:
    """What was wrong once, and a change of one place that makes it wrong again."""

    weakness: str
    path: str
    mended: str
    before: str
    tests: str
    """For pytest; or a crate and a test's name, as `crate:name`, for cargo."""
    also: tuple[tuple[str, str], ...] = ()
    """Further changes of that file, where one mend stands behind another."""

    def taken_back(self, text: str) -> str:
        """The file as it was before. `ValueError` where it has another text by now."""
        for mended, before in ((self.mended, self.before), *self.also):
            if text.count(mended) != 1:
                raise ValueError(f"{self.path} has {text.count(mended)} times, expected once: {mended}")
            text = text.replace(mended, before)
        return text


MENDS = (
    Mend(
        "templates run code",
        "src/qoslab/schema/sandbox.py",
        """        if isinstance(obj, LoopContext):
            return attr in _LOOP
        return isinstance(obj, TemplateModule) and not attr.startswith("_")
""",
        "        return True\n",
        "tests/unit/test_hostile.py",
        also=(("        if not __self.is_safe_callable(__obj):\n", "        if False:\n"),),
    ),
    Mend(
        "a faulty template is a defect of qoslab",
        "src/qoslab/schema/templates.py",
        "    except Exception as error:\n        if isinstance(error, TemplateSyntaxError):\n",
        "    except TemplateSyntaxError as error:\n        if isinstance(error, TemplateSyntaxError):\n",
        "tests/unit/test_hostile.py",
    ),
    Mend(
        "certificates for an address without encryption are taken in silence",
        "src/qoslab/run/cluster/dask_cluster.py",
        "        if given:\n",
        "        if False:\n",
        "tests/unit/test_cluster_crew.py",
    ),
    Mend(
        "a cluster's connection may go unencrypted",
        "src/qoslab/run/cluster/dask_cluster.py",
        "distributed.Security(require_encryption=True, **{name: str(path) for name, path in given.items()})",
        "None\n    return security",
        "tests/unit/test_cluster_crew.py",
    ),
    Mend(
        "damaged raw results are figures",
        "src/qoslab/results/seal.py",
        "    if found == written or found.sha256 == written.sha256:\n",
        "    if True:\n",
        "tests/unit/test_damage.py",
    ),
    Mend(
        "cells without number",
        "src/qoslab/schema/sweep.py",
        "    if (count := sweep.count) > CELL_LIMIT:\n",
        "    if (count := sweep.count) < 0:\n",
        "tests/unit/test_hostile.py",
    ),
    Mend(
        "what builds is not locked",
        "qoslab",
        'build=(--build-constraints "$top/requirements/build.txt")',
        "build=()",
        "tests/unit/test_bootstrap.py",
    ),
    Mend(
        "a copied clone runs the other's code",
        "qoslab",
        '    [ "$place" = "$top" ] && [ "$1/bin/python" -ef "$interpreter" ]\n',
        '    [ "$1/bin/python" -ef "$interpreter" ]\n',
        "tests/unit/test_bootstrap.py",
    ),
    Mend(
        "two first starts at once disturb each other",
        "qoslab",
        "    if have flock && ! flock -n 9; then\n",
        "    if false; then\n",
        "tests/unit/test_bootstrap.py",
    ),
    Mend(
        "an environment that is half made stays so",
        "qoslab",
        'logged "$uv" venv --clear --python',
        'logged "$uv" venv --python',
        "tests/unit/test_bootstrap.py",
    ),
    Mend(
        "results of other sources pass for these",
        "src/qoslab/run/identity.py",
        """        digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\\n".encode())
""",
        '        digest.update(f"{name}\\n".encode())\n',
        "tests/unit/test_identity.py",
    ),
    Mend(
        "results of another program pass for these",
        "src/qoslab/run/identity.py",
        "    return hashlib.sha256(path.read_bytes()).hexdigest()\n",
        "    return path.name\n",
        "tests/unit/test_identity.py",
    ),
    Mend(
        "one passing fault ends a night",
        "src/qoslab/run/labs/measured.py",
        '        return error.message if isinstance(error, PassingFault) else ""\n',
        '        return ""\n',
        "tests/lab/test_faults.py::test_ansible_that_dies_costs_one_attempt_and_a_collector_none",
    ),
    Mend(
        "a dead lab has another name",
        "src/qoslab/run/labs/measured.py",
        """        if death := death_of(self.lab, wait=True):
            return death
""",
        "",
        "tests/lab/test_faults.py::test_a_lab_that_dies_during_a_push_is_a_dead_lab",
    ),
    Mend(
        "titles are markup of the terminal",
        "src/qoslab/run/progress.py",
        """TextColumn("{task.description}", markup=False)""",
        """TextColumn("{task.description}")""",
        "tests/unit/test_hostile.py",
    ),
    Mend(
        "escape codes of strangers reach the terminal",
        "src/qoslab/printing.py",
        "    return _OBEYED.sub(_escaped, text)\n",
        "    return text\n",
        "tests/unit/test_hostile.py",
    ),
    Mend(
        "a file in a received run is a link to one outside",
        "src/qoslab/results/folder.py",
        "            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):\n",
        "            if False:\n",
        "tests/unit/test_hostile_runs.py",
    ),
    Mend(
        "a cell's folder in a received run is a script, or outside",
        "src/qoslab/results/records.py",
        """    if folder and (parts[0] != "cells" or not {"", ".", ".."}.isdisjoint(parts) or "\\0" in folder):
""",
        "    if parts is None:\n",
        "tests/unit/test_hostile_runs.py",
    ),
    Mend(
        "an expression behind a show command hangs",
        "src/qoslab/ios/regexps.py",
        "        states = self._closed([self._begin], first=True, last=not line)\n",
        "        import re\n\n        return re.search(self.text, line) is not None\n",
        "tests/unit/test_hostile.py",
    ),
    Mend(
        "a command that is observed writes files",
        "src/qoslab/schema/observations.py",
        "    if kind not in filters.KINDS:\n",
        "    if False:\n",
        "tests/unit/test_hostile.py",
    ),
    Mend(
        "a command that is observed has keys in it",
        "src/qoslab/schema/observations.py",
        """    if control := re.search(r"[^ -~]", command):
""",
        """    if control := re.search("$^", command):
""",
        "tests/unit/test_hostile.py",
    ),
    Mend(
        "a packet of another year takes the machine's memory",
        "src/qoslab/analysis/reading.py",
        """        stray = ~table["time_s"].between(-STRAY_S, latest)
""",
        """        stray = table["time_s"].isna()
""",
        "tests/unit/test_hostile_runs.py",
    ),
    Mend(
        "power that is lost leaves a valid cell without content",
        "src/qoslab/results/files.py",
        """    with ThreadPoolExecutor(SYNCS, thread_name_prefix="sync") as pool:
        for done in [pool.submit(DISK.sync, path) for path in paths]:
            done.result()
""",
        "    pass\n",
        "tests/unit/test_faulty_disk.py",
    ),
    Mend(
        "a clock that is set goes unnoticed",
        "src/qoslab/results/records.py",
        "        if abs(self.stepped_ns) > CLOCK_STEP_NS:\n",
        "        if False:\n",
        "tests/unit/test_validity.py",
    ),
    Mend(
        "a suspended machine goes unnoticed",
        "src/qoslab/results/records.py",
        "        if abs(self.asleep_ns) > CLOCK_STEP_NS:\n",
        "        if False:\n",
        "tests/unit/test_validity.py",
    ),
    Mend(
        "a terminal that is closed leaves a run without end",
        "src/qoslab/cli/run.py",
        "        signal.signal(signal.SIGHUP, interrupt)\n",
        "        pass\n",
        "tests/lab/test_faults.py::test_a_signal_ends_a_run_as_ctrl_c_does",
    ),
    Mend(
        "other users keep a router from answering",
        "src/qoslab/lab/sshd.py",
        """        if not is_own(conn.get_extra_info("socket")):
            conn.abort()
            return
""",
        "",
        "tests/lab/test_iosd.py::test_no_other_user_is_answered",
    ),
    Mend(
        "connections that do nothing keep a router from answering",
        "src/qoslab/lab/sshd.py",
        "        if len(self._starting) > MOST_STARTING:\n",
        "        if False:\n",
        "tests/lab/test_iosd.py::test_idle_connections_do_not_stop_a_login",
    ),
    Mend(
        "anybody opens ports of a responder without number",
        "crates/ip-sla/src/responder.rs",
        "count() >= MOST_PORTS {",
        "count() > u16::MAX as usize {",
        "ip-sla:ten_thousand_control_messages",
    ),
    Mend(
        "secrets of routers lie in run folders",
        "src/qoslab/ios/secrets.py",
        '    r"snmp-server community",\n',
        "",
        "tests/unit/test_ios_secrets.py",
    ),
    Mend(
        "Ubuntu is told to open namespaces for all programs",
        "src/qoslab/lab/supervision.py",
        "cp {shlex.quote(str(APPARMOR_PROFILE))} ",
        "",
        "tests/unit/test_lab_supervision.py",
    ),
)
