"""How settings are declared, parsed and read from a file; `config` declares most and loads them all."""
