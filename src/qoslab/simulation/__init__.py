"""Simulation of an experiment by `qos-sim` in virtual time: conversion of cells to scenarios and of results to files of
the run folder. Pure.

`docs/internals/simulator.md` describes the model; `qoslab.run.workers.simulated` starts the program.
"""
