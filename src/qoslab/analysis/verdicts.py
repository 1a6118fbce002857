"""What an expected figure came to, and what became of a published one."""

WITHIN = "within"
WIDE = "wide"
"""Within bounds that say little (`qoslab.model.expectations.Expectation.wide`): not counted as passed."""
OUTSIDE = "outside"
INFORMATIVE = "informative"
"""Nothing is expected of it, or no valid cell tells."""
NOT_MEASURED = "not measured"
"""A run with less traffic than its file asks for did not come to what is measured; it fails with `--strict` only."""
IMPOSSIBLE = "impossible"
"""More, or less, than there can be: a mistake of the analysis or of a measurement, not of a router."""
UNDECIDED = "undecided"
"""Most of the cells that it is about are not valid or lack the value: neither passed nor failed."""


def undecided(counted: int, planned: int) -> bool:
    """Whether fewer than half of the planned cells count."""
    return 2 * counted < planned


AS_PREDICTED = "as predicted"
"""The publication has what the model predicts."""
NOT_REPRODUCED = "not reproduced"
"""It has something else."""
OWN_REFERENCE = "own reference"
"""Nobody published it: it is held against a measurement of ours."""
FITTED = "fitted"
"""It has what the model predicts, of which something was chosen in the light of the publication: no reproduction."""
