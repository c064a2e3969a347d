//! Layers one after the other.

use plimsoll_tensor::{Result, Tensor};

use crate::call::site_for;
use crate::{Forward, Hooks, Layer, Module, Name, Visitor};

/// Runs layers one after the other, each on the result of the one before.
///
/// ```
/// use plimsoll_nn::{Forward, Linear, ReLU, Sequential};
/// use plimsoll_tensor::{DType, Tensor};
/// let net = Sequential::new()
///     .append_named("hidden", Linear::new(2, 8)?)
///     .append(ReLU::new())
///     .append(Linear::new(8, 1)?);
/// assert_eq!(net.call(&Tensor::zeros(&[5, 2], DType::F32)?)?.shape(), [5, 1]);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[derive(Default, Module)]
#[module(builtin, visit = Sequential::visit_layers)]
pub struct Sequential {
    #[module(skip)]
    layers: Vec<(Option<String>, Box<dyn Layer>)>,
    /// Functions that see the calls.
    pub hooks: Hooks,
}

impl Sequential {
    /// No layers: gives its input on.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// One more layer, named by its place.
    #[must_use]
    pub fn append(mut self, layer: impl Layer) -> Sequential {
        self.layers.push((None, Box::new(layer)));
        self
    }

    /// One more layer with a name of its own.
    #[must_use]
    pub fn append_named(mut self, name: impl Into<String>, layer: impl Layer) -> Sequential {
        self.layers.push((Some(name.into()), Box::new(layer)));
        self
    }

    /// How many layers there are.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The layer at a place.
    pub fn get(&self, index: usize) -> Option<&dyn Layer> {
        self.layers.get(index).map(|(_, layer)| &**layer)
    }

    /// The layers in order.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Layer> {
        self.layers.iter().map(|(_, layer)| &**layer)
    }

    fn visit_layers<'m>(&'m self, visitor: &mut dyn Visitor<'m>) {
        for (index, (name, layer)) in self.layers.iter().enumerate() {
            let name = name.as_deref().map_or(Name::Index(index), Name::Key);
            visitor.module(name, layer.as_dyn());
        }
    }
}

impl Forward<&Tensor> for Sequential {
    type Output = Tensor;

    #[track_caller]
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        let mut value = input.clone();
        for (_, layer) in &self.layers {
            let _site = site_for(layer.as_dyn());
            value = layer.call(&value)?;
        }
        Ok(value)
    }
}

impl std::fmt::Debug for Sequential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// [`Sequential`] of the given layers.
///
/// ```
/// use plimsoll_nn::{Linear, Tanh, sequential};
/// assert_eq!(sequential![Linear::new(2, 3)?, Tanh::new()].len(), 2);
/// # Ok::<(), plimsoll_tensor::Error>(())
/// ```
#[macro_export]
macro_rules! sequential {
    ($($layer:expr),* $(,)?) => {
        $crate::Sequential::new()$(.append($layer))*
    };
}
