//! What pooling takes, and how large its result is: PyTorch's rules, checked before anything is
//! computed.

use plimsoll_core::{Error, Result};
use plimsoll_kernels::cpu::pool::Window;
use plimsoll_kernels::cpu::unfold::UnfoldArgs;

use super::Windows;
pub(crate) use crate::ops::conv::shape::batched;
use crate::ops::conv::space_of;

/// The four sizes of a batch of images, which the methods have checked.
pub(super) fn image(shape: &[usize]) -> [usize; 4] {
    [shape[0], shape[1], shape[2], shape[3]]
}

/// A call: its name, its spatial dimensions, its input with the batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called<'a> {
    pub(crate) operation: &'static str,
    pub(crate) rank: usize,
    pub(crate) input: &'a [usize],
}

/// Even windows as they are asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Even<'a> {
    pub(crate) kernel: &'a [i64],
    /// Empty: the kernel's.
    pub(crate) stride: &'a [i64],
    pub(crate) padding: &'a [i64],
    pub(crate) dilation: &'a [i64],
    pub(crate) ceil_mode: bool,
}

impl Called<'_> {
    pub(crate) fn refuse<T>(&self, why: String) -> Result<T> {
        Err(Error::shape(self.operation, why))
    }

    /// `rank` numbers of at least `least`; one stands for all.
    pub(crate) fn list(&self, name: &str, given: &[i64], least: i64) -> Result<[usize; 3]> {
        if given.len() != 1 && given.len() != self.rank {
            return self.refuse(format!(
                "{name} must be one int or a list of {} ints, but got {given:?}",
                self.rank
            ));
        }
        let mut list = [1; 3];
        for (at, place) in list[3 - self.rank..].iter_mut().enumerate() {
            let value = if given.len() == 1 { given[0] } else { given[at] };
            if value < least {
                let sort = if least == 0 { "non-negative" } else { "greater than zero" };
                return self.refuse(format!("{name} must be {sort}, but got {given:?}"));
            }
            *place = value as usize;
        }
        Ok(list)
    }

    /// All sizes but the batch's, and of pooling into places the channels', must be there.
    pub(crate) fn check_input(&self) -> Result<()> {
        if self.input[1..].contains(&0) {
            return self.refuse(format!(
                "expected an input whose sizes are not zero except that of the batch, but got {:?}",
                self.input
            ));
        }
        Ok(())
    }

    /// Even windows and how many there are.
    pub(crate) fn even(&self, asked: &Even<'_>) -> Result<Windows> {
        let kernel = self.list("kernel_size", asked.kernel, 1)?;
        let stride = match asked.stride {
            [] => kernel,
            given => self.list("stride", given, 1)?,
        };
        let padding = self.list("padding: pad", asked.padding, 0)?;
        let dilation = self.list("dilation", asked.dilation, 1)?;
        let size = space_of(self.input);
        let mut found = Windows { rank: self.rank, windows: [Window::NONE; 3], results: [1; 3] };
        for d in 3 - self.rank..3 {
            let span = (kernel[d] - 1).checked_mul(dilation[d]).and_then(|n| n.checked_add(1));
            let Some(span) = span.filter(|&span| span <= i64::MAX as usize) else {
                return self.refuse(format!(
                    "the effective kernel size overflows: kernel_size {} with dilation {}",
                    kernel[d], dilation[d]
                ));
            };
            if padding[d] > span / 2 {
                return self.refuse(format!(
                    "pad should be at most half of effective kernel size, but got pad={}, kernel_size={} and \
                     dilation={}",
                    padding[d], kernel[d], dilation[d]
                ));
            }
            let results = results(
                size[d] as i128,
                padding[d] as i128,
                span as i128,
                stride[d] as i128,
                asked.ceil_mode,
            );
            if results < 1 || results > i64::MAX as i128 {
                return self.refuse(format!(
                    "Invalid computed output size: {results}: an input of shape {:?} with kernel_size={:?}, \
                     stride={:?}, padding={:?}, dilation={:?}; the output size is too small",
                    self.input, asked.kernel, asked.stride, asked.padding, asked.dilation
                ));
            }
            found.results[d] = results as usize;
            found.windows[d] = Window::Even {
                kernel: kernel[d],
                stride: stride[d],
                padding: padding[d],
                dilation: dilation[d],
            };
        }
        Ok(found)
    }

    /// As many windows as asked for.
    pub(crate) fn adaptive(&self, output_size: &[i64]) -> Result<Windows> {
        if output_size.len() != self.rank && !(output_size.len() == 1 && self.rank > 1) {
            return self.refuse(format!(
                "output_size must be {} ints ('output_size' should contain one int for each dimension), but got \
                 {output_size:?}",
                self.rank
            ));
        }
        let results = self.list(
            "output_size: elements of output_size must be greater than or equal to 0; it",
            output_size,
            0,
        )?;
        let mut windows = [Window::NONE; 3];
        windows[3 - self.rank..].fill(Window::Adaptive);
        Ok(Windows { rank: self.rank, windows, results })
    }

    /// The windows of an unfolded image.
    pub(crate) fn unfold(
        &self,
        kernel: &[i64],
        dilation: &[i64],
        padding: &[i64],
        stride: &[i64],
    ) -> Result<UnfoldArgs> {
        let last = |list: [usize; 3]| [list[1], list[2]];
        let args = UnfoldArgs {
            kernel: last(self.list("kernel_size", kernel, 1)?),
            dilation: last(self.list("dilation", dilation, 1)?),
            padding: last(self.list("padding", padding, 0)?),
            stride: last(self.list("stride", stride, 1)?),
        };
        for d in 0..2 {
            let span = (args.kernel[d] - 1).checked_mul(args.dilation[d]);
            if span.is_none_or(|span| span >= i64::MAX as usize) {
                return self.refuse(format!(
                    "a kernel of {} with dilation {} is too large",
                    args.kernel[d], args.dilation[d]
                ));
            }
        }
        Ok(args)
    }
}

/// How many windows there are: with `ceil_mode` also one that ends past the padding, if it starts
/// before.
fn results(size: i128, padding: i128, span: i128, stride: i128, ceil_mode: bool) -> i128 {
    let more = if ceil_mode { stride - 1 } else { 0 };
    let results = (size + 2 * padding - span + more).div_euclid(stride) + 1;
    let starts_behind = ceil_mode && (results - 1) * stride >= size + padding;
    if starts_behind { results - 1 } else { results }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_pytorchs() {
        let called = Called { operation: "max_pool2d", rank: 2, input: &[1, 1, 7, 10] };
        let even = |stride: &[i64], padding: &[i64], ceil_mode| {
            let asked = Even { kernel: &[3], stride, padding, dilation: &[1], ceil_mode };
            called.even(&asked).unwrap().results
        };
        assert_eq!(even(&[], &[0], false), [1, 2, 3]);
        assert_eq!(even(&[], &[0], true), [1, 3, 4]);
        assert_eq!(even(&[2], &[1], false), [1, 4, 5]);
        assert_eq!(even(&[2], &[1], true), [1, 4, 6]);
        let asked =
            Even { kernel: &[3], stride: &[], padding: &[2], dilation: &[1], ceil_mode: false };
        assert!(called.even(&asked).unwrap_err().is_shape());
        assert!(called.even(&Even { padding: &[0], kernel: &[0], ..asked }).is_err());
        assert!(called.even(&Even { padding: &[0], kernel: &[11], ..asked }).is_err());
        assert!(called.adaptive(&[-1, 2]).is_err());
    }
}
