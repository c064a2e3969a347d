//! Texts, each kept once. A snapshot repeats a few hundred file and function names millions of
//! times; here each is a number.

use std::collections::HashMap;
use std::fmt;

/// A text of one [`Strings`] table. Equal numbers are equal texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextId(pub u32);

impl TextId {
    /// The empty text, in every table.
    pub const EMPTY: TextId = TextId(0);
}

/// Every text of a snapshot, in order of first appearance.
#[derive(Clone)]
pub struct Strings {
    texts: Vec<Box<str>>,
    ids: HashMap<Box<str>, TextId>,
}

impl Default for Strings {
    fn default() -> Strings {
        let mut strings = Strings { texts: Vec::new(), ids: HashMap::new() };
        strings.intern("");
        strings
    }
}

impl fmt::Debug for Strings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strings({})", self.texts.len())
    }
}

impl Strings {
    /// The number of `text`, new or known.
    pub fn intern(&mut self, text: &str) -> TextId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = TextId(self.texts.len() as u32);
        self.texts.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }

    /// The number of `text` if it occurs.
    pub fn find(&self, text: &str) -> Option<TextId> {
        self.ids.get(text).copied()
    }

    /// The text of a number of this table; empty for any other number.
    pub fn get(&self, id: TextId) -> &str {
        self.texts.get(id.0 as usize).map_or("", |text| text)
    }

    /// How many different texts there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Never: the empty text is always there.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }
}
