"""Reasons why a class drops packets."""

DROP_REASONS = ("police", "tail", "flow", "priority", "random", "random_tail", "aqm", "purged")
"""Drop reasons of a class: its policer, its full queue, the flow's full queue, its priority's policer, early detection
at random and above its maximum, active queue management by delay (CoDel, PIE, CAKE), a shutdown of the interface.
"""
