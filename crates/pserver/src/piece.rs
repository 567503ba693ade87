//! Files of snapshots, piece by piece, for trainers that do not see the folder in which they lie.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;

use crate::Error;

/// Of one answer: long enough that asking costs nothing, short enough that nobody waits for it.
const MAX_BYTES: u64 = 4 << 20;

#[derive(Debug, Serialize)]
pub(crate) struct Piece {
    /// Of the whole file.
    size: u64,
    /// Another one when another file has taken the name since: pieces of two make no whole.
    edition: String,
    /// In base64; none at the end of the file.
    bytes: String,
}

/// What lies in file `name` of the folder from `offset` on, as much as goes into an answer.
pub(crate) fn read_piece(folder: &Path, name: &str, offset: u64) -> Result<Piece, Error> {
    let is_within = Path::new(name)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_within {
        return Err(Error::protocol(format!("`{name}` is no file of a snapshot")));
    }
    let path = folder.join(name);
    let read = || -> io::Result<Piece> {
        let mut file = File::open(&path)?;
        let metadata = file.metadata()?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(Piece {
            size: metadata.len(),
            edition: format!(
                "{}-{}-{}",
                metadata.ino(),
                metadata.mtime(),
                metadata.mtime_nsec()
            ),
            bytes: BASE64_STANDARD.encode(bytes),
        })
    };
    read().map_err(|error| Error::File {
        file: path.clone(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may stop where it stands")]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_in_pieces_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let whole: Vec<u8> = (0..MAX_BYTES + 3).map(|number| number as u8).collect();
        std::fs::create_dir(folder.path().join("snapshot-1")).unwrap();
        std::fs::write(folder.path().join("snapshot-1/0.rows"), &whole).unwrap();
        let mut found = Vec::new();
        loop {
            let piece = read_piece(folder.path(), "snapshot-1/0.rows", found.len() as u64).unwrap();
            assert_eq!(piece.size, whole.len() as u64);
            if piece.bytes.is_empty() {
                break;
            }
            found.extend(BASE64_STANDARD.decode(piece.bytes).unwrap());
        }
        assert_eq!(found, whole);
    }

    #[test]
    fn a_file_that_takes_the_name_of_another_is_another_edition() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("committed.json"), folder.path().join("new"));
        std::fs::write(&first, "first").unwrap();
        let edition = || read_piece(folder.path(), "committed.json", 0).unwrap().edition;
        let before = edition();
        assert_eq!(edition(), before);
        std::fs::write(&second, "other").unwrap();
        std::fs::rename(&second, &first).unwrap();
        assert_ne!(edition(), before);
    }

    #[test]
    fn nothing_outside_the_folder_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["../secret", "/etc/passwd", "snapshot-1/../../secret", "."] {
            let words = read_piece(folder.path(), name, 0).unwrap_err().to_string();
            assert!(words.contains("is no file of a snapshot"), "{name}: {words}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let words = read_piece(folder.path(), "snapshot-1/0.rows", 0)
            .unwrap_err()
            .to_string();
        assert!(words.contains("snapshot-1/0.rows"), "{words}");
    }
}
