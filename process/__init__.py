"""The process that runs the service: clock, log, counters, gunicorn's worker."""
