//! Where a snapshot's values go. The order and names of the values are `layout.rs`; a sink only
//! knows how to write a dictionary, a list, a number or a text in its format.

/// One output format. Calls nest: after `begin_dict` come `key` and a value in turn until
/// `end_dict`; after `begin_list` come values until `end_list`.
pub(super) trait Sink {
    fn begin_dict(&mut self);
    fn end_dict(&mut self);
    fn begin_list(&mut self);
    fn end_list(&mut self);
    fn key(&mut self, name: &str);
    fn text(&mut self, text: &str);
    fn integer(&mut self, value: i128);
    fn float(&mut self, value: f64);
    fn flag(&mut self, value: bool);
    /// A tuple of two integers.
    fn pair(&mut self, first: i128, second: i128);
    /// A value that other places refer to again under the same number: `again` answers whether it
    /// was written before (then a reference has been written and nothing is left to do); `first`
    /// follows the value's first writing.
    fn again(&mut self, shared: u32) -> bool;
    fn first(&mut self, shared: u32);
}
