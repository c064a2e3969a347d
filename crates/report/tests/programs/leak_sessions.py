"""Leak: a server keeps the keys and values of every conversation, and no conversation is ever forgotten."""
import torch
from torch import nn


class Server:
    def __init__(self):
        self.embed = nn.Embedding(1000, 256).cuda()
        self.project = nn.Linear(256, 512).cuda()
        self.sessions = {}

    @torch.inference_mode()
    def answer(self, name, prompt):
        tokens = self.embed(prompt.cuda())
        keys, values = self.project(tokens).chunk(2, dim=-1)
        self.sessions[name] = (keys, values)
        query = tokens[:, -1:]
        for _ in range(4):
            weights = (query @ keys.transpose(1, 2)).softmax(dim=-1)
            query = torch.tanh(weights @ values)
        return query.argmax(dim=-1).cpu()


def main():
    server = Server()
    for request in range(15):
        server.answer(f"user {request}", torch.randint(0, 1000, (4, 192)))
    return server
