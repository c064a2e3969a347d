//! Classes of the file: what they derive from, their methods, and what their attributes hold across
//! methods.

use std::collections::{HashMap, HashSet};

use ruff_python_ast::{Expr, StmtClassDef};

use super::File;
use super::expression::last_name;
use super::value::Value;

#[derive(Debug)]
pub(crate) struct Class<'a> {
    pub(crate) def: &'a StmtClassDef,
    /// The scopes of its methods.
    pub(crate) methods: Vec<usize>,
    /// Derives from `nn.Module` or from something that does.
    pub(crate) is_module: bool,
    pub(crate) is_dataset: bool,
    /// Derives from Lightning's module, whose hooks run under a mode that the framework chooses.
    pub(crate) is_lightning: bool,
    /// Holds a layer that behaves differently in evaluation, with its name.
    pub(crate) mode_layer: Option<String>,
    /// `self.x` by name.
    pub(crate) attributes: HashMap<String, Value>,
    /// The `self.x` that methods use as modules.
    pub(super) used_as_module: HashSet<String>,
}

impl<'a> Class<'a> {
    pub(super) fn new(def: &'a StmtClassDef) -> Class<'a> {
        Class {
            def,
            methods: Vec::new(),
            is_module: false,
            is_dataset: false,
            is_lightning: false,
            mode_layer: None,
            attributes: HashMap::new(),
            used_as_module: HashSet::new(),
        }
    }

    pub(crate) fn name(&self) -> &'a str {
        &self.def.name
    }

    fn bases(&self) -> &'a [Expr] {
        self.def.arguments.as_deref().map(|arguments| &*arguments.args).unwrap_or_default()
    }
}

/// Layers whose output depends on `train()` or `eval()`.
pub(crate) fn mode_layer(full: &str) -> Option<&str> {
    let name = full.rsplit('.').next()?;
    let is = name.starts_with("BatchNorm")
        || name == "SyncBatchNorm"
        || name.starts_with("Dropout")
        || name == "AlphaDropout";
    is.then_some(name)
}

impl<'a> File<'a> {
    pub(super) fn read_classes(&mut self) {
        // Bases may be classes further down; a few rounds settle every chain that occurs.
        for _ in 0..4 {
            for number in 0..self.classes.len() {
                let (mut module, mut dataset, mut lightning) = (false, false, false);
                for base in self.classes[number].bases() {
                    let full = self.qualified(base).unwrap_or_default();
                    let name = last_name(base).unwrap_or_default();
                    let own = self.class_named(name).map(|number| &self.classes[number]);
                    lightning |=
                        name == "LightningModule" || own.is_some_and(|own| own.is_lightning);
                    module |= full.starts_with("torch.nn.")
                        || ["Module", "LightningModule", "PreTrainedModel"].contains(&name)
                        || own.is_some_and(|own| own.is_module);
                    dataset |= full.starts_with("torch.utils.data.") && full.ends_with("Dataset")
                        || ["Dataset", "VisionDataset"].contains(&name)
                        || own.is_some_and(|own| own.is_dataset);
                }
                let class = &mut self.classes[number];
                class.is_module = module;
                class.is_dataset = dataset;
                class.is_lightning = lightning;
            }
        }
        for scope in &self.scopes {
            let Some(class) = scope.class.filter(|_| scope.function().is_some()) else { continue };
            let layer = scope.calls().find_map(|(_, call)| {
                let full = self.callee(call)?;
                full.starts_with("torch.nn.").then(|| mode_layer(&full).map(str::to_string))?
            });
            if layer.is_some() && self.classes[class].is_module {
                self.classes[class].mode_layer = layer;
            }
        }
    }

    /// Whether a class derives from one of another file, which may call its methods.
    pub(crate) fn derives_from_elsewhere(&self, class: usize) -> bool {
        self.classes[class].bases().iter().any(|base| {
            let name = last_name(base).unwrap_or_default();
            !matches!(name, "object" | "ABC") && self.class_named(name).is_none()
        })
    }

    /// The class of the file with this name.
    pub(crate) fn class_named(&self, name: &str) -> Option<usize> {
        self.class_names.get(name).copied()
    }
}
