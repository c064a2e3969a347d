//! Elements to and from places in their channels: what comes back from a largest element, and
//! unpooling. Places are the user's: those outside are an error.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use plimsoll_core::{Error, Result};
use plimsoll_engine::number::Number;
use plimsoll_engine::parallel;
use plimsoll_engine::{CpuLaunch, input_dtype, match_dtype};

use crate::volume::Volume;

/// Inputs [values, places], output `to`: zeros, and in them each value at its place, added to what
/// is there or in its stead.
pub fn scatter_places(launch: &CpuLaunch<'_>, accumulate: bool) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        let job = Job::<T>::new(launch, 0);
        job.each(|image, channel| job.scatter(image, channel, accumulate))
    })
}

/// Inputs [from, places], output `values`: the element at each place.
pub fn gather_places(launch: &CpuLaunch<'_>) -> Result<()> {
    match_dtype!(input_dtype(launch)?, T => {
        let job = Job::<T>::new(launch, 1);
        job.each(|image, channel| job.gather(image, channel))
    })
}

/// Values, their places, and the channels that the places are in.
struct Job<T> {
    operation: &'static str,
    values: (*mut T, Volume),
    places: (*const i64, Volume),
    channels: (*mut T, Volume),
}

// SAFETY: addresses; what is done with them happens under the launch's claim, and threads write
// disjoint channels.
unsafe impl<T> Send for Job<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Job<T> {}

impl<T: Number> Job<T> {
    /// `values`: 0 if they are the input, 1 if the output.
    fn new(launch: &CpuLaunch<'_>, values: usize) -> Job<T> {
        let (input, output) = (&launch.inputs[0], &launch.outputs[0]);
        let places = &launch.inputs[1];
        let (values, channels) = if values == 0 { (input, output) } else { (output, input) };
        Job {
            operation: launch.operation,
            values: (values.first(), Volume::of(values.meta())),
            places: (places.first::<i64>().cast_const(), Volume::of(places.meta())),
            channels: (channels.first(), Volume::of(channels.meta())),
        }
    }

    /// Calls `body` on every channel, which answers with a place outside if it found one.
    fn each(&self, body: impl Fn(usize, usize) -> Option<i64> + Sync) -> Result<()> {
        let (found, place) = (AtomicUsize::new(0), AtomicI64::new(0));
        let (values, channels) = (&self.values.1, &self.channels.1);
        let grain = (32_768 / (values.space() + channels.space()).max(1)).max(1);
        parallel::split(values.batch * values.channels, grain, |range| {
            for unit in range {
                if let Some(outside) = body(unit / values.channels, unit % values.channels) {
                    place.store(outside, Ordering::Relaxed);
                    found.store(1, Ordering::Relaxed);
                }
            }
        });
        if found.into_inner() == 0 {
            return Ok(());
        }
        Err(Error::invalid_argument(format!(
            "found an invalid max index: {} in channels of {} elements ({:?})",
            place.into_inner(),
            channels.space(),
            channels.sizes
        ))
        .in_operation(self.operation))
    }

    /// Calls `body(value, place in the channel)` for every value of a channel; gives back a place
    /// that is outside.
    #[inline(always)]
    fn pairs(&self, image: usize, channel: usize, body: impl Fn(*mut T, *mut T)) -> Option<i64> {
        let (values, places, channels) = (&self.values.1, &self.places.1, &self.channels.1);
        let [planes, rows, elements] = values.sizes;
        let (space, [_, high, wide]) = (channels.space(), channels.sizes);
        let [far, down, across] = channels.strides;
        let dense = across == 1 && down == wide && far == down * high;
        let mut outside = None;
        for index in 0..planes * rows {
            let (plane, row) = (index / rows, index % rows);
            let value = values.at(image, channel) + values.row(plane, row);
            let place = places.at(image, channel) + places.row(plane, row);
            for element in 0..elements {
                // SAFETY: an element of both, and one of the channel, which is this thread's.
                unsafe {
                    let at = *self.places.0.add(place + element * places.strides[2]);
                    if at < 0 || at as usize >= space {
                        outside = Some(at);
                        continue;
                    }
                    let at = at as usize;
                    let at = if dense {
                        at
                    } else {
                        at / wide / high * far + at / wide % high * down + at % wide * across
                    };
                    body(
                        self.values.0.add(value + element * values.strides[2]),
                        self.channels.0.add(channels.at(image, channel) + at),
                    );
                }
            }
        }
        outside
    }

    fn scatter(&self, image: usize, channel: usize, accumulate: bool) -> Option<i64> {
        let volume = &self.channels.1;
        let [planes, rows, elements] = volume.sizes;
        for index in 0..planes * rows {
            let row = volume.at(image, channel) + volume.row(index / rows, index % rows);
            for element in 0..elements {
                // SAFETY: an element of the channel, which is this thread's.
                unsafe { *self.channels.0.add(row + element * volume.strides[2]) = T::ZERO };
            }
        }
        if accumulate {
            // SAFETY: `pairs` hands out elements.
            self.pairs(image, channel, |value, to| unsafe {
                *to = T::down((*to).up().plus((*value).up()));
            })
        } else {
            // SAFETY: as above.
            self.pairs(image, channel, |value, to| unsafe { *to = *value })
        }
    }

    fn gather(&self, image: usize, channel: usize) -> Option<i64> {
        // SAFETY: `pairs` hands out elements.
        self.pairs(image, channel, |value, from| unsafe { *value = *from })
    }
}
