"""The watch on small programs: each leak is named with line, kind and holder, no clean program gets a verdict, what a
path names is what to drop, and a watched program prints and computes what it does alone. A leak's file says what is
expected: `# kind:`, `# holder:`, and `# made` on the line."""

import pytest

torch = pytest.importorskip("torch")

import runner  # noqa: E402

LEAKS = sorted((runner.HERE / "leaks").glob("*.py"))
CLEAN = sorted((runner.HERE / "clean").glob("*.py"))
# Judged steps after warm-up within which growth is told; a leak that starts late has a window more.
TOLD_WITHIN = 10 + 3
TOLD_LATER = {"late": 80 + 100, "every_third_step": 60, "states_each_epoch": 40}
# Every fifth and every tenth step leaves something; modules called several times before the optimizer's first step
# begin the count, which begins anew with it.
TOLD_LATER |= {"evaluations_kept": 60, "conversations": 100}
# Copies are told by the fourth look.
TOLD_LATER |= {"copied_history": 20, "copied_with_deepcopy": 20, "reentrant_checkpoints": 14}
TOLD_LATER |= {"cache_by_identity": 14, "closure_of_lbfgs": 14, "jacobians": 14, "arrays": 14, "entropies_of_agent": 16}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    torch.set_num_threads(1)
    # What PyTorch imports at its first step is imported before the forks.
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1).step()


def test_there_are_enough():
    assert len(LEAKS) >= 103 and len(CLEAN) >= 96


@pytest.mark.parametrize("program", LEAKS, ids=lambda program: program.stem)
def test_leaks_are_named(program):
    lines, kinds, holder = runner.expected(program)
    ran = runner.watched(program, "--fail")
    assert (ran.status, ran.errors) == (3, "")
    verdicts = [finding for finding in ran.report["findings"] if finding["verdict"]]
    assert len(verdicts) == 1, verdicts
    (finding,) = verdicts
    assert finding["line"] in lines
    assert finding["kind"] in kinds
    assert holder in finding["held_by"]
    assert finding["held_by"] not in [other["held_by"] for other in finding["also_held_by"]]
    assert len(finding["path"]) < 12
    assert finding["bytes_per_step"] >= 1024
    assert finding["cause"] and finding["remedy"]
    assert finding["first_told_at_step"] <= TOLD_LATER.get(program.stem, TOLD_WITHIN)


@pytest.mark.parametrize("program", CLEAN, ids=lambda program: program.stem)
def test_clean_programs_have_no_verdict(program):
    ran = runner.watched(program, "--fail")
    alone = runner.plain(program)
    assert [finding for finding in ran.report["findings"] if finding["verdict"]] == []
    assert (ran.status, ran.errors) == (alone.status, alone.errors) == (0, "")
    assert ran.output == alone.output
    assert ran.report["steps"] >= 40


# What a collection frees has no name to drop.
NAMED = [program for program in LEAKS if program.stem not in ("cycle", "cycle_of_view", "context_holds_output", "hook_over_self")]
DROP_AT = {"late": 230, "every_third_step": 80, "states_each_epoch": 100, "evaluations_kept": 100, "conversations": 120}
# In a window, where the latest tensor is known.
DROP_AT |= {"concatenated": 21}


@pytest.mark.parametrize("program", NAMED, ids=lambda program: program.stem)
def test_what_the_path_names_is_what_to_drop(program):
    ran = runner.dropped(program, DROP_AT.get(program.stem, 38))
    assert (ran.status, ran.errors) == (0, "")
    assert len(ran.report) == 1
    assert ran.report[0]["before"] > 0 and ran.report[0]["after"] == 0, ran.report
