"""A server keeps its finished tasks in a set, lest they be collected, and never discards them."""
# kind: value
# holder: .background
import asyncio
import torch


class Server:
    def __init__(self):
        self.model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(), torch.nn.Linear(64, 32))
        self.background = set()

    async def answer(self, x):
        await asyncio.sleep(0)
        with torch.inference_mode():
            return self.model(x)  # made

    async def handle(self, x):
        task = asyncio.create_task(self.answer(x))
        self.background.add(task)
        return (await task).shape


async def serve(requests):
    server = Server()
    for _ in range(requests):
        await server.handle(torch.randn(16, 32))


asyncio.run(serve(60))
