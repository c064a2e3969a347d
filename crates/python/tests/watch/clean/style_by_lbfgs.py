"""An image is optimised by LBFGS towards the statistics of another."""
import torch


def gram(features):
    flat = features.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1]


def main():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3))
    layers.requires_grad_(False)
    wanted = gram(layers(torch.rand(1, 3, 24, 24)))
    image = torch.rand(1, 3, 24, 24, requires_grad=True)
    optimizer = torch.optim.LBFGS([image], max_iter=3, history_size=10)
    run = [0]

    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(gram(layers(image)), wanted) * 1e4
        loss.backward()
        run[0] += 1
        return loss

    while run[0] < 150:
        optimizer.step(closure)


main()
