//! Options of layers: PyTorch's keyword arguments, and where parameters are made.

/// [`plimsoll_tensor::options!`] of a layer with parameters: `device` and `dtype` come after its
/// own fields.
macro_rules! layer_options {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)* }) => {
        plimsoll_tensor::options! {
            $(#[$doc])*
            $name {
                $($(#[$field_doc])* $field: $type = $default,)*
                /// Where parameters are made; the CPU if nothing is said.
                device: Option<plimsoll_tensor::Device> = None,
                /// The parameters' type; float32 if nothing is said.
                dtype: Option<plimsoll_tensor::DType> = None,
            }
        }

        impl $name {
            // Layers of layers hand device and dtype on instead.
            #[allow(dead_code)]
            pub(crate) fn made(&self) -> plimsoll_tensor::TensorOptions {
                plimsoll_tensor::TensorOptions {
                    dtype: self.dtype,
                    device: self.device,
                    ..plimsoll_tensor::TensorOptions::default()
                }
            }
        }
    };
}
pub(crate) use layer_options;

use plimsoll_tensor::{Error, Parameter, Result, Tensor, TensorOptions};

/// A parameter of the given sizes, not yet written.
#[track_caller]
pub(crate) fn parameter(sizes: &[i64], made: TensorOptions) -> Result<Parameter> {
    Parameter::new(&Tensor::empty(sizes, made)?)
}

/// Refuses a size that is not above 0.
pub(crate) fn positive(layer: &str, what: &str, size: i64) -> Result<()> {
    if size > 0 {
        return Ok(());
    }
    Err(Error::invalid_argument(format!("{what} must be above 0, and is {size}"))
        .in_operation(layer))
}

/// As Python writes truth.
pub(crate) fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// As Python writes a number: `2.0`, `1e-05`.
pub(crate) fn number(value: f64) -> String {
    let magnitude = value.abs();
    if value == value.trunc() && magnitude < 1e16 {
        return format!("{value:.1}");
    }
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) && value.is_finite() {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) =
            exponent.strip_prefix('-').map_or(("+", exponent), |exponent| ("-", exponent));
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    value.to_string()
}

/// As Python writes a tuple: `(3,)`, `(3, 4)`.
pub(crate) fn tuple(values: &[i64]) -> String {
    match values {
        [one] => format!("({one},)"),
        many => {
            format!("({})", many.iter().map(i64::to_string).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        // Each is what `repr` of Python 3 gives.
        let expected = ["0.1", "1e-05", "1.0", "0.0", "1.5e-07", "0.3333333333333333", "1e+16"];
        let values = [0.1, 1e-5, 1.0, 0.0, 1.5e-7, 1.0 / 3.0, 1e16];
        for (value, expected) in values.into_iter().zip(expected) {
            assert_eq!(number(value), expected);
        }
        assert_eq!((tuple(&[3]), tuple(&[3, 4])), ("(3,)".to_string(), "(3, 4)".to_string()));
    }
}
