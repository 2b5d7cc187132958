"""CHANGELOG.md in releases, and the files that `make release` makes."""

import hashlib
import subprocess
import tarfile

import pytest

import config
from tests.support.server import ROOT
from tools import release

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
OLD = "# Changelog\n\n## Unreleased\n\n- Bells.\n\n## 0.9.0 (2026-01-02, 0123abc)\n\n- Whistles.\n"


def number(version):
    return tuple(map(int, version.split(".")))


def test_the_changelog_has_releases_from_new_to_old():
    found = release.releases(CHANGELOG)
    assert CHANGELOG.count("\n## ") == len(found) + (release.UNRELEASED in CHANGELOG)
    assert [one.version for one in found] == sorted((one.version for one in found), key=number, reverse=True)
    assert [one.date for one in found] == sorted((one.date for one in found), reverse=True)
    assert all(one.changes.startswith("- ") for one in found)


def test_the_version_of_the_program_is_the_newest_release_or_the_one_to_come():
    newest = release.releases(CHANGELOG)[0].version
    assert number(config.VERSION) > number(newest) if release.UNRELEASED in CHANGELOG else newest == config.VERSION


def test_what_is_unreleased_becomes_the_release_of_its_day():
    made = release.folded(OLD, "1.0.0", "2026-02-03")
    assert made == OLD.replace("## Unreleased", "## 1.0.0 (2026-02-03)")
    newest, before = release.releases(made)
    assert newest == ("1.0.0", "2026-02-03", None, "- Bells.")
    assert before == ("0.9.0", "2026-01-02", "0123abc", "- Whistles.")


@pytest.mark.parametrize(
    "text, version, sentence",
    [
        (OLD, "0.9.0", "has 0.9.0 already: raise VERSION"),
        (OLD.replace("- Bells.\n\n", ""), "1.0.0", 'nothing under "Unreleased"'),
    ],
)
def test_a_release_that_exists_or_changes_nothing_is_refused(text, version, sentence):
    with pytest.raises(SystemExit, match=sentence):
        release.folded(text, version, "2026-02-03")


def test_the_archive_has_the_committed_files_and_the_hash_is_its_own(tmp_path):
    repository, dist = tmp_path / "repository", tmp_path / "dist"
    repository.mkdir()
    (repository / "app.py").write_text("bell\n")
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init", "--quiet"], ["add", "app.py"], [*who, "commit", "--quiet", "--message=One"]):
        subprocess.run(["git", *words], cwd=repository, check=True)
    (repository / "secret.env").write_text("not committed")
    newest = release.releases(release.folded(OLD, "1.0.0", "2026-02-03"))[0]
    archive, sums, tag = release.write_files(newest, repository, dist)
    with tarfile.open(archive) as opened:
        assert [one.name for one in opened if one.isfile()] == ["pocketbell-1.0.0/app.py"]
    assert sums.read_text() == f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  pocketbell-1.0.0.tar.gz\n"
    assert tag.read_text() == "Pocketbell 1.0.0\n\n- Bells.\n"


def test_an_earlier_release_without_tag_or_commit_is_named():
    with pytest.raises(SystemExit, match=r"no tag v0\.0\.1"):
        release.commit_of(release.Release("0.0.1", "2026-01-01", None, ""))
