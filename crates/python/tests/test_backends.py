"""Settings of the GPU libraries: PyTorch's names and defaults."""

import plimsoll
import pytest


def test_the_defaults_are_pytorchs():
    cudnn = plimsoll.backends.cudnn
    assert cudnn.enabled is True
    assert cudnn.allow_tf32 is True
    assert cudnn.deterministic is False
    assert cudnn.benchmark is False
    assert plimsoll.backends.cuda.matmul.allow_tf32 is False


def test_settings_are_read_back():
    cudnn = plimsoll.backends.cudnn
    cudnn.allow_tf32 = False
    assert cudnn.allow_tf32 is False
    cudnn.allow_tf32 = True
    matmul = plimsoll.backends.cuda.matmul
    matmul.allow_tf32 = True
    assert matmul.allow_tf32 is True
    matmul.allow_tf32 = False


def test_the_switch_of_all_algorithms_is_read_back():
    assert plimsoll.are_deterministic_algorithms_enabled() is False
    plimsoll.use_deterministic_algorithms(True, warn_only=True)
    assert plimsoll.are_deterministic_algorithms_enabled() is True
    assert plimsoll.is_deterministic_algorithms_warn_only_enabled() is True
    assert plimsoll.get_deterministic_debug_mode() == 1
    plimsoll.set_deterministic_debug_mode("error")
    assert plimsoll.get_deterministic_debug_mode() == 2
    assert plimsoll.is_deterministic_algorithms_warn_only_enabled() is False
    plimsoll.set_deterministic_debug_mode(0)
    assert plimsoll.are_deterministic_algorithms_enabled() is False
    with pytest.raises(RuntimeError):
        plimsoll.set_deterministic_debug_mode("loud")
    with pytest.raises(RuntimeError):
        plimsoll.set_deterministic_debug_mode(3)
    with pytest.raises(TypeError):
        plimsoll.set_deterministic_debug_mode(None)


def test_flags_hold_inside():
    cudnn = plimsoll.backends.cudnn
    with pytest.raises(ZeroDivisionError), cudnn.flags(enabled=False, benchmark=True, allow_tf32=False):
        assert (cudnn.enabled, cudnn.benchmark, cudnn.allow_tf32) == (False, True, False)
        raise ZeroDivisionError
    assert (cudnn.enabled, cudnn.benchmark, cudnn.allow_tf32) == (True, False, True)


def test_what_is_no_setting_is_refused():
    with pytest.raises(AttributeError):
        plimsoll.backends.cudnn.speed  # noqa: B018
    with pytest.raises(TypeError):
        plimsoll.backends.cudnn.enabled = "yes"
    with pytest.raises(AttributeError):
        plimsoll.backends.cuda.matmul.speed = True


def test_the_version_says_whether_the_library_is_there():
    cudnn = plimsoll.backends.cudnn
    version = cudnn.version()
    assert cudnn.is_available() is (version is not None)
    assert version is None or version // 10_000 == 9
