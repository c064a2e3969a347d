//! `#[derive(Module)]`: the visit of a struct's fields, and what else `Module` needs to know of the
//! struct. What the visit is for is in `plimsoll-nn`, `src/module.rs`. The attributes are read in
//! `attributes.rs`; nothing else is decided here: which fields are parameters, children or plain
//! data follows from their types.

#![forbid(unsafe_code)]

mod attributes;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, Fields, Type, parse_macro_input, parse_quote};

use attributes::{OfField, OfStruct};

/// Makes a struct a module: its parameters, buffers and children are found by their types.
///
/// On the struct:
/// - `#[module(extra_repr = function)]`: `function(&self) -> String` is what is printed between
///   the parentheses, as PyTorch's `extra_repr`.
/// - `#[module(visit = function)]`: `function(&self, visitor)` visits what the fields alone do not
///   tell, after them.
/// - `#[module(name = "Name")]`: another name of the type, where it is printed.
/// - `#[module(crate = path)]`: where `plimsoll_nn` is, if it was renamed.
///
/// On a field:
/// - `#[module(skip)]`: the field is none of the module's business.
/// - `#[module(rename = "name")]`: another name in keys and paths.
#[proc_macro_derive(Module, attributes(module))]
pub fn derive_module(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    module(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn module(input: &DeriveInput) -> syn::Result<TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(
            &input.ident,
            "`Module` is derived for structs; for an enum, implement it by hand and visit the variant's module",
        ));
    };
    if let Some(lifetime) = input.generics.lifetimes().next() {
        return Err(Error::new_spanned(
            lifetime,
            "a module owns what it is made of: it cannot have a lifetime",
        ));
    }
    let OfStruct { nn, extra_repr, visit, name: shown, builtin } = OfStruct::read(&input.attrs)?;
    let fields = visits(&data.fields, &nn)?;
    let hooks = hooks(&data.fields, &nn)?;
    let extra_repr = extra_repr.map(|function| {
        quote! { fn extra_repr(&self) -> ::std::string::String { #function(self) } }
    });
    let builtin = builtin.then(|| quote! { fn is_builtin(&self) -> bool { true } });
    let more = visit.map(|function| quote! { #function(self, visitor); });
    let (name, text) = (&input.ident, shown.unwrap_or_else(|| input.ident.to_string()));
    let mut generics = input.generics.clone();
    for parameter in generics.type_params_mut() {
        parameter.bounds.push(parse_quote!(#nn::Module));
    }
    let (generics, types, bounds) = generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #generics #nn::Module for #name #types #bounds {
            fn visit<'m>(&'m self, visitor: &mut dyn #nn::Visitor<'m>) {
                #(#fields)*
                #more
            }
            fn as_dyn(&self) -> &dyn #nn::Module {
                self
            }
            fn type_name(&self) -> &'static str {
                #text
            }
            #hooks
            #extra_repr
            #builtin
        }

        #[automatically_derived]
        impl #generics ::std::fmt::Display for #name #types #bounds {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                #nn::write_tree(self, f)
            }
        }
    })
}

/// The visits of all fields that are not skipped, each at the place of its type, so that a type
/// that cannot be a field is underlined.
fn visits(fields: &Fields, nn: &TokenStream) -> syn::Result<Vec<TokenStream>> {
    let mut visits = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let OfField { skip, rename } = OfField::read(&field.attrs)?;
        if skip || is_hooks(field) {
            continue;
        }
        let member = member(at, field);
        let name = rename.unwrap_or_else(|| field_name(at, field));
        let ty = &field.ty;
        visits.push(quote_spanned! { ty.span() =>
            <#ty as #nn::Field>::visit(&self.#member, #nn::Name::Field(#name), visitor);
        });
    }
    Ok(visits)
}

/// The method that gives the hooks, if the struct has a field for them.
fn hooks(fields: &Fields, nn: &TokenStream) -> syn::Result<Option<TokenStream>> {
    let mut found = fields.iter().enumerate().filter(|(_, field)| is_hooks(field));
    let Some((at, first)) = found.next() else { return Ok(None) };
    if let Some((_, second)) = found.next() {
        return Err(Error::new_spanned(second, "a module has one field of type `Hooks`"));
    }
    let member = member(at, first);
    Ok(Some(quote! {
        fn hooks(&self) -> ::std::option::Option<&#nn::Hooks> {
            ::std::option::Option::Some(&self.#member)
        }
    }))
}

fn is_hooks(field: &Field) -> bool {
    let Type::Path(path) = &field.ty else { return false };
    path.path.segments.last().is_some_and(|last| last.ident == "Hooks")
}

fn member(at: usize, field: &Field) -> syn::Member {
    match &field.ident {
        Some(ident) => syn::Member::Named(ident.clone()),
        None => syn::Member::Unnamed(syn::Index { index: at as u32, span: Span::call_site() }),
    }
}

/// The field's name in keys: a raw identifier without its prefix, a tuple's place as a number.
fn field_name(at: usize, field: &Field) -> String {
    field.ident.as_ref().map_or_else(
        || at.to_string(),
        |ident| ident.to_string().trim_start_matches("r#").to_string(),
    )
}
