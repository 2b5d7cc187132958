"""The tests. A run compiles them once for all its workers, whatever PYTHONDONTWRITEBYTECODE says."""

import sys

sys.dont_write_bytecode = False  # to compile all of them costs a worker 4 s of the processor
