"""The database: every query, and the one way to write."""
