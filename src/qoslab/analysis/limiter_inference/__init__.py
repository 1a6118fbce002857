"""Inference of the limiter between two captures from packets that are joined one by one. Pure.

`joined` finds each packet of one capture in the other, `clocks` brings their clocks together, `bucket` finds the token
bucket that passed and dropped, `releases` the shaper or line that let packets go, `limiter` says which it was.
"""

from qoslab.analysis.limiter_inference.joined import Joined, join, load
from qoslab.analysis.limiter_inference.limiter import COUNTED, Counted, Limiter, infer

__all__ = ["COUNTED", "Counted", "Joined", "Limiter", "infer", "join", "load"]
