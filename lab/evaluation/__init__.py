"""The harness: coverage of judgments, measures, runs and experiments. It calls the same search as everybody else."""
