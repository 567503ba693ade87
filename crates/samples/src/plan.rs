//! A schema compiled for the columns of a format: what is done with each field of a line.

use std::sync::Arc;

use clickmill_types::Schema;
use clickmill_types::schema::{DenseTransform, Slot};
use clickmill_types::sign::{sign, vocabulary_seed};

use crate::bad::{Fault, shown};
use crate::cross::Cross;
use crate::dense::Dense;
use crate::fields::{Fields, Value};
use crate::label::Label;
use crate::number;
use crate::rows::{Rows, Shape};
use crate::sparse::{PlainHash, Sparse};
use crate::{Columns, Error};

/// Actions in slot order, so that each group's signs come out in the order of its slots.
#[derive(Debug)]
pub struct Plan {
    shape: Shape,
    columns: Vec<String>,
    steps: Vec<Step>,
    /// Sparse slots that a cross needs; worked out before the steps.
    parts: Vec<Sparse>,
    schema: Arc<Schema>,
}

#[derive(Debug)]
enum Step {
    /// A run of slots of one group that are one hashed value each, never none: nearly all of a click log.
    Hashes {
        group: u32,
        slots: Vec<PlainHash>,
    },
    Sparse {
        group: u32,
        sparse: Box<Sparse>,
    },
    /// A slot that was worked out as a part.
    Part {
        group: u32,
        part: usize,
    },
    Cross {
        group: u32,
        cross: Box<Cross>,
    },
    Dense(Box<Dense>),
    Label(Box<Label>),
    Weight {
        slot: usize,
        column: u32,
    },
    GroupKey {
        slot: usize,
        column: u32,
        seed: u64,
    },
}

/// Signs of the parts of crosses of one row; reused from row to row.
#[derive(Debug, Default)]
pub(crate) struct PartSigns(pub(crate) Vec<Vec<u64>>);

impl Plan {
    pub(crate) fn new(schema: &Arc<Schema>, columns: &Columns) -> Result<Self, Error> {
        schema.check()?;
        let mut resolver = Resolver::new(columns);
        let group_of = groups_by_slot(schema);
        let mut plan = Self {
            shape: shape_of(schema),
            columns: Vec::new(),
            steps: Vec::new(),
            parts: Vec::new(),
            schema: Arc::clone(schema),
        };
        let mut part_of = vec![None; schema.slots.len()];
        for slot in schema.slots.iter().filter_map(Slot::as_sparse) {
            for name in &slot.cross {
                let index = position(schema, name);
                if let (None, Some(part)) = (part_of[index], schema.slots[index].as_sparse()) {
                    part_of[index] = Some(plan.parts.len());
                    let column = resolver.resolve(&schema.slots[index])?;
                    plan.parts.push(Sparse::new(part, column));
                }
            }
        }
        for (index, slot) in schema.slots.iter().enumerate() {
            let step = match slot {
                Slot::Sparse(sparse) if !sparse.cross.is_empty() => Step::Cross {
                    group: group_of[index],
                    cross: Box::new(Cross::new(
                        sparse,
                        sparse
                            .cross
                            .iter()
                            .filter_map(|name| part_of[position(schema, name)])
                            .collect(),
                    )),
                },
                Slot::Sparse(sparse) => {
                    let group = group_of[index];
                    let compiled = Sparse::new(sparse, resolver.resolve(slot)?);
                    match (part_of[index], compiled.as_plain_hash()) {
                        (Some(part), _) => Step::Part { group, part },
                        (None, Some(plain)) => {
                            if let Some(Step::Hashes { group: last, slots }) = plan.steps.last_mut()
                                && *last == group
                            {
                                slots.push(plain);
                                continue;
                            }
                            Step::Hashes {
                                group,
                                slots: vec![plain],
                            }
                        }
                        (None, None) => Step::Sparse {
                            group,
                            sparse: Box::new(compiled),
                        },
                    }
                }
                Slot::Dense(dense) => Step::Dense(Box::new(Dense::new(dense, resolver.resolve(slot)?)?)),
                Slot::Label(label) => Step::Label(Box::new(Label::new(label, resolver.resolve(slot)?))),
                Slot::Weight(_) => Step::Weight {
                    slot: index,
                    column: resolver.resolve(slot)?,
                },
                Slot::Group(group) => Step::GroupKey {
                    slot: index,
                    column: resolver.resolve(slot)?,
                    seed: vocabulary_seed(&group.name),
                },
            };
            plan.steps.push(step);
        }
        plan.columns = resolver.names;
        Ok(plan)
    }

    /// The plan, with any number but 0 and 1 refused in the first label: the one that a model learns.
    pub(crate) fn with_binary_label(mut self, is_binary: bool) -> Self {
        let first = self.steps.iter_mut().find_map(|step| {
            if let Step::Label(label) = step {
                Some(label)
            } else {
                None
            }
        });
        if let Some(label) = first.filter(|_| is_binary) {
            label.require_binary();
        }
        self
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Columns by index: those of the format, or where lines name their columns, those of the schema.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Slots made from column `index`.
    pub(crate) fn slots_of(&self, index: usize) -> impl Iterator<Item = &str> {
        let column = self.columns[index].as_str();
        self.schema
            .slots
            .iter()
            .filter(move |slot| slot.column() == Some(column))
            .map(Slot::name)
    }

    /// First slot of each column that has not occurred, with the index of the column; `seen` is by column.
    pub(crate) fn absent<'a>(&'a self, seen: &'a [bool]) -> impl Iterator<Item = (usize, &'a str)> {
        let unseen = seen.iter().enumerate().filter(|(_, seen)| !**seen);
        // A column of the format that no slot uses may be absent.
        unseen.filter_map(|(index, _)| Some((index, self.slots_of(index).next()?)))
    }

    /// Appends one row; at a fault the rows have to be rolled back.
    #[inline]
    pub(crate) fn evaluate<F: Fields>(
        &self,
        fields: &F,
        parts: &mut PartSigns,
        rows: &mut Rows,
    ) -> Result<(), Fault> {
        parts.0.resize_with(self.parts.len(), Vec::new);
        for (part, signs) in self.parts.iter().zip(&mut parts.0) {
            signs.clear();
            part.signs(fields, signs)?;
        }
        for step in &self.steps {
            match step {
                Step::Hashes { group, slots } => {
                    let row = &mut rows.groups[*group as usize];
                    let start = row.signs.len() as u32;
                    row.signs.extend(slots.iter().map(|slot| slot.sign(fields)));
                    row.offsets.extend(start + 1..start + 1 + slots.len() as u32);
                }
                Step::Sparse { group, sparse } => {
                    let row = &mut rows.groups[*group as usize];
                    sparse.signs(fields, &mut row.signs)?;
                    row.offsets.push(row.signs.len() as u32);
                }
                Step::Part { group, part } => {
                    let row = &mut rows.groups[*group as usize];
                    row.signs.extend_from_slice(&parts.0[*part]);
                    row.offsets.push(row.signs.len() as u32);
                }
                Step::Cross { group, cross } => {
                    let row = &mut rows.groups[*group as usize];
                    cross.signs(&parts.0, &mut row.signs);
                    row.offsets.push(row.signs.len() as u32);
                }
                Step::Dense(dense) => dense.push(fields, &mut rows.dense)?,
                Step::Label(label) => rows.labels.push(label.number(fields)?),
                Step::Weight { slot, column } => {
                    let weight = self
                        .weight(fields, *slot, *column)
                        .map_err(|fault| fault.of_column(*column))?;
                    rows.weights.push(weight);
                }
                Step::GroupKey { slot, column, seed } => {
                    let value = fields
                        .only(*column)
                        .map_err(|second| self.second("group", *slot, second).of_column(*column))?;
                    let bytes = value.map_or(&b""[..], |value| value.bytes);
                    rows.group_keys.push(sign(bytes, *seed));
                }
            }
        }
        Ok(())
    }

    fn weight<F: Fields>(&self, fields: &F, slot: usize, column: u32) -> Result<f32, Fault> {
        let name = || self.schema.slots[slot].name();
        let value = fields
            .only(column)
            .map_err(|second| self.second("weight", slot, second))?;
        let Some(value) = value.filter(|value| !value.bytes.is_empty()) else {
            return Err(Fault::new(0, format!("weight `{}` is missing", name())));
        };
        let fail = |reason: String| Fault::new(value.at as usize, format!("weight `{}`: {reason}", name()));
        let number = number::parse(value.bytes).map_err(fail)?;
        if number < 0.0 {
            return Err(fail(format!("{} is negative", shown(value.bytes))));
        }
        Ok(number)
    }

    #[cold]
    fn second(&self, kind: &str, slot: usize, value: Value<'_>) -> Fault {
        let name = self.schema.slots[slot].name();
        let found = shown(value.bytes);
        Fault::new(
            value.at as usize,
            format!("{kind} `{name}` has a second value: {found}"),
        )
    }
}

pub(crate) fn shape_of(schema: &Schema) -> Shape {
    let count = |is_kind: fn(&Slot) -> bool| schema.slots.iter().filter(|slot| is_kind(slot)).count();
    Shape {
        num_dense: schema.num_dense(),
        num_labels: count(|slot| matches!(slot, Slot::Label(_))),
        has_weight: count(|slot| matches!(slot, Slot::Weight(_))) > 0,
        has_group_key: count(|slot| matches!(slot, Slot::Group(_))) > 0,
        slots: schema.groups().iter().map(|group| group.slots.len()).collect(),
    }
}

fn groups_by_slot(schema: &Schema) -> Vec<u32> {
    let mut group_of = vec![0; schema.slots.len()];
    for (index, group) in schema.groups().iter().enumerate() {
        for &slot in &group.slots {
            group_of[slot] = index as u32;
        }
    }
    group_of
}

fn position(schema: &Schema, name: &str) -> usize {
    schema
        .slots
        .iter()
        .position(|slot| slot.name() == name)
        .expect("a checked schema crosses slots that it has")
}

/// Gives columns their indexes and refuses those that the format does not have.
struct Resolver<'a> {
    columns: &'a Columns,
    names: Vec<String>,
}

impl<'a> Resolver<'a> {
    fn new(columns: &'a Columns) -> Self {
        let (Columns::Fixed(names) | Columns::Named(names)) = columns;
        Self {
            columns,
            names: names.clone(),
        }
    }

    fn resolve(&mut self, slot: &Slot) -> Result<u32, Error> {
        let column = slot
            .column()
            .expect("only a cross has no column, and it is not resolved");
        if let Some(index) = self.names.iter().position(|name| name == column) {
            return Ok(index as u32);
        }
        match self.columns {
            Columns::Fixed(names) => Err(Error::slot(
                slot.name(),
                format!(
                    "column `{column}` is not in the data; known columns: {}",
                    names.join(", ")
                ),
            )),
            Columns::Named(_) => {
                self.names.push(column.to_owned());
                Ok(self.names.len() as u32 - 1)
            }
        }
    }
}

/// Whether the schema has a slot that waits for mean and standard deviation.
pub(crate) fn is_unfitted(transform: &DenseTransform) -> bool {
    matches!(transform, DenseTransform::Standardise { mean, .. } if mean.is_empty())
}
