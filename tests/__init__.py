"""The tests. A run compiles them once for all its workers, whatever PYTHONDONTWRITEBYTECODE says."""

import os
import sys

os.environ["POCKETBELL_ENV"] = os.devnull  # a settings file beside the program must not reach a test
sys.dont_write_bytecode = False  # to compile all of them costs a worker 4 s of the processor
