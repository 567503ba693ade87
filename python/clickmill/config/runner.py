"""`runner`: how to run: what class of run, where, how long, what to save."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from clickmill._section import (
    Count,
    Interval,
    NonNegativeNumber,
    PositiveCount,
    PositiveNumber,
    Section,
    Seed,
    Texts,
)
from clickmill.config.cluster import ClusterConfig, Communicator
from clickmill.config.schedules import ConstantSchedule, LearningRateSchedule

RunnerClass = Literal["train", "infer", "local_cluster_train", "cluster_train"]


class EarlyStopping(Section):
    """Stop when the evaluation after a pass has not got better for a while."""

    metric: str = "auc"
    """Metric that is watched."""
    patience: Count = 1
    """Passes without improvement that are forgiven."""
    min_delta: NonNegativeNumber = 0.0
    """Smallest change that counts as improvement."""


class KeepPolicy(Section):
    """Which checkpoints stay when a new one has been written."""

    last: PositiveCount = 3
    """So many of the newest."""
    best: Count = 1
    """So many of the best, by the metric of early stopping, or of the schedule, else AUC or RMSE."""
    every_passes: Count = 0
    """Also every so many passes, for ever. 0: none."""


def _bare_last(value: Any) -> Any:
    return {"last": value} if isinstance(value, int | str) and not isinstance(value, bool) else value


class RunnerConfig(Section):
    """One way to run; `mode` names the runners of this run."""

    name: str
    """`mode` refers to it."""
    class_name: RunnerClass = Field(alias="class")
    """`train` and `infer` run on this machine in one process, the others as a cluster."""
    epochs: PositiveCount = 1
    """Passes over the data set."""
    device: Literal["cpu", "gpu"] = "cpu"
    """Where the dense part is computed."""
    phases: Texts = ()
    """Names of the phases to run, in order. Empty: all."""
    seed: Seed = 0
    """Start of everything random in the run: dense parameters, rows, shuffling."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """`bf16`: the dense part computes in bfloat16 with float32 master parameters."""
    max_batches: PositiveCount | None = None
    """End a pass after so many batches."""
    learning_rate_schedule: LearningRateSchedule = ConstantSchedule()
    """Factor on the learning rates over time; a class name alone is enough where it has no other keys."""
    early_stopping: EarlyStopping | None = None
    """Absent: all passes are run."""
    clip_norm: PositiveNumber | None = None
    """Gradients, dense and of rows, are scaled down together to this norm; not in `sync` of several lanes."""
    progressive_validation: bool = False
    """Score each batch before it is trained on, and count those scores: for data in time order."""
    evaluate_dataset_name: str | None = None
    """Data set that is scored after each pass; the phase's `validation` where absent."""
    evaluate_interval: PositiveCount = 1
    """Passes between evaluations; the last pass is always evaluated."""
    print_interval: PositiveCount = 20
    """Batches between log lines."""
    output_path: str = ""
    """Folder of the run: journal, metrics, checkpoints. Empty: `runs/<name of the runner>`."""
    tensorboard_path: str = ""
    """Folder for TensorBoard events. Empty: none are written."""

    init_model_path: str = ""
    """Checkpoint, path or URL, that a new run starts from: with optimizer state. Empty: a new model."""
    init_pretraining_model_path: str = ""
    """Checkpoint, path or URL, whose weights are taken where they fit; optimizers start anew."""
    finetuning_aspect_varnames: Texts = ()
    """Parameters, modules or tables to take from `init_pretraining_model_path`. Empty: all that fit."""
    save_checkpoint_interval: Interval = -1
    """Passes between checkpoints; the last pass is always saved. -1: the last one only."""
    save_checkpoint_path: str = ""
    """Folder of the checkpoints; a URL takes copies. Empty: `checkpoints` in the folder of the run."""
    save_checkpoint_style: Literal["epoch", "pass", "short"] = "epoch"
    """Folders `0`, `1`, ... or `pass-00000`, ... or `pass-0`, ... and, inside a pass, `batch-1000`, ..."""
    save_checkpoint_keep: Annotated[KeepPolicy, BeforeValidator(_bare_last)] | None = None
    """Which checkpoints stay; a number means so many of the newest. Absent: all stay."""
    save_step_interval: Interval = -1
    """Batches between checkpoints inside a pass. -1: none."""
    save_step_path: str = ""
    """The same for those in a pass (`epoch_E_batch_B`). Empty: `steps` in the folder of the run."""
    save_step_full_interval: PositiveCount = 1
    """Every so many of them holds all rows, those between only what changed. 1: all; so with servers."""
    evict_interval: Count = 0
    """Batches between evictions inside a pass; rows are always evicted at its end. 0: only there."""
    save_inference_interval: Interval = -1
    """Passes between models for inference. -1: none."""
    save_inference_path: str = ""
    """Folder of the models for inference."""
    save_inference_feed_varnames: Texts = ()
    """Inputs of the model for inference. Empty: all."""
    save_inference_fetch_varnames: Texts = ()
    """Outputs of the model for inference. Empty: the score."""
    runner_result_dump_path: str = ""
    """File for the scores of an `infer` run. Absent: `scores.txt` in the folder of the run."""

    fleet_mode: Literal["ps", "pslib", "collective"] = "ps"
    """Cluster: parameter server, or all-reduce. `pslib` is read as `ps`."""
    distribute_strategy: Literal["async", "sync", "half_async", "geo", "hybrid"] = "async"
    """Cluster with parameter servers: when trainers wait for each other."""
    communicator: Communicator = Communicator()
    """Cluster with parameter servers: what lies between a trainer and the servers."""
    cluster: ClusterConfig = ClusterConfig()
    """Cluster: leases, snapshots, deadlines, safety."""
    worker_num: PositiveCount = 1
    """Trainers of a local cluster."""
    server_num: PositiveCount = 1
    """Parameter servers of a local cluster."""
    selected_gpus: Annotated[str, Field(pattern=r"^\s*\d+\s*(,\s*\d+\s*)*$")] = "0"
    """Numbers of the cards for `device: gpu`, separated by commas; each has a process of its own."""

    trainer_class: str = ""
    """Path of a user's trainer class."""
    instance_class_path: str = ""
    """Path of a user's stage: instance."""
    network_class_path: str = ""
    """Path of a user's stage: network."""
    startup_class_path: str = ""
    """Path of a user's stage: start-up."""
    runner_class_path: str = ""
    """Path of a user's stage: runner."""
    terminal_class_path: str = ""
    """Path of a user's stage: end."""

    @property
    def run_folder(self) -> str:
        """Folder of the run, relative to where it is started."""
        return self.output_path or f"runs/{self.name}"

    @property
    def is_cluster(self) -> bool:
        """Whether the run has more than one process."""
        has_many_cards = self.class_name == "train" and self.device == "gpu" and len(self.cards) > 1
        return has_many_cards or self.class_name in {"local_cluster_train", "cluster_train"}

    @property
    def cards(self) -> tuple[int, ...]:
        """Numbers of the cards in `selected_gpus`."""
        return tuple(int(word) for word in self.selected_gpus.split(","))

    @property
    def is_collective(self) -> bool:
        """Whether it is a run of equal ranks, without servers."""
        return self.is_cluster and (self.class_name == "train" or self.fleet_mode == "collective")

    @property
    def num_ranks(self) -> int:
        """Ranks of a collective run that one command starts: one for each card, where cards compute."""
        return len(self.cards) if self.device == "gpu" else self.worker_num
