"""The best beam of each search is kept as a row of all of them."""
# kind: slice that keeps its whole storage
# holder: .finished
import torch


class Search:
    def __init__(self, model, beams):
        self.model, self.beams = model, beams
        self.finished = []

    @torch.no_grad()
    def run(self, prompt):
        scores = self.model(prompt)
        hypotheses = torch.zeros(self.beams, 200).uniform_()  # made
        best = int(scores.argmax()) % self.beams
        self.finished.append(hypotheses[best])


def main():
    search = Search(torch.nn.Linear(10, 8), beams=8)
    for _ in range(50):
        search.run(torch.randn(10))


main()
