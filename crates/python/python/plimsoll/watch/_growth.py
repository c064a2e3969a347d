"""Which lines grow: of the storages noted in windows (`_making.py`), those that outlive their steps, judged line by
line. It knows neither holders nor kinds; `_looks.py` asks `_census.py` for those once a line is suspect."""

from __future__ import annotations

import bisect
import collections
from typing import TYPE_CHECKING, NamedTuple

from ._places import Place

if TYPE_CHECKING:
    from ._making import Row

# Steps at the beginning that are not judged: state is made lazily, caches fill.
WARM_UP_STEPS = 3
# Further steps that a storage must outlive.
SETTLE_STEPS = 3
# A line that leaves less than this behind per step is not told.
TOLERATED_BYTES = 1024
# Judged steps before a line is suspect, and before a suspect may become a verdict.
SUSPECT_STEPS = 4
VERDICT_STEPS = 5
# The share of judged steps that leave something behind, or as many of them however rare.
USUAL_SHARE = 0.6
RARE_STEPS = 4
# A line whose storages were let go after some time is judged only when it has kept others for longer by this factor.
PATIENCE = 2


class Suspect(NamedTuple):
    """A line that grows: the rows that stay, and the steps it was judged over."""

    place: Place | None
    rows: list[Row]
    judged_steps: int
    first_step: int

    @property
    def bytes_per_step(self) -> float:
        return sum(row.bytes for row in self.rows) / self.judged_steps


class Growth:
    """Judges rows at step boundaries. A line grows if storages made there stay: in most judged steps since the first
    that stayed, or in several throughout, up to the latest, and longer than any that the line has let go before."""

    def __init__(self) -> None:
        self.warm_until = WARM_UP_STEPS
        self._longest_life: collections.Counter[Place | None] = collections.Counter()

    def warm_up(self, step: int) -> None:
        """Begins anew at `step`: another loop has begun."""
        self.warm_until = step + WARM_UP_STEPS

    def let_go(self, gone: list[Row], step: int) -> None:
        """Rows that died. What did within its steps was never held; what lived longer tells how long the line keeps
        things: a buffer that is full, a list that is cleared each epoch."""
        for row in gone:
            life = step - row.step
            if life > 2 * SETTLE_STEPS:
                self._longest_life[row.place] = max(self._longest_life[row.place], life)

    def suspects(self, rows: list[Row], noted: list[int], step: int) -> dict[Place | None, Suspect]:
        judged = [at for at in noted if self.warm_until <= at < step - SETTLE_STEPS]
        if len(judged) < SUSPECT_STEPS:
            return {}
        # Of a step that was noted in part, as another thread took over in it, nothing can be told.
        steps = set(judged)
        by_line: dict[Place | None, list[Row]] = collections.defaultdict(list)
        oldest: dict[Place | None, int] = {}
        for row in rows:
            oldest[row.place] = min(row.step, oldest.get(row.place, row.step))
            if row.step in steps and not row.epoch:
                by_line[row.place].append(row)
        found = (self._judge(place, of, judged, step - oldest[place]) for place, of in by_line.items())
        return {suspect.place: suspect for suspect in found if suspect is not None}

    def epoch_suspects(self, rows: list[Row], noted: list[int], step: int) -> dict[Place | None, Suspect]:
        """The same of what is made between epochs: lines of which most epochs leave something behind."""
        judged = noted[:-1]
        by_line: dict[Place | None, list[Row]] = collections.defaultdict(list)
        for row in rows:
            if row.epoch and judged and row.epoch <= judged[-1]:
                by_line[row.place].append(row)
        found = {}
        for place, of in by_line.items():
            epochs = sorted({row.epoch for row in of})
            since = judged[bisect.bisect_left(judged, epochs[0]) :]
            steps = step - min(row.step for row in of)
            goes_on = epochs[-1] >= since[-max(len(since) // 3, 1)] if since else False
            if len(epochs) < SUSPECT_STEPS or len(epochs) < USUAL_SHARE * len(since) or not goes_on:
                continue
            if steps > PATIENCE * self._longest_life[place]:
                found[place] = Suspect(place, of, max(steps, 1), of[0].step)
        return found

    def _judge(self, place: Place | None, rows: list[Row], judged: list[int], age: int) -> Suspect | None:
        steps = sorted({row.step for row in rows})
        since = judged[bisect.bisect_left(judged, steps[0]) :]
        if len(since) < SUSPECT_STEPS:
            return None
        is_often = len(steps) >= min(USUAL_SHARE * len(since), RARE_STEPS)
        goes_on = steps[-1] >= since[-max(len(since) // 3, 1)]
        if not is_often or not goes_on:
            return None
        if age <= PATIENCE * self._longest_life[place]:
            return None
        suspect = Suspect(place, rows, len(since), steps[0])
        return suspect if suspect.bytes_per_step >= TOLERATED_BYTES / 4 else None
