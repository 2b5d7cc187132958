"""The HTTP endpoints for programs: each parses a request, makes one call to `core/`, returns plain data."""
