"""Classes that take operations over with `__torch_function__`: whom PyTorch 2.15 asks, in which order, with what."""

import pytest

import plimsoll as pm

X = pm.ones(2)


class Like:
    """No tensor, but taken for one."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls.__name__, func, types, args, kwargs


class MoreLike(Like):
    pass


class Passes:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Logged(pm.Tensor):
    log = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Logged.log.append((cls, func.__name__, types))
        return super().__torch_function__(func, types, args, kwargs)


class Further(Logged):
    pass


LIKE = Like()


@pytest.mark.parametrize(
    "run, name, args, kwargs",
    [
        (lambda: pm.add(X, LIKE), pm.add, (X, LIKE), None),
        (lambda: pm.add(LIKE, X), pm.add, (LIKE, X), None),
        (lambda: pm.add(X, LIKE, alpha=2), pm.add, (X, LIKE), {"alpha": 2}),
        (lambda: pm.add(X, X, out=LIKE), pm.add, (X, X), {"out": LIKE}),
        (lambda: X.add(LIKE), pm.Tensor.add, (X, LIKE), None),
        (lambda: X.add_(LIKE), pm.Tensor.add_, (X, LIKE), None),
        (lambda: X + LIKE, pm.Tensor.add, (X, LIKE), None),
        (lambda: LIKE + X, pm.Tensor.add, (X, LIKE), None),
        (lambda: X - LIKE, pm.Tensor.sub, (X, LIKE), None),
        (lambda: LIKE - X, pm.Tensor.__rsub__, (X, LIKE), None),
        (lambda: X * LIKE, pm.Tensor.mul, (X, LIKE), None),
        (lambda: X @ LIKE, pm.Tensor.matmul, (X, LIKE), None),
        (lambda: LIKE @ X, pm.Tensor.__rmatmul__, (X, LIKE), None),
        (lambda: X == LIKE, pm.Tensor.eq, (X, LIKE), None),
        (lambda: X < LIKE, pm.Tensor.lt, (X, LIKE), None),
        (lambda: X[LIKE], pm.Tensor.__getitem__, (X, LIKE), None),
        (lambda: pm.mean(LIKE), pm.mean, (LIKE,), None),
        (lambda: pm.zeros_like(LIKE), pm.zeros_like, (LIKE,), None),
    ],
)
def test_an_object_that_is_no_tensor_is_asked(run, name, args, kwargs):
    asked = run()
    assert asked[0] == "Like" and asked[1] == name and asked[2] == (Like,)
    assert [id(a) for a in asked[3]] == [id(a) for a in args] and asked[4] == kwargs


def test_assignments_are_asked():
    class Heard:
        log = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.log.append((func, args[1:]))

    heard, x = Heard(), pm.ones(2)
    x[0] = heard
    assert Heard.log == [(pm.Tensor.__setitem__, (0, heard))] and x.tolist() == [1.0, 1.0]


def test_objects_in_lists_are_asked():
    listed = [X, LIKE]
    assert pm.cat(listed)[1:4] == (pm.cat, (Like,), (listed,))
    assert pm.stack((LIKE, LIKE))[2] == (Like,)


def test_an_instance_may_have_the_method():
    class Own:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self, types

    own = Own()
    assert pm.add(X, own) == (own, (Own,))


def test_subclasses_are_asked_before_their_bases():
    more = MoreLike()
    for asked in (pm.add(LIKE, more), pm.add(more, LIKE), pm.cat([X, LIKE, LIKE, more])):
        assert asked[0] == "MoreLike" and asked[2] == (MoreLike, Like)
    assert pm.add(LIKE, Like())[2] == (Like,)


def test_who_returns_not_implemented_passes():
    assert pm.add(Passes(), LIKE)[2] == (Passes, Like)
    passed = Passes()
    for refused in (lambda: pm.add(X, passed), lambda: pm.cat([passed, X]), lambda: X + passed, lambda: X[passed]):
        with pytest.raises(TypeError):
            refused()


def test_a_subclass_hears_of_operations_and_may_leave_them_to_tensor():
    s, further = pm.ones(2).as_subclass(Logged), pm.ones(2).as_subclass(Further)
    Logged.log.clear()
    results = [s + 1, pm.add(s, X), X + s, s.sum(), s[0], pm.cat([s, X]), -s, 1 - s, s.add_(1)]
    assert all(type(result) is Logged for result in results)
    names = [name for _, name, _ in Logged.log]
    assert names == ["add", "add", "add", "sum", "__getitem__", "cat", "neg", "__rsub__", "add_"]
    assert results[-1] is s and all(types == (Logged,) for _, _, types in Logged.log)
    Logged.log.clear()
    assert type(pm.add(s, further)) is Further
    assert Logged.log == [(Further, "add", (Further, Logged))]
    assert all(type(part) is Logged for part in pm.sort(s))


def test_a_subclass_hears_of_what_only_writes_in_place():
    s = pm.ones(2).as_subclass(Logged)
    Logged.log.clear()
    for result in (s.fill_(3), s.zero_(), s.copy_(X), s.uniform_(), s.normal_(), s.exponential_()):
        assert result is s
    assert [name for _, name, _ in Logged.log] == ["fill_", "zero_", "copy_", "uniform_", "normal_", "exponential_"]


def test_a_tensor_leaves_other_classes_alone():
    assert pm.Tensor.__torch_function__(pm.add, (pm.Tensor,), (X, X)).tolist() == [2.0, 2.0]
    assert pm.Tensor.__torch_function__(pm.add, (Like,), (X, LIKE)) is NotImplemented
    s = pm.ones(2).as_subclass(Logged)
    asked = pm.add(s, LIKE)
    assert asked[0] == "Like" and asked[2] == (Logged, Like)


def test_it_can_be_switched_off():
    s = pm.ones(2).as_subclass(Logged)
    Logged.log.clear()
    with pm.DisableTorchFunctionSubclass():
        assert type(s + 1) is pm.Tensor and type(pm.add(s, s)) is pm.Tensor
        with pytest.raises(TypeError):
            pm.add(X, LIKE)
    assert Logged.log == [] and type(s + 1) is Logged


def test_a_class_that_would_not_be_asked_below_autograd_is_refused():
    with pytest.raises(NotImplementedError, match="Below defines __torch_dispatch__, which Plimsoll does not have"):

        class Below(pm.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))


def test_a_function_that_classes_take_over():
    @pm.overrides.wrap_torch_function(lambda x, y=None: (x, y))
    def summed(x, y=None):
        return x + 1 if y is None else x + y

    assert summed(X).tolist() == [2.0, 2.0]
    name, function, types, args, kwargs = summed(X, y=Like())
    assert (name, function, types) == ("Like", summed, (Like,)) and args[0] is X and list(kwargs) == ["y"]


def test_names_of_functions():
    import plimsoll.nn.functional as F
    from plimsoll.overrides import is_tensor_method_or_property, resolve_name

    named = {pm.add: "add", pm.Tensor.add: "Tensor.add", F.relu: "nn.functional.relu", pm.Tensor.__add__: "Tensor.__add__"}
    for function, name in named.items():
        assert resolve_name(function) == f"plimsoll.{name}"
        assert is_tensor_method_or_property(function) == name.startswith("Tensor.")
    assert resolve_name(pm.Tensor.shape.__get__) == "plimsoll.Tensor.shape.__get__"
    assert resolve_name(len) is None and not is_tensor_method_or_property(len)
