"""Which small mistakes in the code would no test notice? `make mutate`.

A seeded sample of mutants is tried, each in a fork with the tests that run its lines. Survivors must be killed by a new
test or explained in survivors.yaml; exit code 1 says that some are neither. The work tree is not touched: what runs is
a copy of it, and a mutant is never written to a file.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before torch
sys.path[0] = str(Path(__file__).parents[1])  # as for the tests: names in this folder hide no other module

from mutation.session import run  # noqa: E402
from mutation.targets import Targets  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutate.py", description=__doc__, allow_abbrev=False)
    parser.add_argument("--mutants", type=int, default=300, help="size of the sample")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--workers", type=int, default=2, help="trials at once, each with one thread")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="of the sample, those with it in file, function or line"
    )
    given = parser.parse_args()
    return run(Targets.read(), given.mutants, given.seed, given.workers, given.only)


if __name__ == "__main__":
    sys.exit(main())
