"""The push services: each declares itself in its module."""
