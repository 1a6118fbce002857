"""Environment variables of the daemons of a lab."""

from qoslab.virtual_lab.lab import daemon_environment


def test_only_variables_that_a_daemon_needs_are_sent() -> None:
    needed = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "QOSLAB_QOS_ROUTER": "/x", "PYTHONPATH": "/y"}
    bloat = {f"BASH_FUNC_{number}%%": "x" * 100_000 for number in range(3)}
    assert daemon_environment(needed | bloat | {"AWS_SECRET_ACCESS_KEY": "s"}) == needed
