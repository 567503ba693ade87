//! The schema: what a sample means.
//!
//! One object names the slots of a sample, how each is made from a raw field, which tables hold its rows
//! and how several rows of one slot are pooled. It is stored with every checkpoint as JSON; trainer and
//! predictor build the same [`Schema`] from that text.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::sign::vocabulary_seed;

/// Newest version that this build writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

/// Longest multi-valued slot: a wrong limit must not turn into a huge allocation.
pub const MAX_LENGTH: u32 = 65_536;

/// Widest row of a table.
pub const MAX_DIM: u32 = 4_096;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    pub version: u32,
    pub slots: Vec<Slot>,
    pub tables: Vec<TableSpec>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Slot {
    Sparse(SparseSlot),
    Dense(DenseSlot),
    Label(LabelSlot),
    Weight(WeightSlot),
    Group(GroupSlot),
}

/// A slot of signs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseSlot {
    pub name: String,
    /// Raw field that it is made from; the slot's name where absent. Not used by a cross.
    #[serde(default)]
    pub column: Option<String>,
    /// Names of two or more sparse slots whose signs are crossed, in place of a raw field.
    #[serde(default)]
    pub cross: Vec<String>,
    /// Slots of one vocabulary share signs; the slot's name where absent.
    #[serde(default)]
    pub vocabulary: Option<String>,
    #[serde(default)]
    pub sign: SignKind,
    /// The classic fixed-size table: signs are taken modulo this number.
    #[serde(default)]
    pub hash_size: Option<u64>,
    #[serde(default)]
    pub transform: SparseTransform,
    /// Text between the values of a multi-valued field; the empty text splits into single bytes.
    #[serde(default)]
    pub separator: Option<String>,
    #[serde(default)]
    pub pooling: Pooling,
    /// Values kept per sample.
    #[serde(default = "one")]
    pub max_length: u32,
    /// Which values stay when there are more than `max_length`.
    #[serde(default)]
    pub keep: Keep,
    #[serde(default)]
    pub missing: Missing,
    /// Tables that hold a row for each sign of this slot.
    pub tables: Vec<String>,
}

/// A slot of `width` floats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenseSlot {
    pub name: String,
    #[serde(default)]
    pub column: Option<String>,
    #[serde(default = "one")]
    pub width: u32,
    /// Text between the elements where one field holds them all; absent where the field repeats instead.
    #[serde(default)]
    pub separator: Option<String>,
    /// Stands for an empty or absent value, after the transform.
    #[serde(default)]
    pub default: f32,
    #[serde(default)]
    pub transform: DenseTransform,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelSlot {
    pub name: String,
    #[serde(default)]
    pub column: Option<String>,
    #[serde(default)]
    pub transform: LabelTransform,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightSlot {
    pub name: String,
    #[serde(default)]
    pub column: Option<String>,
}

/// The key by which samples are grouped for GAUC: a user, a session, a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSlot {
    pub name: String,
    #[serde(default)]
    pub column: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignKind {
    /// xxh3 of the raw bytes, seeded by the vocabulary.
    #[default]
    Hash,
    /// The value is a decimal u64 that is already a sign.
    Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SparseTransform {
    #[default]
    Identity,
    /// The number of boundaries at or below the value, as the value.
    Bucketise { boundaries: Vec<f32> },
    /// floor(ln(x)^2) above 2, else floor(x): the usual coarse step for counts.
    LogSquare,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum DenseTransform {
    #[default]
    Identity,
    /// (x - min) / (max - min), not clipped; one pair, or one for each element of the slot.
    MinMax { min: Vec<f32>, max: Vec<f32> },
    /// sign(x) * ln(1 + |x|).
    Log1p,
    /// (x - mean) / std, both measured on the data; empty until they have been.
    Standardise {
        #[serde(default)]
        mean: Vec<f32>,
        #[serde(default)]
        std: Vec<f32>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LabelTransform {
    #[default]
    Identity,
    /// 1 at or above the threshold, else 0.
    Threshold { at: f32 },
    /// x * scale + shift.
    Affine { scale: f32, shift: f32 },
    /// 1 where the raw text is one of the values, else 0: for labels that are words.
    OneOf { values: Vec<String> },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    #[default]
    Sum,
    Mean,
    Max,
    /// Not pooled: the model gets the padded sequence and its lengths.
    None,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    #[default]
    First,
    Last,
}

/// What an empty or absent field of a sparse slot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// A value like any other: the sign of the empty text.
    #[default]
    Sign,
    /// No sign at all; the pooled row is zero.
    Skip,
}

/// What a reader of rows must know of a table; how it is trained is no part of the schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    pub name: String,
    /// Width of a row, optimizer state not counted.
    pub dim: u32,
    #[serde(default)]
    pub seed: u64,
    #[serde(default)]
    pub init: Init,
}

/// Distribution of initial rows; every element is a pure function of (seed, sign, position).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Init {
    Zeros,
    Uniform { scale: f32 },
    Normal { std: f32 },
}

impl Default for Init {
    fn default() -> Self {
        Self::Uniform { scale: 0.01 }
    }
}

/// Sparse slots that live in the same tables: their signs are deduplicated together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Positions in `Schema::tables`.
    pub tables: Vec<usize>,
    /// Positions in `Schema::slots`, in their order.
    pub slots: Vec<usize>,
}

fn one() -> u32 {
    1
}

impl Slot {
    pub fn name(&self) -> &str {
        match self {
            Self::Sparse(slot) => &slot.name,
            Self::Dense(slot) => &slot.name,
            Self::Label(slot) => &slot.name,
            Self::Weight(slot) => &slot.name,
            Self::Group(slot) => &slot.name,
        }
    }

    /// Raw field that the slot is made from; none for a cross.
    pub fn column(&self) -> Option<&str> {
        let (name, column) = match self {
            Self::Sparse(slot) if !slot.cross.is_empty() => return None,
            Self::Sparse(slot) => (&slot.name, &slot.column),
            Self::Dense(slot) => (&slot.name, &slot.column),
            Self::Label(slot) => (&slot.name, &slot.column),
            Self::Weight(slot) => (&slot.name, &slot.column),
            Self::Group(slot) => (&slot.name, &slot.column),
        };
        Some(column.as_deref().unwrap_or(name))
    }

    pub fn as_sparse(&self) -> Option<&SparseSlot> {
        if let Self::Sparse(slot) = self {
            Some(slot)
        } else {
            None
        }
    }
}

impl SparseSlot {
    pub fn seed(&self) -> u64 {
        vocabulary_seed(self.vocabulary.as_deref().unwrap_or(&self.name))
    }
}

impl Schema {
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let schema: Self = serde_json::from_str(text).map_err(|error| Error::Json {
            reason: error.to_string(),
        })?;
        schema.check()?;
        Ok(schema)
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a schema holds only strings, numbers and lists")
    }

    /// Total width of the dense slots, in slot order.
    pub fn num_dense(&self) -> usize {
        self.slots
            .iter()
            .map(|slot| {
                if let Slot::Dense(dense) = slot {
                    dense.width as usize
                } else {
                    0
                }
            })
            .sum()
    }

    /// Groups in the order in which their first slot appears.
    pub fn groups(&self) -> Vec<Group> {
        let position: HashMap<&str, usize> = self
            .tables
            .iter()
            .enumerate()
            .map(|(index, table)| (table.name.as_str(), index))
            .collect();
        let mut groups: Vec<Group> = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            let Slot::Sparse(sparse) = slot else { continue };
            let tables: Vec<usize> = sparse.tables.iter().map(|name| position[name.as_str()]).collect();
            match groups.iter_mut().find(|group| group.tables == tables) {
                Some(group) => group.slots.push(index),
                None => groups.push(Group {
                    tables,
                    slots: vec![index],
                }),
            }
        }
        groups
    }

    /// Refuses what cannot mean anything, naming the slot or table and the remedy.
    pub fn check(&self) -> Result<(), Error> {
        if self.version > SCHEMA_VERSION || self.version == 0 {
            return Err(Error::Version {
                found: self.version,
                supported: SCHEMA_VERSION,
            });
        }
        let tables = self.check_tables()?;
        let mut names = HashSet::new();
        for slot in &self.slots {
            if slot.name().is_empty() {
                return Err(Error::schema("slots", "a slot has an empty name"));
            }
            if !names.insert(slot.name()) {
                return Err(Error::schema(
                    format!("slot `{}`", slot.name()),
                    "is defined twice; rename one of them",
                ));
            }
        }
        for slot in &self.slots {
            match slot {
                Slot::Sparse(sparse) => self.check_sparse(sparse, &tables)?,
                Slot::Dense(dense) => check_dense(dense)?,
                Slot::Label(label) => check_label(label)?,
                Slot::Weight(_) | Slot::Group(_) => {}
            }
        }
        self.check_single("weight", |slot| matches!(slot, Slot::Weight(_)))?;
        self.check_single("group", |slot| matches!(slot, Slot::Group(_)))
    }

    fn check_tables(&self) -> Result<HashSet<&str>, Error> {
        let mut names = HashSet::new();
        for table in &self.tables {
            let place = || format!("table `{}`", table.name);
            if table.name.is_empty()
                || !table
                    .name
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
            {
                return Err(Error::schema(
                    place(),
                    "a table's name has letters, digits, `_` and `-` only",
                ));
            }
            if !names.insert(table.name.as_str()) {
                return Err(Error::schema(place(), "is defined twice; rename one of them"));
            }
            if table.dim == 0 || table.dim > MAX_DIM {
                return Err(Error::schema(
                    place(),
                    format!("dim is {}; allowed: 1 to {MAX_DIM}", table.dim),
                ));
            }
            let scale = match table.init {
                Init::Zeros => 0.0,
                Init::Uniform { scale } => scale,
                Init::Normal { std } => std,
            };
            if !scale.is_finite() || scale < 0.0 {
                return Err(Error::schema(
                    place(),
                    format!("init scale is {scale}; allowed: a finite number, 0 or more"),
                ));
            }
        }
        Ok(names)
    }

    fn check_sparse(&self, slot: &SparseSlot, tables: &HashSet<&str>) -> Result<(), Error> {
        let place = || format!("slot `{}`", slot.name);
        let fail = |reason: String| Err(Error::schema(place(), reason));
        if slot.tables.is_empty() {
            return fail("names no table; give `tables`".to_owned());
        }
        let mut seen = HashSet::new();
        for table in &slot.tables {
            if !tables.contains(table.as_str()) {
                let mut known: Vec<&str> = tables.iter().copied().collect();
                known.sort_unstable();
                return fail(format!(
                    "table `{table}` is not defined; known tables: {}",
                    known.join(", ")
                ));
            }
            if !seen.insert(table) {
                return fail(format!("names table `{table}` twice"));
            }
        }
        if slot.max_length == 0 || slot.max_length > MAX_LENGTH {
            return fail(format!(
                "max_length is {}; allowed: 1 to {MAX_LENGTH}",
                slot.max_length
            ));
        }
        if slot.hash_size == Some(0) {
            return fail("hash_size is 0; leave it out for a table without fixed size".to_owned());
        }
        if let SparseTransform::Bucketise { boundaries } = &slot.transform {
            let ascending = boundaries.windows(2).all(|pair| pair[0] < pair[1]);
            if boundaries.is_empty() || !ascending || boundaries.iter().any(|x| !x.is_finite()) {
                return fail("bucketise boundaries must be finite and ascending, at least one".to_owned());
            }
        }
        if slot.transform != SparseTransform::Identity && slot.sign == SignKind::Value {
            return fail("`sign: value` takes no transform".to_owned());
        }
        self.check_cross(slot)
    }

    fn check_cross(&self, slot: &SparseSlot) -> Result<(), Error> {
        let fail = |reason: String| Err(Error::schema(format!("slot `{}`", slot.name), reason));
        if slot.cross.is_empty() {
            return Ok(());
        }
        if slot.cross.len() < 2 {
            return fail("a cross needs at least two slots".to_owned());
        }
        if slot.column.is_some() || slot.separator.is_some() || slot.transform != SparseTransform::Identity {
            return fail("a cross is made from slots and takes no column, separator or transform".to_owned());
        }
        for part in &slot.cross {
            let found = self.slots.iter().find(|other| other.name() == part);
            match found.and_then(Slot::as_sparse) {
                None => {
                    return fail(format!(
                        "crosses `{part}`, which is not a sparse slot of this schema"
                    ));
                }
                Some(other) if !other.cross.is_empty() => {
                    return fail(format!(
                        "crosses `{part}`, which is a cross itself; list its parts instead"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn check_single(&self, kind: &str, is_kind: impl Fn(&Slot) -> bool) -> Result<(), Error> {
        let mut found = self.slots.iter().filter(|slot| is_kind(slot));
        match (found.next(), found.next()) {
            (Some(_), Some(second)) => Err(Error::schema(
                format!("slot `{}`", second.name()),
                format!("is a second {kind} slot; a sample has one at most"),
            )),
            _ => Ok(()),
        }
    }
}

fn check_label(slot: &LabelSlot) -> Result<(), Error> {
    let fail = |reason: &str| Err(Error::schema(format!("slot `{}`", slot.name), reason));
    match &slot.transform {
        LabelTransform::Threshold { at } if at.is_nan() => fail("threshold is not a number"),
        LabelTransform::Affine { scale, shift } if !scale.is_finite() || !shift.is_finite() => {
            fail("affine takes finite numbers")
        }
        LabelTransform::OneOf { values } if values.is_empty() => fail("one_of names no value"),
        LabelTransform::Identity
        | LabelTransform::Threshold { .. }
        | LabelTransform::Affine { .. }
        | LabelTransform::OneOf { .. } => Ok(()),
    }
}

fn check_dense(slot: &DenseSlot) -> Result<(), Error> {
    let fail = |reason: String| Err(Error::schema(format!("slot `{}`", slot.name), reason));
    if slot.width == 0 || slot.width > MAX_DIM {
        return fail(format!("width is {}; allowed: 1 to {MAX_DIM}", slot.width));
    }
    if slot.separator.as_deref() == Some("") {
        return fail("separator is empty; leave it out where the field repeats".to_owned());
    }
    if !slot.default.is_finite() {
        return fail("default must be a finite number".to_owned());
    }
    let (left, right, what) = match &slot.transform {
        DenseTransform::Identity | DenseTransform::Log1p => return Ok(()),
        DenseTransform::MinMax { min, max } => (min, max, "min_max"),
        DenseTransform::Standardise { mean, std } if mean.is_empty() && std.is_empty() => return Ok(()),
        DenseTransform::Standardise { mean, std } => (mean, std, "standardise"),
    };
    let width = slot.width as usize;
    if left.len() != right.len() || (left.len() != 1 && left.len() != width) {
        return fail(format!(
            "{what} takes two lists of one number, or of {width}, one for each element"
        ));
    }
    if left.iter().chain(right).any(|x| !x.is_finite()) {
        return fail(format!("{what} takes finite numbers"));
    }
    let is_flat = match &slot.transform {
        DenseTransform::MinMax { min, max } => min.iter().zip(max).any(|(low, high)| high <= low),
        DenseTransform::Standardise { std, .. } => std.iter().any(|&x| x <= 0.0),
        DenseTransform::Identity | DenseTransform::Log1p => false,
    };
    if is_flat {
        return fail(format!("{what} would divide by zero or less"));
    }
    Ok(())
}
