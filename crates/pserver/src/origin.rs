//! What a run starts from where there is no snapshot: nothing, or the checkpoint of another run.
//!
//! Every server reads the files of the checkpoint itself, the rows of its buckets and its slice of the dense
//! part, each time that it starts without a snapshot.

use std::fs;
use std::path::{Path, PathBuf};

use clickmill_table::dense::DenseOptimizer;
use clickmill_table::{Table, TableConfig};
use safetensors::tensor::SafeTensors;
use serde::Deserialize;

use crate::Error;
use crate::job::{Contents, DenseEntry};
use crate::model::{DenseSlice, Model};
use crate::snapshot::DenseParts;

/// The rows that a table starts with.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TableOrigin {
    /// A full file, then differences to it, in order.
    files: Vec<PathBuf>,
    /// Weights alone are taken, for an optimizer that starts anew with this learning rate. None: its state as well.
    #[serde(default)]
    learning_rate: Option<f32>,
}

impl TableOrigin {
    fn load(&self, config: &TableConfig, keep: impl Fn(u64) -> bool) -> Result<Table, Error> {
        let loaded = match self.learning_rate {
            None => Table::load_parts(std::slice::from_ref(&self.files), Some(config), keep),
            Some(rate) => Table::load_weights(&self.files, config.clone(), rate, keep),
        };
        loaded.map_err(|error| {
            if let clickmill_table::Error::Io { file, source } = &error {
                return unreadable(file, source);
            }
            error.into()
        })
    }
}

impl Contents {
    /// Parameters of a server at the start of a run: rows that `keep` wants, and dense numbers from `begin` to `end`.
    pub(crate) fn start(&self, keep: impl Fn(u64) -> bool, begin: usize, end: usize) -> Result<Model, Error> {
        let dense = self.dense.start(begin, end)?;
        let tables = self.tables.iter().map(|entry| match &entry.initial {
            None => Ok(Table::new(entry.config.clone())?),
            Some(origin) => origin.load(&entry.config, &keep),
        });
        Ok(Model::with_tables(
            tables.collect::<Result<_, Error>>()?,
            dense,
            0,
        ))
    }
}

impl DenseEntry {
    fn start(&self, begin: usize, end: usize) -> Result<DenseSlice, Error> {
        let values = self.initial()?;
        let Some(file) = &self.initial_state else {
            return Ok(DenseSlice::new(self.rule, values[begin..end].to_vec()));
        };
        let bytes = fs::read(file).map_err(|error| unreadable(file, &error))?;
        let (optimizer_step, states) = self.read_state(&bytes).map_err(|reason| Error::File {
            file: file.clone(),
            reason,
        })?;
        let parts = DenseParts {
            values,
            states,
            optimizer_step,
            step: 0,
        };
        parts.slice(self.rule, begin, end)
    }

    /// Steps of the optimizer, and each kind of its state over all parameters. The file has an array for each parameter and
    /// kind, by number.
    fn read_state(&self, bytes: &[u8]) -> Result<(u64, Vec<Vec<f32>>), String> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let step = metadata
            .metadata()
            .as_ref()
            .and_then(|all| all.get("step")?.parse().ok())
            .ok_or("no number `step` in its metadata")?;
        let kinds = DenseOptimizer::new(self.rule, vec![0]).states().len();
        let mut states = vec![Vec::with_capacity(self.size); kinds];
        let mut names = tensors.names();
        names.sort_unstable();
        for (place, name) in names.into_iter().enumerate() {
            let tensor = tensors.tensor(name).map_err(|error| error.to_string())?;
            let kind = place
                .checked_rem(kinds)
                .ok_or("it has the state of another optimizer")?;
            let numbers = tensor.data().as_chunks::<4>().0.iter();
            states[kind].extend(numbers.map(|bytes| f32::from_le_bytes(*bytes)));
        }
        if let Some(other) = states.iter().find(|state| state.len() != self.size) {
            return Err(format!(
                "{} numbers of a kind of state for {} dense parameters: it is of another model or optimizer",
                other.len(),
                self.size
            ));
        }
        Ok((step, states))
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    Error::File {
        file: file.to_owned(),
        reason: format!(
            "{error}; the checkpoint that a run starts from must lie in a folder that all pservers can read, \
             under the same path"
        ),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use clickmill_table::dense::DenseRule;
    use safetensors::tensor::{Dtype, TensorView};
    use serde_json::json;

    use super::*;

    /// Two parameters, of two numbers and of one, with the two kinds of state of Adam.
    fn state(step: &str) -> Vec<u8> {
        let arrays = [vec![1.0, 2.0], vec![10.0, 20.0], vec![3.0], vec![30.0_f32]]
            .map(|array| -> Vec<u8> { array.into_iter().flat_map(f32::to_le_bytes).collect() });
        let views = arrays.iter().enumerate().map(|(place, bytes)| {
            let view = TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes).unwrap();
            (format!("{place:05}"), view)
        });
        let metadata = [("step".to_owned(), step.to_owned())].into_iter().collect();
        safetensors::serialize(views, Some(metadata)).unwrap()
    }

    fn entry(rule: &str, size: usize) -> DenseEntry {
        let rule: DenseRule = DenseRule::from_json(rule).unwrap();
        DenseEntry::deserialize(json!({ "rule": rule, "size": size, "initial": "" })).unwrap()
    }

    const ADAM: &str = r#"{"kind": "adam"}"#;

    #[test]
    fn kinds_of_state_are_put_together_over_all_parameters() {
        let (step, states) = entry(ADAM, 3).read_state(&state("7")).unwrap();
        assert_eq!(step, 7);
        assert_eq!(states, [[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]);
    }

    #[test]
    fn the_state_of_another_model_is_refused() {
        let refused = entry(ADAM, 4).read_state(&state("7")).unwrap_err();
        assert!(refused.contains("of another model or optimizer"), "{refused}");
        assert!(entry(ADAM, 3).read_state(&state("soon")).is_err());
    }
}
