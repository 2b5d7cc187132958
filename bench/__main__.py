"""`python -m bench [PART ...] [--rows N]`: run each part in its own process; exit with 1 if one misses a limit."""

import argparse
import subprocess
import sys

from bench.measure import ROOT

LONG = ("growth",)  # run when they are named
PARTS = ("layers", "run", "disk", "push", "scale", "engines", "peers", *LONG)
ROWS = {"scale": 1, "growth": 10}  # how many times `--rows` each fills


def main(wanted: list[str], rows: int) -> int:
    """Run the parts that are named, or all but the long ones."""
    worst = 0
    for part in wanted or [part for part in PARTS if part not in LONG]:
        more = ["--rows", str(rows * ROWS[part])] if part in ROWS else []
        worst = max(worst, abs(subprocess.call([sys.executable, "-m", f"bench.{part}", *more], cwd=ROOT)))
    return worst


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="rows of the large history (scale; ten times as many for growth)"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"unknown part {', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    sys.exit(main(arguments.parts, arguments.rows))
