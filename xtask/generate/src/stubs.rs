//! The stub file of the Python module: the types of its methods and functions for checkers and
//! editors, from the registry's signatures and a template written by hand. `generate.rs` writes it.

use std::collections::BTreeMap;
use std::fmt::Write;

use plimsoll_tensor::signature::{Kind, Parameter, Returns, Signature};

use crate::{NOTICE, Operation, Overload};

/// The stub file: the hand-written template with the generated methods and functions in their
/// places. What the template says of a name by hand is not said once more: Python takes more forms
/// of it than the signatures.
pub(crate) fn stubs(families: &BTreeMap<&str, Vec<Operation>>, template: &str) -> String {
    let (mut methods, mut functions) = (String::new(), String::new());
    let of_tensor = template.split_once("\nclass Tensor:").map_or("", |(_, rest)| rest);
    let is_method_by_hand = |name: &str| of_tensor.contains(&format!("\n    def {name}("));
    let is_function_by_hand = |name: &str| template.contains(&format!("\ndef {name}("));
    for operation in families.values().flatten() {
        let name = operation.name();
        let (own, all): (Vec<&Overload>, Vec<&Overload>) = (
            operation.overloads.iter().filter(|overload| overload.signature.is_method()).collect(),
            operation.overloads.iter().collect(),
        );
        if !is_method_by_hand(name) {
            stub(&mut methods, "    ", name, &own, |overload| {
                stub_parameters(&overload.signature, true, false)
            });
        }
        if operation.info.in_place && !operation.writes() {
            stub(&mut methods, "    ", &format!("{name}_"), &own, |overload| {
                stub_parameters(&overload.signature, true, false)
            });
        }
        if !operation.writes() && !is_function_by_hand(name) {
            let out = operation.info.out.exists();
            stub(&mut functions, "", name, &all, |overload| {
                stub_parameters(&overload.signature, false, out)
            });
        }
    }
    let text = template
        .replace("    # methods of operations\n", &methods)
        .replace("# functions of operations\n", &functions);
    format!("# {NOTICE}\n{text}")
}

/// One name, with `@overload` where it has several signatures.
fn stub(
    text: &mut String,
    indent: &str,
    name: &str,
    overloads: &[&Overload],
    parameters: impl Fn(&Overload) -> String,
) {
    for overload in overloads {
        if overloads.len() > 1 {
            let _ = writeln!(text, "{indent}@overload");
        }
        let results = results_type(&overload.signature);
        let _ = writeln!(text, "{indent}def {name}({}) -> {results}: ...", parameters(overload));
    }
}

/// Several results with names are a class of the template, which is called by them.
fn results_type(signature: &Signature) -> String {
    let names = &signature.results;
    if names.len() > 1 && names.iter().all(|name| !name.is_empty()) {
        return format!("_{}", names.join("_"));
    }
    targets_type(signature)
}

/// What `out=` takes: tensors in a tuple, whatever the results are called.
fn targets_type(signature: &Signature) -> String {
    match signature.results.len() {
        _ if signature.returns == Returns::Bool => "_bool".to_string(),
        _ if signature.returns == Returns::List => "tuple[Tensor, ...]".to_string(),
        1 => "Tensor".to_string(),
        count => format!("tuple[{}]", vec!["Tensor"; count].join(", ")),
    }
}

fn stub_parameters(signature: &Signature, as_method: bool, has_out: bool) -> String {
    let mut parts = Vec::new();
    let mut parameters = signature.parameters.as_slice();
    if as_method {
        parts.push("self".to_string());
        parameters = &parameters[1..];
    }
    let positional = parameters.iter().filter(|parameter| !parameter.keyword_only).count();
    let one_by_one = as_method
        && positional == 1
        && matches!(parameters, [Parameter { kind: Kind::Ints, default: None, .. }, ..]);
    let mut starred = one_by_one;
    for parameter in parameters {
        // `from` is a word of the language; it can only be given by place.
        let name = match parameter.name.as_str() {
            "self" => "input",
            "from" => "from_",
            name => name,
        };
        if one_by_one && !parameter.keyword_only {
            parts.push(format!("*{name}: _int | Sequence[_int]"));
            continue;
        }
        if parameter.keyword_only && !starred {
            parts.push("*".to_string());
            starred = true;
        }
        let default = parameter.default.as_ref().map(|default| match default.as_str() {
            "[]" => " = ()".to_string(),
            other => format!(" = {other}"),
        });
        parts.push(format!("{name}: {}{}", stub_type(parameter.kind), default.unwrap_or_default()));
    }
    if has_out {
        if !starred {
            parts.push("*".to_string());
        }
        parts.push(format!("out: {} | None = None", targets_type(signature)));
    }
    parts.join(", ")
}

fn stub_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Tensor => "Tensor",
        Kind::OptionalTensor => "Tensor | None",
        Kind::TensorOrNumber => "Tensor | _float",
        Kind::Tensors => "Sequence[Tensor]",
        Kind::OptionalTensors => "Sequence[Tensor | None]",
        Kind::Number | Kind::Float => "_float",
        Kind::OptionalNumber | Kind::OptionalFloat => "_float | None",
        Kind::Int => "_int",
        Kind::OptionalInt => "_int | None",
        Kind::Ints => "_int | Sequence[_int]",
        Kind::OptionalInts => "_int | Sequence[_int] | None",
        Kind::Floats => "_float | Sequence[_float]",
        Kind::OptionalFloats => "_float | Sequence[_float] | None",
        Kind::OptionalBool => "_bool | None",
        Kind::OptionalGenerator => "Generator | None",
        Kind::Bool => "_bool",
        Kind::Text => "str",
        Kind::OptionalText => "str | None",
        Kind::DType => "_dtype",
        Kind::OptionalDType => "_dtype | None",
        Kind::OptionalDevice => "_device | str | None",
        Kind::OptionalMemoryFormat => "memory_format | None",
        Kind::OptionalLayout => "_layout | None",
    }
}
