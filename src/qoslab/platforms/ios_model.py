"""Hardware models of IOS: interfaces, software, and words of their output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from qoslab.model.framing import MEDIUM, Medium

if TYPE_CHECKING:
    from qoslab.ios.model.device import Family, Hardware
    from qoslab.model.generation import Generation


HardwareFeature = Literal["mqc", "mls qos", "switching"]
"""Queueing by policy-maps (Modular QoS CLI), queueing of a Catalyst 3750, and forwarding between VLANs."""


@dataclass(frozen=True)
class InterfaceHardware:
    """One physical interface, with the defaults that `show interfaces` prints."""

    name: str
    kind: Medium
    chip: str
    """Text after `Hardware is`."""
    bandwidth_kbps: int
    """Default of the `bandwidth` statement."""
    delay_us: int
    mtu: int = 1500

    @property
    def framings(self) -> tuple[str, ...]:
        """Link framings that the interface supports."""
        return tuple(framing for framing, medium in MEDIUM.items() if medium == self.kind)


@dataclass(frozen=True)
class ModelSoftware:
    """An IOS release, in the words of `show version`."""

    version: str
    build: str
    """The `fcN` of `RELEASE SOFTWARE (fcN)`."""
    copyright_year: int
    compilation_note: str
    file_suffix: str
    """The release in names of image files, such as 124-15.T14."""
    train_name: str | None = None
    """Name of the IOS-XE train, such as `Cupertino`."""

    @property
    def train(self) -> str:
        """The release in the `version` line of the running configuration, such as 12.4."""
        if self.train_name is not None:
            return ".".join(self.version.split(".")[:2])
        return self.version.partition("(")[0]

    @property
    def xe_version(self) -> str | None:
        """The version of IOS-XE as its own line prints it, such as 17.09.04a."""
        if self.train_name is None:
            return None
        major, minor, rest = self.version.split(".")
        digits = "".join(each for each in rest if each.isdigit())
        return f"{major}.{minor:0>2}.{digits:0>2}{rest[len(digits) :]}"


@dataclass(frozen=True)
class RouterModel:
    """Chassis and software of a router or switch."""

    name: str
    parent: str | None = None
    """Model or family from which it inherits."""
    features: frozenset[HardwareFeature] = frozenset()
    represented_models: str = ""
    """Pattern for the beginning of model numbers of other devices of the same family or with the same software."""
    usual: bool = False
    """True if this model represents devices of its default generation whose model is not known."""
    node_kinds: tuple[str, ...] = ()
    """Containerlab kinds and netlab devices that are modelled as this model."""
    default_generation: Generation | None = None
    """Default generation; None for a switch: its QoS is not that of a router generation."""
    generations: tuple[Generation, ...] = ("classic", "hqf")
    """Generations of its releases."""
    own_software: ModelSoftware | None = None
    """Software of a model that does not run a release of the routers."""
    software_family: str = ""
    """Text in the first line of `show version`, such as `3700 Software`."""
    image: str = ""
    """Image and feature set, such as `C3725-ADVENTERPRISEK9-M`."""
    image_name: str = ""
    """Beginning of the IOS-XE image's file name."""
    bootstrap: str = ""
    """Text after `ROM:`."""
    rom_lines: tuple[str, ...] = ()
    """Lines that follow the `ROM:` line."""
    chassis: str = ""
    """The line `Cisco … with …K/…K bytes of memory.`"""
    board_id: str = ""
    processor_lines: tuple[str, ...] = ()
    """Lines that follow the board ID, up to the interface counts."""
    memory_lines: tuple[str, ...] = ()
    """Lines that follow the interface counts, up to the configuration register."""
    register: str = "0x2102"
    interfaces: tuple[InterfaceHardware, ...] = ()
    process_ns: int | None = None
    """Process switching time of a packet; None if no source gives it."""

    @property
    def family(self) -> Family:
        """Command family of the model."""
        return "switch" if "mls qos" in self.features else "router"

    def interface(self, name: str) -> InterfaceHardware | None:
        """Return the interface with that full name."""
        return next((interface for interface in self.interfaces if interface.name == name), None)

    def image_file(self, generation: Generation) -> str:
        """Return the name of the image file in flash, such as c3725-adventerprisek9-mz.124-15.T14.bin."""
        if (version := self.software(generation).xe_version) is not None:
            return f"{self.image_name}.{version}.SPA.bin"
        return f"{self.image.lower()}z.{self.software(generation).file_suffix}.bin"

    def software(self, generation: Generation) -> ModelSoftware:
        """Return the release that the model runs."""
        return self.own_software or SOFTWARE[generation]

    def hardware(self, generation: Generation | None = None) -> Hardware:
        """Return this chassis for the device model; `generation` defaults to that of the model."""
        from qoslab.ios.model.device import Hardware  # slow to import, and checking an experiment needs none of it

        chosen = generation or self.default_generation or "classic"
        return Hardware(
            platform=self.name,
            interfaces=tuple(interface.name for interface in self.interfaces),
            generation=chosen,
            family=self.family,
            version=self.software(chosen).train,
            process_ns=self.process_ns,
        )


SOFTWARE: dict[Generation, ModelSoftware] = {
    # The last release before HQF. Build date: [I], filler in the reference print.
    "classic": ModelSoftware("12.4(15)T14", "fc2", 2010, "Tue 17-Aug-10 12:08 by prod_rel_team", "124-15.T14"),
    # Printed by a 2811.
    "hqf": ModelSoftware("12.4(24)T2", "fc2", 2009, "Mon 19-Oct-09 17:38 by prod_rel_team", "124-24.T2"),
}
"""One release for each generation, on every model. That a 3725 has an image of the later one is an assumption [I]."""
