"""The reuse filter on trial: its traces, its scripted backing, its probes and its search."""
