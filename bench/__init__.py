"""How fast and how small the service is: figures against what must be (`python -m bench`)."""
