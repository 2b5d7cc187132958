"""The doors for programs: parse a request, make one call below, answer with plain data."""
