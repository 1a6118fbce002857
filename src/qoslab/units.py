"""Quantities with units: rates, sizes, durations, percentages. The only module that parses or prints them.

Every type is an immutable integer count of its base unit, so that arithmetic is exact.
"""
