"""Records what PyTorch raises for the cases of `tests/bad_input.py`: `python bad_input.py` with PyTorch compares, and with `--write`
writes `tests/bad_input.json` anew. Every case runs in a process of its own: some of PyTorch's ends are not by an exception."""

import json
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent / "tests"
RECORD = TESTS / "bad_input.json"

ONE = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import bad_input, torch, torch.utils.checkpoint, torch.utils.data, torch.utils.dlpack
names = sys.argv[2:]
for name in names:
    print(json.dumps([name, (bad_input.raised_by(bad_input.CASES[name], torch) or [None])[0]]), flush=True)
"""


def raised(names):
    """The class that PyTorch raises, by case; None if it raises nothing or does not come back."""
    ran = subprocess.run([sys.executable, "-c", ONE, str(TESTS), *names], stdout=subprocess.PIPE, text=True, timeout=300)
    found = dict(json.loads(line) for line in ran.stdout.splitlines())
    lost = [name for name in names if name not in found]
    if lost:
        found[lost[0]] = None
        found.update(raised(lost[1:]) if len(lost) > 1 else {})
    return found


def main():
    sys.path.insert(0, str(TESTS))
    import bad_input

    found = raised(list(bad_input.CASES))
    if "--write" in sys.argv[1:]:
        RECORD.write_text(json.dumps(found, indent=1) + "\n")
    recorded = json.loads(RECORD.read_text())
    different = [name for name in found if found[name] != recorded.get(name)]
    for name in different:
        print(f"{name}: {found[name]} now, {recorded.get(name)} recorded")
    print(f"{len(found)} cases, {len(different)} differ from the record")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
