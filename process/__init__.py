"""The process that runs the service: its environment variables, clock, log, counters and gunicorn's worker."""
