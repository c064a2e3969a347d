//! Layers without parameters: a struct of PyTorch's arguments and one call of an operation. One
//! form for all of them; each name, default and call is spelled out where the layer is declared.

/// Declares layers: arguments that must be given, those with defaults (each with a setter of its
/// name), what is printed, and what is computed of which input.
macro_rules! layers {
    ($(
        $(#[$doc:meta])*
        $name:ident($($(#[$given_doc:meta])* $given:ident: $given_type:ty),*) {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = $default:expr,)*
        }
        prints($of:ident) $text:expr;
        computes($this:ident, $input:pat = $input_type:ty) -> $output:ty $body:block
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, plimsoll_nn_derive::Module)]
            #[module(builtin, extra_repr = $name::describe)]
            pub struct $name {
                $($(#[$given_doc])* pub $given: $given_type,)*
                $($(#[$field_doc])* pub $field: $type,)*
                /// Functions that see the calls.
                pub hooks: $crate::Hooks,
            }

            impl $name {
                /// PyTorch's defaults.
                #[allow(clippy::new_without_default)]
                pub fn new($($given: impl Into<$given_type>),*) -> $name {
                    $name {
                        $($given: $given.into(),)*
                        $($field: $default,)*
                        hooks: $crate::Hooks::default(),
                    }
                }

                $(
                    $(#[$field_doc])*
                    #[must_use]
                    pub fn $field(mut self, $field: impl Into<$type>) -> $name {
                        self.$field = $field.into();
                        self
                    }
                )*

                fn describe(&self) -> String {
                    let $of = self;
                    String::from($text)
                }
            }

            impl $crate::Forward<$input_type> for $name {
                type Output = $output;

                #[track_caller]
                fn forward(&self, $input: $input_type) -> plimsoll_tensor::Result<$output> {
                    let _site = $crate::call::at_caller();
                    let $this = self;
                    $body
                }
            }
        )*
    };
}
pub(crate) use layers;

/// `inplace=True` after what else is printed, as PyTorch prints it.
pub(crate) fn with_inplace(text: String, inplace: bool) -> String {
    match (text.is_empty(), inplace) {
        (_, false) => text,
        (true, true) => "inplace=True".to_string(),
        (false, true) => format!("{text}, inplace=True"),
    }
}
