//! Files that lie: each is an error that says which entry, never a panic, and never more memory
//! than the file's size calls for. The archives are made here by hand, not by the crate's writer.

use plimsoll_core::{DType, Result};
use plimsoll_files::{Source, Unpickling, Value, load_from};
use plimsoll_tensor::{Device, device, memory};

/// An archive of stored entries, the plainest there is: nothing is aligned.
fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut list) = (Vec::new(), Vec::new());
    for (name, bytes) in entries {
        let name = format!("x/{name}");
        let start = file.len() as u32;
        let facts = |out: &mut Vec<u8>| {
            out.extend([20, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            out.extend([0; 4]);
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend((name.len() as u16).to_le_bytes());
            out.extend([0; 2]);
        };
        file.extend(b"PK\x03\x04");
        facts(&mut file);
        file.extend(name.as_bytes());
        file.extend(*bytes);
        list.extend(b"PK\x01\x02\x14\x00");
        facts(&mut list);
        list.extend([0; 10]);
        list.extend(start.to_le_bytes());
        list.extend(name.as_bytes());
    }
    let (start, bytes, count) = (file.len() as u32, list.len() as u32, entries.len() as u16);
    file.extend(list);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend(count.to_le_bytes());
    file.extend(count.to_le_bytes());
    file.extend(bytes.to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0; 2]);
    file
}

fn read(file: Vec<u8>) -> Result<Value> {
    load_from(Source::from(file), false, &mut |_| Ok(Device::cpu()))
}

fn pickle(pickle: &[u8]) -> Result<Value> {
    read(archive(&[("data.pkl", pickle)]))
}

/// The pickle of one tensor: its storage's class, count and key, and the tensor's numbers.
fn tensor(class: &str, count: &str, offset: &str, sizes: &str, strides: &str) -> Vec<u8> {
    format!(
        "ctorch._utils\n_rebuild_tensor_v2\n((Vstorage\nctorch\n{class}\nV0\nVcpu\n{count}tQ{offset}{sizes}{strides}\
         I00\nccollections\nOrderedDict\n)RtR."
    )
    .into_bytes()
}

fn with_storage(pickle: &[u8], storage: &[u8]) -> Result<Value> {
    read(archive(&[("data.pkl", pickle), ("data/0", storage)]))
}

#[test]
fn a_plain_archive_of_unaligned_entries_is_read() {
    let one = tensor("FloatStorage", "I2\n", "I0\n", "(I2\nt", "(I1\nt");
    let bytes = [1.5f32.to_le_bytes(), 2.5f32.to_le_bytes()].concat();
    let read = with_storage(&one, &bytes).unwrap();
    assert_eq!(read.as_tensor().unwrap().to_vec::<f32>().unwrap(), [1.5, 2.5]);
    // Bools that are neither 0 nor 1 become bools.
    let odd = tensor("BoolStorage", "I3\n", "I0\n", "(I3\nt", "(I1\nt");
    let read = with_storage(&odd, &[0, 1, 7]).unwrap();
    let read = read.as_tensor().unwrap();
    assert_eq!((read.dtype(), read.to_bools().unwrap()), (DType::Bool, vec![false, true, true]));
}

#[test]
fn tensors_that_do_not_fit_their_storage_are_named() {
    for (count, offset, sizes, strides, says) in [
        ("I3\n", "I0\n", "(I2\nt", "(I1\nt", "`data/0` has 8 bytes, too few for 3 float32"),
        ("L9223372036854775807L\n", "I0\n", "(I2\nt", "(I1\nt", "too few"),
        ("I-1\n", "I0\n", "(I2\nt", "(I1\nt", "is no count"),
        ("I2\n", "I1\n", "(I2\nt", "(I1\nt", "does not fit its storage `data/0`"),
        ("I2\n", "I-1\n", "(I2\nt", "(I1\nt", "does not fit its storage `data/0`"),
        ("I2\n", "I0\n", "(I3\nt", "(I1\nt", "does not fit its storage `data/0`"),
        ("I2\n", "I0\n", "(I2\nt", "(I-1\nt", "does not fit its storage `data/0`"),
        ("I2\n", "I0\n", "(I-2\nt", "(I1\nt", "does not fit its storage `data/0`"),
        ("I2\n", "I0\n", "(L9223372036854775807L\nt", "(I1\nt", "does not fit"),
        ("I2\n", "I0\n", "(I9\nI9\nt", "(L9223372036854775807L\nI1\nt", "does not fit"),
        ("I2\n", "I0\n", "(I9\nI9\nt", "(I1\nt", "2 sizes and 1 strides"),
        ("I2\n", "I0\n", "(I2\nt", "I1\n", "does not take"),
    ] {
        let file = tensor("FloatStorage", count, offset, sizes, strides);
        let error = with_storage(&file, &[0; 8]).unwrap_err().to_string();
        assert!(error.contains(says), "{count}{offset}{sizes}{strides}: {error}");
    }
    let many = format!("({}t", "I1\n".repeat(65));
    let file = tensor("FloatStorage", "I2\n", "I0\n", &many, &many);
    assert!(with_storage(&file, &[0; 8]).unwrap_err().to_string().contains("65 sizes"));
    let missing = tensor("FloatStorage", "I2\n", "I0\n", "(I2\nt", "(I1\nt");
    assert!(pickle(&missing).unwrap_err().to_string().contains("`data/0` is missing"));
}

#[test]
fn one_storage_is_of_one_kind() {
    let first = tensor("FloatStorage", "I2\n", "I0\n", "(I2\nt", "(I1\nt");
    let second = tensor("IntStorage", "I2\n", "I0\n", "(I2\nt", "(I1\nt");
    let both = [b"(".as_slice(), &first[..first.len() - 1], &second[..second.len() - 1], b"t."];
    let error = with_storage(&both.concat(), &[0; 8]).unwrap_err().to_string();
    assert!(error.contains("`data/0` is a storage of 2 float32 and one of 2 int32"), "{error}");
}

#[test]
fn pickles_that_are_no_data_are_errors_with_their_place() {
    for (bytes, says) in [
        (&b"cos\nsystem\n(Vls\ntR."[..], "GLOBAL os.system"),
        (b"Vos\nVsystem\n\x93.", "GLOBAL os.system"),
        (b"(ios\nsystem\n.", "opcode INST"),
        (b"(cbuiltins\nset\no.", "opcode OBJ"),
        (b"cbuiltins\nset\n)\x81.", "opcode NEWOBJ"),
        (b"\x82\x01.", "opcode EXT1"),
        (b"Pid\n.", "opcode PERSID"),
        (b"N)R.", "no global"),
        (b"ccollections\nOrderedDict\nNR.", "no tuple"),
        (b"ccollections\nOrderedDict\n(I1\ntR.", "does not take"),
        (b"]N b.", "no opcode at all"),
        (b"]Nb.", "only an OrderedDict"),
        (b"NQ.", "no storage's"),
        (b"((Vmodule\nNNNNtQ.", "no storage's"),
        (b"", "the file ends"),
        (b"N", "the file ends"),
        (b".", "a value is missing"),
        (b"t.", "never began"),
        (b"(N}s.", "is missing"),
        (b"h\x05.", "memo 5 was never stored"),
        (b"(I1\nd.", "a key has no value"),
        (b"}(I1\nu.", "a key has no value"),
        (b"}]Ns.", "as a key"),
        (b"ctorch\nSize\n.", "stands for itself"),
        (b"\x8b\x20\0\0\0\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01.", "128 bits"),
    ] {
        let error = pickle(bytes).unwrap_err();
        assert!(error.to_string().contains(says), "{bytes:?}: {error}");
        assert!(error.to_string().contains("data.pkl"), "{error}");
        assert!(error.detail::<Unpickling>().is_some(), "{error}");
    }
}

#[test]
fn nesting_circles_and_multiplication_are_bounded() {
    let deep = [vec![b']'; 1_000_000], vec![b'a'; 999_999], vec![b'.']].concat();
    assert!(pickle(&deep).unwrap_err().to_string().contains("nested more than"));
    let fits = [vec![b']'; 400], vec![b'a'; 399], vec![b'.']].concat();
    assert!(pickle(&fits).is_ok());
    // A list that holds itself is what it says; a tuple by way of a list is refused, as in PyTorch.
    let circle = pickle(b"]q\0h\0a.").unwrap();
    assert!(matches!(circle.as_list(), Some([Value::Within(_)])), "{circle:?}");
    let mut written = Vec::new();
    plimsoll_files::write(&mut written, &circle).unwrap();
    let again = self::read(written).unwrap();
    assert!(matches!(again.as_list(), Some([Value::Within(_)])), "{again:?}");
    let copied = again.copied_to(Device::cpu()).unwrap();
    let Some([Value::Within(itself)]) = copied.as_list() else { panic!("{copied:?}") };
    assert_eq!(itself.upgrade().unwrap().type_name(), "list");
    assert!(pickle(b"(((((((((((((((((.").is_err());
    // Each list holds the one before twice: 2^60 values.
    let mut doubling = b"]q\0".to_vec();
    for at in 0..60u8 {
        doubling.extend([b']', b'(', b'h', at, b'h', at, b'e', b'q', at + 1]);
    }
    doubling.push(b'.');
    assert!(pickle(&doubling).unwrap_err().to_string().contains("far more memory"));
    // A long text in many places, and a call that copies a long list again and again.
    let mut long = [b"X\0\0\x10\0".as_slice(), &vec![b'x'; 1 << 20], b"q\0("].concat();
    long.extend(b"h\0".repeat(1_000_000));
    long.extend(b"t.");
    assert!(pickle(&long).unwrap_err().to_string().contains("far more memory"));
    let mut calls = [b"](".as_slice(), &vec![b'N'; 1 << 20], b"eq\0("].concat();
    calls.extend(b"cbuiltins\nset\n(h\0tR".repeat(100_000));
    calls.extend(b"t.");
    assert!(pickle(&calls).unwrap_err().to_string().contains("far more memory"));
    // A memo that begins at the end of the address space.
    assert!(pickle(b"Nr\xff\xff\xff\xffj\xff\xff\xff\xff.").unwrap().is_none());
    assert!(pickle(b"Np18446744073709551615\n.").is_ok());
}

#[test]
fn archives_that_are_something_else_say_so() {
    for (entries, says) in [
        (&[("data.pkl", &b"N."[..]), ("constants.pkl", b"N.")][..], "TorchScript"),
        (&[("data.pkl", b"N."), ("byteorder", b"big")], "big-endian"),
        (&[("data.pkl", b"N."), ("version", b"99")], "newer PyTorch"),
        (&[("data.pkl", b"N."), ("data.pkl", b"N.")], "there twice"),
        (&[("other", b"N.")], "no entry `data.pkl`"),
        (&[], "not a zip archive"),
    ] {
        let error = read(archive(entries)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn every_cut_and_every_changed_byte_of_a_real_file_is_an_error_or_a_value() {
    let own = device::private_cpu(&Default::default()).unwrap();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/values.pt");
    let file = std::fs::read(golden).unwrap();
    let read = |bytes: Vec<u8>| load_from(Source::from(bytes), false, &mut |_| Ok(own));
    for len in 0..file.len() {
        assert!(read(file[..len].to_vec()).is_err(), "{len} of {}", file.len());
    }
    for at in 0..file.len() {
        for bits in [1, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[at] ^= bits;
            if let Err(error) = read(changed) {
                assert!(!error.to_string().is_empty());
            }
        }
    }
    // A storage is at most the file, and each takes a block of 512 bytes at least.
    let most = (file.len() + 40 * 512).next_multiple_of(512);
    assert!(memory::max_memory_allocated(own) <= most, "{}", memory::max_memory_allocated(own));
    assert_eq!(memory::memory_allocated(own), 0);
}

#[test]
fn what_a_counter_counted_is_read_as_pytorch_writes_it() {
    // `torch.save(collections.Counter([5, 2, 5]), f)`, as `MultiStepLR` keeps its milestones.
    let written: &[u8] =
        b"\x80\x02ccollections\nCounter\nq\x00}q\x01(K\x05K\x02K\x02K\x01u\x85q\x02Rq\x03.";
    let read = pickle(written).unwrap();
    let counted = read.as_dict().unwrap();
    assert!(counted.is_counter() && counted.len() == 2);
    let count = |key: i64| counted.get(key).and_then(Value::as_int);
    assert_eq!((count(5), count(2)), (Some(2), Some(1)));
    // Written again it is read again.
    let mut again = Vec::new();
    plimsoll_files::write(&mut again, &read).unwrap();
    assert!(self::read(again).unwrap().as_dict().unwrap().is_counter());
    let error = pickle(b"ccollections\nCounter\n(K\x05tR.").unwrap_err();
    assert!(error.to_string().contains("arguments that Counter does not take"), "{error}");
}
