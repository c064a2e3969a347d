import torch


class Trainer:
    def __init__(self, task, model):
        self.task = task
        self.model = model

    def valid_step(self, sample, last=False):
        with torch.no_grad():
            try:
                return self.task.valid_step(sample, self.model)
            except RuntimeError as error:
                if "out of memory" in str(error) and not last:
                    torch.cuda.empty_cache()
                    return self.valid_step(sample, last=True)  # expect: retry-inside-except
                raise error
