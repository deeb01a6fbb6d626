"""Progress on a terminal: one live line per stage."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.text import Text

from raybench.engine.progress import Observer, Pace
from raybench.engine.stages import Receipt
from raybench.masking import masked
from raybench.visible import visible


class Bar(Observer):
    """One live line: stage, done/total, rate, time left."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description:<28}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            _PaceColumn(),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._pace = Pace(0, 0)

    def stage_started(self, stage: str, shards: int, found: int) -> None:
        self._pace = Pace(shards, found)
        self._task = self._progress.add_task(stage, total=shards, completed=found, pace=self._pace)
        self._progress.start()

    def published(self, receipt: Receipt) -> None:
        self._pace.add(receipt)
        if self._task is not None:
            self._progress.update(self._task, completed=self._pace.done)

    def retried(self, stage: str, cause: str) -> None:
        self._pace.retries += 1

    def stage_ended(self, stage: str) -> None:
        self._progress.stop()
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None

    def said(self, message: str) -> None:
        self._progress.console.print(visible(masked(message)), markup=False, highlight=False)


class _PaceColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        pace: Pace = task.fields["pace"]
        words = [f"{pace.rate:,.0f}/s"] if pace.items else []
        if pace.seconds_left is not None:
            minutes, seconds = divmod(int(pace.seconds_left), 60)
            words.append(f"{minutes}:{seconds:02d} left")
        if pace.retries:
            words.append(f"{pace.retries} retried")
        return Text(" · ".join(words))
