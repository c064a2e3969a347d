//! The one error type. It is opaque: callers ask what it is ([`Error::is_shape`],
//! [`Error::is_out_of_memory`]) and print it. A message says what happened, on which operation,
//! with which operands, and what to do next.

use std::error::Error as StdError;
use std::fmt;

/// What can go wrong, as callers tell errors apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Sizes, strides or dimensions that do not fit the operation.
    Shape,
    /// Element types that the operation does not take or that do not promote.
    DType,
    /// Operands on different devices, or a device that is not there.
    Device,
    /// An index outside its dimension.
    Index,
    /// Autograd's rules: a freed graph, an overwritten saved tensor, in-place on a leaf, ...
    Autograd,
    /// A matrix without the inverse or the factors that were asked for.
    LinAlg,
    /// An argument that is wrong by itself.
    InvalidArgument,
    /// A configuration key or value that is unknown, out of range or without effect.
    Configuration,
    /// Memory ran out; the source is a report of what filled it.
    OutOfMemory,
    /// The device or its driver failed, possibly in an earlier operation.
    Driver,
    /// Something that exists elsewhere but not here yet; the message names it.
    Unsupported,
    /// Reading or writing a file failed.
    Io,
}

/// An error from any part of Plimsoll.
///
/// ```
/// use plimsoll_core::Error;
/// let error = Error::shape("matmul", "cannot multiply [2, 3] by [4, 5]");
/// assert!(error.is_shape());
/// assert_eq!(error.to_string(), "matmul: cannot multiply [2, 3] by [4, 5]");
/// ```
pub struct Error(Box<Inner>);

/// `Result` with Plimsoll's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

struct Inner {
    kind: ErrorKind,
    operation: Option<String>,
    message: String,
    expected_shape: Option<Box<[usize]>>,
    cause: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` that names no operation yet.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Box::new(Inner {
            kind,
            operation: None,
            message: message.into(),
            expected_shape: None,
            cause: None,
        }))
    }

    /// Sizes or dimensions that do not fit `operation`.
    pub fn shape(operation: &str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Shape, message).in_operation(operation)
    }

    /// A target of another shape than the result's.
    pub fn target_shape(operation: &str, expected: &[usize], given: &[usize]) -> Error {
        let mut error = Error::shape(
            operation,
            format!(
                "the result has shape {expected:?} and cannot be written to a tensor of shape {given:?}"
            ),
        );
        error.0.expected_shape = Some(expected.into());
        error
    }

    /// Element types that `operation` does not take.
    pub fn dtype(operation: &str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::DType, message).in_operation(operation)
    }

    /// Operands of `operation` on devices that do not fit.
    pub fn device(operation: &str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Device, message).in_operation(operation)
    }

    /// An index of `operation` outside its dimension.
    pub fn index(operation: &str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Index, message).in_operation(operation)
    }

    /// A rule of autograd broken by `operation`.
    pub fn autograd(operation: &str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Autograd, message).in_operation(operation)
    }

    /// A matrix that `operation` cannot invert or factor: singular, not positive-definite.
    pub fn linalg(operation: &str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::LinAlg, message).in_operation(operation)
    }

    /// What `operation` does not support; the message names it and what works instead.
    pub fn unsupported(operation: &str, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, message).in_operation(operation)
    }

    /// An argument that is wrong by itself.
    pub fn invalid_argument(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidArgument, message)
    }

    /// A configuration key or value that cannot be used.
    pub fn configuration(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Configuration, message)
    }

    /// A failed device or driver.
    pub fn driver(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Driver, message)
    }

    /// Names the operation it happened in, unless one is named already.
    #[must_use]
    pub fn in_operation(mut self, operation: &str) -> Error {
        if self.0.operation.is_none() {
            self.0.operation = Some(operation.to_string());
        }
        self
    }

    /// Attaches what lies behind it, for `source()` and for [`Error::detail`].
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        self.0.cause = Some(cause.into());
        self
    }

    /// What sort of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation it happened in, if it happened in one.
    pub fn operation(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }

    /// The shape that a target of `out` should have had, if it had another: whoever may resize it
    /// can try again.
    ///
    /// ```
    /// let error = plimsoll_core::Error::target_shape("add", &[2, 3], &[0]);
    /// assert_eq!(error.expected_shape(), Some(&[2, 3][..]));
    /// ```
    pub fn expected_shape(&self) -> Option<&[usize]> {
        self.0.expected_shape.as_deref()
    }

    /// The attached cause as `T`; out-of-memory errors carry their report this way.
    pub fn detail<T: StdError + 'static>(&self) -> Option<&T> {
        self.0.cause.as_deref().and_then(|cause| cause.downcast_ref())
    }

    /// Whether sizes or dimensions did not fit.
    pub fn is_shape(&self) -> bool {
        self.kind() == ErrorKind::Shape
    }

    /// Whether element types did not fit.
    pub fn is_dtype(&self) -> bool {
        self.kind() == ErrorKind::DType
    }

    /// Whether devices differ or one is missing.
    pub fn is_device(&self) -> bool {
        self.kind() == ErrorKind::Device
    }

    /// Whether an index was out of range.
    pub fn is_index(&self) -> bool {
        self.kind() == ErrorKind::Index
    }

    /// Whether a rule of autograd was broken.
    pub fn is_autograd(&self) -> bool {
        self.kind() == ErrorKind::Autograd
    }

    /// Whether a matrix had no such inverse or factors.
    pub fn is_linalg(&self) -> bool {
        self.kind() == ErrorKind::LinAlg
    }

    /// Whether an argument was wrong by itself.
    pub fn is_invalid_argument(&self) -> bool {
        self.kind() == ErrorKind::InvalidArgument
    }

    /// Whether the configuration is at fault.
    pub fn is_configuration(&self) -> bool {
        self.kind() == ErrorKind::Configuration
    }

    /// Whether memory ran out. The program may free some and try again: nothing was lost.
    pub fn is_out_of_memory(&self) -> bool {
        self.kind() == ErrorKind::OutOfMemory
    }

    /// Whether the device or its driver failed.
    pub fn is_driver(&self) -> bool {
        self.kind() == ErrorKind::Driver
    }

    /// Whether Plimsoll does not have what was asked for.
    pub fn is_unsupported(&self) -> bool {
        self.kind() == ErrorKind::Unsupported
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = &self.0.operation {
            write!(f, "{operation}: ")?;
        }
        f.write_str(&self.0.message)?;
        match &self.0.cause {
            Some(cause) => write!(f, "\n{cause}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} error: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

impl From<std::io::Error> for Error {
    fn from(cause: std::io::Error) -> Error {
        Error::new(ErrorKind::Io, "reading or writing failed").because(cause)
    }
}
