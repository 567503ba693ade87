//! Files as streams of text, whatever compression they are in.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;

const READ_BYTES: usize = 256 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Plain,
    Gzip,
    Zstd,
}

/// What the first bytes of a file say; its name only serves to notice a contradiction.
pub(crate) fn detect(path: &Path) -> Result<(Compression, u64), Error> {
    let fail = |error: io::Error| Error::io(path, &error);
    let mut file = File::open(path).map_err(fail)?;
    let size = file.metadata().map_err(fail)?.len();
    let mut magic = [0u8; 4];
    let mut filled = 0;
    while filled < magic.len() {
        match file.read(&mut magic[filled..]).map_err(fail)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok((compression_of(path, &magic[..filled])?, size))
}

/// As the first four bytes of a file say it, or all that it has.
pub(crate) fn compression_of(path: &Path, head: &[u8]) -> Result<Compression, Error> {
    let compression = match head {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        // A frame, or one of the frames that decoders skip.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
        _ => Compression::Plain,
    };
    let extension = path.extension().and_then(|extension| extension.to_str());
    if compression == Compression::Plain && !head.is_empty() && matches!(extension, Some("gz" | "zst")) {
        return Err(Error::Io {
            path: path.display().to_string(),
            reason: "its name says compressed, its first bytes do not".to_owned(),
        });
    }
    Ok(compression)
}

/// Counts the bytes that leave the file, before decompression.
struct Counted {
    file: File,
    count: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Decompressed text of a file from byte `offset` on, and a count of the file's own bytes read so far.
pub(crate) struct Stream {
    reader: Box<dyn Read + Send>,
    raw: Arc<AtomicU64>,
}

impl Stream {
    pub(crate) fn open(path: &Path, compression: Compression, offset: u64) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::io(path, &error);
        let mut file = File::open(path).map_err(fail)?;
        let raw = Arc::new(AtomicU64::new(0));
        if compression == Compression::Plain {
            file.seek(SeekFrom::Start(offset)).map_err(fail)?;
            raw.store(offset, Ordering::Relaxed);
        }
        let counted = Counted {
            file,
            count: Arc::clone(&raw),
        };
        let reader: Box<dyn Read + Send> = match compression {
            Compression::Plain => Box::new(counted),
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(
                READ_BYTES, counted,
            ))),
            Compression::Zstd => Box::new(
                zstd::stream::read::Decoder::with_buffer(BufReader::with_capacity(READ_BYTES, counted))
                    .map_err(fail)?,
            ),
        };
        let mut stream = Self { reader, raw };
        if compression != Compression::Plain {
            stream.skip(offset).map_err(fail)?;
        }
        Ok(stream)
    }

    fn skip(&mut self, count: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.reader).take(count), &mut io::sink())?;
        if skipped < count {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("is shorter than the reader's position: {skipped} bytes, expected {count}"),
            ));
        }
        Ok(())
    }

    /// Bytes of the file itself that have been consumed.
    pub(crate) fn raw_bytes(&self) -> u64 {
        self.raw.load(Ordering::Relaxed)
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }
}

/// The first line of a file without its end.
pub(crate) fn first_line(path: &Path, max_bytes: usize) -> Result<Vec<u8>, Error> {
    let (compression, _) = detect(path)?;
    let mut stream = Stream::open(path, compression, 0)?;
    let mut line = Vec::new();
    let mut chunk = vec![0; 16 << 10];
    loop {
        let count = stream.read(&mut chunk).map_err(|error| Error::io(path, &error))?;
        if let Some(at) = memchr::memchr(b'\n', &chunk[..count]) {
            line.extend_from_slice(&chunk[..at]);
            break;
        }
        line.extend_from_slice(&chunk[..count]);
        if count == 0 {
            break;
        }
        if line.len() > max_bytes {
            return Err(Error::Header {
                path: path.display().to_string(),
                reason: format!("the header is longer than {max_bytes} bytes"),
            });
        }
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}

/// Line ends of a plain file before `offset`.
pub(crate) fn count_lines(path: &Path, offset: u64) -> Result<u64, Error> {
    let mut stream = Stream::open(path, Compression::Plain, 0)?;
    let mut chunk = vec![0; 1 << 20];
    let mut left = offset;
    let mut lines = 0;
    while left > 0 {
        let most = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = stream
            .read(&mut chunk[..most])
            .map_err(|error| Error::io(path, &error))?;
        if count == 0 {
            break;
        }
        lines += memchr::memchr_iter(b'\n', &chunk[..count]).count() as u64;
        left -= count as u64;
    }
    Ok(lines)
}
