"""Downloads what a small HDFS is made of, from Maven Central, and checks it."""

from __future__ import annotations

import hashlib
import os
import sys
import urllib.request
from pathlib import Path

CENTRAL = os.environ.get("MAVEN_URL", "https://repo1.maven.org/maven2")
JARS = {
    "org/apache/hadoop/hadoop-client-minicluster/3.4.1/hadoop-client-minicluster-3.4.1.jar": (
        "5b90be54a39d856f237a4530e25f62aea4b67c180c73b5cfb1aff35c502b2d29"
    ),
    "org/apache/hadoop/hadoop-client-runtime/3.4.1/hadoop-client-runtime-3.4.1.jar": (
        "f6a800a159f918670db533606d33560d6c13b7e13f14eda493280ae33b9eeb2f"
    ),
    "org/apache/hadoop/hadoop-client-api/3.4.1/hadoop-client-api-3.4.1.jar": (
        "a964d4daa054c9615bbafb4553efbb140fa7fb9ac6f358a24393f183a5703438"
    ),
    "junit/junit/4.13.2/junit-4.13.2.jar": (
        "8e495b634469d64fb8acfa3495a065cbacc8a0fff55ce1e31007be4c16dc57d3"
    ),
    "org/mockito/mockito-core/4.11.0/mockito-core-4.11.0.jar": (
        "4b909690cab288c761eb94c0bf0e814496cf3921d8affac84cd87774530351e5"
    ),
    "org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar": (
        "d3ef575e3e4979678dc01bf1dcce51021493b4d11fb7f1be8ad982877c16a1c0"
    ),
    "org/slf4j/slf4j-simple/1.7.36/slf4j-simple-1.7.36.jar": (
        "2f39bed943d624dfa8f4102d0571283a10870b6aa36f197a8a506f147010c10f"
    ),
    "commons-logging/commons-logging/1.2/commons-logging-1.2.jar": (
        "daddea1ea0be0f56978ab3006b8ac92834afeefbd9b7e4e6316fca57df0fa636"
    ),
}


def fetch(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path, digest in JARS.items():
        target = folder / Path(path).name
        if target.is_file():
            continue
        with urllib.request.urlopen(f"{CENTRAL}/{path}") as answer:
            data = answer.read()
        if hashlib.sha256(data).hexdigest() != digest:
            sys.exit(f"{CENTRAL}/{path} is not what it should be")
        partial = target.with_suffix(".partial")
        partial.write_bytes(data)
        partial.rename(target)


if __name__ == "__main__":
    fetch(Path(sys.argv[1]))
