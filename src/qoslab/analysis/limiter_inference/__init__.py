"""Inference of the limiter between two captures from packets that are matched one by one. Pure.

`joined` finds each packet of one capture in the other, `clocks` aligns the clocks, `bucket` finds the token bucket that
explains the drops, `releases` finds the shaper or line that delayed packets, and `limiter` decides between them.
"""

from qoslab.analysis.limiter_inference.limiter import COUNTED, Counted, Limiter, infer
from qoslab.analysis.limiter_inference.packet_matching import Joined, join, load

__all__ = ["COUNTED", "Counted", "Joined", "Limiter", "infer", "join", "load"]
