//! A sum whose parts can be added in any order.
//!
//! Floating-point addition is not associative: two trainers merged in another order would report another
//! last digit. The sum of each batch is therefore rounded once, to a multiple of 2^-64, and added as an integer.

const ONE: f64 = 18_446_744_073_709_551_616.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FixedSum(i128);

impl FixedSum {
    pub(crate) fn add(&mut self, value: f64) {
        self.0 = self.0.saturating_add((value * ONE).round() as i128);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.0 = self.0.saturating_add(other.0);
    }

    pub(crate) fn value(self) -> f64 {
        self.0 as f64 / ONE
    }

    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(i128::from_le_bytes(bytes))
    }
}
