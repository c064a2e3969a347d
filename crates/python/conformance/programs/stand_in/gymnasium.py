"""The same environments under Gym's later name."""

from gym import make as make
