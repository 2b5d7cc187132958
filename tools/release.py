"""`make release`: the files of a release in `dist/`, after its upgrade from the release before was tried.

The first call turns "Unreleased" in CHANGELOG.md into the release of `VERSION` in config.py. Commit that. The second
call tries the upgrade, and writes the source archive, its hash and the tag's text. It neither tags nor uploads.
"""

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from config import VERSION
from tools import upgrading

ROOT = Path(__file__).parents[1]
CHANGELOG = ROOT / "CHANGELOG.md"
UNRELEASED = "## Unreleased\n"
HEADING = re.compile(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)(?:, ([0-9a-f]{7,40}))?\)\n", re.M)


class Release(NamedTuple):
    """A release of the changelog; `commit` is set if it has no tag."""

    version: str
    date: str
    commit: str | None
    changes: str


def releases(changelog: str) -> list[Release]:
    """The releases, the newest first."""
    parts = HEADING.split(changelog)[1:]
    return [Release(*parts[n : n + 3], parts[n + 3].strip()) for n in range(0, len(parts), 4)]


def folded(changelog: str, version: str, date: str) -> str:
    """The changelog with what is unreleased as this version; ends the program with a sentence if it cannot be."""
    before, _, after = changelog.partition(UNRELEASED)
    if not after.strip() or after.lstrip().startswith("## "):
        raise SystemExit('CHANGELOG.md has nothing under "Unreleased".')
    if version in [one.version for one in releases(changelog)]:
        raise SystemExit(f"CHANGELOG.md has {version} already: raise VERSION in config.py.")
    return f"{before}## {version} ({date})\n{after}"


def git(*words: str, folder: Path = ROOT) -> str:
    """What git prints, or the end of the program with what it says."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def write_files(release: Release, folder: Path, dist: Path) -> Iterator[Path]:
    """Write the archive of the last commit, its hash and the text of the tag."""
    dist.mkdir(exist_ok=True)
    name = f"pocketbell-{release.version}"
    archive, sums, tag = (dist / f"{name}{kind}" for kind in (".tar.gz", ".sha256", ".tag"))
    git("archive", f"--prefix={name}/", f"--output={archive}", "HEAD", folder=folder)
    sums.write_text(f"{hashlib.sha256(archive.read_bytes()).hexdigest()}  {archive.name}\n")
    tag.write_text(f"Pocketbell {release.version}\n\n{release.changes}\n")
    yield from (archive, sums, tag)


def commit_of(release: Release) -> str:
    """The commit of an earlier release: its tag's, or the one in the changelog."""
    if git("tag", "--list", f"v{release.version}"):
        return f"v{release.version}"
    if not release.commit:
        raise SystemExit(f"There is no tag v{release.version}: the upgrade from it cannot be tried.")
    return release.commit


def main(before: str | None) -> None:
    """Fold the changelog, or make the files; `before` is another commit from which the upgrade is tried."""
    if git("status", "--porcelain"):
        raise SystemExit("There are changes without a commit.")
    changelog = CHANGELOG.read_text()
    if UNRELEASED in changelog:
        CHANGELOG.write_text(folded(changelog, VERSION, datetime.now(UTC).strftime("%Y-%m-%d")))
        raise SystemExit(f"CHANGELOG.md has {VERSION} now. Commit that, then run make release again.")
    newest, earlier, *_ = releases(changelog)
    if newest.version != VERSION:
        raise SystemExit(f"The newest release of CHANGELOG.md is {newest.version}, VERSION in config.py {VERSION}.")
    with tempfile.TemporaryDirectory(prefix="pocketbell-release-") as scratch:
        upgrading.try_upgrade(ROOT, before or commit_of(earlier), "HEAD", Path(scratch))
    for path in write_files(newest, ROOT, ROOT / "dist"):
        print(path.relative_to(ROOT))
    print(f"Tag it: git tag --annotate v{VERSION} --cleanup=verbatim --file=dist/pocketbell-{VERSION}.tag")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else None)
