//! `NumPy` arrays as arguments and results, with the type that the stubs show for them.
//!
//! The `numpy` crate names no Python types, so its arrays would be `Incomplete` in `_core.pyi`. [`Array`]
//! wraps them at the border: conversions are those of the wrapped type, the type hint follows from the
//! type of the elements.

use std::ops::{Deref, DerefMut};

use numpy::ndarray::{Dimension, Ix1, Ix2, Ix3};
use numpy::{Element, PyArray, PyReadonlyArray, PyReadwriteArray};
#[cfg(feature = "stubs")]
use pyo3::inspect::PyStaticExpr;
use pyo3::prelude::*;
#[cfg(feature = "stubs")]
use pyo3::{type_hint_identifier, type_hint_subscript};

/// An array of the `numpy` crate that has a type in the stubs.
pub(crate) struct Array<A>(pub(crate) A);

/// Only read, for as long as the call takes.
pub(crate) type Reads1<'py, T> = Array<PyReadonlyArray<'py, T, Ix1>>;
pub(crate) type Reads2<'py, T> = Array<PyReadonlyArray<'py, T, Ix2>>;
pub(crate) type Reads3<'py, T> = Array<PyReadonlyArray<'py, T, Ix3>>;

/// Written to in place.
pub(crate) type Writes1<'py, T> = Array<PyReadwriteArray<'py, T, Ix1>>;
pub(crate) type Writes3<'py, T> = Array<PyReadwriteArray<'py, T, Ix3>>;

/// A result, or an argument that is borrowed later than on arrival.
pub(crate) type Array1<'py, T> = Array<Bound<'py, PyArray<T, Ix1>>>;
pub(crate) type Array2<'py, T> = Array<Bound<'py, PyArray<T, Ix2>>>;

/// A type of elements that has a name in `NumPy`.
pub(crate) trait Scalar: Element {
    #[cfg(feature = "stubs")]
    const NAME: &'static str;
}

macro_rules! scalars {
    ($($rust:ty => $name:literal),+) => {$(
        impl Scalar for $rust {
            #[cfg(feature = "stubs")]
            const NAME: &'static str = $name;
        }
    )+};
}

scalars!(f32 => "float32", i64 => "int64", u8 => "uint8", u32 => "uint32", u64 => "uint64");

/// An array type of the `numpy` crate.
pub(crate) trait Typed {
    type Scalar: Scalar;
}

impl<T: Scalar, D: Dimension> Typed for PyReadonlyArray<'_, T, D> {
    type Scalar = T;
}

impl<T: Scalar, D: Dimension> Typed for PyReadwriteArray<'_, T, D> {
    type Scalar = T;
}

impl<T: Scalar, D: Dimension> Typed for Bound<'_, PyArray<T, D>> {
    type Scalar = T;
}

#[cfg(feature = "stubs")]
const fn hint<A: Typed>() -> PyStaticExpr {
    const {
        type_hint_subscript!(
            type_hint_identifier!("numpy.typing", "NDArray"),
            type_hint_identifier!("numpy", A::Scalar::NAME)
        )
    }
}

impl<'a, 'py, A: Typed + FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for Array<A> {
    type Error = A::Error;

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: PyStaticExpr = hint::<A>();

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> Result<Self, Self::Error> {
        A::extract(object).map(Self)
    }
}

impl<'py, A: Typed + IntoPyObject<'py>> IntoPyObject<'py> for Array<A> {
    type Target = A::Target;
    type Output = A::Output;
    type Error = A::Error;

    #[cfg(feature = "stubs")]
    const OUTPUT_TYPE: PyStaticExpr = hint::<A>();

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        self.0.into_pyobject(py)
    }
}

impl<A> Deref for Array<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A> DerefMut for Array<A> {
    fn deref_mut(&mut self) -> &mut A {
        &mut self.0
    }
}
