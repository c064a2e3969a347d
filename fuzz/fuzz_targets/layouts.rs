//! Chains of view operations with any arguments on any layout: never a panic, and, where the
//! elements are few enough to list, exactly the positions that the naive oracle of the core tests
//! finds.

#![no_main]

#[path = "../../crates/core/tests/view_oracle/mod.rs"]
mod view_oracle;

use arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use plimsoll_core::Layout;
use view_oracle::{Step, apply, check_program};

/// Past this many elements, or with a size past it, positions are not listed.
const LISTED_MAX: usize = 600;

/// Mostly small numbers, where rules interact; sometimes any number, where arithmetic breaks.
fn number(bytes: &mut Unstructured<'_>) -> Result<i64> {
    match bytes.arbitrary::<u8>()? {
        tag @ 0..=219 => Ok(i64::from(tag % 12) - 4),
        220..=239 => Ok(i64::from(bytes.arbitrary::<i16>()?)),
        _ => bytes.arbitrary(),
    }
}

fn numbers(bytes: &mut Unstructured<'_>, most: usize) -> Result<Vec<i64>> {
    let count = bytes.int_in_range(0..=most)?;
    (0..count).map(|_| number(bytes)).collect()
}

fn step(bytes: &mut Unstructured<'_>) -> Result<Step> {
    Ok(match bytes.int_in_range(0..=9)? {
        0 => Step::View(numbers(bytes, 5)?),
        1 => Step::Reshape(numbers(bytes, 5)?),
        2 => Step::Permute(numbers(bytes, 5)?),
        3 => Step::Transpose(number(bytes)?, number(bytes)?),
        4 => Step::Expand(numbers(bytes, 5)?),
        5 => Step::Narrow(number(bytes)?, number(bytes)?, number(bytes)?),
        6 => Step::Slice(number(bytes)?, number(bytes)?, number(bytes)?, number(bytes)?),
        7 => Step::Select(number(bytes)?, number(bytes)?),
        8 => Step::Squeeze(number(bytes)?),
        _ => Step::Unsqueeze(number(bytes)?),
    })
}

fn start(bytes: &mut Unstructured<'_>) -> Result<(Option<Layout>, bool)> {
    let sizes: Vec<usize> = numbers(bytes, 4)?.into_iter().map(|n| n as usize).collect();
    if bytes.arbitrary()? {
        return Ok((Layout::contiguous(&sizes).ok(), true));
    }
    let strides: Vec<usize> =
        (0..sizes.len()).map(|_| Ok(number(bytes)? as usize)).collect::<Result<_>>()?;
    let layout = Layout::strided(&sizes, &strides, number(bytes)? as usize);
    let as_strided = Layout::as_strided(
        &numbers(bytes, 3)?,
        &numbers(bytes, 3)?,
        number(bytes)?,
        number(bytes)? as usize,
    );
    Ok((layout.or(as_strided).ok(), false))
}

fn program(bytes: &mut Unstructured<'_>) -> Result<()> {
    let (Some(layout), from_views) = start(bytes)? else { return Ok(()) };
    let count = bytes.int_in_range(0..=8)?;
    let steps: Vec<Step> = (0..count).map(|_| step(bytes)).collect::<Result<_>>()?;

    let mut current = layout.clone();
    for step in &steps {
        if let Ok(viewed) = apply(&current, step) {
            current = viewed;
        }
        // Every question a layout answers; the fuzzer's build panics where arithmetic overflows.
        let claims = (current.numel(), current.span(), current.is_contiguous(), current.is_dense());
        assert!(claims.0 > 0 || claims.1 == 0, "{current:?}");
        let _ = current.may_overlap_itself();
        let _ = current.with_offset(current.offset().wrapping_mul(3));
    }
    if layout.numel() <= LISTED_MAX && layout.shape().iter().all(|&size| size <= LISTED_MAX) {
        check_program(layout, &steps, from_views, LISTED_MAX);
    }
    Ok(())
}

fuzz_target!(|bytes: &[u8]| {
    // Too few bytes for a whole program is no program.
    let _ = program(&mut Unstructured::new(bytes));
});
