//! PyTorch's signatures, read: `add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) ->
//! Tensor`. Bindings check arguments against them when a function is called; the generator of
//! bindings and stubs works from them too.

use plimsoll_core::{Error, Result};

/// One signature of an operation.
///
/// ```
/// use plimsoll_tensor::signature::{Kind, Signature};
/// let sum = Signature::parse("sum(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor")?;
/// assert_eq!((sum.name.as_str(), sum.results.len()), ("sum", 1));
/// assert_eq!(sum.parameters[1].kind, Kind::OptionalInts);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The operation's name.
    pub name: String,
    /// Its parameters in order.
    pub parameters: Vec<Parameter>,
    /// The tensors that come out, by name where they have one.
    pub results: Vec<String>,
    /// What comes out.
    pub returns: Returns,
}

/// What an operation gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// As many tensors as the signature names.
    Tensors,
    /// As many tensors as the arguments say: `Tensor[]`.
    List,
    /// A truth.
    Bool,
}

/// One parameter of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// What it takes.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Its default, as the signature writes it.
    pub default: Option<String>,
    /// Whether it must be named.
    pub keyword_only: bool,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $text:literal),* $(,)?) => {
        /// The types that signatures use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            fn parse(text: &str) -> Option<Kind> {
                match text {
                    $($text => Some(Kind::$kind),)*
                    _ => None,
                }
            }

            /// As signatures write it.
            pub fn text(self) -> &'static str {
                match self {
                    $(Kind::$kind => $text,)*
                }
            }
        }
    };
}

kinds! {
    /// A tensor.
    Tensor = "Tensor",
    /// A tensor or nothing.
    OptionalTensor = "Tensor?",
    /// A tensor or a host number.
    TensorOrNumber = "Tensor|Scalar",
    /// Several tensors.
    Tensors = "Tensor[]",
    /// Several tensors, with gaps.
    OptionalTensors = "Tensor?[]",
    /// A host number, which keeps its class.
    Number = "Scalar",
    /// A host number or nothing.
    OptionalNumber = "Scalar?",
    /// A whole number.
    Int = "int",
    /// A whole number or nothing.
    OptionalInt = "int?",
    /// Whole numbers; one will do.
    Ints = "int[]",
    /// Whole numbers or nothing.
    OptionalInts = "int[]?",
    /// A number.
    Float = "float",
    /// A number or nothing.
    OptionalFloat = "float?",
    /// Numbers.
    Floats = "float[]",
    /// Numbers or nothing.
    OptionalFloats = "float[]?",
    /// A truth.
    Bool = "bool",
    /// A truth or nothing.
    OptionalBool = "bool?",
    /// A word.
    Text = "str",
    /// A word or nothing.
    OptionalText = "str?",
    /// An element type.
    DType = "DType",
    /// An element type or nothing.
    OptionalDType = "DType?",
    /// A device or nothing.
    OptionalDevice = "Device?",
    /// What random numbers are drawn from, or nothing. It is no argument of the Rust call, which
    /// draws from the generator in force.
    OptionalGenerator = "Generator?",
}

impl Parameter {
    /// Whether a caller may leave it out.
    pub fn is_optional(&self) -> bool {
        self.default.is_some()
    }
}

impl Signature {
    /// Reads a signature.
    pub fn parse(text: &str) -> Result<Signature> {
        let wrong = |why: &str| Error::invalid_argument(format!("`{text}` is no signature: {why}"));
        let (call, results) = text.rsplit_once(" -> ").ok_or_else(|| wrong("no result"))?;
        let (name, rest) = call.split_once('(').ok_or_else(|| wrong("no parameters"))?;
        let list = rest.strip_suffix(')').ok_or_else(|| wrong("the parameters do not end"))?;
        let mut parameters = Vec::new();
        let mut keyword_only = false;
        for part in list.split(", ").filter(|part| !part.is_empty()) {
            if part == "*" {
                keyword_only = true;
                continue;
            }
            let (kind, rest) = part.split_once(' ').ok_or_else(|| wrong("a nameless parameter"))?;
            let (name, default) = match rest.split_once('=') {
                Some((name, default)) => (name, Some(default.to_string())),
                None => (rest, None),
            };
            let kind = Kind::parse(kind).ok_or_else(|| wrong(&format!("unknown type `{kind}`")))?;
            parameters.push(Parameter { kind, name: name.to_string(), default, keyword_only });
        }
        let (returns, results) = match results {
            "Tensor[]" => (Returns::List, Vec::new()),
            "bool" => (Returns::Bool, Vec::new()),
            tensors => {
                let list = tensors.trim_matches(['(', ')']).split(", ");
                let names = list.map(|one| one.trim_start_matches("Tensor").trim().to_string());
                (Returns::Tensors, names.collect())
            }
        };
        Ok(Signature { name: name.to_string(), parameters, results, returns })
    }

    /// Whether it is a method: its first parameter is the tensor itself.
    pub fn is_method(&self) -> bool {
        self.parameters
            .first()
            .is_some_and(|first| first.name == "self" && first.kind == Kind::Tensor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_read_part_by_part() {
        let text = "add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor";
        let signature = Signature::parse(text).unwrap();
        let kinds: Vec<Kind> = signature.parameters.iter().map(|p| p.kind).collect();
        assert_eq!(kinds, [Kind::Tensor, Kind::TensorOrNumber, Kind::Number]);
        let alpha = &signature.parameters[2];
        assert_eq!((alpha.default.as_deref(), alpha.keyword_only), (Some("1"), true));
        assert_eq!((signature.name.as_str(), signature.results.len()), ("add", 1));
    }

    #[test]
    fn results_have_their_names() {
        let text = "sort(Tensor self, int dim=-1) -> (Tensor values, Tensor indices)";
        assert_eq!(Signature::parse(text).unwrap().results, ["values", "indices"]);
    }

    #[test]
    fn results_may_be_a_list_or_a_truth() {
        let list = Signature::parse("chunk(Tensor self, int chunks) -> Tensor[]").unwrap();
        assert_eq!((list.returns, list.results.len()), (Returns::List, 0));
        let truth = Signature::parse("equal(Tensor self, Tensor other) -> bool").unwrap();
        assert_eq!(truth.returns, Returns::Bool);
    }

    #[test]
    fn what_is_no_signature_is_an_error() {
        for text in ["add", "add(Tensor self)", "add(Complex self) -> Tensor"] {
            assert!(Signature::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_signature_of_the_registry_is_one() {
        for info in crate::ops() {
            for text in info.signatures {
                let signature = Signature::parse(text).unwrap();
                assert_eq!(signature.name, info.name, "{text}");
            }
        }
    }
}
