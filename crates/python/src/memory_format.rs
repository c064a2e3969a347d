//! Orders of dimensions in memory as Python objects (`plimsoll.channels_last` and so on, one object
//! each), and `plimsoll.strided`, the only layout there is.

use plimsoll_core::MemoryFormat;
use pyo3::prelude::*;

/// In which order dimensions lie in memory.
#[pyclass(name = "memory_format", module = "plimsoll", frozen, eq)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PyMemoryFormat(pub(crate) MemoryFormat);

#[pymethods]
impl PyMemoryFormat {
    /// A pickle names it.
    fn __reduce__(&self) -> &'static str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        format!("plimsoll.{}", self.0.name())
    }
}

/// How elements lie: by strides.
#[pyclass(name = "layout", module = "plimsoll", frozen)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PyLayout;

#[pymethods]
impl PyLayout {
    /// A pickle names it.
    fn __reduce__(&self) -> &'static str {
        "strided"
    }

    fn __repr__(&self) -> &'static str {
        "plimsoll.strided"
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyMemoryFormat>()?;
    module.add_class::<PyLayout>()?;
    for format in [
        MemoryFormat::Contiguous,
        MemoryFormat::Preserve,
        MemoryFormat::ChannelsLast,
        MemoryFormat::ChannelsLast3d,
    ] {
        module.add(format.name(), Bound::new(module.py(), PyMemoryFormat(format))?)?;
    }
    module.add("strided", Bound::new(module.py(), PyLayout)?)
}
