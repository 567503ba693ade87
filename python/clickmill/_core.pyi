from _typeshed import SupportsGetItem
from numpy import float32, int64, uint32, uint64, uint8
from numpy.typing import NDArray
from os import PathLike
from typing import Any, SupportsFloat, SupportsIndex, final

__all__ = ["Arrivals", "Batch", "BinaryMetrics", "ColumnBatcher", "ControlLink", "Counter", "DenseOptimizer", "ExactAuc", "Exchange", "Gauge", "GroupAuc", "GroupLayout", "Histogram", "Located", "Lookup", "Monitor", "Pserver", "Push", "Reader", "RecordBatcher", "RegressionMetrics", "Schema", "Session", "Table", "Ticket", "build_info", "describe", "exchange_names", "fit_schema", "hides_tile_sizes", "join_saves", "keep_freed_memory", "split_signs", "synth", "unite_signs"]

@final
class Arrivals:
    """
    Which files of a reader are here, by their places in its configuration. Waits are detached from the interpreter.
    """
    def __new__(cls, /, num_files: SupportsIndex) -> Arrivals: ...
    def arrive(self, /, file: SupportsIndex) -> None:
        """
        The file is whole, and stays until it is finished.
        """
    def close(self, /) -> None:
        """
        Ends all waits, those to come as well.
        """
    def fail(self, /, file: SupportsIndex, reason: str) -> None:
        """
        The file cannot be had; the reader tells why when it comes to it.
        """
    def take(self, /, ahead: SupportsIndex) -> int | None:
        """
        A file to bring, waiting until one is wanted: the one that is waited for, else one of the `ahead` after it;
        None when the reader is gone.
        """
    def take_finished(self, /) -> list[int]:
        """
        Files that the reader has gone through since the last call.
        """
    def wait_until_asked(self, /, file: SupportsIndex) -> bool:
        """
        Waits until the reader asks for a file that was taken ahead; false when the reader is gone.
        """

@final
class Batch:
    """
    Samples in columnar form; every array is a view of the batch, not a copy.
    """
    @property
    def dense(self, /) -> NDArray[float32]:
        """
        `[B, F]`: dense slots side by side, in slot order.
        """
    @staticmethod
    def empty(schema: Schema) -> Batch:
        """
        A batch without samples, for who has none while others have.
        """
    @property
    def group_keys(self, /) -> NDArray[uint64] | None:
        """
        `[B]`, or None where the schema has no group slot.
        """
    def inverse(self, /, group: SupportsIndex) -> NDArray[uint32]:
        """
        Per occurrence: position in `signs`.
        """
    @property
    def labels(self, /) -> NDArray[float32]:
        """
        `[B, L]`: one column for each label slot.
        """
    @property
    def num_groups(self, /) -> int: ...
    @property
    def num_rows(self, /) -> int: ...
    def num_unique(self, /, group: SupportsIndex) -> int:
        """
        Number of distinct signs of a group.
        """
    def offsets(self, /, group: SupportsIndex) -> NDArray[uint32]:
        """
        `[B * S + 1]`: sample b, slot s of the group has occurrences `offsets[b * S + s]` up to the next.
        """
    @property
    def position(self, /) -> str:
        """
        JSON; a reader opened with it yields exactly the batches that follow this one.
        """
    def signs(self, /, group: SupportsIndex) -> NDArray[uint64]:
        """
        `[U]`: distinct signs of a group, in order of first occurrence.
        """
    @property
    def weights(self, /) -> NDArray[float32] | None:
        """
        `[B]`, or None where the schema has no weight slot.
        """

@final
class BinaryMetrics:
    """
    Streaming metrics of probabilities against labels of 0 and 1.
    """
    def __new__(cls, /, thresholds: SupportsIndex | None = None, window: SupportsIndex = 20) -> BinaryMetrics:
        """
        `thresholds`: uniform buckets as in the seeds (4096); none: buckets that are finer near 0 and 1.
        `window`: how many batches `batch_auc` looks back.
        """
    def auc(self, /) -> float:
        """
        AUC since the last reset; 0.5 while a class is empty.
        """
    def batch_auc(self, /) -> float:
        """
        AUC of the last `window` batches; 0.5 while a class is empty.
        """
    @property
    def count(self, /) -> int:
        """
        Samples so far, whatever they weigh.
        """
    @staticmethod
    def from_state(state: bytes) -> BinaryMetrics: ...
    def merge(self, /, other: BinaryMetrics) -> None:
        """
        Adds what `other` has counted.
        """
    def report(self, /) -> dict[str, float]:
        """
        Everything by name but `batch_auc`; NaN where there is nothing to divide by.
        """
    def reset(self, /) -> None:
        """
        Forgets all samples and keeps the settings.
        """
    def state(self, /) -> bytes:
        """
        The whole state; `from_state` gives an accumulator that goes on exactly where this one stands.
        """
    def update(self, /, scores: NDArray[float32], labels: NDArray[float32], weights: NDArray[float32] | None = None) -> None:
        """
        Takes the whole batch, or nothing of it when a value is not allowed.
        """

@final
class ColumnBatcher:
    """
    Batches from columns of text values, laid out as Arrow does.
    """
    def __new__(cls, /, schema: Schema, config_json: str, position_json: str | None = None) -> ColumnBatcher: ...
    def absent_slots(self, /) -> list[str]:
        """
        Slots whose keys have not occurred so far; empty where nobody requires them.
        """
    def add(self, /, columns: SupportsGetItem[int, tuple[str, NDArray[int64], NDArray[uint8], NDArray[int64] | None]]) -> list[Batch]:
        """
        Adds rows given by columns of equal length; the batches that they complete. An empty value is a null.
        """
    def bad_lines(self, /) -> str:
        """
        JSON: `{"count": n, "first": [{"file", "line", "column", "reason"}, …]}`, records for lines.
        """
    def check_slots(self, /) -> None:
        """
        For the end of a pass: a key that has not occurred in any record is an error.
        """
    def columns(self, /) -> list[str]:
        """
        Columns that the schema reads.
        """
    def finish(self, /) -> list[Batch]:
        """
        The batches that are left; an error where there was no record at all.
        """

@final
class ControlLink:
    """
    A connection for control messages, one at a time; made again when it breaks.
    """
    def __new__(cls, /, settings_json: str, address: str) -> ControlLink: ...
    def ask(self, /, request: str, deadline_ms: SupportsIndex) -> str:
        """
        Sends a request, JSON, and gives its answer.
        """

@final
class Counter:
    """
    Only ever rises.
    """
    def add(self, /, value: SupportsFloat | SupportsIndex = 1.0) -> None:
        """
        Less than nothing, or not a number, adds nothing.
        """

@final
class DenseOptimizer:
    """
    State of one optimizer over parameters of the given sizes.
    """
    def __new__(cls, /, config_json: str, sizes: SupportsGetItem[int, SupportsIndex]) -> DenseOptimizer: ...
    def load_state(self, /, step: SupportsIndex, states: SupportsGetItem[int, NDArray[float32]]) -> None: ...
    @staticmethod
    def square_sum(parts: SupportsGetItem[int, SupportsGetItem[int, NDArray[float32]]]) -> float:
        """
        Sum of the squares of the gradients, each summed over the parts: its root is the norm.
        """
    def state(self, /) -> tuple[int, list[NDArray[float32]]]:
        """
        Steps made, and the state arrays: for each parameter its kinds of state, in order.
        """
    def step(self, /, parameters: SupportsGetItem[int, NDArray[float32]], parts: SupportsGetItem[int, SupportsGetItem[int, NDArray[float32]]], learning_rate: SupportsFloat | SupportsIndex, scale: SupportsFloat | SupportsIndex = 1.0) -> None:
        """
        Moves each parameter in place by the sum of its gradients over the parts of a batch, times `scale`.

        `parts` has for each part of the batch a list of gradients, one for each parameter.
        """

@final
class ExactAuc:
    """
    AUC over all scores, which it keeps: 8 bytes a sample, `limit` samples at most.
    """
    def __new__(cls, /, limit: SupportsIndex) -> ExactAuc: ...
    def auc(self, /) -> float:
        """
        0.5 while a class is empty.
        """
    @property
    def count(self, /) -> int:
        """
        Samples so far, whatever they weigh.
        """
    @staticmethod
    def from_state(state: bytes) -> ExactAuc: ...
    def merge(self, /, other: ExactAuc) -> None:
        """
        Adds what `other` has counted.
        """
    def reset(self, /) -> None:
        """
        Forgets all samples and keeps the settings.
        """
    def state(self, /) -> bytes:
        """
        The whole state; `from_state` gives an accumulator that goes on exactly where this one stands.
        """
    def update(self, /, scores: NDArray[float32], labels: NDArray[float32], weights: NDArray[float32] | None = None) -> None:
        """
        Takes the whole batch, or nothing of it when a value is not allowed.
        """

@final
class Exchange:
    """
    Tables and dense parameters of a trainer that are copies of what the servers of a session hold.

    The trainer trains them as its own; now and then it exchanges what they have learnt for what other trainers have:
    `depart` takes it down, `deliver` sends it and moves rows by the answer while training may go on, `arrive` moves
    the dense part. Rows that are not here yet are brought by `fetch`, before a batch is located.
    """
    def __new__(cls, /, reading: Session, sending: Session, tables: SupportsGetItem[int, Table], optimizer: DenseOptimizer, parameters: SupportsGetItem[int, NDArray[float32]], trainers: SupportsIndex) -> Exchange:
        """
        Begins with what the servers hold: writes the dense part to `parameters` and its state to `optimizer`.

        `tables` are empty, in the order of their numbers; `trainers` is how many share the work. Rows are brought
        with the session `reading` while what was learnt is on its way with `sending`.
        """
    def arrive(self, /, parameters: SupportsGetItem[int, NDArray[float32]]) -> None:
        """
        Moves dense parameters by the answer to what was delivered, where there was one.
        """
    def deliver(self, /) -> tuple[int, int]:
        """
        Sends what has departed, waits until it is applied, and moves the rows by the answer. From any thread.

        Gives the updates that the servers have applied and the fence that is wanted.
        """
    def depart(self, /, push: Push, batches: SupportsIndex, parameters: SupportsGetItem[int, NDArray[float32]], is_answered: bool) -> None:
        """
        Takes down what was learnt in `batches` batches, to be delivered.

        `push` has entry and scores, and no gradients. Without `is_answered` the servers are only told; what they hold
        is asked for with the next exchange.
        """
    def fetch(self, /, batch: Batch, feeds: SupportsGetItem[int, tuple[SupportsIndex, SupportsIndex]]) -> tuple[int, int] | None:
        """
        Brings the rows of a batch that are not here yet; `feeds` are groups of the batch and table numbers.

        None where all are here; else the updates that the servers have applied and the fence that is wanted.
        """
    @property
    def first_step(self, /) -> int:
        """
        Updates that the servers had applied at the start.
        """
    @property
    def is_full(self, /) -> bool:
        """
        Whether so much was touched that it should not wait for the next exchange.
        """
    def touch(self, /, numbers: SupportsGetItem[int, SupportsIndex], lookups: SupportsGetItem[int, Lookup]) -> None:
        """
        The rows of `lookups` are about to be trained on; `numbers` are those of their tables.
        """

@final
class Gauge:
    def add(self, /, value: SupportsFloat | SupportsIndex) -> None: ...
    def set(self, /, value: SupportsFloat | SupportsIndex) -> None: ...

@final
class GroupAuc:
    """
    Mean of the exact AUC inside each group; keeps 16 bytes a sample, `limit` samples at most.
    """
    def __new__(cls, /, weight: str, limit: SupportsIndex) -> GroupAuc:
        """
        `weight`: what a group counts for, `impressions`, `clicks` or `uniform`.
        """
    @property
    def count(self, /) -> int:
        """
        Samples so far, whatever they weigh.
        """
    @staticmethod
    def from_state(state: bytes) -> GroupAuc: ...
    def merge(self, /, other: GroupAuc) -> None:
        """
        Adds what `other` has counted.
        """
    def report(self, /) -> dict[str, float]:
        """
        `gauc` (0.5 while no group has both classes), `num_groups` in the mean, `num_skipped` of one class.
        """
    def reset(self, /) -> None:
        """
        Forgets all samples and keeps the settings.
        """
    def state(self, /) -> bytes:
        """
        The whole state; `from_state` gives an accumulator that goes on exactly where this one stands.
        """
    def update(self, /, groups: NDArray[uint64], scores: NDArray[float32], labels: NDArray[float32], weights: NDArray[float32] | None = None) -> None:
        """
        Takes the whole batch, or nothing of it when a value is not allowed.
        """

@final
class GroupLayout:
    """
    A group of sparse slots that live in the same tables.
    """
    @property
    def pooled(self, /) -> list[str]:
        """
        Names of the pooled slots, in the order of `Lookup.pool`.
        """
    @property
    def sequences(self, /) -> list[tuple[str, int]]:
        """
        Name and longest length of each slot that is not pooled.
        """
    @property
    def tables(self, /) -> list[tuple[str, int]]:
        """
        Name and width of each table.
        """

@final
class Histogram:
    """
    How often values fell below each of its bounds.
    """
    def observe(self, /, value: SupportsFloat | SupportsIndex) -> None: ...

@final
class Located:
    """
    Rows of a group of a batch, or of plain signs, found but not read; `Table.fill` reads them, once.
    """

@final
class Lookup:
    """
    The rows of one batch, pulled from a table.
    """
    def add_counts(self, /, shows: NDArray[float32], clicks: NDArray[float32]) -> None:
        """
        Adds shows and clicks [U] that were counted elsewhere.
        """
    def add_gradients(self, /, gradients: NDArray[float32]) -> None:
        """
        Adds gradients [U,D] of the rows themselves.
        """
    def counts(self, /) -> tuple[NDArray[float32], NDArray[float32]]:
        """
        Shows and clicks [U] counted so far; empty arrays where nothing has been.
        """
    @property
    def dim(self, /) -> int: ...
    @staticmethod
    def from_values(batch: Batch, group: SupportsIndex, values: NDArray[float32]) -> Lookup:
        """
        A lookup of a group of `batch` with rows that were read elsewhere: `values` [U,D] in the order of its
        signs. It pools and gathers gradients; no table applies it.
        """
    def gradient_square_sum(self, /) -> float:
        """
        Sum of the squared gradients gathered so far.
        """
    def gradients(self, /) -> NDArray[float32]:
        """
        Gradients [U,D] gathered so far.
        """
    @property
    def num_rows(self, /) -> int:
        """
        U.
        """
    def observe(self, /) -> None:
        """
        Counts shows and clicks of the batch for its rows, where the table keeps them; once a batch.
        """
    def pool(self, /, layout: GroupLayout, out: NDArray[float32], first_sample: SupportsIndex = 0) -> None:
        """
        Pools the rows of the batch to `out` [B,P,D], in the order of `layout.pooled`.
        """
    def sequence(self, /, layout: GroupLayout, index: SupportsIndex, out: NDArray[float32], lengths: NDArray[int64], first_sample: SupportsIndex = 0) -> None:
        """
        Writes the rows of sequence `index` of the layout to `out` [B,L,D], and their number to `lengths` [B].
        """
    def unpool(self, /, layout: GroupLayout, gradients: NDArray[float32], first_sample: SupportsIndex = 0) -> None:
        """
        Adds the gradients [B,P,D] of what `pool` gave.
        """
    def unsequence(self, /, layout: GroupLayout, index: SupportsIndex, gradients: NDArray[float32], first_sample: SupportsIndex = 0) -> None:
        """
        Adds the gradients [B,L,D] of what `sequence` gave.
        """
    def values(self, /) -> NDArray[float32]:
        """
        Weights [U,D] as they were pulled.
        """

@final
class Monitor:
    """
    Answers `/metrics`, `/healthz` and `/readyz` on a thread of its own, until it is closed.

    Port 0 takes a free one. An address beyond this machine needs a token, which readers of metrics send as
    `Authorization: Bearer` or as `X-Clickmill-Token`, unless `is_insecure`. The process is not ready until
    `set_ready` says so.
    """
    def __enter__(self, /) -> Monitor: ...
    def __exit__(self, /, *_exception: "object") -> None: ...
    def __new__(cls, /, address: str, token: str | None = None, is_insecure: bool = False) -> Monitor: ...
    @property
    def address(self, /) -> str:
        """
        `host:port` that it listens on.
        """
    def close(self, /) -> None:
        """
        Stop answering; a monitor that is closed keeps counting, for nobody.
        """
    def counter(self, /, name: str, help: str, labels: dict[str, str] | None = None) -> Counter:
        """
        The counter of this name, which ends in `_total`, and of these labels.
        """
    def gauge(self, /, name: str, help: str, labels: dict[str, str] | None = None) -> Gauge:
        """
        The gauge of this name and these labels.
        """
    def histogram(self, /, name: str, help: str, bounds: SupportsGetItem[int, SupportsFloat | SupportsIndex], labels: dict[str, str] | None = None) -> Histogram:
        """
        The histogram of this name and these labels; `bounds` ascend, values above the last are counted too.
        """
    def set_ready(self, /, is_ready: bool, reason: str = "not ready") -> None:
        """
        Say whether the process can be used; `reason` tells people what it waits for.
        """

@final
class Pserver:
    """
    A server that listens from the moment it is made, on threads of its own.
    """
    def __new__(cls, /, settings_json: str) -> Pserver: ...
    @property
    def address(self, /) -> str:
        """
        Where it listens.
        """
    def answer_on(self, /, monitor: Monitor) -> None:
        """
        Lets `monitor` answer `/status`, `/scale`, `/snapshot` and `/stop` for the coordinator, where that is in
        this process.
        """
    def happenings(self, /) -> list[str]:
        """
        What has happened since the last call, each as JSON.
        """
    def health(self, /) -> str:
        """
        How it is, JSON.
        """
    def stop(self, /) -> None:
        """
        Ends all connections.
        """
    def wait(self, /, seconds: SupportsFloat | SupportsIndex) -> tuple[int, str] | None:
        """
        Waits for the end of the run, at most so long: exit code and words, or None.
        """

@final
class Push:
    """
    Gradients of one batch, on their way to the servers; good for one step.
    """
    def __new__(cls, /, ticket: Ticket, lookups: SupportsGetItem[int, Lookup], rates: SupportsGetItem[int, SupportsFloat | SupportsIndex], scale: SupportsFloat | SupportsIndex, parts: SupportsGetItem[int, SupportsGetItem[int, NDArray[float32]]], dense_rate: SupportsFloat | SupportsIndex, samples: SupportsIndex, ledger: str, scores: SupportsGetItem[int, NDArray[float32]], labels: NDArray[float32], weights: NDArray[float32] | None = None, groups: NDArray[uint64] | None = None, lane: SupportsIndex = 0, is_last: bool = False) -> Push:
        """
        Takes what `lookups` have gathered for `ticket`, and the sum of the dense gradients over `parts`.

        `rates` has one learning rate a feed; `scores`, `labels`, `weights` and `groups` are what the metrics
        count, `ledger` is what the ledger is told, JSON.
        """
    @staticmethod
    def empty(ledger: str, scores: SupportsGetItem[int, NDArray[float32]] | None = None, labels: NDArray[float32] | None = None, weights: NDArray[float32] | None = None, groups: NDArray[uint64] | None = None, lane: SupportsIndex = 0, is_last: bool = False) -> Push:
        """
        No gradients: an entry for the ledger, and scores for the metrics where there are some.
        """
    @property
    def ledger(self, /) -> str:
        """
        What the ledger is told, JSON.
        """
    @staticmethod
    def merge(pushes: SupportsGetItem[int, Push], ledger: str, is_average: bool) -> Push:
        """
        One push of several, which are good for nothing else then; `ledger` takes the place of their entries.

        Gradients are added up, or averaged; rows that several of them touch are updated once.
        """

@final
class Reader:
    """
    Batches of one pass over text files; see docs/formats/samples.md for the configuration.
    """
    def __new__(cls, /, schema: Schema, config_json: str, position_json: str | None = None, arrivals: Arrivals | None = None) -> Reader: ...
    def absent_slots(self, /) -> list[str]:
        """
        Slots whose columns have not occurred up to the last batch; empty for formats of fixed columns.
        """
    def bad_lines(self, /) -> str:
        """
        JSON: `{"count": n, "first": [{"file", "line", "column", "reason"}, …]}`.
        """
    def close(self, /) -> None:
        """
        Stops the threads; `next` gives None from now on.
        """
    def next(self, /) -> Batch | None:
        """
        The next batch, waiting for it; None at the end of the pass.
        """
    def progress(self, /) -> tuple[int, int]:
        """
        Bytes of the files behind the last batch, and of all.
        """

@final
class RecordBatcher:
    """
    Batches from dicts: `str`, `bytes`, `int`, `float`, `bool`, None, and lists or tuples of these.
    """
    def __new__(cls, /, schema: Schema, config_json: str, position_json: str | None = None) -> RecordBatcher: ...
    def absent_slots(self, /) -> list[str]:
        """
        Slots whose keys have not occurred so far; empty where nobody requires them.
        """
    def add(self, /, records: "list[dict[str, object]]") -> list[Batch]:
        """
        Adds records; the batches that they complete.
        """
    def bad_lines(self, /) -> str:
        """
        JSON: `{"count": n, "first": [{"file", "line", "column", "reason"}, …]}`, records for lines.
        """
    def check_slots(self, /) -> None:
        """
        For the end of a pass: a key that has not occurred in any record is an error.
        """
    def finish(self, /) -> list[Batch]:
        """
        The batches that are left; an error where there was no record at all.
        """

@final
class RegressionMetrics:
    """
    Errors of scores against labels that are any numbers.
    """
    def __new__(cls, /) -> RegressionMetrics: ...
    @property
    def count(self, /) -> int:
        """
        Samples so far, whatever they weigh.
        """
    @staticmethod
    def from_state(state: bytes) -> RegressionMetrics: ...
    def merge(self, /, other: RegressionMetrics) -> None:
        """
        Adds what `other` has counted.
        """
    def report(self, /) -> dict[str, float]:
        """
        NaN while there is no sample.
        """
    def reset(self, /) -> None:
        """
        Forgets all samples and keeps the settings.
        """
    def state(self, /) -> bytes:
        """
        The whole state; `from_state` gives an accumulator that goes on exactly where this one stands.
        """
    def update(self, /, scores: NDArray[float32], labels: NDArray[float32], weights: NDArray[float32] | None = None) -> None:
        """
        Takes the whole batch, or nothing of it when a value is not allowed.
        """

@final
class Schema:
    """
    What a sample means: slots, tables and transforms, checked.
    """
    def __new__(cls, /, json: str) -> Schema: ...
    def groups(self, /) -> list[tuple[list[int], list[int]]]:
        """
        Per group of sparse slots: positions of its tables, positions of its slots.
        """
    def layout(self, /) -> list[GroupLayout]:
        """
        Per group of sparse slots: its tables and what becomes of its slots.
        """
    @property
    def num_dense(self, /) -> int:
        """
        Total width of the dense slots.
        """
    def to_json(self, /) -> str: ...

@final
class Session:
    """
    All servers of a cluster in one epoch.
    """
    def __new__(cls, /, settings_json: str, place_json: str) -> Session:
        """
        `place_json`: epoch, incarnation, addresses of the servers, route and the size of the dense part.
        """
    def abandon(self, /) -> None:
        """
        Ends the step under way, and all to come, with an `EpochError`. From any thread.
        """
    def locate(self, /, batch: Batch, feeds: SupportsGetItem[int, tuple[SupportsIndex, SupportsIndex]]) -> Ticket:
        """
        Finds out which servers hold the rows of a batch; `feeds` are groups of the batch and table numbers.
        """
    def locate_signs(self, /, table: SupportsIndex, signs: NDArray[uint64]) -> Ticket:
        """
        As `locate`, for distinct signs of one table.
        """
    def step(self, /, pushes: SupportsGetItem[int, Push], tickets: SupportsGetItem[int, Ticket], train: bool = True, parameters: SupportsGetItem[int, NDArray[float32]] | None = None, later: SupportsGetItem[int, Ticket] = ...) -> tuple[int, int, list[list[Lookup]]]:
        """
        One frame to every server: pushes, and the keys of `tickets`, whose rows come back as lookups.

        The dense part is written to `parameters` where they are given. Gives the updates that the servers have
        applied, the fence that is wanted, and the lookups of each ticket. A step after this one asks for the rows of
        `later`, to be trained on; the servers find them in the meantime.
        """
    def take_seconds(self, /) -> tuple[float, float, float]:
        """
        Seconds that steps have taken since the last call: to the servers (`push`), back from them (`pull`), and
        for other trainers (`wait`).
        """
    def traffic(self, /) -> tuple[int, int, int]:
        """
        Bytes sent and received, and frames sent.
        """

@final
class Table:
    """
    Rows by sign, with their optimizer; may be used from several threads.

    Letters in shapes: U unique signs, D width of a row.
    """
    def __new__(cls, /, config_json: str) -> Table: ...
    def apply(self, /, lookup: Lookup, learning_rate: SupportsFloat | SupportsIndex, scale: SupportsFloat | SupportsIndex = 1.0) -> None:
        """
        Applies the gradients gathered in `lookup`, each multiplied by `scale`; once a lookup.
        """
    def begin_step(self, /, step: SupportsIndex) -> None:
        """
        Training is now in `step`; steps count from 1 and never go back.
        """
    def bytes(self, /) -> int:
        """
        Bytes of memory for rows, index and admission.
        """
    def check_finite(self, /) -> None:
        """
        `DivergedError` that names the first row with a NaN or an infinite number in it.
        """
    def config(self, /) -> str:
        """
        The configuration with every default, as JSON.
        """
    def digest(self, /) -> str:
        """
        Hexadecimal digest of all rows and counters, equal for equal tables whatever their buckets.
        """
    @property
    def dim(self, /) -> int: ...
    def evict(self, /) -> str:
        """
        Applies the eviction rules at a fence; gives a report as JSON.

        Lookups made before can no longer be applied if any row went.
        """
    def fill(self, /, located: Located) -> Lookup:
        """
        Reads the rows of `located` as they are now; once.
        """
    def forecast_bytes(self, /, rows: SupportsIndex) -> int:
        """
        Bytes that this table would need for `rows` rows, all told.
        """
    @property
    def has_statistics(self, /) -> bool:
        """
        Whether rows keep counts of shows and clicks.
        """
    @staticmethod
    def load(paths: SupportsGetItem[int, str | PathLike[str]], config_json: str | None = None, share: tuple[SupportsIndex, SupportsIndex] | None = None) -> Table:
        """
        Reads a full save and the increments that follow it, in order.

        `config_json` replaces the stored configuration; what shapes a row must stay. `share`, an index and a
        count, takes only the rows that `split_signs` gives to that index.
        """
    @staticmethod
    def load_parts(chains: SupportsGetItem[int, SupportsGetItem[int, str | PathLike[str]]], config_json: str | None = None) -> Table:
        """
        Puts a table together from the parts that servers have saved; each chain is what `load` takes.
        """
    @staticmethod
    def load_weights(paths: SupportsGetItem[int, str | PathLike[str]], config_json: str, learning_rate: SupportsFloat | SupportsIndex, share: tuple[SupportsIndex, SupportsIndex] | None = None) -> Table:
        """
        A table of `config_json` with the weights of a save; its optimizer starts anew and may be another.

        `learning_rate` is the one that training starts with; `share` is as for `load`.
        """
    def locate(self, /, signs: NDArray[uint64]) -> Located:
        """
        Finds the rows of unique `signs` [U] for training, and makes those that are admitted, without reading.
        """
    def locate_batch(self, /, batch: Batch, group: SupportsIndex) -> Located:
        """
        Finds the rows of a group of `batch` for training, and makes those that are admitted, without reading.
        """
    def lookup(self, /, signs: NDArray[uint64], train: bool) -> Lookup:
        """
        Pulls the rows of unique `signs` [U]. With `train`, admitted signs get a row and `apply` is possible.
        """
    def lookup_batch(self, /, batch: Batch, group: SupportsIndex, train: bool) -> Lookup:
        """
        Pulls the rows of the distinct signs of a group of `batch`; the lookup then speaks of that batch.
        """
    def peek(self, /, signs: NDArray[uint64]) -> NDArray[float32]:
        """
        Weights [U,D] of `signs`, without any effect on the table.
        """
    def pull(self, /, signs: NDArray[uint64], train: bool) -> NDArray[float32]:
        """
        Weights [U,D] of `signs`; with `train`, admitted signs get a row.
        """
    def push(self, /, signs: NDArray[uint64], gradients: NDArray[float32], learning_rate: SupportsFloat | SupportsIndex, shows: NDArray[float32] | None = None, clicks: NDArray[float32] | None = None, scale: SupportsFloat | SupportsIndex = 1.0) -> None:
        """
        Applies gradients [U,D] to the rows of `signs`; signs without a row are dropped and counted.
        """
    def rows(self, /) -> int:
        """
        Rows in the table.
        """
    def save(self, /, path: str | PathLike[str], base: str | None = None) -> str:
        """
        Writes the table to `path`, atomically; with `base`, the id of the last save, only what changed.

        Gives a report as JSON; its `id` is what the next increment builds on. A row that is not finite is a
        `DivergedError` that names it, and nothing is written.
        """
    def stats(self, /) -> str:
        """
        Rows, bytes, counters and a memory forecast, as JSON.
        """
    @property
    def step(self, /) -> int: ...

@final
class Ticket:
    """
    The rows of a batch, to be asked for and later pushed to.
    """

def build_info() -> str:
    """
    JSON: version, profile, platform, the processor features that matter here with whether they are there, and
    those that this build has code for and uses on this machine.
    """

def describe(config_json: str, limit_rows: SupportsIndex | None = None) -> str:
    """
    JSON statistics of the raw columns of the files of a reader's configuration.
    """

def exchange_names(left: str, right: str) -> None:
    """
    Swap two names of one file system in one step: neither is ever absent.
    """

def fit_schema(schema: Schema, config_json: str, arrivals: Arrivals | None = None) -> Schema:
    """
    The schema with mean and std of every slot that standardises without them, from one pass over the data.
    """

def hides_tile_sizes() -> bool:
    """
    Whether the processor shows AMX without the sizes of its tiles, as some virtual machines do.

    oneDNN then chooses AMX for bf16 and cannot make a single operation: "could not create a primitive".
    """

def join_saves(parts: SupportsGetItem[int, str | PathLike[str]], out: str | PathLike[str]) -> str:
    """
    Writes to `out`, atomically, one full save of the rows of `parts`, the saves of the shares of a table.
    """

def keep_freed_memory() -> bool:
    """
    Keep freed activations in the process instead of mapping them anew each step.

    By default glibc gives blocks above 128 KiB back to the kernel when they are freed; a training step
    then spends a good part of its time in page faults. Returns whether the settings were taken.
    """

def split_signs(signs: NDArray[uint64], count: SupportsIndex) -> tuple[NDArray[uint32], NDArray[uint32]]:
    """
    Positions [U] of `signs` by owner, in the order that they had, and how many each of `count` owners has.
    """

def synth(config_json: str, progress: Any | None = None) -> str:
    """
    Write a made-up Criteo-like log with a known best AUC; returns the report as JSON.

    `progress(rows_done, rows_total)` is called after each block of rows; what it raises stops the work,
    leaves no file behind and is raised here.
    """

def unite_signs(signs: NDArray[uint64]) -> tuple[NDArray[uint64], NDArray[uint32]]:
    """
    The distinct signs of `signs` in order of first occurrence, and for each sign its position among them.
    """
