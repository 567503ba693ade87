//! The job: all that a cluster has to know of a run, brought by the first trainer.
//!
//! The coordinator reads the part that is typed here; tables, dense part and metrics go through it to the
//! servers as they came. Every later trainer must bring a job that means the same, or it would train something
//! else; how the data is cut, and in how many lanes it is trained, stays as it was when the run began.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::reading::Limits;

/// How gradients of several trainers meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    Sync,
    Async,
    HalfAsync,
    Geo,
    Hybrid,
}

/// A piece of the data that is leased as a whole: a file or a range of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// What people call it in logs: `part-0007.gz` or `part-0007.gz[64M..128M]`.
    pub name: String,
    /// What the reader of a trainer needs to open it; opaque here.
    pub input: Value,
    /// What it was cut from, by any name: passes that are added to a run read the pieces that are there.
    #[serde(default)]
    pub source: String,
}

/// One run over data: places in [`Job::units`], in the order in which they are leased or dealt to lanes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pass {
    pub train: Vec<u32>,
    /// Empty: the pass is not validated.
    pub validation: Vec<u32>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    pub strategy: Strategy,
    /// Number of lanes of `sync` and `hybrid`; fixed for the run, however many trainers there are. Else unused.
    pub lanes: u32,
    /// Trainers that are expected at the start. Only a hint of when to begin.
    pub trainers: u32,
    pub units: Vec<Unit>,
    pub passes: Vec<Pass>,
    pub tables: Value,
    pub dense: Value,
    pub metrics: Value,
    /// Rows are evicted at the end of every pass.
    pub evicts: bool,
    /// A duty `decide` with the metrics of the pass comes after every pass.
    pub decides: bool,
    /// A duty `publish` comes with the snapshot after every pass.
    pub publishes: bool,
    /// Between snapshots within a pass. 0: only at the end of a pass.
    pub snapshot_interval_ms: u64,
    /// Every so many snapshots one is full, the others are increments. 1: all are full.
    pub full_every: u32,
    /// Rows are also evicted after so many batches of a pass. 0: only at its end.
    #[serde(default)]
    pub evict_every: u64,
    /// A duty `publish` comes with a snapshot after so many batches of a pass. 0: never within one.
    #[serde(default)]
    pub publish_every: u64,
    /// A pass ends after so many batches. 0: with its data.
    #[serde(default)]
    pub max_batches: u64,
    /// Bad lines that a pass may have, in training and in validation.
    #[serde(default)]
    pub max_bad_lines: Limits,
    /// Whatever else all trainers have to agree on: settings, and the files that the units are cut from.
    pub agreement: Value,
}

impl Job {
    pub fn has_lanes(&self) -> bool {
        matches!(self.strategy, Strategy::Sync | Strategy::Hybrid)
    }

    /// What is wrong with it, before anything is built on it.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |reason: String| Err(Error::Job { reason });
        if self.passes.is_empty() {
            return wrong("`passes` is empty".into());
        }
        if self.has_lanes() && self.lanes == 0 {
            return wrong("`lanes` is 0 and `strategy` is one with rounds".into());
        }
        if self.full_every == 0 {
            return wrong("`full_every` is 0; 1 makes every snapshot a full one".into());
        }
        for (pass, plan) in self.passes.iter().enumerate() {
            for unit in plan.train.iter().chain(&plan.validation) {
                if *unit as usize >= self.units.len() {
                    return wrong(format!(
                        "pass {pass} names unit {unit}; there are {}",
                        self.units.len()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Takes all passes after the first `num_kept` from `other`: its order of the data, in the pieces that are here.
    pub(crate) fn replan(&mut self, other: &Self, num_kept: usize) {
        let first = |list: fn(&Pass) -> &Vec<u32>| -> Vec<u32> {
            let mut lists = self.passes.iter().map(list);
            lists.find(|units| !units.is_empty()).cloned().unwrap_or_default()
        };
        let (train, validation) = (first(|pass| &pass.train), first(|pass| &pass.validation));
        self.passes.truncate(num_kept);
        for pass in other.passes.iter().skip(num_kept) {
            let train = self.adopt(other, &pass.train, &train);
            let validation = self.adopt(other, &pass.validation, &validation);
            self.passes.push(Pass { train, validation });
        }
    }

    /// `units` of `other` as pieces of this job: those of `known` that are of the same source, or new ones.
    fn adopt(&mut self, other: &Self, units: &[u32], known: &[u32]) -> Vec<u32> {
        let mut adopted = Vec::new();
        let mut sources = Vec::new();
        for unit in units.iter().map(|unit| &other.units[*unit as usize]) {
            let is_here = |place: &&u32| self.units[**place as usize].source == unit.source;
            let here: Vec<u32> = known.iter().filter(is_here).copied().collect();
            if here.is_empty() {
                let place = self.units.iter().position(|own| own == unit);
                adopted.push(place.unwrap_or(self.units.len()) as u32);
                if place.is_none() {
                    self.units.push(unit.clone());
                }
            } else if !sources.contains(&&unit.source) {
                sources.push(&unit.source);
                adopted.extend(here);
            }
        }
        adopted
    }

    /// Keys in which `other` differs, with both values, in the order of the keys; empty when the jobs are equal.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut other = Self {
            lanes: self.lanes,
            units: self.units.clone(),
            passes: self.passes.clone(),
            ..other.clone()
        };
        other.adapt(self);
        compare("", &value_of(self), &value_of(&other), &mut found);
        // Settings have the names that people gave them.
        let named = |words: String| words.replacen("`agreement.settings.", "`", 1);
        found.into_iter().map(named).collect()
    }

    /// Takes from `other` what may change while a run goes on: nothing of it is in the result.
    pub(crate) fn adapt(&mut self, other: &Self) {
        self.trainers = other.trainers;
        self.snapshot_interval_ms = other.snapshot_interval_ms;
        self.full_every = other.full_every;
        self.max_bad_lines = other.max_bad_lines;
    }
}

/// More keys than this tell nobody more.
const MAX_DIFFERENCES: usize = 8;

fn value_of(job: &Job) -> Value {
    serde_json::to_value(job).expect("a job has only text keys")
}

fn compare(path: &str, here: &Value, there: &Value, found: &mut Vec<String>) {
    if here == there || found.len() >= MAX_DIFFERENCES {
        return;
    }
    match (here, there) {
        (Value::Object(here), Value::Object(there)) => {
            let mut keys: Vec<&String> = here.keys().chain(there.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let absent = Value::Null;
                let (a, b) = (
                    here.get(key).unwrap_or(&absent),
                    there.get(key).unwrap_or(&absent),
                );
                compare(&join(path, key), a, b, found);
            }
        }
        (Value::Array(here), Value::Array(there)) if here.len() == there.len() => {
            for (place, (a, b)) in here.iter().zip(there).enumerate() {
                compare(&join(path, &place.to_string()), a, b, found);
            }
        }
        (Value::Array(here), Value::Array(there)) => {
            found.push(format!("`{path}`: {} entries, not {}", there.len(), here.len()));
        }
        _ => found.push(format!("`{path}`: `{}`, not `{}`", short(there), short(here))),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// `num_passes` passes over `train` units and then `validation` more of them.
    pub(crate) fn job(strategy: Strategy, train: u32, validation: u32, num_passes: usize) -> Job {
        let unit = |number| Unit {
            name: format!("part-{number}"),
            input: json!({ "path": number }),
            source: format!("file-{}", number / 2),
        };
        let pass = Pass {
            train: (0..train).collect(),
            validation: (train..train + validation).collect(),
        };
        Job {
            strategy,
            lanes: 3,
            trainers: 1,
            units: (0..train + validation).map(unit).collect(),
            passes: vec![pass; num_passes],
            tables: json!([{ "dim": 8, "optimizer": "adagrad" }]),
            dense: json!({ "size": 100 }),
            metrics: json!(["auc"]),
            evicts: true,
            decides: true,
            publishes: true,
            snapshot_interval_ms: 20_000,
            full_every: 3,
            evict_every: 0,
            publish_every: 0,
            max_batches: 0,
            max_bad_lines: Limits::default(),
            agreement: json!({}),
        }
    }

    #[test]
    fn differing_keys_are_named_with_both_values() {
        let mut run = job(Strategy::Async, 4, 1, 2);
        run.agreement = json!({ "settings": { "runner": { "seed": 1 } } });
        let mut own = run.clone();
        own.tables = json!([{ "dim": 16, "optimizer": "adagrad" }]);
        own.agreement = json!({ "files": 1, "settings": { "runner": { "seed": 2 } } });
        assert_eq!(
            run.differences(&own),
            [
                "`agreement.files`: `1`, not `null`",
                "`runner.seed`: `2`, not `1`",
                "`tables.0.dim`: `16`, not `8`",
            ]
        );
    }

    #[test]
    fn what_is_not_in_the_result_may_differ() {
        let run = job(Strategy::Sync, 4, 1, 2);
        let later = Job {
            trainers: 9,
            lanes: 9,
            snapshot_interval_ms: 1,
            full_every: 7,
            ..job(Strategy::Sync, 36, 9, 2)
        };
        assert!(run.differences(&later).is_empty());
    }

    #[test]
    fn added_passes_read_the_pieces_that_are_there_in_the_order_of_the_new_job() {
        let mut run = job(Strategy::Sync, 4, 1, 1);
        let mut longer = job(Strategy::Sync, 4, 1, 2);
        // Cut otherwise: one piece a file, and another order in the second pass.
        longer.units.remove(3);
        longer.units.remove(1);
        longer.passes[0].train = vec![0, 1];
        longer.passes[1].train = vec![1, 0];
        longer.passes[1].validation = vec![2];
        run.replan(&longer, 1);
        assert_eq!(run.units, job(Strategy::Sync, 4, 1, 1).units);
        assert_eq!(run.passes[0].train, [0, 1, 2, 3]);
        assert_eq!(run.passes[1].train, [2, 3, 0, 1]);
        assert_eq!(run.passes[1].validation, [4]);
    }

    #[test]
    fn an_added_pass_may_be_the_first_that_is_validated() {
        let mut run = job(Strategy::Async, 2, 0, 1);
        run.replan(&job(Strategy::Async, 2, 1, 2), 1);
        assert_eq!(run.passes[1].validation, [2]);
        assert_eq!(run.units[2].name, "part-2");
        run.check().unwrap();
    }

    #[test]
    fn a_long_list_of_differences_is_cut() {
        let run = job(Strategy::Async, 40, 0, 1);
        let mut own = run.clone();
        own.agreement = (0..40)
            .map(|number| (format!("key {number}"), json!(number)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        assert_eq!(run.differences(&own).len(), MAX_DIFFERENCES);
    }

    #[test]
    fn a_pass_with_an_unknown_unit_is_refused() {
        let mut own = job(Strategy::Async, 4, 0, 2);
        own.passes[1].train.push(4);
        assert_eq!(
            own.check().unwrap_err().to_string(),
            "the job cannot be run: pass 1 names unit 4; there are 4"
        );
    }

    #[test]
    fn a_job_keeps_its_meaning_as_text() {
        let own = job(Strategy::HalfAsync, 2, 1, 1);
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(serde_json::from_str::<Job>(&text).unwrap(), own);
        assert!(serde_json::from_str::<Job>(&text.replacen("lanes", "lane", 1)).is_err());
    }
}
