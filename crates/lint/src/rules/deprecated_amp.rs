//! `deprecated-amp`: `torch.cuda.amp` and `torch.cpu.amp`, which PyTorch deprecates in favour of
//! `torch.amp` with the device as an argument.

use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::{Check, Rule};
use crate::finding::Edit;
use crate::model::expression::path;

pub(crate) static RULE: Rule = Rule {
    name: "deprecated-amp",
    code: "PLM032",
    summary: "`torch.cuda.amp` is deprecated",
    pedantic: true,
    page: include_str!("../../pages/deprecated-amp.md"),
    check,
};

fn check(check: &mut Check<'_, '_>) {
    let file = check.file;
    for scope in &file.scopes {
        for item in &scope.items {
            let Stmt::ImportFrom(import) = item.stmt else { continue };
            let module = import.module.as_ref().map_or("", |module| module.as_str());
            let names = import.names.iter().any(|alias| {
                ["autocast", "GradScaler", "custom_fwd", "custom_bwd"]
                    .contains(&alias.name.as_str())
            });
            if let Some(device) = device_of(module).filter(|_| names) {
                check.report(
                    import.range(),
                    format!("`{module}` is deprecated and warns at each use"),
                    format!(
                        "import from `torch.amp` and pass the device: `autocast(\"{device}\")`"
                    ),
                );
            }
        }
        for (_, call) in scope.calls() {
            let Some(full) = path(&call.func) else { continue };
            let (Some((module, name)), true) =
                (full.rsplit_once('.'), matches!(&*call.func, Expr::Attribute(_)))
            else {
                continue;
            };
            let Some(device) =
                device_of(module).filter(|_| matches!(name, "autocast" | "GradScaler"))
            else {
                continue;
            };
            // The old first argument was `enabled`; a positional one would change its meaning.
            let edits = if call.arguments.args.is_empty() {
                let empty = call.arguments.keywords.is_empty();
                let open = call.arguments.range.start().to_usize() + 1;
                let text = if empty { format!("\"{device}\"") } else { format!("\"{device}\", ") };
                vec![
                    Edit::replace(call.func.range(), format!("torch.amp.{name}")),
                    Edit::insert(open, text),
                ]
            } else {
                Vec::new()
            };
            check.report_fix(
                call.range(),
                format!("`{full}` is deprecated and warns at each use"),
                format!("use `torch.amp.{name}(\"{device}\")`"),
                edits,
            );
        }
    }
}

fn device_of(module: &str) -> Option<&'static str> {
    match module {
        "torch.cuda.amp" | "torch.cuda.amp.autocast_mode" | "torch.cuda.amp.grad_scaler" => {
            Some("cuda")
        }
        "torch.cpu.amp" => Some("cpu"),
        _ => None,
    }
}
