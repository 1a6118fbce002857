"""Experiment files of a test, with the templates that they need."""

import shutil
from pathlib import Path

EXPERIMENTS = Path(__file__).resolve().parents[1] / "experiments"
TEMPLATES = EXPERIMENTS / "templates"


def experiment_file(folder: Path, name: str, text: str) -> Path:
    """Write `text` to `folder`/`name`, next to a copy of the experiments' templates that the test may change."""
    shutil.copytree(TEMPLATES, folder / "templates", dirs_exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file


def two_links(
    router: str,
    *,
    wan: str = "10 Mb/s",
    delay: str = "",
    networks: tuple[str, str] = ("192.168.10", "192.168.20"),
    host: int = 2,
) -> str:
    """Return the topology of a client, a router R1 of this platform, and a server behind the link `wan`.

    The router has the address .1 in each of the two networks, and the hosts have `.host`.
    """
    lan, far = networks
    return f"""\
topology:
  nodes:
    client: {{platform: host}}
    R1: {{platform: {router}}}
    server: {{platform: host}}
  links:
    - name: lan
      rate: 100 Mb/s
      ends:
        - {{node: client, interface: eth0, address: {lan}.{host}/24}}
        - {{node: R1, interface: FastEthernet0/0, address: {lan}.1/24}}
    - name: wan
      rate: {wan}
{f"      delay: {delay}" + chr(10) if delay else ""}      ends:
        - {{node: R1, interface: FastEthernet0/1, address: {far}.1/24}}
        - {{node: server, interface: eth0, address: {far}.{host}/24}}
"""


def simulated_experiments() -> list[Path]:
    """Return the shipped experiments without routers of platform tc, whose kernel cannot be simulated."""
    return [
        file for file in sorted(EXPERIMENTS.glob("*.yml")) if "platform: tc" not in file.read_text(encoding="utf-8")
    ]
