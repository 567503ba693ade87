//! Bytes of a stored state: a tag, then little-endian fields in a fixed order.

use crate::Error;

pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn new(tag: [u8; 4]) -> Self {
        Self { bytes: tag.to_vec() }
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn raw(&mut self, value: [u8; 16]) {
        self.bytes.extend_from_slice(&value);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Every length is checked against what is left before anything is allocated for it.
pub(crate) struct Reader<'a> {
    metric: &'static str,
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(metric: &'static str, tag: [u8; 4], bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Self {
            metric,
            bytes,
            offset: 0,
        };
        if reader.take::<4>()? == tag {
            Ok(reader)
        } else {
            reader.offset = 0;
            Err(reader.error("not a state of this metric, or of another version"))
        }
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let found = self.bytes[self.offset..].first_chunk::<N>().copied();
        let value = found.ok_or_else(|| self.error("ends too early"))?;
        self.offset += N;
        Ok(value)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Result<f64, Error> {
        self.take().map(f64::from_le_bytes)
    }

    /// A count of elements of `size` bytes each that must still follow.
    pub(crate) fn count(&mut self, size: usize) -> Result<usize, Error> {
        let count = self.u64()?;
        let left = (self.bytes.len() - self.offset) / size;
        if count > left as u64 {
            return Err(self.error("ends too early"));
        }
        Ok(count as usize)
    }

    pub(crate) fn finish(&self) -> Result<(), Error> {
        if self.offset == self.bytes.len() {
            Ok(())
        } else {
            Err(self.error("bytes left over"))
        }
    }

    pub(crate) fn error(&self, reason: &'static str) -> Error {
        Error::State {
            metric: self.metric,
            offset: self.offset,
            reason,
        }
    }
}
