"""The seeds' log lines, character by character: scripts read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def batch_line(
    *, pass_number: int, batch: int, loss: float, auc: float, batch_auc: float, prefix: str = "TRAIN"
) -> str:
    """`TRAIN --> pass: 0 batch: 10 loss: 0.69 auc: 0.50, batch_auc: 0.50`, with the seeds' twelve digits."""
    return (
        f"{prefix} --> pass: {pass_number} batch: {batch} "
        f"loss: {loss:.12g} auc: {auc:.12g}, batch_auc: {batch_auc:.12g}"
    )


def global_line(values: Mapping[str, float]) -> str:
    """PaddleRec's line of global metrics, its spelling of `Actural_CTR` included.

    `values` as `MetricSet.compute` gives them. A COPC that does not exist is printed as 0, as there.
    """
    copc = values["copc"] if abs(values["predicted_ctr"]) > 1e-6 else 0.0
    return (
        f"AUC={values['auc']:.6f} BUCKET_ERROR={values['bucket_error']:.6f} "
        f"MAE={values['mae']:.6f} RMSE={values['rmse']:.6f} "
        f"Actural_CTR={values['actual_ctr']:.6f} Predicted_CTR={values['predicted_ctr']:.6f} "
        f"COPC={copc:.6f} MEAN Q_VALUE={values['mean_q']:.6f} Ins number={int(values['count'])}"
    )
