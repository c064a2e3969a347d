"""Hooks on several layers gather activations by the layer's name, for a plot that comes later."""
# kind: value
# holder: .features
import collections
import torch


class FeatureExtractor:
    def __init__(self, model, names):
        self.features = collections.defaultdict(list)
        for name in names:
            model.get_submodule(name).register_forward_hook(self.saver(name))

    def saver(self, name):
        def hook(module, args, output):
            self.features[name].append(output.detach())

        return hook


def main():
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.Sigmoid(), torch.nn.Linear(32, 32), torch.nn.Sigmoid(), torch.nn.Linear(32, 2)
    )
    extractor = FeatureExtractor(model, ["0", "2"])
    optimizer = torch.optim.NAdam(model.parameters())
    for _ in range(40):
        optimizer.zero_grad()
        model(torch.randn(16, 16)).logsumexp(1).mean().backward()  # made
        optimizer.step()
    print(sorted(extractor.features))


main()
