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
        match &mut self.run {
            None => {
                if let Err(error) = job.check() {
                    return refused(error.to_string());
                }
                self.tell(Happening::JobTaken {
                    units: job.units.len(),
                    passes: job.passes.len(),
                });
                self.run = Some(Run::new(job.clone()));
            }
            Some(_) if !differences.is_empty() => return differing(differences),
            Some(run) => run.job.trainers = job.trainers,
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
        let is_first = !self.has_agreed && !self.is_over();
        let Some(record) = self.committed.run.clone().filter(|_| is_first && can_follow) else {
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
