"""How the code is built: which module imports which, what each may know, and the size of functions.

What is imported where it is used alone, and who reads the clock and the environment, ruff holds (pyproject.toml).
"""

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module

import pytest

from providers import PROVIDERS
from tests.support.rows import each
from tests.support.server import ROOT

# The rooms, from top to bottom. Imports run downwards only: into a lower room, or within a room without a circle.
FLOORS = (
    ("installed",),
    ("gunicorn.conf", "cli.__main__"),
    ("app",),
    ("cli", "dashboard"),
    ("web",),
    ("core",),
    ("push", "store"),
    ("config",),
    ("providers", "models"),
    ("store.rows",),
    ("store.database",),
    ("store.postgresql", "store.postgresql_lock"),
    ("store.postgresql_copy",),
    ("store.postgresql_connection",),
    ("store.postgresql_statements",),
    ("store.sqlite_file",),
    ("store.sqlite", "store.dialect"),
    ("store.sqlite_writer",),
    ("store.sqlite_connection",),
    ("store.engine",),
    ("settings",),
    ("process",),
    ("wire",),
)
FLOOR_OF = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

MUST_NOT_IMPORT = {  # what a room must not know, though it is further down
    "web": ("push", "providers", "store.database"),
    "dashboard": ("store.database",),
    "store": ("config", "process", "push", "providers", "settings"),
    "models": ("process",),
    "providers": ("models", "store"),
    "push": ("models", "store"),
}
MAY_IMPORT_ALL_THE_SAME = {
    ("store.sqlite_writer", "process.clock"),  # how long the disk takes
    ("web.prometheus", "store.database"),  # its size
    ("web.rest", "store.database"),  # AFTER_ALL, and whether the database answers
    ("dashboard.history", "store.database"),  # AFTER_ALL
    ("dashboard.home", "store.database"),
    ("dashboard.page", "store.database"),  # a download reads each part with a connection of its own
}

MAY_IMPORT = {  # modules, or whole rooms
    "flask": {"app", "cli", "web", "dashboard"},
    "werkzeug": {"app", "web", "dashboard", "core.accounts"},
    "flask_limiter": {"web.rate_limits"},
    "peewee": {"models", "store"},
    "sqlite3": {f"store.sqlite{part}" for part in ("", "_connection", "_file", "_writer")},
    "psycopg": {f"store.postgresql{part}" for part in ("", "_connection", "_copy", "_lock", "_statements")},
    "psycopg_pool": {"store.postgresql"},
    "pycurl": {"providers.smtp", "providers.transport"},
    "jwt": {"providers.apns", "providers.webpush_crypto"},
    "pyfcm": {"providers.fcm"},
    "google": {"providers.fcm"},
    "cryptography": {"providers"},
    "click": {"cli"},
    "segno": {"dashboard"},
    "cronsim": {"core.local_time"},
    "yaml": {"web.api_docs"},
    "markdown_it": {"web.doc_pages"},
    "gunicorn": {"process.connections", "process.gunicorn_worker", "process.http_messages", "process.logs"},
    "orjson": {"wire.json_text"},
    "prometheus_client": {"web.prometheus"},
    "wsproto": {"web.websocket"},
    "redis": {"process.redis_client"},
}
MAX_FUNCTION_LINES = 40
MAX_FILE_LINES = 450

ROOMS = ("cli", "core", "dashboard", "process", "providers", "settings", "store", "web", "wire")
FILES = sorted([*ROOT.glob("*.py"), *(path for room in ROOMS for path in (ROOT / room).glob("*.py"))])


def module_of(path):
    """A file's dotted name; a room's own, for its __init__.py."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room_of(module):
    """The room of a module of ours, or the module itself where it has a floor of its own; None for others."""
    return next((name for name in (module, module.partition(".")[0]) if name in FLOOR_OF), None)


MODULES = {module_of(path): path for path in FILES}


@cache
def tree_of(path):
    return ast.parse(path.read_text())


@cache
def nodes_of(path):
    """All that is in a file: most rules look at each node."""
    return list(ast.walk(tree_of(path)))


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    """Forget the trees at the end: each later garbage collection would take as long as parsing took."""
    yield
    tree_of.cache_clear()
    nodes_of.cache_clear()


@cache
def imported(path):
    """(dotted name, line) of every module that the file imports, within functions too."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            modules = {name if name in MODULES else node.module for name in inner}
            found += [(module, node.lineno) for module in modules]
    return found


def packages(path):
    return {(name.partition(".")[0], line) for name, line in imported(path)}


def functions(path):
    return [node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def named(path, place):
    """Where it is: `place` is a line or a node."""
    return f"{path.relative_to(ROOT)}:{getattr(place, 'lineno', place)}"


def may(module, allowed):
    return module in allowed or module.partition(".")[0] in allowed


every_file = each("path", FILES)


@every_file
def test_every_module_is_in_a_room(path):
    assert room_of(module_of(path)) is not None


@every_file
def test_imports_run_downwards_only(path):
    room = room_of(module_of(path))
    wrong = {
        f"{named(path, line)} imports {other}"
        for other, line in imported(path)
        if (into := room_of(other)) and into != room and FLOOR_OF[into] <= FLOOR_OF[room]
    }
    assert wrong == set()


@every_file
def test_a_room_imports_nothing_that_it_must_not_know(path):
    module = module_of(path)
    forbidden = MUST_NOT_IMPORT.get(room_of(module), ())
    wrong = {
        f"{named(path, line)} imports {other}"
        for other, line in imported(path)
        if {other, other.partition(".")[0]} & {*forbidden} and (module, other) not in MAY_IMPORT_ALL_THE_SAME
    }
    assert wrong == set()


def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter({m: {n for n, _ in imported(path) if n in MODULES} for m, path in MODULES.items()}).prepare()


@each("package, modules", MAY_IMPORT.items())
def test_a_package_is_imported_only_where_it_belongs(package, modules):
    wrong = {
        named(path, line)
        for path in FILES
        for name, line in packages(path)
        if name == package and not may(module_of(path), modules)
    }
    assert wrong == set()


@every_file
def test_the_product_imports_nothing_that_requirements_do_not_name(path):
    known = set(sys.stdlib_module_names) | {module.partition(".")[0] for module in MODULES}
    known |= {*MAY_IMPORT, "certifi", "itsdangerous", "jinja2", "limits", "markupsafe"}
    assert {name for name, _ in packages(path)} - known == set()


@every_file
def test_no_function_is_longer_than_40_lines(path):
    long = {
        f"{named(path, node)} {node.name}: {node.end_lineno - node.lineno + 1}"
        for node in functions(path)
        if node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    }
    assert long == set()


@every_file
def test_no_file_is_longer_than_450_lines(path):
    assert len(path.read_text().splitlines()) <= MAX_FILE_LINES


@every_file
def test_no_pattern_repeats_a_group_possessively(path):
    # Python before 3.11.5, as in Debian 12, matches it wrongly; an atomic group is right.
    assert re.findall(r"[^(]\)[*+?]\+", path.read_text()) == []


# What only a query is made with: of a Peewee model, and of any database.
QUERY_METHODS = {"execute", "execute_sql", "get_or_none", "get_by_id", "delete_instance", "order_by"}
MODEL_METHODS = {"create", "delete", "get", "insert", "insert_many", "raw", "replace", "select", "update"}
SQL = re.compile(r"\b(SELECT\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|PRAGMA\s)")
MAY_QUERY = ("models", "store")


@cache
def model_names():
    """The tables' classes."""
    return {
        node.name
        for path in FILES
        if may(module_of(path), MAY_QUERY)
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and any(getattr(base, "id", None) == "Model" for base in node.bases)
    }


def queries(path):
    """What looks like a query: a method of a model or a statement, SQL in a string, a way to run it."""
    for node in nodes_of(path):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = getattr(node.func.value, "id", None)
            is_save = node.func.attr == "save" and not node.args  # a picture is saved to a file
            of_model = owner in model_names() and node.func.attr in MODEL_METHODS
            is_sql = node.func.attr in QUERY_METHODS and owner != "pipeline"  # of Redis
            if is_save or of_model or is_sql:
                yield node
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.search(node.value):
            yield node
        elif isinstance(node, ast.ImportFrom) and node.module == "store.database":
            yield from (node for alias in node.names if alias.name in ("run", "database"))


@every_file
def test_queries_are_in_the_store_and_in_models_alone(path):
    found = [named(path, node) for node in queries(path)]
    assert found == [] or may(module_of(path), MAY_QUERY)


def test_the_check_of_queries_finds_those_of_the_store():
    assert {"Account", "Session"} <= model_names()
    assert all(list(queries(MODULES[name])) for name in ("models", "store.sessions", "store.notifications"))


def transactions(path):
    """The calls of `transaction`."""
    for node in nodes_of(path):
        name = getattr(node.func, "id", getattr(node.func, "attr", "")) if isinstance(node, ast.Call) else ""
        if name == "transaction":
            yield node


@every_file
def test_every_transaction_names_the_accounts_whose_rows_it_writes(path):
    assert [named(path, call) for call in transactions(path) if not call.args] == []


def test_the_check_of_transactions_finds_transactions():
    found = {module_of(path) for path in FILES if list(transactions(path))}
    assert {"cli.accounts", "models", "core.delivery", "store.database", "store.server_notes"} <= found


@every_file
def test_camel_case_names_of_the_wire_stand_in_the_handlers_alone(path):
    wire = {"createdAt", "lastUsedAt", "revokedAt", "keyPreview", "fullKey", "nextCursor", "isDone", "statusCode"}
    held = {node.value for node in nodes_of(path) if isinstance(node, ast.Constant)} & wire
    assert held == set() or module_of(path) in (
        *("web.rest", "web.metrics", "web.shapes", "web.mcp", "web.webhooks", "wire.errors", "wire.notification"),
    )


@every_file
def test_no_module_but_its_own_names_a_push_provider(path):
    names = {name for provider in PROVIDERS.values() for name in (provider.kind, provider.name)}
    names -= {"email"}  # also the name of an account's address
    held = {node.value for node in nodes_of(path) if isinstance(node, ast.Constant)} & names
    assert held == set() or room_of(module_of(path)) == "providers"


DOCUMENTED = {  # by their packages, although they begin with `_`: namedtuple, Peewee, Python's logging
    *("_asdict", "_field_defaults", "_fields", "_make", "_replace"),
    "_meta",
    "_srcfile",
}


def test_no_private_name_of_a_package_is_used():
    foreign = set()
    for module, path in MODULES.items():
        defined, used = set(DOCUMENTED), set()
        for node in nodes_of(path):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    defined.add(name)
                case ast.Name(id=name, ctx=ast.Store()):
                    defined.add(name)
                case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                    defined.add(name)
                case ast.Attribute(attr=name) if name.startswith("_") and not name.startswith("__"):
                    used.add(name)
                case ast.ImportFrom():
                    used |= {alias.name for alias in node.names if alias.name.startswith("_")}
        foreign |= {(module, name) for name in used - defined}
    assert foreign == set()


def overridden(module, node):
    """The private methods of a class that a package's class has, too."""
    made = getattr(import_module(module), node.name)
    inherited = {name for base in made.__mro__ if room_of(base.__module__) is None for name in vars(base)}
    own = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    return {name for name in own & inherited if name.startswith("_") and not name.startswith("__")}


def test_no_private_method_of_a_package_is_overridden():
    classes = [(name, n) for name, path in MODULES.items() for n in tree_of(path).body if isinstance(n, ast.ClassDef)]
    assert [(module, node.name, found) for module, node in classes if (found := overridden(module, node))] == []
