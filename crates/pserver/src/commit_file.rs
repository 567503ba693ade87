//! The commit file of snapshots: small, written last and at once, and checked when it is read.

use std::io::ErrorKind;
use std::path::Path;

use clickmill_coordinator::Committed;
use serde::Deserialize;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

use crate::Error;
use crate::snapshot::write_durably;

const NAME: &str = "committed.json";

/// As it lies on disk. The digest is of the content's text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    digest: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

pub(crate) fn write(folder: &Path, committed: &Committed) -> Result<(), Error> {
    let path = folder.join(NAME);
    let failed = |reason: String| Error::File {
        file: path.clone(),
        reason,
    };
    let content = serde_json::to_string(committed).map_err(|error| failed(error.to_string()))?;
    std::fs::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
    let text = format!(r#"{{"digest":"{}","content":{content}}}"#, digest(&content));
    write_durably(&path, text.as_bytes())
}

/// None: nothing was committed yet.
pub(crate) fn read(folder: &Path) -> Result<Option<Committed>, Error> {
    let path = folder.join(NAME);
    let failed = |reason: String| Error::File {
        file: path.clone(),
        reason,
    };
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let damaged = |words: String| failed(format!("the file is damaged: {words}"));
    let file: File<'_> = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    let found = digest(file.content.get());
    if found != file.digest {
        return Err(damaged(format!("digest {found}, expected {}", file.digest)));
    }
    serde_json::from_str(file.content.get())
        .map(Some)
        .map_err(|error| damaged(error.to_string()))
}

fn digest(content: &str) -> String {
    format!("{:032x}", xxh3_128(content.as_bytes()))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use super::*;

    fn committed() -> Committed {
        let content = serde_json::json!({
            "life": 3, "launched": 2, "route": {"servers": 2, "buckets": [0, 0, 1, 1]},
            "snapshot": null, "run": null, "is_over": false
        });
        serde_json::from_value(content).expect("a commit file")
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap().is_none());
        write(folder.path(), &committed()).unwrap();
        assert_eq!(read(folder.path()).unwrap().unwrap(), committed());
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &committed()).unwrap();
        let path = folder.path().join(NAME);
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bytes).unwrap();
            let words = read(folder.path()).unwrap_err().to_string();
            assert!(words.contains("committed.json"), "{words}");
        }
    }
}
