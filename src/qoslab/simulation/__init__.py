"""An experiment as `qos-sim` runs it in virtual time: cell → scenario, result → files of the run folder. Pure.

`docs/internals/simulator.md` says what is modelled; `qoslab.run.workers.simulated` starts the program.
"""
