//! What constructors make: layers, losses, optimizers, loaders, scalers, devices and objects of the
//! file's own classes. What functions of tensors yield is in `tensor_calls`.

use ruff_python_ast::{Expr, ExprCall};
use ruff_text_size::Ranged;

use super::expression::{is_false, is_true, keyword, passes_unseen};
use super::scope::Scope;
use super::value::{Loader, Module, Residence, Value};
use super::{File, class, tensor_calls};

impl<'a> File<'a> {
    /// What calling something known by its full name yields.
    pub(super) fn infer_known(
        &self,
        scope: &Scope<'a>,
        call: &ExprCall,
        full: &str,
        item: usize,
    ) -> Option<Value> {
        if let Some(value) = self.torch_call(scope, call, full, item) {
            return Some(value);
        }
        let last = full.rsplit('.').next().unwrap_or(full);
        match full {
            "torch.utils.data.DataLoader" => Some(Value::Loader(loader(call))),
            "torch.device" => Some(Value::Device(match call.arguments.args.first() {
                Some(device) => tensor_calls::place_of_text(device),
                None => Residence::Unknown,
            })),
            _ if last == "GradScaler" => Some(Value::Scaler),
            _ if full.starts_with("torch.optim.") && !full.contains("lr_scheduler") => {
                Some(Value::Optimizer)
            }
            _ if full.starts_with("torch.nn.parallel.") || full == "torch.nn.DataParallel" => {
                let inner = call.arguments.args.first();
                let inner = inner.map(|inner| self.infer(scope, inner, item));
                let module = match inner {
                    Some(Value::Module(module)) => module,
                    _ => Module::default(),
                };
                let data_parallel = last == "DataParallel";
                Some(Value::Module(Module { data_parallel, certain: true, ..module }))
            }
            _ if full.starts_with("torch.nn.") && last.starts_with(char::is_uppercase) => {
                Some(self.layer(call, last))
            }
            _ if full.starts_with("torchvision.models.") || full == "timm.create_model" => {
                let mode_layer =
                    Some("BatchNorm2d".to_string()).filter(|_| last.contains("resnet"));
                Some(Value::Module(Module { mode_layer, certain: true, ..Default::default() }))
            }
            _ if full.starts_with("numpy.") => Some(Value::Array),
            _ => None,
        }
    }

    fn layer(&self, call: &ExprCall, name: &str) -> Value {
        if name.ends_with("Loss") {
            return Value::Criterion;
        }
        let inner = |expr: &Expr| {
            let call = expr.as_call_expr()?;
            class::mode_layer(&self.callee(call)?).map(str::to_string)
        };
        let mode_layer = match class::mode_layer(name) {
            Some(layer) => Some(layer.to_string()),
            None => call.arguments.args.iter().find_map(inner),
        };
        let recurrent = matches!(name, "RNN" | "LSTM" | "GRU" | "RNNCell" | "LSTMCell" | "GRUCell");
        Value::Module(Module { mode_layer, recurrent, certain: true, ..Default::default() })
    }

    pub(super) fn instance(&self, class: usize) -> Value {
        let known = &self.classes[class];
        if known.is_module && known.name().ends_with("Loss") {
            return Value::Criterion;
        }
        if !known.is_module {
            return Value::Instance(class);
        }
        let mode_layer = known.mode_layer.clone();
        Value::Module(Module {
            class: Some(class),
            mode_layer,
            certain: true,
            ..Default::default()
        })
    }
}

fn loader(call: &ExprCall) -> Loader {
    let pinned = match keyword(call, "pin_memory") {
        Some(value) if is_true(value) => Some(true),
        Some(value) if is_false(value) => Some(false),
        Some(_) => None,
        None if passes_unseen(call) || call.arguments.args.len() > 7 => None,
        None => Some(false),
    };
    Loader { pinned, made: call.range() }
}
