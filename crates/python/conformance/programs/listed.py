"""The programs: where each is from, how it is started, and what the harness gives it. Their files are never kept here."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

# The commit of each repository that the list was written for.
COMMITS = {
    "Blealtan/efficient-kan": "7b6ce1c87f18c8bc90c208f6b494042344216b11",
    "devnag/pytorch-generative-adversarial-networks": "26db8c9fec86817d9211d2c0a424b48b14d5a0e0",
    "Diego999/pyGAT": "3664f2dc90cbf971564c0bf186dc794f12446d0c",
    "eriklindernoren/PyTorch-GAN": "36d3c77e5ff20ebe0aeefd322326a134a279b93e",
    "graykode/nlp-tutorial": "d05e31ec81d56d70c1db89b99ab07e948f7ebc11",
    "hunkim/PyTorchZeroToAll": "e5a260fac0b4ff1e2ec434fc6f0d962ac97fc289",
    "jcjohnson/pytorch-examples": "0003fcdc606a79951e53bf8f46f8574fa4739f23",
    "karpathy/makemore": "988aa59e4d8fefa526d06f3b453ad116258398d4",
    "karpathy/minGPT": "37baab71b9abea1b76ab957409a1cc2fbfba8a26",
    "karpathy/nanoGPT": "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
    "karpathy/ng-video-lecture": "52201428ed7b46804849dea0b3ccf0de9df1a5c3",
    "locuslab/TCN": "2f8c2b817050206397458dfd1f5a25ce8a32fe65",
    "MorvanZhou/PyTorch-Tutorial": "dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7",
    "pytorch/examples": "77f55b912142e11fcfdf5b530231fb9c52f181e8",
    "seungeunrho/minimalRL": "c8efed8481e3cd40e9739cfde220a55522555b57",
    "tanelp/tiny-diffusion": "726b6bbbf2c9e3d23dff9eaea2fda10d0af6a78c",
    "yunjey/pytorch-tutorial": "0500d3df5a2a8080ccfccbc00aca0eacc21818db",
}


@dataclasses.dataclass(frozen=True)
class Program:
    repository: str
    path: str
    # How the file's id in git begins: that it is as its authors wrote it.
    blob: str
    what: str
    arguments: str = ""
    # Functions of `generated.py` that write the files which the program reads.
    data: Sequence[str] = ()
    # Backward passes that make a step: a network and its adversary are two.
    passes: int = 1
    # Folders of the repository that it expects to be installed.
    paths: Sequence[str] = ()
    # Modules that it imports and does not use with these arguments.
    unused: Sequence[str] = ()

    @property
    def folder(self) -> str:
        return self.repository.replace("/", "+")

    @property
    def title(self) -> str:
        return f"{self.repository}: {self.path}" + (f" ({self.variant})" if self.variant else "")

    @property
    def variant(self) -> str:
        """What tells two rows of one file apart."""
        rows = [one for one in PROGRAMS if (one.repository, one.path) == (self.repository, self.path)]
        return self.arguments if len(rows) > 1 else ""

    def trouble(self, folder: Path) -> str:
        """Why the file cannot be run, if it cannot."""
        path = folder / self.folder / self.path
        if not path.is_file():
            return f"{path} is not there: clone https://github.com/{self.repository} to {folder / self.folder}"
        text = path.read_bytes()
        if not hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest().startswith(self.blob):
            return f"{path} is another than that of commit {COMMITS[self.repository]}"
        return ""


examples = functools.partial(Program, "pytorch/examples")
nanogpt = functools.partial(Program, "karpathy/nanoGPT")
makemore = functools.partial(Program, "karpathy/makemore")
mingpt = functools.partial(Program, "karpathy/minGPT")
lecture = functools.partial(Program, "karpathy/ng-video-lecture")
tutorial = functools.partial(Program, "yunjey/pytorch-tutorial")
devnag = functools.partial(Program, "devnag/pytorch-generative-adversarial-networks")
diffusion = functools.partial(Program, "tanelp/tiny-diffusion")
by_example = functools.partial(Program, "jcjohnson/pytorch-examples")
gans = functools.partial(Program, "eriklindernoren/PyTorch-GAN")
nlp = functools.partial(Program, "graykode/nlp-tutorial")
zero_to_all = functools.partial(Program, "hunkim/PyTorchZeroToAll")
tcn = functools.partial(Program, "locuslab/TCN")
rl = functools.partial(Program, "seungeunrho/minimalRL")
morvan = functools.partial(Program, "MorvanZhou/PyTorch-Tutorial")
kan = functools.partial(Program, "Blealtan/efficient-kan")
gat = functools.partial(Program, "Diego999/pyGAT")

PROGRAMS: list[Program] = [
    examples("mnist/main.py", "dee5a384cb2c", "convolutions on digits", "--no-accel --batch-size 16 --epochs 1"),
    examples("mnist_rnn/main.py", "550bd4948ff8", "a recurrent network on digits", "--batch-size 32 --epochs 1"),
    examples(
        "mnist_forward_forward/main.py", "25bc187b2928", "layers that learn by themselves",
        "--no_accel --epochs 30 --train_size 500 --test_size 100",
    ),
    examples("vae/main.py", "63909658102e", "a variational autoencoder", "--no-accel --batch-size 64 --epochs 1"),
    examples(
        "dcgan/main.py", "b150174ca228", "a GAN of convolutions",
        "--dataset mnist --dataroot data --workers 0 --batchSize 8 --imageSize 64 --ngf 8 --ndf 8", passes=3,
    ),
    examples("regression/main.py", "cb41ad70eca2", "a polynomial"),
    examples(
        "word_language_model/main.py", "581b17cecd7d", "an LSTM on words",
        "--data data/generated --emsize 32 --nhid 32 --dropout 0 --epochs 2", data=["corpus"],
    ),
    examples(
        "word_language_model/main.py", "581b17cecd7d", "a transformer on words",
        "--data data/generated --model Transformer --emsize 32 --nhid 32 --dropout 0 --lr 5 --epochs 2", data=["corpus"],
    ),
    examples("reinforcement_learning/reinforce.py", "048ea99f3782", "policy gradients"),
    examples("reinforcement_learning/actor_critic.py", "c9cf3b9c61f1", "an actor and a critic"),
    examples("gat/main.py", "948833f3aeaa", "graph attention", "--no-accel --epochs 60", data=["citations"], unused=["requests"]),
    nanogpt(
        "train.py", "de5785051050", "a GPT on characters",
        "--device=cpu --compile=False --dataset=generated --eval_iters=2 --log_interval=1 --block_size=64 --batch_size=8 "
        "--n_layer=3 --n_head=4 --n_embd=64 --max_iters=60 --gradient_accumulation_steps=1 --dropout=0.0 --warmup_iters=10 "
        "--learning_rate=1e-3",
        data=["character_ids"],
    ),
    makemore("makemore.py", "db0fe4c1e071", "a transformer on names", "--num-workers 0 --type transformer"),
    makemore("makemore.py", "db0fe4c1e071", "a GRU on names", "--num-workers 0 --type gru"),
    mingpt(
        "projects/adder/adder.py", "55f03ee1caf4", "a GPT that adds",
        "--trainer.num_workers=0 --trainer.device=cpu --trainer.max_iters=70 --data.ndigit=1", paths=["."],
    ),
    lecture("bigram.py", "faa3a14a6aca", "a bigram model"),
    tutorial("tutorials/01-basics/linear_regression/main.py", "b3715d99c1ac", "linear regression"),
    tutorial("tutorials/01-basics/logistic_regression/main.py", "c7eb378ba03d", "logistic regression"),
    tutorial("tutorials/01-basics/feedforward_neural_network/main.py", "0c766a7eab25", "two linear layers"),
    tutorial("tutorials/02-intermediate/convolutional_neural_network/main.py", "ec904f1fa482", "convolutions on digits"),
    tutorial("tutorials/02-intermediate/recurrent_neural_network/main.py", "c138c5ad4e14", "an LSTM on digits"),
    tutorial("tutorials/03-advanced/generative_adversarial_network/main.py", "c2062cf398e0", "a GAN", passes=2),
    tutorial("tutorials/03-advanced/variational_autoencoder/main.py", "fe476d83173a", "a variational autoencoder"),
    devnag("gan_pytorch.py", "29fdb8c38d3c", "a GAN on numbers"),
    diffusion(
        "ddpm.py", "d2dc08241b2b", "diffusion in the plane",
        "--dataset line --num_epochs 1", unused=["pandas", "sklearn", "sklearn.datasets"],
    ),
    by_example("nn/two_layer_net_optim.py", "84a7f2ed6b0b", "two layers and Adam"),
    by_example("nn/dynamic_net.py", "ce4b4a0a6268", "layers that are used a random number of times"),
    by_example("autograd/two_layer_net_custom_function.py", "6c768d1ea8af", "an autograd function of its own"),
    gans("implementations/gan/gan.py", "d6f1d935e927", "a GAN", "--n_epochs 1 --n_cpu 0", passes=2),
    gans("implementations/wgan_gp/wgan_gp.py", "17d5afbf8ae1", "a GAN with a gradient penalty", "--n_epochs 1 --n_cpu 0"),
    gans("implementations/infogan/infogan.py", "ccde076cbf0b", "an InfoGAN", "--n_epochs 1 --n_cpu 0 --batch_size 8", passes=3),
    gans("implementations/aae/aae.py", "6bfb0104a278", "an adversarial autoencoder", "--n_epochs 1 --n_cpu 0", passes=2),
    nlp("1-1.NNLM/NNLM.py", "351f6e37222e", "a neural language model"),
    nlp("2-1.TextCNN/TextCNN.py", "f19c13956163", "convolutions on words"),
    nlp("3-2.TextLSTM/TextLSTM.py", "29e15e4173ff", "an LSTM on words"),
    nlp("3-3.Bi-LSTM/Bi-LSTM.py", "3b7e63824b14", "an LSTM in both directions"),
    nlp("4-1.Seq2Seq/Seq2Seq.py", "0d1dbbc81d3d", "an encoder and a decoder"),
    nlp("4-2.Seq2Seq(Attention)/Seq2Seq(Attention).py", "633765625028", "the same with attention"),
    nlp("4-3.Bi-LSTM(Attention)/Bi-LSTM(Attention).py", "7ff6365a5665", "attention over an LSTM"),
    zero_to_all("07_diabets_logistic.py", "0a510acfce6e", "logistic regression"),
    zero_to_all("12_4_hello_rnn_emb.py", "aa783a16d18e", "a recurrent network on letters"),
    tcn(
        "TCN/adding_problem/add_test.py", "4d3d7008e49d", "temporal convolutions that add",
        "--cuda --batch_size 8 --seq_len 50 --epochs 1",
    ),
    tcn(
        "TCN/copy_memory/copymem_test.py", "7a79695ebf27", "temporal convolutions that remember",
        "--cuda --batch_size 8 --blank_len 40 --epochs 1",
    ),
    tcn(
        "TCN/word_cnn/word_cnn_test.py", "b1fd694ab253", "temporal convolutions on words",
        "--cuda --data data/generated --emsize 32 --nhid 32 --epochs 1 --corpus --seq_len 40 --validseqlen 20", data=["corpus"],
    ),
    rl("REINFORCE.py", "c059461cc2f3", "policy gradients"),
    rl("actor_critic.py", "2e8455d06ffd", "an actor and a critic"),
    rl("dqn.py", "a85708af0f4d", "deep Q-learning"),
    rl("ppo.py", "1d4930648385", "proximal policies"),
    rl("ppo-lstm.py", "3d9b21d5a397", "proximal policies with memory"),
    rl("sac.py", "9f107d3b77a1", "soft actor and critics", passes=4),
    rl("acer.py", "8c3a3ef1312f", "an actor and a critic with replay"),
    rl("ppo-continuous.py", "fed7f52c4f69", "proximal policies of continuous actions"),
    morvan("tutorial-contents/301_regression.py", "bfa102436990", "regression"),
    morvan("tutorial-contents/403_RNN_regressor.py", "f4fcc94ad6f5", "a recurrent network on a wave"),
    morvan("tutorial-contents/404_autoencoder.py", "8a402a74024e", "an autoencoder"),
    morvan("tutorial-contents/406_GAN.py", "f063d37250ae", "a GAN of curves", passes=2),
    kan("examples/mnist.py", "0e10c0c4076e", "a Kolmogorov-Arnold network on digits", paths=["src"]),
    gat(
        "train.py", "ca11cfcf3291", "graph attention",
        "--no-cuda --fastmode --epochs 60 --hidden 4 --nb_heads 1", data=["citations"],
    ),
]
