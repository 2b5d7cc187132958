"""Measurements of how the service holds up under faults, load and attacks (`make torture`)."""
