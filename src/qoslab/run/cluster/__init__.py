"""Cells on many machines, or in many processes of this one: a pool or Dask cluster here, its workers there."""
