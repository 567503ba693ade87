//! Trainers that want to take part: they bring the job, or the one that the run has.

use crate::committed::RunRecord;
use crate::coordinator::{Coordinator, Phase};
use crate::event::Happening;
use crate::job::Job;
use crate::message::{Reply, RequestId};
use crate::requests::Ask;
use crate::run::Run;

impl Coordinator {
    pub(crate) fn join(&mut self, from: RequestId, job: &Job, name: String) -> Option<Reply> {
        let refused = |reason| {
            Some(Reply::Refused {
                reason,
                may_join: false,
            })
        };
        let differing = |differences: Vec<String>| {
            refused(format!(
                "the job differs from that of the run: {}",
                differences.join("; ")
            ))
        };
        let differences = self.disagreement(job);
        if self.committed.is_over && matches!(self.phase, Phase::Gathering { .. }) {
            self.end_old_run();
        }
        if let Phase::Ending(ending) = &mut self.phase
            && ending.is_old()
            && !differences.is_empty()
        {
            ending.told_trainer(from.connection, job.trainers);
            return differing(differences);
        }
        if self.is_over() {
            self.told_trainer(from, job.trainers);
            return Some(Reply::End {
                summary: self.summary(),
            });
        }
        if !self.has_agreed
            && differences.is_empty()
            && let Err(error) = job.check()
        {
            return refused(error.to_string());
        }
        match &mut self.run {
            None => {
                self.tell(Happening::JobTaken {
                    units: job.units.len(),
                    passes: job.passes.len(),
                });
                self.run = Some(Run::new(job.clone()));
            }
            Some(_) if !differences.is_empty() => return differing(differences),
            // The first one of a life says how it goes on; who comes later only, how many there are.
            Some(run) if self.has_agreed => run.job.trainers = job.trainers,
            Some(run) => run.job.adapt(job),
        }
        self.has_agreed = true;
        self.keep(from, Ask::Join { name })
    }

    /// In what `job` is another than that of the run, by name. The first one of a life may have more passes than were
    /// committed, or fewer of those that have not begun: it makes them the run's.
    fn disagreement(&mut self, job: &Job) -> Vec<String> {
        let Some(run) = &self.run else {
            return Vec::new();
        };
        let mut differences = run.job.differences(job);
        let (here, there) = (run.job.passes.len(), job.passes.len());
        let can_follow = there >= run.num_begun();
        if here == there || (can_follow && run.has_stopped_early()) {
            return differences;
        }
        let may_add = !self.has_agreed && can_follow;
        // Another one was refused before, for something else: that is what is wrong with this one too.
        if may_add && self.is_over() && self.committed.run.is_some() && !differences.is_empty() {
            return differences;
        }
        let is_first = may_add && !self.is_over();
        let Some(record) = self.committed.run.clone().filter(|_| is_first) else {
            differences.push(format!("`runner.epochs`: `{there}`, not `{here}`"));
            return differences;
        };
        if let Err(error) = job.check() {
            differences.push(error.to_string());
        }
        if differences.is_empty() {
            self.replan(record, job);
        }
        differences
    }

    /// Nobody has trained in this life: what is there is what was committed.
    fn replan(&mut self, record: RunRecord, job: &Job) {
        let mut committed = Run::restore(record);
        committed.replan(job);
        // The commit file follows with the next snapshot: before it, nothing of the added passes is durable either.
        self.committed.is_over = false;
        self.committed.run = Some(committed.record());
        if let Some(run) = &mut self.run {
            run.replan(job);
        }
        self.tell(Happening::JobTaken {
            units: committed.job.units.len(),
            passes: committed.job.passes.len(),
        });
    }

    /// One that wanted to join hears that the run is over.
    pub(crate) fn told_trainer(&mut self, from: RequestId, expected: u32) {
        if let Phase::Ending(ending) = &mut self.phase {
            ending.told_trainer(from.connection, expected);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::event::{Action, Event};
    use crate::job::Strategy;
    use crate::job::tests::job;
    use crate::message::Request;
    use crate::settings::Settings;

    /// A run of one pass, as it was committed.
    fn restored(is_over: bool) -> Coordinator {
        let mut coordinator = Coordinator::new(Settings::default(), None);
        let run = Run::new(job(Strategy::Sync, 2, 0, 1));
        coordinator.committed.run = Some(run.record());
        coordinator.committed.is_over = is_over;
        coordinator.run = Some(run);
        coordinator.phase = Phase::Gathering {
            since: Duration::ZERO,
        };
        coordinator
    }

    fn refusal(coordinator: &mut Coordinator, connection: u64, job: Job) -> Option<String> {
        let request = Request::Join {
            job: Box::new(job),
            name: "trainer".to_owned(),
        };
        let from = RequestId {
            connection,
            number: 1,
        };
        let actions = coordinator.handle(Event::Request { from, request }, Duration::from_secs(1));
        actions.into_iter().find_map(|action| {
            let Action::Reply { reply, .. } = action else {
                return None;
            };
            if let Reply::Refused { reason, .. } = reply {
                Some(reason)
            } else {
                None
            }
        })
    }

    #[test]
    fn whoever_is_refused_hears_what_is_wrong_and_nothing_else() {
        let mut coordinator = restored(true);
        let other = Job {
            tables: json!([{ "dim": 9, "optimizer": "adagrad" }]),
            trainers: 2,
            ..job(Strategy::Sync, 2, 0, 3)
        };
        let expected = "the job differs from that of the run: `tables.0.dim`: `9`, not `8`";
        for connection in [7, 8] {
            let reason = refusal(&mut coordinator, connection, other.clone());
            assert_eq!(reason.as_deref(), Some(expected));
        }
    }

    #[test]
    fn the_first_trainer_of_a_life_says_how_it_goes_on() {
        let mut coordinator = restored(false);
        let with = |trainers, snapshot_interval_ms| Job {
            trainers,
            snapshot_interval_ms,
            ..job(Strategy::Sync, 2, 0, 1)
        };
        assert_eq!(refusal(&mut coordinator, 7, with(4, 5)), None);
        assert_eq!(refusal(&mut coordinator, 8, with(3, 6)), None);
        let run = coordinator.run.as_ref().expect("it was restored");
        assert_eq!((run.job.trainers, run.job.snapshot_interval_ms), (3, 5));
    }
}
