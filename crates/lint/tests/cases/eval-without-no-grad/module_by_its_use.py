import torch


def score(student, valid_iter):
    student.eval()
    right = 0
    for batch in valid_iter:
        right += student(batch.text).argmax(1).eq(batch.label).sum().item()  # expect: eval-without-no-grad
    return right


def given(student, items):
    # Nothing here says that the parameters want gradients, nor that this is a pass over batches.
    student.eval()
    return [student(item) for item in items] + [loop(student, items)]


def loop(student, items):
    student.eval()
    found = []
    for item in items:
        found.append(student(item).argmax().item())
    return found
