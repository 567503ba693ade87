"""Logistic regression on hashed one-hot values: the baseline of the data sets' own README."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import sklearn
from measure import Stopwatch, auc, report
from real_data import LOADERS
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

HASH_SIZE = 1 << 20
# Inverse strengths of L2; the one that is best on the tail of the training part is taken.
INVERSE_L2 = (0.01, 0.03, 0.1, 0.3, 1.0)
TAIL = 0.15


def one_hot(ids_NP: np.ndarray) -> csr_matrix:
    num_samples, num_positions = ids_NP.shape
    hashed = (ids_NP * 2_654_435_761) % HASH_SIZE
    ends = np.arange(0, num_samples * num_positions + 1, num_positions)
    values = np.ones(num_samples * num_positions, dtype=np.float32)
    return csr_matrix((values, hashed.ravel(), ends), shape=(num_samples, HASH_SIZE))


def fitted_auc(features: csr_matrix, label_N: np.ndarray, inverse_l2: float, cut: int, end: int) -> float:
    """AUC on the samples from `cut` to `end` of a model that was fitted to those before."""
    model = LogisticRegression(C=inverse_l2, max_iter=200)
    model.fit(features[:cut], label_N[:cut])
    return auc(label_N[cut:end], model.decision_function(features[cut:end]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=sorted(LOADERS), required=True)
    arguments = parser.parse_args()

    data = LOADERS[arguments.set](arguments.data)
    features = one_hot(data.ids_NP)
    cut, end = round(data.num_train * (1.0 - TAIL)), len(data.label_N)
    with Stopwatch() as watch:
        tail = {each: fitted_auc(features, data.label_N, each, cut, data.num_train) for each in INVERSE_L2}
        chosen = max(tail, key=tail.__getitem__)
        held_out = fitted_auc(features, data.label_N, chosen, data.num_train, end)
    default = fitted_auc(features, data.label_N, 1.0, data.num_train, end)
    report(
        data.num_train,
        watch,
        auc=held_out,
        auc_of_default=default,
        aucs_of_tail=tail,
        model=f"C {chosen}, chosen on the tail of the training part",
        split=data.split,
        versions={"scikit-learn": sklearn.__version__},
    )


if __name__ == "__main__":
    main()
