import torch


def train(db, net, meta_opt, log):
    for i in range(db.batches):
        meta_opt.zero_grad()
        losses = torch.stack(net(db.next()))
        losses.sum().backward()
        meta_opt.step()
        losses = losses.detach().sum() / db.tasks
        log.append({"epoch": i, "loss": losses})
