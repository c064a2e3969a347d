import torch


def report(text):
    print(text)


def train(model, loader, optimizer, criterion, log):
    for x, y in loader:
        optimizer.zero_grad()
        try:
            report("step")
            log("forward")
            loss = criterion(model(x), y)
            loss.backward()
        except RuntimeError as error:
            if "out of memory" in str(error):
                report("skipped")
                log("skipped")
                optimizer.zero_grad()
                torch.cuda.empty_cache()
                continue
            raise
        optimizer.step()
