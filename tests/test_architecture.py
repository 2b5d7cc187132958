"""How the code is built: which module imports which, what each may know, and the size of functions (DESIGN)."""

import ast
import sys
from functools import cache
from pathlib import Path

import pytest

import app as application

ROOT = Path(application.__file__).parent

# Imports run downwards only, never sideways within a row. A module that is not there yet is simply absent.
ROWS = (
    ("gunicorn.conf",),
    ("app", "worker"),
    ("assistants",),
    ("api", "webhooks", "dashboard", "reference", "cli", "monitoring"),
    ("jobs", "doctor"),
    ("pruning", "deletion"),
    ("auth", "quotas", "recent"),
    ("digests", "body"),
    ("delivery",),
    ("accounts", "alerts", "devices", "holding", "proxies"),
    ("template_lint",),
    ("history", "metrics", "push", "placeholders"),
    ("models", "apns", "fcm", "webpush"),
    ("provider",),
    ("database", "transport", "jsonbody", "fields", "quiet", "presets", "pieces", "turns", "service_lock"),
    ("errors", "config", "clock", "logs", "counters", "cores", "icons"),
)
ROW_OF = {module: depth for depth, row in enumerate(ROWS) for module in row}

MAY_IMPORT = {
    "flask": {"app", "assistants", "api", "webhooks", "dashboard", "reference", "cli", "auth", "quotas", "body"},
    "werkzeug": {"app", "api", "webhooks", "dashboard", "cli", "auth", "quotas", "body", "accounts"},
    "flask_limiter": {"quotas"},
    "peewee": {"database", "models", "history", "holding", "metrics", "accounts", "cli"},
    "sqlite3": {"database"},
    "pycurl": {"transport"},
    "http_ece": {"webpush"},
    "py_vapid": {"webpush"},
    "jwt": {"apns"},
    "pyfcm": {"fcm"},
    "google": {"fcm"},
    "cryptography": {"webpush", "apns", "config"},
    "click": {"cli"},
    "segno": {"dashboard"},
    "yaml": {"reference"},
    "gunicorn": {"worker"},
    "prometheus_client": {"monitoring"},
    "time": {"clock", "transport"},
}
CLOCKS = {
    "time": {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "localtime", "gmtime", "sleep"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}
MAY_READ_A_CLOCK = {("clock", "time.time_ns"), ("clock", "time.monotonic"), ("transport", "time.monotonic")}
LONGEST_FUNCTION = 40

SOURCES = {path.stem: path for path in sorted(ROOT.glob("*.py"))}
PACKAGES = {path.parent.name: path for path in sorted(ROOT.glob("*/__init__.py")) if path.parent.name in ROW_OF}
FILES = [*SOURCES.values(), *(file for path in PACKAGES.values() for file in sorted(path.parent.glob("*.py")))]


def module_of(path):
    """The row's name of a file: the package's for a file within one."""
    return path.stem if path.parent == ROOT else path.parent.name


@cache
def tree_of(path):
    return ast.parse(path.read_text())


def imported(path):
    """(top-level name, line) of every import in the file, those within functions too."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0], node.lineno


def functions(path):
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def named(path, node):
    return f"{path.relative_to(ROOT)}:{node.lineno}"


every_file = pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])


@every_file
def test_every_module_has_its_place_in_the_table_of_rows(path):
    assert module_of(path) in ROW_OF


@every_file
def test_imports_run_downwards_only_and_never_sideways(path):
    module = module_of(path)
    depth = ROW_OF.get(module, -1)
    wrong = {
        f"{path.relative_to(ROOT)}:{line} imports {other}"
        for other, line in imported(path)
        if other in ROW_OF and other != module and ROW_OF[other] <= depth
    }
    assert wrong == set()


@pytest.mark.parametrize("package, modules", MAY_IMPORT.items(), ids=list(MAY_IMPORT))
def test_a_package_is_imported_only_where_it_belongs(package, modules):
    wrong = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in FILES
        for name, line in imported(path)
        if name == package and module_of(path) not in modules
    }
    assert wrong == set()


@every_file
def test_the_product_imports_nothing_that_requirements_do_not_name(path):
    known = set(sys.stdlib_module_names) | set(ROW_OF)
    known |= {"flask", "click", "werkzeug", "itsdangerous", "jinja2"}  # Flask and what it stands on
    known |= {"flask_limiter", "limits", "peewee", "gunicorn", "pycurl", "jwt", "cryptography", "http_ece"}
    known |= {"py_vapid", "pyfcm", "certifi", "segno", "google", "prometheus_client", "yaml"}
    assert {name for name, _ in imported(path)} - known == set()


@every_file
def test_the_environment_is_read_in_config_alone(path):
    reads = [
        named(path, node)
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv", "getenvb"))
        and (isinstance(node.value, ast.Name) and node.value.id == "os")
    ]
    reads += [
        named(path, node)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom)
        and node.module == "os"
        and {alias.name for alias in node.names} & {"environ", "environb", "getenv", "getenvb"}
    ]
    assert reads == [] or module_of(path) == "config"


@every_file
def test_the_time_is_read_in_one_place(path):
    read = {
        (module_of(path), f"{node.value.id}.{node.attr}")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in CLOCKS.get(node.value.id, ())
    }
    assert read - MAY_READ_A_CLOCK == set()


@every_file
def test_no_clock_is_imported_by_its_function(path):
    names = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
    }
    assert names == set()


@every_file
def test_no_function_is_longer_than_40_lines(path):
    long = {
        f"{named(path, node)} {node.name}: {node.end_lineno - node.lineno + 1}"
        for node in functions(path)
        if node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    }
    assert long == set()


@every_file
def test_no_except_is_bare(path):
    bare = [
        named(path, node)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and node.type is None
    ]
    assert bare == []


def public(path):
    """The public classes and functions of a module, and the public methods of its public classes."""
    found = [node for node in tree_of(path).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    found = [node for node in found if not node.name.startswith("_")]
    methods = [inner for node in found if isinstance(node, ast.ClassDef) for inner in node.body]
    return found + [m for m in methods if isinstance(m, ast.FunctionDef) and not m.name.startswith("_")]


@every_file
def test_every_public_function_and_class_says_what_it_is(path):
    silent = [f"{named(path, node)} {node.name}" for node in public(path) if not ast.get_docstring(node)]
    assert silent == []


@every_file
def test_every_module_says_what_it_is(path):
    assert ast.get_docstring(tree_of(path))


@every_file
def test_every_function_says_the_types_it_takes_and_returns(path):
    untyped = [
        f"{named(path, node)} {node.name}"
        for node in functions(path)
        if node.returns is None
        or any(a.annotation is None and a.arg not in ("self", "cls") for a in node.args.args + node.args.kwonlyargs)
    ]
    assert untyped == [] or module_of(path) == "gunicorn.conf"  # gunicorn's hooks, outside mypy


@pytest.mark.parametrize("module", ["pycurl", "cryptography", "pyfcm", "http_ece", "py_vapid", "segno", "yaml"])
def test_what_weighs_much_is_not_imported_before_it_is_needed(module):
    at_start = {
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in FILES
        for node in tree_of(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and module in {name for name, line in imported(path) if line == node.lineno}
    }
    assert at_start == set()


@every_file
def test_camel_case_names_of_the_wire_stand_in_the_handlers_alone(path):
    wire = {"createdAt", "lastUsedAt", "revokedAt", "keyPreview", "fullKey", "nextCursor", "isDone", "statusCode"}
    held = {node.value for node in ast.walk(tree_of(path)) if isinstance(node, ast.Constant)} & wire
    assert held == set() or module_of(path) in ("api", "assistants", "webhooks", "errors")
