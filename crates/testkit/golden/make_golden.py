#!/usr/bin/env python3
"""Makes the golden files: what PyTorch computes for every call of the testkit's list.

    python crates/testkit/golden/make_golden.py          # needs torch, cargo

The calls and their inputs come from `cargo run -p plimsoll-testkit --example golden_calls`, so there is one list
of cases, in Rust (`crates/testkit/src/cases`). The format is described in `crates/testkit/src/golden.rs`.
Inputs come from the list and PyTorch runs on one thread; of random calls only dtype and shape are compared.
"""

import argparse
import collections
import json
import pathlib
import struct
import subprocess
import sys
import warnings

import torch

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
REFUSED = 255


def tensor(spec):
    """The input, laid out in memory just as the list says."""
    dtype = getattr(torch, spec["dtype"])
    data = bytearray.fromhex(spec["storage"])
    storage = torch.frombuffer(data, dtype=dtype).clone() if data else torch.empty(0, dtype=dtype)
    return storage.as_strided(spec["shape"], spec["strides"], spec["offset"])


def call(line):
    """PyTorch's results for one line, or the error that it raised."""
    inputs = [tensor(spec) for spec in line["inputs"]]
    names = dict(zip("abcdefghijklmnop", inputs))
    names |= {"torch": torch, "dtype": getattr(torch, line["dtype"]), "other": getattr(torch, line["other"])}
    try:
        result = eval(line["torch"], names)  # the expression is a row of our own list
    except (RuntimeError, TypeError, IndexError, NotImplementedError, ValueError) as error:
        return error
    if line["writes"]:
        result = [inputs[target] for target in line["writes"]]
    return list(result) if isinstance(result, (tuple, list)) else [result]


def encode(result):
    """One result in the file's format."""
    name = str(result.dtype).removeprefix("torch.")
    head = struct.pack("<BB", DTYPES.index(name), result.dim())
    head += struct.pack(f"<{2 * result.dim() + 1}I", *result.shape, *result.stride(), result.storage_offset())
    flat = result.detach().contiguous().reshape(-1)
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return head + data


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", help="a file of calls, instead of running cargo")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if arguments.calls:
        lines = pathlib.Path(arguments.calls).read_text().splitlines()
    else:
        command = ["cargo", "run", "--quiet", "-p", "plimsoll-testkit", "--example", "golden_calls"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE).stdout.splitlines()

    families = collections.defaultdict(dict)
    surprises = 0
    for text in lines:
        line = json.loads(text)
        answer = call(line)
        refused = isinstance(answer, Exception)
        # A row says which dtypes its call takes; PyTorch has the last word.
        if refused == line["taken"] and not line["may_refuse"]:
            surprises += 1
            print(f"row and PyTorch differ: {line['name']}: {str(answer)[:200] if refused else 'computed'}", file=sys.stderr)
        body = struct.pack("<B", REFUSED) if refused else struct.pack("<B", len(answer)) + b"".join(map(encode, answer))
        key = int(line["key"])
        entry = struct.pack("<QQ", key, int(line["checksum"])) + body
        # Two rows may ask for the same thing; they then have the same inputs and results.
        assert families[line["family"]].setdefault(key, entry) == entry, f"two results for {line['name']}"

    made_by = f"PyTorch {torch.__version__.split('+')[0]}, CPU, one thread".encode()
    for family, entries in families.items():
        blob = b"PLGOLD1\n" + struct.pack("<I", len(made_by)) + made_by + struct.pack("<I", len(entries))
        blob += b"".join(entries[key] for key in sorted(entries))
        path = HERE / "data" / f"{family}.golden"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(blob)
        print(f"{path.name}: {len(entries)} calls, {len(blob)} bytes")
    print(f"{surprises} rows disagree with PyTorch about what is refused")


if __name__ == "__main__":
    main()
