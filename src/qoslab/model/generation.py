"""Names of the generations of QoS in IOS; `qoslab.ios.model.generations` describes them."""

from __future__ import annotations

from typing import Literal, TypeAlias

Generation: TypeAlias = Literal["classic", "hqf", "ios-xe"]
"""QoS behaviour: `classic` up to 12.4 mainline and 12.4(15)T, `hqf` from 12.4(20)T on, `ios-xe` of routers with
IOS-XE 16 and 17."""
