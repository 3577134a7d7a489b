"""The Triton kernel against the reference: compiled where there is a GPU, else under Triton's interpreter.

Triton decides at its import whether it interprets, so the cases run in a process of their own, unless this
one was started for them (TRITON_INTERPRET=1) or has a GPU. That process also counts the transfers of a step
with the kernel (`test_transfers.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tokenform.masking import reference

pytest.importorskip("triton", reason="the kernel needs Triton: pip install triton")
ROOT = Path(__file__).parents[2]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
here = pytest.mark.skipif(
    DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1", reason="runs in the interpreter's process"
)


@pytest.mark.skipif(DEVICE == "cuda" or os.environ.get("TRITON_INTERPRET") == "1", reason="runs here")
def test_cases_under_the_interpreter():
    options = ["-p", "no:cacheprovider", "-p", "no:randomly", "-rA"]
    files = [__file__, str(Path(__file__).with_name("test_transfers.py"))]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-k", "kernel_ or (a_step and greedy)", *files],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    for name in ("test_kernel_does_what_the_reference_does", "test_one_transfer_a_step[None-greedy"):
        assert f"::{name}" in done.stdout.partition("PASSED")[2], done.stdout[-4000:]


def a_table(random: np.random.Generator, size: int) -> torch.Tensor:
    """Masks of four kinds: random bits, nothing, everything, and nothing but a few tokens."""
    words = (size + 31) // 32
    table = random.integers(0, 2**32, (4, words), dtype=np.uint32)
    table[1], table[2], table[3] = 0, 0xFFFFFFFF, 0
    for token in random.integers(0, size, 3):
        table[3, token // 32] |= np.uint32(1 << token % 32)
    return torch.from_numpy(table.view(np.int32))


@here
@pytest.mark.parametrize("size", [31, 4096, 9000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_kernel_does_what_the_reference_does(size, dtype):
    from tokenform.masking import kernel

    device = DEVICE
    random = np.random.default_rng(size)
    table = a_table(random, size).to(device)
    rows = torch.tensor([3, -1, 0, 2, 1, 0], dtype=torch.int32, device=device)
    wide = torch.from_numpy(random.normal(size=(6, size + 5))).to(device, dtype)
    logits = wide[:, :size]  # rows that do not lie side by side
    logits[2, 0], logits[3, 0] = torch.nan, torch.inf
    for chosen, number in ((rows, 6), (rows.long(), 6), (None, 4)):
        some = logits[:number]
        want = reference.apply_rows(some.clone(), table, chosen, some.clone())
        fresh = torch.full((number, size), 7.0, dtype=dtype, device=device)
        assert torch.equal(some.isnan(), logits[:number].isnan())
        for got in (kernel.apply_rows(some, table, chosen, fresh), in_place(kernel, some, table, chosen)):
            torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


def in_place(kernel: Any, logits: torch.Tensor, table: torch.Tensor, rows: Any) -> torch.Tensor:
    batch, size = logits.shape
    own = torch.empty(batch, size + 3, dtype=logits.dtype, device=logits.device)
    own[:, :size], own[:, size:] = logits, 7.0
    part = own[:, :size]
    kernel.apply_rows(part, table, rows, part)
    assert (own[:, size:] == 7).all()  # nothing is written beyond a row
    return part


@here
@pytest.mark.parametrize("narrower", [1, 100])
def test_kernel_forbids_what_a_narrower_table_does_not_know(narrower):
    from tokenform.masking import kernel

    device = DEVICE
    size = 32 * 130
    table = torch.full((1, 130 - narrower), -1, dtype=torch.int32, device=device)
    logits = torch.ones(1, size, device=device)
    kernel.apply_rows(logits, table, torch.zeros(1, dtype=torch.int32, device=device), logits)
    assert logits.isinf().sum() == 32 * narrower and not logits[0, : -32 * narrower].isinf().any()


@here
@pytest.mark.skipif(DEVICE == "cuda", reason="compiled by the other tests")
def test_kernel_compiles_for_a_gpu():
    """Without a GPU: Triton and its ptxas translate both uses of the kernel for sm_90."""
    code = (
        "from triton.backends.compiler import GPUTarget\n"
        "from triton.compiler import ASTSource, compile\n"
        "from tokenform.masking.kernel import BLOCK, SECTOR, _apply\n"
        "names = _apply.arg_names\n"
        "types = dict.fromkeys(names, 'i32') | {'logits': '*bf16', 'out': '*bf16'}\n"
        "types |= dict.fromkeys(['table', 'rows'], '*i32')\n"
        "types |= dict.fromkeys(['has_rows', 'in_place', 'block', 'group'], 'constexpr')\n"
        "for chosen in ((True, True, BLOCK, SECTOR // 2), (False, False, BLOCK, SECTOR // 2)):\n"
        "    values = {(len(names) - 4 + i,): value for i, value in enumerate(chosen)}\n"
        "    done = compile(ASTSource(_apply, types, values), target=GPUTarget('cuda', 90, 32))\n"
        "    assert len(done.asm['cubin']) > 1000\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
