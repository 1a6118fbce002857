"""Verdicts on expected and on published values."""

WITHIN = "within"
LOOSE = "loose bounds"
"""Value within bounds that are too loose for a test (`Expectation.loose`): not counted as passed."""
OUTSIDE = "outside"
INFORMATIVE = "informative"
"""No expectation, or no valid cell."""
NOT_MEASURED = "not measured"
"""A run with less traffic than its file asks for did not come to what is measured; it fails with `--strict` only."""
IMPOSSIBLE = "impossible"
"""More, or less, than there can be: a mistake of the analysis or of a measurement, not of a router."""
UNDECIDED = "undecided"
"""Most of the cells that it is about are not valid or lack the value: neither passed nor failed."""


def undecided(counted: int, planned: int) -> bool:
    """Return whether fewer than half of the planned cells count."""
    return 2 * counted < planned


AS_PREDICTED = "as predicted"
"""The publication has what the model predicts."""
NOT_REPRODUCED = "not reproduced"
"""The publication has another value."""
OWN_REFERENCE = "own reference"
"""Unpublished value: the reference is a measurement of this project."""
FITTED = "fitted"
"""The publication agrees with the prediction, but a part of the model was fitted to it: no reproduction."""
