"""The shapes that are sent and answered, and their checks."""
