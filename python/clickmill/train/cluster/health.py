"""What a trainer of a cluster tells those who scrape it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clickmill.train.bound import Stages

if TYPE_CHECKING:
    from clickmill.monitoring import Monitoring
    from clickmill.train.cluster.meter import Meter

Message = dict[str, Any]


def tell_health(monitoring: Monitoring, meter: Meter, statistics: Message) -> None:
    """Make the numbers what they are now; `statistics` as they go with a heartbeat."""
    monitoring.total("clickmill_trainer_samples_total", "Samples trained.", statistics["samples"])
    monitoring.total("clickmill_trainer_batches_total", "Batches trained.", statistics["batches"])
    monitoring.gauge(
        "clickmill_trainer_samples_per_second",
        "Samples trained a second, of late.",
        statistics["samples_per_s"],
    )
    monitoring.total("clickmill_trainer_sent_bytes_total", "Bytes to servers.", statistics["bytes_sent"])
    monitoring.total(
        "clickmill_trainer_received_bytes_total", "Bytes from servers.", statistics["bytes_received"]
    )
    monitoring.gauge(
        "clickmill_trainer_queue_batches",
        "Batches whose rows are here and that have not been pushed.",
        meter.queue(),
    )
    stages = Stages()
    stages.add(meter.stopwatch.totals())
    for stage, seconds in stages.seconds.items():
        words = "Time of the thread that trains, by stage."
        monitoring.total("clickmill_trainer_stage_seconds_total", words, seconds, stage=stage)
