//! Files as datasets: records, tokens, and files that are too short, cut or gone.

use std::fs;
use std::path::PathBuf;

use plimsoll_data::*;
use plimsoll_memory::Configuration;
use plimsoll_tensor::{DType, Result, Tensor, device, memory};

type Outcome = Result<()>;

/// A file of the test's own, gone when this is.
struct Scratch(PathBuf);

impl Scratch {
    fn with(name: &str, bytes: &[u8]) -> Scratch {
        let path = std::env::temp_dir().join(format!("plimsoll-{}-{name}", std::process::id()));
        fs::write(&path, bytes).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

#[test]
fn records_are_inputs_of_the_line_that_opened_the_file() -> Outcome {
    let values: Vec<f32> = (0..24).map(|n| n as f32).collect();
    let file = Scratch::with("records", &[vec![9; 5], bytes_of(&values)].concat());
    let device = device::private_cpu(&Configuration::default())?;
    let options = RecordOptions::new().header_bytes(5usize).device(device);
    let line = line!() + 1;
    let records = RecordDataset::open_with(&file.0, &[2, 3], DType::F32, options)?;
    assert_eq!(records.len(), 4);
    let third = records.get(2)?;
    assert_eq!((third.shape(), third.to_vec::<f32>()?), (&[2, 3][..], values[12..18].to_vec()));
    let row = memory::live_by_origin(device)[0];
    assert_eq!((row.bytes, memory::memory_allocated(device)), (512, 512));
    assert!(row.origin.get().site.to_string().contains(&format!("files.rs:{line}")));
    assert_eq!(memory::live_by_kind(device)[0].kind, memory::Kind::Input);
    assert!(records.get(4).unwrap_err().is_index());
    Ok(())
}

#[test]
fn a_file_of_another_size_is_refused_when_it_is_opened() {
    let file = Scratch::with("cut", &bytes_of(&[1.0, 2.0, 3.0])[..11]);
    let error = RecordDataset::open(&file.0, &[3], DType::F32).unwrap_err().to_string();
    assert!(error.contains("11 bytes") && error.contains("12 bytes"), "{error}");
    let header = RecordOptions::new().header_bytes(12usize);
    assert!(RecordDataset::open_with(&file.0, &[1], DType::U8, header).is_err());
    assert!(RecordDataset::open(&file.0, &[0], DType::U8).is_err());
    assert!(RecordDataset::open(&file.0, &[-1], DType::U8).is_err());
    assert!(RecordDataset::open(&file.0, &[1], DType::Bool).is_err());
    let error = RecordDataset::open("/no/such/file", &[1], DType::U8).unwrap_err().to_string();
    assert!(error.contains("/no/such/file"), "{error}");
}

#[test]
fn a_file_that_shrinks_while_it_is_mapped_is_an_error_of_the_sample() -> Outcome {
    let file = Scratch::with("shrinks", &bytes_of(&[1.0; 64]));
    let records = RecordDataset::open(&file.0, &[1], DType::F32)?;
    assert_eq!(records.get(63)?.item::<f32>()?, 1.0);
    fs::OpenOptions::new().write(true).open(&file.0)?.set_len(4)?;
    let error = records.get(63).unwrap_err().to_string();
    assert!(error.contains("256 bytes") && error.contains("has 4 now"), "{error}");
    let loader = DataLoader::new(records, LoaderOptions::new().num_workers(1usize))?;
    assert!(loader.epoch()?.all(|batch| batch.is_err()), "and the program lives");
    Ok(())
}

#[test]
fn tokens_of_every_width_come_in_windows_with_the_next_token_as_target() -> Outcome {
    let tokens: Vec<u16> = (0..10).map(|n| n * 7000).collect();
    let file =
        Scratch::with("tokens", &tokens.iter().flat_map(|t| t.to_ne_bytes()).collect::<Vec<_>>());
    let options = TokenOptions::new().width(TokenWidth::U16).stride(2usize);
    let windows = TokenDataset::open_with(&file.0, 4, options)?;
    assert_eq!(windows.len(), 3);
    let (x, y) = windows.get(2)?;
    assert_eq!(x.to_vec::<i64>()?, [28000, 35000, 42000, 49000]);
    assert_eq!(y.to_vec::<i64>()?, [35000, 42000, 49000, 56000]);
    assert!(x.shares_storage_with(&y));

    let wide: Vec<u8> = [5u32, 70000].iter().flat_map(|t| t.to_ne_bytes()).collect();
    let file = Scratch::with("wide", &wide);
    let windows = TokenDataset::open_with(&file.0, 1, TokenOptions::new().width(TokenWidth::U32))?;
    assert_eq!(windows.get(0)?.1.item::<i64>()?, 70000);
    let one = TokenDataset::open_with(&file.0, 1, TokenOptions::new().width(TokenWidth::I64));
    assert!(one.unwrap_err().to_string().contains("shorter context"));
    Ok(())
}

#[test]
fn a_context_longer_than_the_text_is_refused_with_both_lengths() {
    let file = Scratch::with("short", b"abc");
    let error = TokenDataset::open(&file.0, 3).unwrap_err().to_string();
    assert!(error.contains("needs 4 tokens") && error.contains("has 3"), "{error}");
    assert!(TokenDataset::open(&file.0, 0).is_err());
    assert_eq!(TokenDataset::open(&file.0, 2).unwrap().len(), 1);
}

#[test]
fn a_loader_over_a_file_gives_stacked_windows() -> Outcome {
    let file = Scratch::with("text", b"to be or not to be");
    let text = TokenDataset::open_with(&file.0, 4, TokenOptions::new().stride(1usize))?;
    let count = text.len();
    let options = LoaderOptions::new().batch_size(3usize).num_workers(2usize).shuffle(true);
    let loader = DataLoader::new(text, options)?;
    let mut seen = 0;
    for batch in loader.epoch()? {
        let (x, y): (Tensor, Tensor) = batch?;
        assert_eq!(x.narrow(1, 1, 3)?.to_vec::<i64>()?, y.narrow(1, 0, 3)?.to_vec::<i64>()?);
        seen += x.shape()[0];
    }
    assert_eq!((seen, count), (14, 14));
    Ok(())
}
