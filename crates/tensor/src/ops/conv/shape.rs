//! What a convolution takes, and how large its result is: PyTorch's rules, checked before anything
//! is computed.

use plimsoll_core::{Error, Result};
use plimsoll_kernels::cpu::conv::ConvArgs;
use smallvec::SmallVec;

use super::Space;

/// A convolution as it is called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Called<'a> {
    pub(crate) operation: &'static str,
    /// Spatial dimensions.
    pub(crate) rank: usize,
    /// With the batch.
    pub(crate) input: &'a [usize],
    pub(crate) weight: &'a [usize],
    pub(crate) bias: Option<&'a [usize]>,
    pub(crate) stride: &'a [i64],
    pub(crate) dilation: &'a [i64],
    pub(crate) groups: i64,
}

/// What the sizes come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) args: ConvArgs,
    pub(crate) results: Space,
}

impl Called<'_> {
    fn refuse<T>(&self, why: String) -> Result<T> {
        Err(Error::shape(self.operation, why))
    }

    /// `rank` numbers of at least `least`; one stands for all.
    fn list(&self, name: &str, given: &[i64], least: i64, one: usize) -> Result<Space> {
        let many = |at: usize| if given.len() == 1 { given[0] } else { given[at] };
        if given.len() != 1 && given.len() != self.rank {
            return self.refuse(format!(
                "expected {name} to be a single integer value or a list of {} values to match the convolution \
                 dimensions, but got {name}={given:?}",
                self.rank
            ));
        }
        let mut space = [one; 3];
        for (at, place) in space[3 - self.rank..].iter_mut().enumerate() {
            let value = many(at);
            if value < least {
                let sort = if least == 0 { "negative" } else { "non-positive" };
                return self.refuse(format!("{sort} {name} is not supported, but got {given:?}"));
            }
            *place = value as usize;
        }
        Ok(space)
    }

    /// The sizes of input, weight and bias, and groups; `transposed` weights are [input's channels,
    /// result's channels of a group, ..].
    fn check_channels(&self, transposed: bool) -> Result<()> {
        let Called { rank, input, weight, bias, groups, .. } = *self;
        if weight.len() != rank + 2 {
            return self.refuse(format!(
                "the weight should have {} dimensions for {rank} spatial ones, but its shape is {weight:?}",
                rank + 2
            ));
        }
        if groups <= 0 {
            return self.refuse(format!("non-positive groups is not supported, but got {groups}"));
        }
        let groups = groups as usize;
        if weight[0] < groups || weight[0] == 0 || !weight[0].is_multiple_of(groups) {
            return self.refuse(format!(
                "given groups={groups}, expected weight to be at least {groups} at dimension 0 and divisible by it, \
                 but got a weight of shape {weight:?}"
            ));
        }
        if weight[2..].contains(&0) {
            return self.refuse(format!("the kernel of the weight of shape {weight:?} is empty"));
        }
        let channels = if transposed { weight[0] } else { weight[1] * groups };
        if input[1] != channels {
            return self.refuse(format!(
                "given groups={groups} and a weight of shape {weight:?}, expected the input of shape {input:?} to \
                 have {channels} channels, but it has {}",
                input[1]
            ));
        }
        let results = if transposed { weight[1] * groups } else { weight[0] };
        match bias {
            Some(bias) if bias != [results] => self.refuse(format!(
                "given a weight of shape {weight:?}, expected the bias to be 1-dimensional with {results} elements, \
                 but its shape is {bias:?}"
            )),
            _ => Ok(()),
        }
    }

    fn space(&self, shape: &[usize]) -> Space {
        super::space_of(shape)
    }

    /// From the first to the last element that a window looks at.
    fn span(&self, args: &ConvArgs, d: usize) -> Result<usize> {
        let kernel = self.space(self.weight)[d];
        let span = (kernel - 1).checked_mul(args.dilation[d]).and_then(|span| span.checked_add(1));
        match span {
            Some(span) => Ok(span),
            None => self.refuse(format!(
                "the windows of a kernel of {kernel} with dilation {} are too large",
                args.dilation[d]
            )),
        }
    }

    /// A convolution with `padding` on both sides.
    pub(crate) fn forward(&self, padding: &[i64]) -> Result<Checked> {
        let stride = self.list("stride", self.stride, 1, 1)?;
        let padding = self.list("padding", padding, 0, 0)?;
        let dilation = self.list("dilation", self.dilation, 1, 1)?;
        self.check_channels(false)?;
        let args = ConvArgs { stride, padding, dilation, groups: self.groups as usize };
        self.results(args, padding)
    }

    /// A convolution without padding.
    pub(crate) fn valid(&self) -> Result<Checked> {
        self.forward(&[0])
    }

    /// A convolution whose result has the input's size. Where the padding is odd, one more zero is
    /// behind the last element than before the first.
    pub(crate) fn same(&self) -> Result<Checked> {
        let stride = self.list("stride", self.stride, 1, 1)?;
        let dilation = self.list("dilation", self.dilation, 1, 1)?;
        self.check_channels(false)?;
        if stride != [1; 3] {
            return self.refuse(format!(
                "padding='same' is not supported for strided convolutions, but stride is {:?}",
                self.stride
            ));
        }
        let mut args = ConvArgs { stride, padding: [0; 3], dilation, groups: self.groups as usize };
        let mut behind = [0; 3];
        for (d, behind) in behind.iter_mut().enumerate() {
            let whole = self.span(&args, d)? - 1;
            args.padding[d] = whole / 2;
            *behind = whole - whole / 2;
        }
        self.results(args, behind)
    }

    fn results(&self, args: ConvArgs, behind: Space) -> Result<Checked> {
        let input = self.space(self.input);
        let mut results = [1; 3];
        for d in 0..3 {
            let span = self.span(&args, d)?;
            let padded =
                input[d].checked_add(args.padding[d]).and_then(|n| n.checked_add(behind[d]));
            match padded.and_then(|padded| padded.checked_sub(span)) {
                Some(room) => results[d] = room / args.stride[d] + 1,
                None => {
                    return self.refuse(format!(
                        "the kernel size can't be greater than the padded input's: windows of {span} elements in \
                         dimension {} of an input of shape {:?} with padding {}",
                        d + self.input.len() - 3,
                        self.input,
                        args.padding[d]
                    ));
                }
            }
        }
        self.check_empty()?;
        Ok(Checked { args, results })
    }

    /// Of empty inputs only those without images or channels have a result.
    fn check_empty(&self) -> Result<()> {
        if self.input[2..].contains(&0) {
            return self.refuse(format!(
                "only zero batch or zero channel inputs are supported, but the input has shape {:?}",
                self.input
            ));
        }
        Ok(())
    }

    /// A transposed convolution.
    pub(crate) fn transposed(&self, padding: &[i64], output_padding: &[i64]) -> Result<Checked> {
        let stride = self.list("stride", self.stride, 1, 1)?;
        let padding = self.list("padding", padding, 0, 0)?;
        let dilation = self.list("dilation", self.dilation, 1, 1)?;
        let more = self.list("output_padding", output_padding, 0, 0)?;
        self.check_channels(true)?;
        let args = ConvArgs { stride, padding, dilation, groups: self.groups as usize };
        let input = self.space(self.input);
        let mut results = [1; 3];
        for d in 3 - self.rank..3 {
            if more[d] >= stride[d] && more[d] >= dilation[d] {
                return self.refuse(format!(
                    "output padding must be smaller than either stride or dilation, but got output_padding={:?}, \
                     stride={:?}, dilation={:?}",
                    &more[3 - self.rank..],
                    &stride[3 - self.rank..],
                    &dilation[3 - self.rank..]
                ));
            }
            let span = self.span(&args, d)? as i128;
            let size = (input[d] as i128 - 1) * stride[d] as i128 - 2 * padding[d] as i128
                + span
                + more[d] as i128;
            if size < 1 || size > i64::MAX as i128 {
                return self.refuse(format!(
                    "given an input of shape {:?}, the result's size would be {size} in dimension {}: it is too small",
                    self.input,
                    d + self.input.len() - 3
                ));
            }
            results[d] = size as usize;
        }
        self.check_empty()?;
        Ok(Checked { args, results })
    }
}

/// The input with its batch: one image is a batch of one.
pub(crate) fn batched(
    operation: &'static str,
    rank: usize,
    input: &[usize],
) -> Result<(SmallVec<[usize; 5]>, bool)> {
    let single = input.len() == rank + 1;
    if !single && input.len() != rank + 2 {
        return Err(Error::shape(
            operation,
            format!(
                "expected {}D (unbatched) or {}D (batched) input to {operation}, but got input of size: {input:?}",
                rank + 1,
                rank + 2
            ),
        ));
    }
    let lead: &[usize] = if single { &[1] } else { &[] };
    Ok((lead.iter().chain(input).copied().collect(), single))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(input: &'static [usize], weight: &'static [usize]) -> Called<'static> {
        Called {
            operation: "conv2d",
            rank: 2,
            input,
            weight,
            bias: None,
            stride: &[1],
            dilation: &[1],
            groups: 1,
        }
    }

    #[test]
    fn sizes_are_pytorchs() {
        let call = called(&[2, 4, 7, 8], &[6, 4, 3, 2]);
        assert_eq!(call.forward(&[1, 0]).unwrap().results, [1, 7, 7]);
        assert_eq!(Called { stride: &[2], ..call }.forward(&[1, 0]).unwrap().results, [1, 4, 4]);
        let same = call.same().unwrap();
        assert_eq!((same.results, same.args.padding), ([1, 7, 8], [0, 1, 0]));
        let call = called(&[2, 6, 7, 8], &[6, 4, 3, 2]);
        let transposed = Called { stride: &[2, 3], ..call }.transposed(&[1, 0], &[1, 0]).unwrap();
        assert_eq!(transposed.results, [1, 14, 23]);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let call = called(&[2, 4, 7, 8], &[6, 4, 3, 2]);
        assert!(Called { stride: &[0], ..call }.valid().unwrap_err().is_shape());
        assert!(Called { dilation: &[-1], ..call }.valid().is_err());
        assert!(Called { groups: 0, ..call }.valid().is_err());
        assert!(Called { groups: 2, ..call }.valid().is_err());
        assert!(Called { stride: &[1, 2, 3], ..call }.valid().is_err());
        assert!(call.forward(&[-1]).is_err());
        assert!(Called { dilation: &[4], ..call }.valid().is_err());
        assert!(Called { dilation: &[i64::MAX], ..call }.valid().is_err());
        assert!(Called { bias: Some(&[5]), ..call }.valid().is_err());
        assert!(Called { stride: &[2], ..call }.same().is_err());
        assert!(called(&[2, 4, 0, 8], &[6, 4, 3, 2]).forward(&[2]).is_err());
    }
}
