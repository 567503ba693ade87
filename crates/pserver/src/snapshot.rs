//! A server's part of a snapshot: one file a table, one for its slice of the dense part.
//!
//! ```text
//! <folder>/snapshot-00000012/<table>.0003.rows      rows of table number <table> on server 3
//! <folder>/snapshot-00000012/dense.0003.safetensors its slice: values, optimizer state
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clickmill_coordinator::{PartFile, SnapshotFiles};
use clickmill_table::dense::{DenseOptimizer, DenseRule};
use clickmill_table::{FrozenSave, Table, TableConfig};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use xxhash_rust::xxh3::xxh3_128;

use crate::Error;
use crate::engine::Engine;
use crate::life::Life;
use crate::model::DenseSlice;

/// Rows that are looked at with the parameters locked: about a millisecond.
const PIECE_ROWS: u64 = 50_000;

/// What was frozen at a fence and is being written, or waits for it.
pub(crate) struct Frozen {
    pub snapshot: u64,
    saves: Vec<FrozenSave>,
    dense: Vec<u8>,
    pub index: u32,
}

pub(crate) fn folder_of(folder: &Path, snapshot: u64) -> PathBuf {
    folder.join(format!("snapshot-{snapshot:08}"))
}

/// Removes the files of a server, or of all, and the folder when it is empty then. Litter at worst: nobody needs the
/// space to go on.
pub(crate) fn remove(folder: &Path, snapshot: u64, index: Option<u32>) {
    let folder = folder_of(folder, snapshot);
    let Ok(files) = fs::read_dir(&folder) else {
        return;
    };
    let part = index.map(|index| format!(".{index:04}."));
    for file in files.flatten() {
        let (name, part) = (file.file_name(), part.as_deref());
        if part.is_none_or(|part| name.to_str().is_some_and(|name| name.contains(part))) {
            let _ = fs::remove_file(file.path());
        }
    }
    let _ = fs::remove_dir(&folder);
}

fn failed(file: &Path) -> impl Fn(std::io::Error) -> Error + '_ {
    move |error| Error::File {
        file: file.to_owned(),
        reason: error.to_string(),
    }
}

impl Frozen {
    /// Keeps the parameters as they are now; `bases` are the ids of the tables' saves to build on.
    pub(crate) fn new(
        life: &mut Life,
        folder: &Path,
        snapshot: u64,
        index: u32,
        bases: Option<&[String]>,
    ) -> Result<Self, Error> {
        let folder = folder_of(folder, snapshot);
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let mut saves = Vec::with_capacity(life.model.tables.len());
        for (number, table) in life.model.tables.iter_mut().enumerate() {
            let path = folder.join(format!("{number}.{index:04}.rows"));
            let base = bases.map(|bases| bases[number].as_str());
            saves.push(FrozenSave::begin(table, &path, base)?);
        }
        let slice = &life.model.dense;
        let dense = pack_dense(slice, life.model.step)?;
        Ok(Self {
            snapshot,
            saves,
            dense,
            index,
        })
    }

    /// Writes everything while training goes on; gives the files, and the ids that increments build on.
    pub(crate) fn write(
        mut self,
        engine: &Engine,
        folder: &Path,
    ) -> Result<(Vec<PartFile>, Vec<String>), Error> {
        let place = folder_of(folder, self.snapshot);
        let name_in = |name: &str| format!("snapshot-{:08}/{name}", self.snapshot);
        let mut files = Vec::new();
        let mut ids = Vec::new();
        for (number, mut save) in std::mem::take(&mut self.saves).into_iter().enumerate() {
            loop {
                let has_more = engine.with(|life| {
                    let table = table_of(life, number)?;
                    Ok(save.piece(table, PIECE_ROWS)?)
                })?;
                save.write()?;
                if !has_more {
                    break;
                }
            }
            save.seal()?;
            let report = engine.with(|life| Ok(save.finish(table_of(life, number)?)?))?;
            files.push(PartFile {
                server: self.index,
                name: name_in(&format!("{number}.{:04}.rows", self.index)),
                digest: report.id.clone(),
                bytes: report.bytes,
            });
            ids.push(report.id);
        }
        let name = format!("dense.{:04}.safetensors", self.index);
        write_durably(&place.join(&name), &self.dense)?;
        files.push(PartFile {
            server: self.index,
            name: name_in(&name),
            digest: format!("{:032x}", xxh3_128(&self.dense)),
            bytes: self.dense.len() as u64,
        });
        Ok((files, ids))
    }
}

fn table_of(life: &mut Life, number: usize) -> Result<&mut Table, Error> {
    life.model
        .tables
        .get_mut(number)
        .ok_or_else(|| Error::protocol("the tables have changed while they were written"))
}

/// Rows of all servers' parts that `keep` wants, and the whole dense part.
pub(crate) struct Loaded {
    pub tables: Vec<Table>,
    pub dense: DenseParts,
}

pub(crate) fn load(
    folder: &Path,
    files: &SnapshotFiles,
    configs: &[TableConfig],
    keep: impl Fn(u64) -> bool,
) -> Result<Loaded, Error> {
    let mut tables = Vec::with_capacity(configs.len());
    for (number, config) in configs.iter().enumerate() {
        tables.push(Table::load_parts(
            &chains(folder, files, number),
            Some(config),
            &keep,
        )?);
    }
    Ok(Loaded {
        tables,
        dense: read_dense(folder, files)?,
    })
}

/// For each server that wrote the snapshot, its files of a table: the full one first.
pub(crate) fn chains(folder: &Path, files: &SnapshotFiles, number: usize) -> Vec<Vec<PathBuf>> {
    let mut chains: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
    for layer in &files.layers {
        for file in &layer.files {
            let name = file.name.rsplit('/').next().unwrap_or_default();
            if name == format!("{number}.{:04}.rows", file.server) {
                chains
                    .entry(file.server)
                    .or_default()
                    .push(folder.join(&file.name));
            }
        }
    }
    chains.into_values().collect()
}

/// All dense parameters and their optimizer's state, put together from the slices of all servers.
pub(crate) struct DenseParts {
    pub values: Vec<f32>,
    pub states: Vec<Vec<f32>>,
    pub optimizer_step: u64,
    /// Updates of the run.
    pub step: u64,
}

impl DenseParts {
    /// The slice from `begin` to `end`, ready to be trained on.
    pub(crate) fn slice(&self, rule: DenseRule, begin: usize, end: usize) -> Result<DenseSlice, Error> {
        let mut slice = DenseSlice::new(rule, self.values[begin..end].to_vec());
        let states = self.states.iter().map(|state| state[begin..end].to_vec());
        slice.optimizer.load(self.optimizer_step, states.collect())?;
        Ok(slice)
    }
}

pub(crate) fn read_dense(folder: &Path, files: &SnapshotFiles) -> Result<DenseParts, Error> {
    let last = files.layers.last();
    let mut parts: Vec<&PartFile> = last
        .into_iter()
        .flat_map(|layer| &layer.files)
        .filter(|file| file.name.ends_with(".safetensors"))
        .collect();
    parts.sort_by_key(|file| file.server);
    let mut dense = DenseParts {
        values: Vec::new(),
        states: Vec::new(),
        optimizer_step: 0,
        step: 0,
    };
    for part in parts {
        let path = folder.join(&part.name);
        let bytes = fs::read(&path).map_err(failed(&path))?;
        let found = format!("{:032x}", xxh3_128(&bytes));
        if found != part.digest {
            return Err(Error::File {
                file: path,
                reason: format!("digest {found}, expected {}: the file is damaged", part.digest),
            });
        }
        take_dense(&mut dense, &bytes, &path)?;
    }
    Ok(dense)
}

fn take_dense(dense: &mut DenseParts, bytes: &[u8], path: &Path) -> Result<(), Error> {
    let wrong = |reason: String| Error::File {
        file: path.to_owned(),
        reason,
    };
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| wrong(error.to_string()))?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| wrong(error.to_string()))?;
    let number = |key: &str| {
        let found = metadata
            .metadata()
            .as_ref()
            .and_then(|all| all.get(key)?.parse().ok());
        found.ok_or_else(|| wrong(format!("no number `{key}` in its metadata")))
    };
    dense.optimizer_step = number("optimizer_step")?;
    dense.step = number("step")?;
    let num_states = number("states")? as usize;
    let floats = |name: &str| -> Result<Vec<f32>, Error> {
        let tensor = tensors.tensor(name).map_err(|error| wrong(error.to_string()))?;
        let chunks = tensor.data().as_chunks::<4>().0;
        Ok(chunks.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    };
    dense.values.extend(floats("values")?);
    dense.states.resize(num_states, Vec::new());
    for (index, state) in dense.states.iter_mut().enumerate() {
        state.extend(floats(&format!("state.{index}"))?);
    }
    Ok(())
}

fn pack_dense(slice: &DenseSlice, step: u64) -> Result<Vec<u8>, Error> {
    let optimizer: &DenseOptimizer = &slice.optimizer;
    let bytes_of =
        |floats: &[f32]| -> Vec<u8> { floats.iter().flat_map(|float| float.to_le_bytes()).collect() };
    let mut arrays = vec![("values".to_owned(), bytes_of(&slice.values))];
    for (index, state) in optimizer.states().iter().enumerate() {
        arrays.push((format!("state.{index}"), bytes_of(state)));
    }
    let length = slice.values.len();
    let views = arrays
        .iter()
        .map(|(name, bytes)| Ok((name.clone(), TensorView::new(Dtype::F32, vec![length], bytes)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>();
    let metadata = [
        ("step".to_owned(), step.to_string()),
        ("optimizer_step".to_owned(), optimizer.step_count().to_string()),
        ("states".to_owned(), optimizer.states().len().to_string()),
    ];
    views
        .and_then(|views| safetensors::serialize(views, Some(metadata.into_iter().collect())))
        .map_err(|error| Error::protocol(format!("dense parameters: {error}")))
}

/// Beside its place first, then synced and renamed.
pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let write = || {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    };
    write().map_err(|error| {
        // The first error is the one to tell; a file left over is only litter.
        let _ = fs::remove_file(&partial);
        failed(path)(error)
    })
}
