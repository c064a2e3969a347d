//! `plimsoll ops`: the registry as a table, or as JSON. Nothing is written here by hand: what the
//! registry does not say, the table does not show.

use anstream::println;
use plimsoll_core::{DType, Result};
use plimsoll_tensor::operation::{DTypes, OpInfo};
use serde_json::{Value, json};

use crate::args::{Format, Ops};

pub(crate) fn run(options: &Ops) -> Result<()> {
    match options.format {
        Format::Text => print_table(),
        Format::Json => {
            let rows: Vec<Value> = plimsoll_tensor::ops().map(object).collect();
            println!("{:#}", Value::Array(rows));
        }
    }
    Ok(())
}

fn object(op: &'static OpInfo) -> Value {
    let dtypes: Vec<&str> = op.dtypes.iter().map(|dtype| dtype.name()).collect();
    json!({
        "name": op.name,
        "family": op.family,
        "signatures": op.signatures,
        "summary": op.summary(),
        "differentiable": op.differentiable,
        "in_place": op.in_place,
        "out": op.out.exists(),
        "cuda": op.cuda.exists(),
        "dtypes": dtypes,
    })
}

fn print_table() {
    const BOLD: &str = "\x1b[1m";
    const PLAIN: &str = "\x1b[0m";
    let mut family = "";
    println!("{BOLD}{:16} grad  name_  out=  cuda  dtypes{PLAIN}", "operation");
    for op in plimsoll_tensor::ops() {
        if op.family != family {
            family = op.family;
            println!("{BOLD}{family}{PLAIN}");
        }
        let mark = |has: bool| if has { "yes" } else { "-" };
        println!(
            "  {:14} {:4}  {:5}  {:4}  {:4}  {}",
            op.name,
            mark(op.differentiable),
            mark(op.in_place),
            mark(op.out.exists()),
            mark(op.cuda.exists()),
            dtypes(op.dtypes),
        );
    }
    println!("{} operations", plimsoll_tensor::ops().count());
}

/// The dtypes in few columns: their number of all, or their names if they are few.
fn dtypes(dtypes: DTypes) -> String {
    let all_of = |class: fn(DType) -> bool| {
        DType::ALL.iter().all(|dtype| class(*dtype) == dtypes.contains(*dtype))
    };
    if dtypes == DTypes::ALL {
        "all".to_string()
    } else if all_of(DType::is_float) {
        "floats".to_string()
    } else if all_of(|dtype| dtype != DType::Bool) {
        "all but bool".to_string()
    } else {
        dtypes.iter().map(DType::name).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_an_object_with_all_its_facts() {
        for op in plimsoll_tensor::ops() {
            let object = object(op);
            assert_eq!(object["name"], op.name);
            assert_eq!(object.as_object().unwrap().len(), 9);
        }
    }

    #[test]
    fn groups_of_dtypes_have_names() {
        assert_eq!(dtypes(DTypes::ALL), "all");
        assert_eq!(dtypes(DTypes::FLOATS), "floats");
        assert_eq!(dtypes(DTypes::of(&[DType::I64, DType::I32])), "int32 int64");
    }
}
