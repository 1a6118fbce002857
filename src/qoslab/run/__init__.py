"""Execution of a plan: with `virtual_lab` the only package with subprocesses, sockets, Ansible and the clock."""
