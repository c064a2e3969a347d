"""Random state: generators, seeds, and forks."""

import copy
import pickle
import weakref

import pytest

import plimsoll as pm


def test_a_generator_draws_for_itself():
    generator = pm.Generator().manual_seed(7)
    assert (generator.device, generator.initial_seed()) == (pm.device("cpu"), 7)
    pm.manual_seed(1)
    expected = pm.rand(3).tolist()
    pm.manual_seed(1)
    own = pm.rand(3, generator=generator).tolist()
    assert pm.rand(3).tolist() == expected != own
    assert pm.rand(3, generator=generator.manual_seed(7)).tolist() == own
    assert pm.Generator("cpu").initial_seed() == 67280421310721


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: pm.rand(4, generator=g),
        lambda g: pm.randn(4, generator=g),
        lambda g: pm.randint(1000, (4,), generator=g),
        lambda g: pm.rand_like(pm.ones(4), generator=g),
        lambda g: pm.randn_like(pm.ones(4), generator=g),
        lambda g: pm.ones(4).uniform_(generator=g),
        lambda g: pm.ones(4).normal_(0, 2, generator=g),
    ],
)
def test_every_draw_takes_a_generator(draw):
    generator = pm.Generator()
    first = draw(generator.manual_seed(3)).tolist()
    before = pm.get_rng_state().tolist()
    assert draw(generator).tolist() != first
    assert draw(generator.manual_seed(3)).tolist() == first
    assert pm.get_rng_state().tolist() == before
    assert draw(None).tolist() != first
    with pytest.raises(RuntimeError, match="generator draws for"):
        draw(pm.Generator(pm.private_cpu()))
    with pytest.raises(TypeError):
        draw(5)


def test_states():
    generator = pm.Generator().manual_seed(5)
    pm.rand(3, generator=generator)
    state = generator.get_state()
    assert (state.dtype, state.device) == (pm.uint8, pm.device("cpu"))
    copy = generator.clone_state()
    first = pm.rand(3, generator=generator).tolist()
    assert pm.rand(3, generator=copy).tolist() == first
    assert generator.set_state(state) is generator
    assert pm.rand(3, generator=generator).tolist() == first
    with pytest.raises(TypeError):
        generator.set_state(pm.ones(3))
    with pytest.raises(RuntimeError):
        generator.set_state(pm.ones(3, dtype=pm.uint8))


def test_the_default_generator():
    assert pm.manual_seed(3) is pm.default_generator
    assert pm.initial_seed() == pm.default_generator.initial_seed() == 3
    assert pm.manual_seed(-1).initial_seed() == 2**64 - 1
    with pytest.raises(ValueError):
        pm.manual_seed(2**64)
    state = pm.get_rng_state()
    first = pm.rand(3).tolist()
    pm.set_rng_state(state)
    assert pm.rand(3, generator=pm.default_generator).tolist() == first
    assert pm.seed() == pm.initial_seed() and pm.seed() != pm.seed()
    generator = pm.Generator()
    assert generator.seed() == generator.initial_seed()


def test_forks():
    own = pm.private_cpu()
    pm.manual_seed(3)
    expected = pm.rand(2).tolist(), pm.rand(2, device=own).tolist()
    pm.manual_seed(3)
    with pm.random.fork_rng(devices=[own]):
        pm.rand(2), pm.rand(2, device=own)
    assert (pm.rand(2).tolist(), pm.rand(2, device=own).tolist()) == expected
    pm.manual_seed(3)
    with pm.random.fork_rng(enabled=False):
        pm.rand(2)
    assert pm.rand(2).tolist() != expected[0]


def test_a_fork_without_devices_is_of_all():
    own = pm.private_cpu()
    pm.manual_seed(3)
    expected = pm.rand(2).tolist(), pm.rand(2, device=own).tolist()
    pm.manual_seed(3)
    with pm.random.fork_rng():
        pm.rand(2), pm.rand(2, device=own)
        late = pm.private_cpu()
        first = pm.rand(2, device=late).tolist()
    assert (pm.rand(2).tolist(), pm.rand(2, device=own).tolist()) == expected
    assert pm.rand(2, device=late).tolist() == first
    pm.manual_seed(3)
    with pm.random.fork_rng(devices=[]):
        pm.rand(2), pm.rand(2, device=own)
    assert pm.rand(2).tolist() == expected[0] and pm.rand(2, device=own).tolist() != expected[1]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copy_of_a_generator_goes_on_from_its_state(again):
    generator = pm.Generator().manual_seed(3)
    pm.rand(5, generator=generator)
    made = again(generator)
    assert made is not generator and (made.device, made.initial_seed()) == (pm.device("cpu"), 3)
    first = pm.rand(3, generator=made).tolist()
    assert pm.rand(3, generator=generator).tolist() == first
    assert again(pm.default_generator) is not pm.default_generator
    assert weakref.ref(made)() is made


def test_seeds_that_are_no_number_of_64_bits():
    before = pm.initial_seed()
    for wrong in (2**64, -(2**63) - 1, "x"):
        for seeds in (pm.manual_seed, pm.random.manual_seed, pm.cuda.manual_seed, pm.cuda.manual_seed_all):
            with pytest.raises(ValueError):
                seeds(wrong)
    assert pm.initial_seed() == before
    with pytest.raises(TypeError):
        pm.manual_seed(None)
    assert pm.manual_seed("7").initial_seed() == 7 and pm.manual_seed(1.5).initial_seed() == 1
    assert pm.manual_seed(2**64 - 1).initial_seed() == 2**64 - 1 == pm.manual_seed(-1).initial_seed()
