"""The secret that signs: in a file beside the database, or in a database that other processes serve as well."""

from core import server_secret
from store import server_notes
from tests.support.postgresql import sqlite_only


@sqlite_only
def test_a_generated_secret_is_in_a_file_and_not_in_the_database(service, tmp_path):
    made = server_secret.server_secret(tmp_path)
    assert (tmp_path / "secret_key").read_text() == made == server_secret.server_secret(tmp_path)
    assert server_notes.find_key(server_secret.NAME) != made


def test_processes_of_a_shared_database_use_one_secret_and_need_no_directory(service, tmp_path, monkeypatch):
    monkeypatch.setattr(server_secret, "is_shared", lambda: True)
    machines = tmp_path / "one", tmp_path / "other"
    one, other = map(server_secret.server_secret, machines)
    assert one == other == server_notes.find_key(server_secret.NAME) and len(one) == 64
    assert not any(machine.exists() for machine in machines)


def test_of_two_secrets_generated_at_once_the_first_is_kept(service):
    assert [server_notes.put_first_key("new", value) for value in ("first", "second")] == ["first", "first"]
