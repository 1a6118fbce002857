"""Tables as a run has them."""

from __future__ import annotations

import pandas as pd
import sample_run

from qoslab.analysis import raw
from qoslab.results import tables


def flows_table(*streams: tuple[str, float, int]) -> pd.DataFrame:
    """Rows of (traffic, seconds, bytes)."""
    return tables.frame(
        "flows",
        [
            {
                "arm": "a",
                "repetition": 1,
                "traffic": traffic,
                "stream": number,
                "seconds": seconds,
                "bytes": count,
                "goodput_bps": count * 8 / seconds,
            }
            for number, (traffic, seconds, count) in enumerate(streams, start=1)
        ],
    )


def classes_table(*replies: dict[str, object]) -> pd.DataFrame:
    origin = int(sample_run.STARTED.timestamp() * 10**9)
    return tables.frame(
        "classes", [{"arm": "a", "repetition": 1} | row for row in raw.class_rows("R1", replies, origin)]
    )


CREDIT = [902.9, 806.9, 768.0, 612.0, 744.5, 821.6, 740.1, 798.7, 689.0, 889.8]
"""kb/s, second by second: 763.4 are granted, and the first second has the 190.8 kbit of payload of a full bucket more.
A sender that stops at the end of a second sends so much less in it, the first one too, and so much more in the
next."""
