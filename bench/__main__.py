"""`python -m bench [PART ...] [--rows N]`: run each part in its own process; exit with 1 if one misses a limit."""

import argparse
import subprocess
import sys

from bench.measure import ROOT

PARTS = ("layers", "run", "disk", "push", "scale", "engines", "peers")


def main(wanted: list[str], rows: int) -> int:
    """Run the parts that are named, or all."""
    worst = 0
    for part in wanted or PARTS:
        more = ["--rows", str(rows)] if part == "scale" else []
        worst = max(worst, abs(subprocess.call([sys.executable, "-m", f"bench.{part}", *more], cwd=ROOT)))
    return worst


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the large history (scale)")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    sys.exit(main(arguments.parts, arguments.rows))
