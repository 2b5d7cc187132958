"""`python -m bench [PART ...] [--rows N]`: every part, each in a process of its own; 1 if a must is not met."""

import argparse
import subprocess
import sys

from bench.measure import ROOT

PARTS = ("layers", "run", "disk", "push", "scale")


def main(wanted: list[str], rows: int) -> int:
    """Run the parts that are wanted, all by default."""
    worst = 0
    for part in wanted or PARTS:
        more = ["--rows", str(rows)] if part == "scale" else []
        worst = max(worst, abs(subprocess.call([sys.executable, "-m", f"bench.{part}", *more], cwd=ROOT)))
    return worst


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large history (scale)")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    sys.exit(main(arguments.parts, arguments.rows))
