//! `MovieLens` 1M: `user::movie::rating::timestamp`, joined with users and movies of the same folder.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use memchr::memmem::Finder;

use super::wrong_columns;
use crate::Error;
use crate::bad::{Fault, shown};
use crate::fields::{Cells, Source};

pub(super) const COLUMNS: [&str; 10] = [
    "user_id",
    "movie_id",
    "rating",
    "timestamp",
    "gender",
    "age",
    "occupation",
    "zip",
    "title",
    "genres",
];

const DELIMITER: &[u8] = b"::";
const NUM_OWN: usize = 4;

/// A side file: its key stands in column `key` of a rating, its other columns start at `first`.
struct SideSpec {
    file: &'static str,
    key: usize,
    first: usize,
    width: usize,
}

const SIDES: [SideSpec; 2] = [
    SideSpec {
        file: "users.dat",
        key: 0,
        first: 4,
        width: 4,
    },
    SideSpec {
        file: "movies.dat",
        key: 1,
        first: 8,
        width: 2,
    },
];

#[derive(Debug)]
pub(crate) struct Movielens {
    finder: Finder<'static>,
    /// Text of each side file; empty where none of its columns is used.
    pub(crate) sides: Vec<Vec<u8>>,
    joins: Vec<Join>,
}

/// Key to the start and end of each column in the side's text.
type SideRows = HashMap<Vec<u8>, Vec<(u32, u32)>>;

#[derive(Debug)]
struct Join {
    side: usize,
    rows: SideRows,
}

impl Movielens {
    pub(crate) fn open(
        folder: Option<&str>,
        first_file: Option<&Path>,
        wants: &dyn Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        let folder = match (folder, first_file.and_then(Path::parent)) {
            (Some(folder), _) => PathBuf::from(folder),
            (None, Some(parent)) => parent.to_path_buf(),
            (None, None) => PathBuf::new(),
        };
        let finder = Finder::new(DELIMITER).into_owned();
        let mut sides = Vec::new();
        let mut joins = Vec::new();
        for (side, spec) in SIDES.iter().enumerate() {
            let used = COLUMNS[spec.first..spec.first + spec.width]
                .iter()
                .find(|&&column| wants(column));
            let Some(used) = used else {
                sides.push(Vec::new());
                continue;
            };
            let path = folder.join(spec.file);
            let text = std::fs::read(&path).map_err(|error| Error::Io {
                path: path.display().to_string(),
                reason: format!("{error} (column `{used}` comes from it)"),
            })?;
            joins.push(Join {
                side,
                rows: side_rows(&path, &text, spec, &finder)?,
            });
            sides.push(text);
        }
        Ok(Self { finder, sides, joins })
    }

    pub(crate) fn cells(&self, line: &[u8], cells: &mut Cells) -> Result<(), Fault> {
        let mut own = [(0, 0); NUM_OWN];
        let mut start = 0;
        let mut column = 0;
        for end in self.finder.find_iter(line).chain([line.len()]) {
            if column < NUM_OWN {
                own[column] = (start, end);
                cells.push_line(column as u32, start, end);
            }
            column += 1;
            start = end + DELIMITER.len();
        }
        if column != NUM_OWN {
            return Err(wrong_columns(line.len(), "4", column));
        }
        for join in &self.joins {
            let spec = &SIDES[join.side];
            let (from, to) = own[spec.key];
            let Some(row) = join.rows.get(&line[from..to]) else {
                let reason = format!(
                    "{} {} is not in {}",
                    COLUMNS[spec.key],
                    shown(&line[from..to]),
                    spec.file
                );
                return Err(Fault::new(from, reason));
            };
            for (column, &(start, end)) in row.iter().enumerate() {
                let column = (spec.first + column) as u32;
                cells.push(
                    column,
                    Source::Side(join.side as u8),
                    start as usize,
                    end as usize,
                    from,
                );
            }
        }
        Ok(())
    }
}

fn side_rows(path: &Path, text: &[u8], spec: &SideSpec, finder: &Finder<'_>) -> Result<SideRows, Error> {
    let mut rows = HashMap::new();
    let mut start = 0;
    for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
        let fields = line.strip_suffix(b"\r").unwrap_or(line);
        let mut bounds = Vec::with_capacity(spec.width + 1);
        let mut from = 0;
        for to in finder.find_iter(fields).chain([fields.len()]) {
            bounds.push(((start + from) as u32, (start + to) as u32));
            from = to + DELIMITER.len();
        }
        if !fields.is_empty() {
            if bounds.len() != spec.width + 1 {
                return Err(Error::Io {
                    path: path.display().to_string(),
                    reason: format!(
                        "line {}: expected {} columns, found {}",
                        number + 1,
                        spec.width + 1,
                        bounds.len()
                    ),
                });
            }
            let (from, to) = bounds.remove(0);
            rows.insert(text[from as usize..to as usize].to_vec(), bounds);
        }
        start += line.len() + 1;
    }
    Ok(rows)
}
