"""The programs: where each is from, how it is started, and what the harness gives it. Their files are never kept here."""

from __future__ import annotations

import dataclasses
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
    # The file's id in git: that it is as its authors wrote it.
    blob: str
    what: str
    arguments: Sequence[str] = ()
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
        return " ".join(self.arguments) if sum(one.path == self.path and one.repository == self.repository for one in PROGRAMS) > 1 else ""

    def trouble(self, folder: Path) -> str:
        """Why the file cannot be run, if it cannot."""
        path = folder / self.folder / self.path
        if not path.is_file():
            return f"{path} is not there: clone https://github.com/{self.repository} to {folder / self.folder}"
        text = path.read_bytes()
        if hashlib.sha1(b"blob %d\0" % len(text) + text).hexdigest() != self.blob:
            return f"{path} is another than that of commit {COMMITS[self.repository]}"
        return ""


PROGRAMS: list[Program] = [
    Program(
        "pytorch/examples",
        "mnist/main.py",
        "dee5a384cb2c43acf7c7ce8e521330ccd01c6e92",
        "convolutions on digits",
        arguments="--no-accel --batch-size 16 --epochs 1".split(),
    ),
    Program(
        "pytorch/examples",
        "mnist_rnn/main.py",
        "550bd4948ff869a7815a1f1fac57c01a3591a3e8",
        "a recurrent network on digits",
        arguments="--batch-size 32 --epochs 1".split(),
    ),
    Program(
        "pytorch/examples",
        "mnist_forward_forward/main.py",
        "25bc187b2928e7e58f7a85332849a724a24dd47e",
        "layers that learn by themselves",
        arguments="--no_accel --epochs 30 --train_size 500 --test_size 100".split(),
    ),
    Program(
        "pytorch/examples",
        "vae/main.py",
        "63909658102e8f7e0ab7f2ee12d229841cc45e02",
        "a variational autoencoder",
        arguments="--no-accel --batch-size 64 --epochs 1".split(),
    ),
    Program(
        "pytorch/examples",
        "dcgan/main.py",
        "b150174ca228175d8bc97dba6dbdb3791d55e32b",
        "a GAN of convolutions",
        arguments="--dataset mnist --dataroot data --workers 0 --batchSize 8 --imageSize 64 --ngf 8 --ndf 8".split(),
        passes=3,
    ),
    Program(
        "pytorch/examples",
        "regression/main.py",
        "cb41ad70eca2387eff4535a85f791b10726c2d25",
        "a polynomial",
    ),
    Program(
        "pytorch/examples",
        "word_language_model/main.py",
        "581b17cecd7d8008387c89f8e4b708dd33d88d01",
        "an LSTM on words",
        arguments="--data data/generated --emsize 32 --nhid 32 --dropout 0 --epochs 2".split(),
        data=["corpus"],
    ),
    Program(
        "pytorch/examples",
        "word_language_model/main.py",
        "581b17cecd7d8008387c89f8e4b708dd33d88d01",
        "a transformer on words",
        arguments="--data data/generated --model Transformer --emsize 32 --nhid 32 --dropout 0 --lr 5 --epochs 2".split(),
        data=["corpus"],
    ),
    Program(
        "pytorch/examples",
        "reinforcement_learning/reinforce.py",
        "048ea99f3782eac3984b2897794ebe7625a2def8",
        "policy gradients",
    ),
    Program(
        "pytorch/examples",
        "reinforcement_learning/actor_critic.py",
        "c9cf3b9c61f1987177b1960d63511e0ca53e9793",
        "an actor and a critic",
    ),
    Program(
        "pytorch/examples",
        "gat/main.py",
        "948833f3aeaaaf78feccf3f675c44a98c362805c",
        "graph attention",
        arguments="--no-accel --epochs 60".split(),
        data=["citations"],
        unused=["requests"],
    ),
    Program(
        "karpathy/nanoGPT",
        "train.py",
        "de5785051050d64bbda37a4964c2c079f0739b2b",
        "a GPT on characters",
        arguments="--device=cpu --compile=False --dataset=generated --eval_iters=2 --log_interval=1 --block_size=64 --batch_size=8 --n_layer=3 --n_head=4 --n_embd=64 --max_iters=60 --gradient_accumulation_steps=1 --dropout=0.0 --warmup_iters=10 --learning_rate=1e-3".split(),
        data=["character_ids"],
    ),
    Program(
        "karpathy/makemore",
        "makemore.py",
        "db0fe4c1e071b05573f9bd73040e9a29410cb3db",
        "a transformer on names",
        arguments="--num-workers 0 --type transformer".split(),
    ),
    Program(
        "karpathy/makemore",
        "makemore.py",
        "db0fe4c1e071b05573f9bd73040e9a29410cb3db",
        "a GRU on names",
        arguments="--num-workers 0 --type gru".split(),
    ),
    Program(
        "karpathy/minGPT",
        "projects/adder/adder.py",
        "55f03ee1caf4290e86f5ce02570553a87caeee23",
        "a GPT that adds",
        arguments="--trainer.num_workers=0 --trainer.device=cpu --trainer.max_iters=70 --data.ndigit=1".split(),
        paths=["."],
    ),
    Program(
        "karpathy/ng-video-lecture",
        "bigram.py",
        "faa3a14a6aca9c36d31d155b95aa4cf5a1d28860",
        "a bigram model",
    ),
    Program(
        "yunjey/pytorch-tutorial",
        "tutorials/01-basics/linear_regression/main.py",
        "b3715d99c1ac9887c94a088b2fd080184ec2b945",
        "linear regression",
    ),
    Program(
        "yunjey/pytorch-tutorial",
        "tutorials/01-basics/logistic_regression/main.py",
        "c7eb378ba03d15e2b5e34580ec1522f04a80b9ca",
        "logistic regression",
    ),
    Program(
        "yunjey/pytorch-tutorial",
        "tutorials/01-basics/feedforward_neural_network/main.py",
        "0c766a7eab255012a1c0a7f72a92b7bafbc140b8",
        "two linear layers",
    ),
    Program(
        "yunjey/pytorch-tutorial",
        "tutorials/02-intermediate/convolutional_neural_network/main.py",
        "ec904f1fa4826e7d397858c0d919fcbb17fa4257",
        "convolutions on digits",
    ),
    Program(
        "yunjey/pytorch-tutorial",
        "tutorials/02-intermediate/recurrent_neural_network/main.py",
        "c138c5ad4e14466c4abf89918a21a90f77723d85",
        "an LSTM on digits",
    ),
    Program(
        "yunjey/pytorch-tutorial",
        "tutorials/03-advanced/generative_adversarial_network/main.py",
        "c2062cf398e018929b53e6e7599c890388aca735",
        "a GAN",
        passes=2,
    ),
    Program(
        "yunjey/pytorch-tutorial",
        "tutorials/03-advanced/variational_autoencoder/main.py",
        "fe476d83173a908e4d1ab8a66e91d921adfc5a02",
        "a variational autoencoder",
    ),
    Program(
        "devnag/pytorch-generative-adversarial-networks",
        "gan_pytorch.py",
        "29fdb8c38d3c85a8059f71b3e99b5b2168aeb3eb",
        "a GAN on numbers",
    ),
    Program(
        "tanelp/tiny-diffusion",
        "ddpm.py",
        "d2dc08241b2b0c247d343251f47387d0a56d2550",
        "diffusion in the plane",
        arguments="--dataset line --num_epochs 1".split(),
        unused=["pandas", "sklearn", "sklearn.datasets"],
    ),
    Program(
        "jcjohnson/pytorch-examples",
        "nn/two_layer_net_optim.py",
        "84a7f2ed6b0b3a7bf930117d87ea9d11ab4611c0",
        "two layers and Adam",
    ),
    Program(
        "jcjohnson/pytorch-examples",
        "nn/dynamic_net.py",
        "ce4b4a0a626867b51b7eeadbed58fe483b902c19",
        "layers that are used a random number of times",
    ),
    Program(
        "jcjohnson/pytorch-examples",
        "autograd/two_layer_net_custom_function.py",
        "6c768d1ea8af6dcdee8c59288b07481ce352deb1",
        "an autograd function of its own",
    ),
    Program(
        "eriklindernoren/PyTorch-GAN",
        "implementations/gan/gan.py",
        "d6f1d935e9273d3c692a1ad33082d54c69ec8507",
        "a GAN",
        arguments="--n_epochs 1 --n_cpu 0".split(),
        passes=2,
    ),
    Program(
        "eriklindernoren/PyTorch-GAN",
        "implementations/wgan_gp/wgan_gp.py",
        "17d5afbf8ae15115d465b1142b6efcfb6b1ea1c6",
        "a GAN with a gradient penalty",
        arguments="--n_epochs 1 --n_cpu 0".split(),
    ),
    Program(
        "eriklindernoren/PyTorch-GAN",
        "implementations/infogan/infogan.py",
        "ccde076cbf0b013de23756b9540fb159f4323270",
        "an InfoGAN",
        arguments="--n_epochs 1 --n_cpu 0 --batch_size 8".split(),
        passes=3,
    ),
    Program(
        "eriklindernoren/PyTorch-GAN",
        "implementations/aae/aae.py",
        "6bfb0104a278dd87b0325ec4279ff4391a720f24",
        "an adversarial autoencoder",
        arguments="--n_epochs 1 --n_cpu 0".split(),
        passes=2,
    ),
    Program(
        "graykode/nlp-tutorial",
        "1-1.NNLM/NNLM.py",
        "351f6e37222e7471a9c4725c9d26ac5cacd5c34a",
        "a neural language model",
    ),
    Program(
        "graykode/nlp-tutorial",
        "2-1.TextCNN/TextCNN.py",
        "f19c139561633d87a61b40c66bc031b10b584771",
        "convolutions on words",
    ),
    Program(
        "graykode/nlp-tutorial",
        "3-2.TextLSTM/TextLSTM.py",
        "29e15e4173ffe089601fd0f985ce8fb8ea571e75",
        "an LSTM on words",
    ),
    Program(
        "graykode/nlp-tutorial",
        "3-3.Bi-LSTM/Bi-LSTM.py",
        "3b7e63824b1435ca0837baf9cb82558e0edd7d88",
        "an LSTM in both directions",
    ),
    Program(
        "graykode/nlp-tutorial",
        "4-1.Seq2Seq/Seq2Seq.py",
        "0d1dbbc81d3d964e68a0e96ce5377069e26aecf6",
        "an encoder and a decoder",
    ),
    Program(
        "graykode/nlp-tutorial",
        "4-2.Seq2Seq(Attention)/Seq2Seq(Attention).py",
        "6337656250288b0629fc758f39abe4a5e5794718",
        "the same with attention",
    ),
    Program(
        "graykode/nlp-tutorial",
        "4-3.Bi-LSTM(Attention)/Bi-LSTM(Attention).py",
        "7ff6365a56652de39fc039dc076937d2af0c6b28",
        "attention over an LSTM",
    ),
    Program(
        "hunkim/PyTorchZeroToAll",
        "07_diabets_logistic.py",
        "0a510acfce6e5767dfd76d8119f9e30372c61baf",
        "logistic regression",
    ),
    Program(
        "hunkim/PyTorchZeroToAll",
        "12_4_hello_rnn_emb.py",
        "aa783a16d18ebbe9f734406cfb2e1cdac299f13f",
        "a recurrent network on letters",
    ),
    Program(
        "locuslab/TCN",
        "TCN/adding_problem/add_test.py",
        "4d3d7008e49d3c6b4ed9ff82fb022f272193cf33",
        "temporal convolutions that add",
        arguments="--cuda --batch_size 8 --seq_len 50 --epochs 1".split(),
    ),
    Program(
        "locuslab/TCN",
        "TCN/copy_memory/copymem_test.py",
        "7a79695ebf274d2402dbecdf72c9c05e529b9fee",
        "temporal convolutions that remember",
        arguments="--cuda --batch_size 8 --blank_len 40 --epochs 1".split(),
    ),
    Program(
        "locuslab/TCN",
        "TCN/word_cnn/word_cnn_test.py",
        "b1fd694ab253948a94a7964e0a06d4347100955c",
        "temporal convolutions on words",
        arguments="--cuda --data data/generated --emsize 32 --nhid 32 --epochs 1 --corpus --seq_len 40 --validseqlen 20".split(),
        data=["corpus"],
    ),
    Program(
        "seungeunrho/minimalRL",
        "REINFORCE.py",
        "c059461cc2f3e7957b5f9a2aa33af7d7032cda2d",
        "policy gradients",
    ),
    Program(
        "seungeunrho/minimalRL",
        "actor_critic.py",
        "2e8455d06ffdd2c24bd0a7eaeaf5a5a57b440265",
        "an actor and a critic",
    ),
    Program(
        "seungeunrho/minimalRL",
        "dqn.py",
        "a85708af0f4d5d0d96191858b23c148a52dd86e0",
        "deep Q-learning",
    ),
    Program(
        "seungeunrho/minimalRL",
        "ppo.py",
        "1d4930648385b30d92f10bfdce2ad552cd8c6184",
        "proximal policies",
    ),
    Program(
        "seungeunrho/minimalRL",
        "ppo-lstm.py",
        "3d9b21d5a397f703f438137adfae767ef1368f50",
        "proximal policies with memory",
    ),
    Program(
        "seungeunrho/minimalRL",
        "sac.py",
        "9f107d3b77a1966f0efec9f965d58274effb50a1",
        "soft actor and critics",
        passes=4,
    ),
    Program(
        "seungeunrho/minimalRL",
        "acer.py",
        "8c3a3ef1312f8b3a9d53d54ad4c2b2e2dd6c6b85",
        "an actor and a critic with replay",
    ),
    Program(
        "seungeunrho/minimalRL",
        "ppo-continuous.py",
        "fed7f52c4f699258701ea50c1940cdbf559cf1d0",
        "proximal policies of continuous actions",
    ),
    Program(
        "MorvanZhou/PyTorch-Tutorial",
        "tutorial-contents/301_regression.py",
        "bfa102436990148afff1d2fe41be590bf06034aa",
        "regression",
    ),
    Program(
        "MorvanZhou/PyTorch-Tutorial",
        "tutorial-contents/403_RNN_regressor.py",
        "f4fcc94ad6f5ea93adf30c2ef572283957b4040f",
        "a recurrent network on a wave",
    ),
    Program(
        "MorvanZhou/PyTorch-Tutorial",
        "tutorial-contents/404_autoencoder.py",
        "8a402a74024e7f716fdb6706221f9d63df50b62b",
        "an autoencoder",
    ),
    Program(
        "MorvanZhou/PyTorch-Tutorial",
        "tutorial-contents/406_GAN.py",
        "f063d37250ae429e7b261540189b7e39cbfb3657",
        "a GAN of curves",
        passes=2,
    ),
    Program(
        "Blealtan/efficient-kan",
        "examples/mnist.py",
        "0e10c0c4076e2826f88639a38c3a351958bc2550",
        "a Kolmogorov-Arnold network on digits",
        paths=["src"],
    ),
    Program(
        "Diego999/pyGAT",
        "train.py",
        "ca11cfcf329161047d08f20d82385331cd204b3f",
        "graph attention",
        arguments="--no-cuda --fastmode --epochs 60 --hidden 4 --nb_heads 1".split(),
        data=["citations"],
    ),
]
