//! What `#[module(..)]` says on a struct and on its fields, and where the generated code finds
//! `plimsoll_nn`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, LitStr, Path};

/// What the struct's attributes say.
pub(crate) struct OfStruct {
    /// The path of `plimsoll_nn`.
    pub(crate) nn: TokenStream,
    pub(crate) extra_repr: Option<Path>,
    pub(crate) visit: Option<Path>,
    /// Another name of the type, where it is printed.
    pub(crate) name: Option<String>,
    /// A layer of `plimsoll_nn` itself, whose operations are booked at its caller's line.
    pub(crate) builtin: bool,
}

impl OfStruct {
    pub(crate) fn read(attributes: &[Attribute]) -> syn::Result<OfStruct> {
        let mut found = OfStruct {
            nn: crate_path(),
            extra_repr: None,
            visit: None,
            name: None,
            builtin: false,
        };
        each(attributes, |meta| {
            if meta.path.is_ident("extra_repr") {
                found.extra_repr = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("visit") {
                found.visit = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("name") {
                found.name = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("crate") {
                found.nn = meta.value()?.parse::<Path>()?.to_token_stream();
            } else if meta.path.is_ident("builtin") {
                found.builtin = true;
            } else {
                return Err(meta.error(
                    "a module's attributes are `extra_repr = function`, `visit = function`, `name = \"Name\"` and `crate = path`",
                ));
            }
            Ok(())
        })?;
        Ok(found)
    }
}

/// What a field's attributes say.
#[derive(Default)]
pub(crate) struct OfField {
    pub(crate) skip: bool,
    pub(crate) rename: Option<String>,
}

impl OfField {
    pub(crate) fn read(attributes: &[Attribute]) -> syn::Result<OfField> {
        let mut found = OfField::default();
        each(attributes, |meta| {
            if meta.path.is_ident("skip") {
                found.skip = true;
            } else if meta.path.is_ident("rename") {
                found.rename = Some(meta.value()?.parse::<LitStr>()?.value());
            } else {
                return Err(meta.error("a field's attributes are `skip` and `rename = \"name\"`"));
            }
            Ok(())
        })?;
        Ok(found)
    }
}

fn each(
    attributes: &[Attribute],
    mut read: impl FnMut(ParseNestedMeta<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("module")) {
        attribute.parse_nested_meta(&mut read)?;
    }
    Ok(())
}

/// Programs depend on `plimsoll`, which has the crate as `nn`; others name the crate itself in
/// their manifest. Whoever renames either says where it is.
fn crate_path() -> TokenStream {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .and_then(|folder| {
            std::fs::read_to_string(std::path::Path::new(&folder).join("Cargo.toml")).ok()
        })
        .unwrap_or_default();
    if manifest.contains("plimsoll-nn") { quote!(::plimsoll_nn) } else { quote!(::plimsoll::nn) }
}
