"""Templates that are compiled once for all processes of a run; to be imported before any application is made."""

import os
from pathlib import Path

from flask import Flask
from jinja2 import FileSystemBytecodeCache

from tests.support.server import SHARED

if SHARED in os.environ:  # not where the pictures of the documentation are made
    _templates = Path(os.environ[SHARED]) / "templates"
    _templates.mkdir(exist_ok=True)
    Flask.jinja_options = {"bytecode_cache": FileSystemBytecodeCache(_templates)}
