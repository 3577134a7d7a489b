"""What the benchmarks, the suites and the tests share; developers run it in a checkout, it isn't installed.

    python -m benchmarks.suites --help

`hostile_inputs/`, `exported/`, `hard_cases.py`, `grammar_cases.py`: inputs;
`hosts/`: serving engines' own classes; each other file is one judge. What `tokenform evaluate` needs is
in `benchmarks/tokenform_bench`, which a checkout needs not install.
"""

import sys
from pathlib import Path

if (beside := str(Path(__file__).parents[1])) not in sys.path:
    sys.path.append(beside)
