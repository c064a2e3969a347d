//! The name of a field within its module. Names are not texts, because a call looks its module up
//! by visiting fields: an index is written out only when somebody reads it.

use std::fmt;

/// What a parameter, a buffer or a child is called in the module that has it.
///
/// ```
/// use plimsoll_nn::Name;
/// assert_eq!(Name::Index(3).to_string(), "3");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name<'m> {
    /// A field of a struct.
    Field(&'static str),
    /// An element of a list.
    Index(usize),
    /// A key that the program chose.
    Key(&'m str),
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Field(name) | Name::Key(name) => f.write_str(name),
            Name::Index(index) => write!(f, "{index}"),
        }
    }
}

/// `name` below `path`, as PyTorch writes it: `blocks.3.weight`.
pub(crate) fn joined(path: &str, name: Name<'_>) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}.{name}") }
}
