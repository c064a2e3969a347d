"""All leaking and clean programs on a device, without pytest: `python on_device.py --device cuda` prints a line for each
and a sum, and ends with 1 if a leak is not named as its file says or a clean program has a verdict. Programs run on
the device by `torch.set_default_device`; those that do not run so, alone, are counted apart."""

import argparse
import sys

import torch

import runner


def judge_leak(program, ran):
    lines, kinds, holder = runner.expected(program)
    verdicts = [finding for finding in ran.report["findings"] if finding["verdict"]]
    if len(verdicts) != 1:
        return False, f"{len(verdicts)} verdicts: " + "; ".join(one["held_by"] for one in verdicts)
    (finding,) = verdicts
    said = f"{finding['bytes_per_step']} B a step, {finding['line']}, {finding['kind']}, {finding['held_by']}"
    is_right = finding["line"] in lines and finding["kind"] in kinds and holder in finding["held_by"]
    return is_right, said


def judge_clean(program, ran):
    verdicts = [finding for finding in ran.report["findings"] if finding["verdict"]]
    return not verdicts, "; ".join(f"{one['line']}, {one['kind']}, {one['held_by']}" for one in verdicts) or "silent"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--device", default="cuda")
    options.add_argument("names", nargs="*", help="programs by name; all by default")
    options = options.parse_args()
    torch.set_num_threads(1)
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1).step()
    counts = {"right": 0, "wrong": 0, "does not run": 0}
    for folder, judge in (("leaks", judge_leak), ("clean", judge_clean)):
        for program in sorted((runner.HERE / folder).glob("*.py")):
            if options.names and program.stem not in options.names:
                continue
            alone = runner.plain(program, options.device)
            if alone.status:
                outcome, said = "does not run", (alone.errors.strip().splitlines() or [""])[-1]
            else:
                ran = runner.watched(program, device=options.device)
                if ran.report is None or ran.status:
                    outcome, said = "wrong", f"status {ran.status}: {ran.errors[-300:]}"
                else:
                    is_right, said = judge(program, ran)
                    outcome = "right" if is_right else "wrong"
                    notes = [note for note in ran.report["notes"] if "watch stopped" in note or "noting stopped" in note]
                    if notes:
                        outcome, said = "wrong", "; ".join(notes)
                    if ran.output != alone.output:
                        said += "; prints differ from the run alone"
                    levels = ran.report["levels_growing"].get(f"{options.device}:0")
                    said += f"; grows: {', '.join(levels)}" if levels else ""
            counts[outcome] += 1
            print(f"{folder:5} {program.stem:28} {outcome:12} {said}", flush=True)
    where = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    print(f"{where}, PyTorch {torch.__version__}, Python {sys.version.split()[0]}: "
          + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))  # fmt: skip
    sys.exit(1 if counts["wrong"] else 0)


if __name__ == "__main__":
    main()
