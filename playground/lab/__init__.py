"""Experiments on the engine: benchmarks now; races, sweeps and simulators as they come."""
