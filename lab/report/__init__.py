"""Tables, figures and pages; what the command line and notebooks show of runs and experiments."""
