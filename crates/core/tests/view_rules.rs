//! Every view rule against the naive enumeration of storage positions, for random chains of right
//! and wrong arguments: rank 0, empty, expanded, stepped and offset layouts included.

mod view_oracle;

use plimsoll_core::{Layout, broadcast_shapes};
use proptest::prelude::*;
use view_oracle::{Positions, Step, check_claims, check_program, indices};

// Miri runs the same properties on fewer cases: it is there for the arithmetic, not for the search.
const CASES: u32 = if cfg!(miri) { 3 } else { 2000 };

fn sizes() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(
        prop_oneof![8 => 0i64..=4, 2 => Just(-1), 1 => 5i64..=12, 1 => Just(-2)],
        0..=4,
    )
}

fn step() -> impl Strategy<Value = Step> {
    let dim = || -4i64..=4;
    let at = || prop_oneof![8 => -5i64..=5, 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    prop_oneof![
        sizes().prop_map(Step::View),
        sizes().prop_map(Step::Reshape),
        prop::collection::vec(dim(), 0..=4).prop_map(Step::Permute),
        Just(vec![0i64, 1, 2, 3]).prop_shuffle().prop_flat_map(|order| {
            (0..=4usize).prop_map(move |rank| {
                Step::Permute(order.iter().copied().filter(|&d| d < rank as i64).collect())
            })
        }),
        (dim(), dim()).prop_map(|(a, b)| Step::Transpose(a, b)),
        sizes().prop_map(Step::Expand),
        (dim(), at(), at()).prop_map(|(d, s, l)| Step::Narrow(d, s, l)),
        (dim(), at(), at(), prop_oneof![4 => 1i64..=3, 1 => at()])
            .prop_map(|(d, s, e, k)| Step::Slice(d, s, e, k)),
        (dim(), at()).prop_map(|(d, i)| Step::Select(d, i)),
        dim().prop_map(Step::Squeeze),
        dim().prop_map(Step::Unsqueeze),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chains_of_views_of_a_contiguous_layout(
        shape in prop::collection::vec(prop_oneof![6 => 1usize..=4, 1 => Just(0)], 0..=4),
        steps in prop::collection::vec(step(), 0..=6),
    ) {
        check_program(Layout::contiguous(&shape).unwrap(), &steps, true, 600);
    }

    #[test]
    fn chains_of_views_of_any_strides(
        dims in prop::collection::vec((0usize..=4, prop_oneof![0usize..=3, 0usize..=20]), 0..=3),
        offset in 0usize..=9,
        steps in prop::collection::vec(step(), 0..=5),
    ) {
        let (shape, strides): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
        let layout = Layout::strided(&shape, &strides, offset).unwrap();
        check_program(layout, &steps, false, 600);
    }

    #[test]
    fn as_strided_takes_exactly_what_the_storage_holds(
        dims in prop::collection::vec((-1i64..=4, -1i64..=12), 0..=3),
        offset in -1i64..=10,
        storage_numel in 0usize..=40,
    ) {
        let (sizes, strides): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
        let made = Layout::as_strided(&sizes, &strides, offset, storage_numel);
        if offset < 0 || sizes.iter().chain(&strides).any(|&v| v < 0) {
            prop_assert!(made.is_err());
        } else {
            let shape: Vec<usize> = sizes.iter().map(|&s| s as usize).collect();
            let at: Vec<usize> = indices(&shape)
                .iter()
                .map(|index| {
                    offset as usize
                        + index.iter().zip(&strides).map(|(&i, &s)| i * s as usize).sum::<usize>()
                })
                .collect();
            prop_assert_eq!(made.is_ok(), at.iter().all(|&p| p < storage_numel));
            if let Ok(layout) = made {
                let truth = Positions { shape, at };
                prop_assert_eq!(&Positions::of(&layout), &truth);
                check_claims(&layout, &truth, false);
            }
        }
    }

    #[test]
    fn broadcasting_finds_the_one_shape_that_both_expand_to(
        a in prop::collection::vec(0usize..=3, 0..=3),
        b in prop::collection::vec(0usize..=3, 0..=3),
    ) {
        let met = broadcast_shapes("add", &[&a, &b]);
        let rank = a.len().max(b.len());
        let expands = |shape: &[usize], to: &[usize]| {
            Layout::contiguous(shape).unwrap().broadcast_to(to).is_ok()
        };
        // All shapes of that rank over the sizes in play; the smallest that both reach, if any.
        let fitting: Vec<Vec<usize>> = indices(&vec![4; rank])
            .into_iter()
            .filter(|shape| expands(&a, shape) && expands(&b, shape))
            .collect();
        match met {
            Ok(shape) => {
                prop_assert!(fitting.contains(&shape.to_vec()));
                for other in &fitting {
                    prop_assert!(expands(&shape, other), "{:?} is not the smallest", shape);
                }
            }
            Err(error) => {
                prop_assert!(error.is_shape());
                prop_assert!(fitting.is_empty(), "{:?} and {:?} meet in {:?}", a, b, fitting);
            }
        }
    }
}

#[test]
fn large_sizes_beside_a_zero_are_harmless() {
    let big = 1usize << 24;
    for shape in [vec![0, big, big], vec![big, big, 0], vec![big, 0, big]] {
        let layout = Layout::contiguous(&shape).unwrap();
        assert_eq!((layout.numel(), layout.span()), (0, 0));
        assert!(layout.is_contiguous() && layout.is_dense() && !layout.may_overlap_itself());
        for dim in -3..3 {
            for at in [0, 1, -1, i64::MAX, i64::MIN] {
                let _ = layout.slice(dim, at, i64::MAX, 1);
                let _ = layout.narrow(dim, at, 0);
                let _ = layout.select(dim, at);
                let _ = layout.unsqueeze(dim);
            }
        }
        assert_eq!(layout.view(&[0]).unwrap().shape(), [0]);
    }
}

#[test]
fn unchecked_strides_of_a_single_element_cannot_overflow_later() {
    let far = usize::MAX;
    let layout = Layout::strided(&[1, 1], &[far, far], 7).unwrap();
    assert_eq!(layout.span(), 8);
    assert_eq!(layout.narrow(0, 1, 0).unwrap().numel(), 0);
    assert_eq!(layout.slice(1, 0, 1, i64::MAX).unwrap().span(), 8);
    assert_eq!(layout.unsqueeze(0).unwrap().view(&[1]).unwrap().span(), 8);
    assert_eq!(layout.expand(&[5, 3]).unwrap().span(), 8);
    // An expanded, long dimension over a far stride: refused, not wrapped.
    let split = Layout::strided(&[1 << 19, 2], &[0, 1 << 46], 0).unwrap();
    assert!(split.view(&[1, 1 << 20]).unwrap_err().is_shape());
}

#[test]
fn a_contiguous_layout_past_the_address_space_is_refused() {
    assert!(Layout::contiguous(&[1 << 62]).unwrap_err().is_invalid_argument());
    assert!(Layout::contiguous(&[4]).unwrap().with_offset(usize::MAX).is_err());
    // Found by the fuzzer: the position fits, one past it does not.
    assert!(Layout::strided(&[1], &[0], usize::MAX).is_err());
    assert!(Layout::contiguous(&[usize::MAX, 0]).unwrap_err().is_invalid_argument());
    assert!(Layout::contiguous(&[1]).unwrap().broadcast_to(&[usize::MAX]).is_err());
}

/// Up to five dimensions are kept inline and more are not; both are row-major, and a size of 0
/// counts as 1 in strides.
#[test]
fn contiguous_layouts_of_few_and_of_many_dimensions_are_row_major() {
    let strides = |shape: &[usize]| Layout::contiguous(shape).unwrap().strides().to_vec();
    assert_eq!(strides(&[]), [0usize; 0]);
    assert_eq!(strides(&[7]), [1]);
    assert_eq!(strides(&[2, 3, 4]), [12, 4, 1]);
    assert_eq!(strides(&[2, 0, 3]), [3, 3, 1]);
    assert_eq!(strides(&[2, 3, 1, 4, 5]), [60, 20, 20, 5, 1]);
    assert_eq!(strides(&[6, 2, 3, 1, 4, 5]), [120, 60, 20, 20, 5, 1]);
    assert_eq!(strides(&[1, 6, 2, 0, 1, 4, 5]), [240, 40, 20, 20, 20, 5, 1]);
}
