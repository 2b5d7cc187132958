"""Benchmarks: how fast and how small the service is, compared with limits (`python -m bench`)."""
