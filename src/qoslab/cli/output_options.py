"""Options for the output of commands."""

from __future__ import annotations

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON to standard output.")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Print all columns of the result table.")
