"""The CTR demo of PaddlePaddle on Kubernetes: `python train.py --is_local 0 --cloud_train 1`.

Takes the flags of the demo, reads Criteo's raw log, prints its lines and saves `models/pass-N` and
`models/batch-N`. In pods `paddle_k8s start_fluid` calls it with the role of the pod in the environment.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

VOLUME = Path("/mnt/seqdata")
"""Where jobs of the demo mount their data."""
SECOND_CHOICE = Path("/tmp/ctr")
"""For what is written, where this folder cannot be written to."""
CLICKMILL = (sys.executable, "-m", "clickmill")

logger = logging.getLogger("ctr")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a CTR model on Criteo's log.")
    add = parser.add_argument
    add("--train_data_path", default="./data/raw/train.txt", help="log to train on")
    add("--test_data_path", default="./data/raw/valid.txt", help="log to evaluate on after every pass")
    add("--batch_size", type=int, default=1000)
    add("--embedding_size", type=int, default=10)
    add("--num_passes", type=int, default=10)
    add("--model_output_dir", default="models")
    add("--sparse_feature_dim", type=int, default=1000001, help="number of different features")
    add("--is_local", type=int, default=1, help="1: train in this process; 0: with parameter servers")
    add("--cloud_train", type=int, default=0, help="1: the environment gives the role; 0: the flags below do")
    add("--async_mode", action="store_true", help="let no trainer wait for another; else they train in step")
    add("--no_split_var", action="store_true", help="read and passed over: parameters are always spread")
    add("--role", default="pserver", choices=["pserver", "trainer"])
    add("--endpoints", default="127.0.0.1:6000", help="parameter servers, with commas between")
    add("--current_endpoint", default="127.0.0.1:6000", help="address of this parameter server")
    add("--trainer_id", type=int, default=0)
    add("--trainers", type=int, default=1)
    add("--enable_ce", action="store_true", help="read and passed over: runs are always repeatable")
    add("--synthetic_rows", type=int, default=100_000, help="samples to make up where there is no log")
    return parser.parse_args()


def main() -> None:
    logging.basicConfig(format="%(asctime)s - %(levelname)s - %(message)s", level=logging.INFO)
    arguments = parse_arguments()
    environ = dict(os.environ, CLICKMILL_LOG_DATES="1")
    role = "trainer"
    if arguments.is_local:
        logger.info("run local training")
    else:
        logger.info("run dist training")
        if not arguments.cloud_train:
            environ |= role_of(arguments)
        role = next((environ[name].lower() for name in ROLES if environ.get(name)), "")
    if role != "pserver":
        find_data(arguments)
    folder = writable(Path(arguments.model_output_dir))
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(make_config(arguments, folder), sort_keys=False))
    if not arguments.is_local:
        logger.info("run %s", role)
    sys.stdout.flush()
    os.execve(CLICKMILL[0], [*CLICKMILL, "train", "-m", str(config)], environ)


ROLES = ("CLICKMILL_ROLE", "PADDLE_TRAINING_ROLE", "TRAINING_ROLE")


def role_of(arguments: argparse.Namespace) -> dict[str, str]:
    """What the flags say, as the variables of a pod would."""
    found = {
        "CLICKMILL_ROLE": arguments.role,
        "CLICKMILL_PSERVER_ADDRESSES": arguments.endpoints,
        "CLICKMILL_TRAINERS": str(arguments.trainers),
    }
    if arguments.role == "trainer":
        return {**found, "CLICKMILL_INDEX": str(arguments.trainer_id)}
    host, _, port = arguments.current_endpoint.rpartition(":")
    return {**found, "CLICKMILL_HOST": host, "CLICKMILL_PORT": port}


def find_data(arguments: argparse.Namespace) -> None:
    """Set the paths to the logs: as asked for, else those on the volume, else made-up ones."""
    train, test = Path(arguments.train_data_path), Path(arguments.test_data_path)
    if train.exists():
        return
    for folder in (VOLUME, VOLUME / "data/raw", VOLUME / "raw"):
        if (folder / train.name).exists():
            arguments.train_data_path = str(folder / train.name)
            arguments.test_data_path = str(folder / test.name)
            logger.info("train on `%s`", arguments.train_data_path)
            return
    folder = writable(train.parent)
    arguments.train_data_path, arguments.test_data_path = str(folder / train.name), str(folder / test.name)
    logger.warning(
        "there is no log at `%s` nor on `%s`: a made-up one is trained on, `%s`",
        train,
        VOLUME,
        arguments.train_data_path,
    )
    rows = arguments.synthetic_rows
    synthesise(arguments.train_data_path, rows, 0)
    synthesise(arguments.test_data_path, max(rows // 10, 1), rows)


def synthesise(path: str, rows: int, start: int) -> None:
    """A log that is the same in every pod."""
    if not Path(path).exists():
        command = [
            *CLICKMILL,
            "--quiet",
            "data",
            "synth",
            path,
            "--rows",
            str(rows),
            "--start-row",
            str(start),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def writable(folder: Path) -> Path:
    """The folder, made; or one of the same name where there is room to write."""
    for choice in (folder, SECOND_CHOICE / folder.name):
        try:
            choice.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(choice, os.W_OK):
            return choice
    raise SystemExit(f"error: neither `{folder}` nor `{SECOND_CHOICE}` can be written to")


def make_config(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The network of the demo: 26 categories and 13 counts into three layers of 400."""
    runner = {
        "name": "ctr",
        "class": "train" if arguments.is_local else "cluster_train",
        "epochs": arguments.num_passes,
        "print_interval": 1,
        "output_path": str(folder),
        "distribute_strategy": "async" if arguments.async_mode else "sync",
        "save_checkpoint_interval": 1,
        "save_checkpoint_path": str(folder),
        "save_checkpoint_style": "short",
        "save_step_interval": 1000,
        "save_step_path": str(folder),
    }
    dataset = [log("train", arguments.train_data_path, arguments.batch_size)]
    if Path(arguments.test_data_path).exists():
        dataset.append(log("test", arguments.test_data_path, arguments.batch_size))
        runner["evaluate_dataset_name"] = "test"
    return {
        "workspace": ".",
        "mode": "ctr",
        "runner": [runner],
        "dataset": dataset,
        "phase": [{"name": "ctr", "model": "dnn", "dataset_name": "train"}],
        "hyper_parameters": {
            "optimizer": {"class": "Adam", "learning_rate": 0.0001},
            "sparse_feature_number": arguments.sparse_feature_dim,
            "sparse_feature_dim": arguments.embedding_size,
            "fc_sizes": [400, 400, 400],
        },
    }


def log(name: str, path: str, batch_size: int) -> dict[str, Any]:
    """A data set of Criteo's raw log."""
    return {"name": name, "format": "criteo", "data_path": path, "batch_size": batch_size}


if __name__ == "__main__":
    main()
