//! Reads the registry's signatures (`add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) ->
//! Tensor`). What a type becomes in Rust and in Python is `generate.rs`'s business.

/// One operation's signature.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Parameter>,
    /// How many tensors come out.
    pub(crate) results: usize,
}

/// One parameter of a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parameter {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) default: Option<String>,
    pub(crate) keyword_only: bool,
}

/// The types that signatures use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tensor,
    OptionalTensor,
    TensorOrNumber,
    Tensors,
    OptionalTensors,
    Number,
    Int,
    OptionalInt,
    Ints,
    OptionalInts,
    Float,
    Bool,
}

impl Kind {
    fn parse(text: &str) -> Result<Kind, String> {
        Ok(match text {
            "Tensor" => Kind::Tensor,
            "Tensor?" => Kind::OptionalTensor,
            "Tensor|Scalar" => Kind::TensorOrNumber,
            "Tensor[]" => Kind::Tensors,
            "Tensor?[]" => Kind::OptionalTensors,
            "Scalar" => Kind::Number,
            "int" => Kind::Int,
            "int?" => Kind::OptionalInt,
            "int[]" => Kind::Ints,
            "int[]?" => Kind::OptionalInts,
            "float" => Kind::Float,
            "bool" => Kind::Bool,
            _ => return Err(format!("`{text}` is a type that the generator does not know")),
        })
    }
}

impl Signature {
    pub(crate) fn parse(text: &str) -> Result<Signature, String> {
        let wrong = || format!("`{text}` is not a signature");
        let (call, results) = text.rsplit_once(" -> ").ok_or_else(wrong)?;
        let (name, rest) = call.split_once('(').ok_or_else(wrong)?;
        let list = rest.strip_suffix(')').ok_or_else(wrong)?;
        let mut parameters = Vec::new();
        let mut keyword_only = false;
        for part in list.split(", ").filter(|part| !part.is_empty()) {
            if part == "*" {
                keyword_only = true;
                continue;
            }
            let (kind, rest) = part.split_once(' ').ok_or_else(wrong)?;
            let (name, default) = match rest.split_once('=') {
                Some((name, default)) => (name, Some(default.to_string())),
                None => (rest, None),
            };
            let kind = Kind::parse(kind).map_err(|why| format!("{text}: {why}"))?;
            parameters.push(Parameter { kind, name: name.to_string(), default, keyword_only });
        }
        let results = results.matches("Tensor").count();
        Ok(Signature { name: name.to_string(), parameters, results })
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
        assert_eq!((signature.name.as_str(), signature.results), ("add", 1));
    }

    #[test]
    fn what_is_no_signature_is_an_error() {
        for text in ["add", "add(Tensor self)", "add(Complex self) -> Tensor"] {
            assert!(Signature::parse(text).is_err(), "{text}");
        }
    }
}
