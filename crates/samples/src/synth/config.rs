//! What to write, and where.

use std::num::NonZero;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Error, Format};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The file; its ending says how it is compressed: `.gz`, `.zst`, else not at all.
    pub path: PathBuf,
    pub rows: u64,
    #[serde(default)]
    pub seed: u64,
    /// Number of the first row.
    #[serde(default)]
    pub start_row: u64,
    #[serde(default)]
    pub format: Format,
    /// Number of files; with several, `log.tsv.gz` becomes `log-00000.tsv.gz` and so on, in row order.
    #[serde(default = "one")]
    pub parts: u32,
    /// How fast the world changes, in replacements of the whole population per million rows. 0: not at all.
    #[serde(default)]
    pub drift: f64,
    /// 0: one per core.
    #[serde(default)]
    pub threads: usize,
    /// A second file, with the true probability of each row on a line.
    #[serde(default)]
    pub truth_path: Option<PathBuf>,
}

fn one() -> u32 {
    1
}

impl Config {
    pub fn new(path: impl Into<PathBuf>, rows: u64) -> Self {
        Self {
            path: path.into(),
            rows,
            seed: 0,
            start_row: 0,
            format: Format::default(),
            parts: 1,
            drift: 0.0,
            threads: 0,
            truth_path: None,
        }
    }

    pub fn from_json(text: &str) -> Result<Self, Error> {
        let config: Self = serde_json::from_str(text).map_err(|error| Error::Json {
            reason: error.to_string(),
        })?;
        config.check()?;
        Ok(config)
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let fail = |field, value: String, allowed| {
            Err(Error::Config {
                field,
                value,
                allowed,
            })
        };
        if self.rows == 0 || self.start_row.checked_add(self.rows).is_none() {
            return fail(
                "rows",
                self.rows.to_string(),
                "1 or more, and start_row + rows within 64 bits",
            );
        }
        if self.parts == 0 || u64::from(self.parts) > self.rows {
            return fail("parts", self.parts.to_string(), "1 to the number of rows");
        }
        if !(0.0..=1_000.0).contains(&self.drift) {
            return fail("drift", self.drift.to_string(), "0 to 1000");
        }
        if self.path.file_name().is_none_or(|name| name.to_str().is_none()) {
            return fail(
                "path",
                format!("`{}`", self.path.display()),
                "the path of a file, in UTF-8",
            );
        }
        Ok(())
    }

    pub(super) fn num_threads(&self) -> usize {
        if self.threads > 0 {
            return self.threads;
        }
        std::thread::available_parallelism().map_or(1, NonZero::get)
    }

    /// Files in row order, each with its rows.
    pub(super) fn files(&self) -> Vec<(PathBuf, std::ops::Range<u64>)> {
        let parts = u64::from(self.parts);
        let bound = |part: u64| {
            self.start_row + (u128::from(self.rows) * u128::from(part) / u128::from(parts)) as u64
        };
        (0..parts)
            .map(|part| (self.part_path(part), bound(part)..bound(part + 1)))
            .collect()
    }

    fn part_path(&self, part: u64) -> PathBuf {
        if self.parts == 1 {
            return self.path.clone();
        }
        let name = self
            .path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let (stem, endings) = name
            .split_once('.')
            .map_or((name, String::new()), |(stem, rest)| (stem, format!(".{rest}")));
        self.path.with_file_name(format!("{stem}-{part:05}{endings}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_rows_once_and_number_before_the_endings() {
        let config = Config {
            start_row: 100,
            parts: 3,
            ..Config::new("logs/day.tsv.gz", 10)
        };
        let files = config.files();
        assert_eq!(files[0], ("logs/day-00000.tsv.gz".into(), 100..103));
        assert_eq!(files[1], ("logs/day-00001.tsv.gz".into(), 103..106));
        assert_eq!(files[2], ("logs/day-00002.tsv.gz".into(), 106..110));
    }

    #[test]
    fn impossible_configurations_are_refused_by_name() {
        for (text, field) in [
            (r#"{"path": "x", "rows": 0}"#, "rows"),
            (r#"{"path": "x", "rows": 2, "parts": 3}"#, "parts"),
            (r#"{"path": "x", "rows": 2, "drift": -1}"#, "drift"),
            (r#"{"path": "x", "rows": 2, "sead": 1}"#, "sead"),
            (r#"{"path": "/", "rows": 2}"#, "path"),
        ] {
            let error = Config::from_json(text).expect_err(text).to_string();
            assert!(error.contains(field), "{error}");
        }
    }
}
