"""Routes and templates that are compiled once, though each process makes an application; to be imported before those.

To compile the routes takes as long as all else that a fork of ours does to start.
"""

import os
from pathlib import Path

from flask import Flask
from jinja2 import FileSystemBytecodeCache
from werkzeug.routing import Rule

from tests.support.server import SHARED

_compile, _compiled = Rule._compile_builder, {}


def _compile_once(rule, append_unknown=True):
    """What builds the addresses of a rule. It keeps nothing of the rule's application."""
    key = rule.rule, str(rule.defaults), append_unknown
    if key not in _compiled:
        _compiled[key] = _compile(rule, append_unknown)
    return _compiled[key]


Rule._compile_builder = _compile_once

_templates = Path(os.environ[SHARED]) / "templates"
_templates.mkdir(exist_ok=True)
Flask.jinja_options = {"bytecode_cache": FileSystemBytecodeCache(_templates)}
