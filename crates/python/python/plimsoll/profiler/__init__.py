"""What a program spends its time and its bytes on, operation by operation, and why it is slow: PyTorch's profiler over
Plimsoll's own recording (`autograd/profiler_util.py` has its events, `_schedule.py` its steps)."""

from __future__ import annotations

from ..autograd.profiler import record_function as record_function
from ..autograd.profiler_util import DeviceType as DeviceType
from ._profile import ProfilerActivity as ProfilerActivity
from ._profile import profile as profile
from ._profile import supported_activities as supported_activities
from ._schedule import ProfilerAction as ProfilerAction
from ._schedule import schedule as schedule
from ._trace_files import tensorboard_trace_handler as tensorboard_trace_handler

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
