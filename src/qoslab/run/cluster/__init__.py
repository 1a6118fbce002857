"""Cells on many machines, or in many processes of this one: a Dask cluster's crew here, its workers there."""
