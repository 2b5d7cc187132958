"""Figures of how the service holds under faults, load and attack (`make torture`)."""
