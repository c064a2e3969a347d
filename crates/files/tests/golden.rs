//! Files that PyTorch 2.15 and the safetensors package wrote (`golden/make_golden.py`), read here;
//! and files written here for them (`golden/read_ours.py`).

use std::path::{Path, PathBuf};

use plimsoll_core::DType;
use plimsoll_files::{
    Checkpoint, LoadOptions, Unpickling, Value, load, load_with, safetensors, save,
};
use plimsoll_nn::StateDict;
use plimsoll_tensor::{Device, Tensor, device, memory};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn tensor<'a>(value: &'a Value, key: &str) -> &'a Tensor {
    value.get(key).and_then(Value::as_tensor).unwrap_or_else(|| panic!("{key}"))
}

fn temporary(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("plimsoll-{}-{name}", std::process::id()))
}

/// What `values()` of the script says.
fn check_values(values: &Value) {
    for dtype in DType::ALL {
        let found = tensor(values.get("dtypes").unwrap(), dtype.name());
        assert_eq!((found.dtype(), found.shape()), (dtype, &[3][..]));
        assert_eq!(found.to_f64_vec().unwrap(), [0.0, 1.0, 1.0]);
    }
    let base = tensor(values, "base");
    let twelve: Vec<f32> = (0..12u8).map(f32::from).collect();
    assert_eq!((base.shape(), base.to_vec::<f32>().unwrap()), (&[3, 4][..], twelve));
    for (key, shape, strides, offset) in
        [("transposed", [4, 3], [1, 4], 0), ("part", [2, 2], [4, 1], 5)]
    {
        let view = tensor(values, key);
        assert_eq!((view.shape(), view.strides()), (&shape[..], &strides[..]), "{key}");
        assert_eq!(view.storage_offset(), offset, "{key}");
        assert!(view.shares_storage_with(base) && view.base().is_none(), "{key}");
    }
    assert_eq!(tensor(values, "part").to_vec::<f32>().unwrap(), [5.0, 6.0, 9.0, 10.0]);
    let expanded = tensor(values, "expanded");
    assert_eq!((expanded.strides(), expanded.storage_nbytes()), (&[0, 0][..], 4));
    assert_eq!(tensor(values, "scalar").item::<f64>().unwrap(), 2.5);
    assert_eq!(tensor(values, "empty").shape(), [0, 3]);
    assert!(tensor(values, "leaf").requires_grad() && tensor(values, "leaf").is_leaf());
    assert!(!base.requires_grad());
    for (key, requires_grad) in [("parameter", true), ("frozen", false)] {
        let Some(Value::Parameter(parameter)) = values.get(key) else { panic!("{key}") };
        assert_eq!(parameter.requires_grad(), requires_grad, "{key}");
    }
    let twice = values.get("twice").and_then(Value::as_list).unwrap();
    assert!(twice[0].as_tensor().unwrap().is(twice[1].as_tensor().unwrap()), "one object");
    check_plain(values);
}

fn check_plain(values: &Value) {
    let plain = values.get("plain").and_then(Value::as_list).unwrap();
    assert!(plain[0].is_none() && plain[1].as_bool() == Some(true));
    assert_eq!(plain[2].as_bool(), Some(false));
    let integers: [i128; 9] = [0, 255, 256, 65536, -1, 1 << 31, -(1 << 63), (1 << 64) - 1, 1 << 70];
    for (found, wanted) in plain[3..12].iter().zip(integers) {
        assert!(matches!(found, Value::Int(number) if *number == wanted), "{found:?}");
    }
    assert_eq!(plain[12].as_float(), Some(0.1));
    assert_eq!((plain[13].as_str(), plain[14].as_str()), (Some(""), Some("gr\u{fc}\u{df}")));
    assert!(matches!(&plain[15], Value::Bytes(bytes) if *bytes == [0, 255]));
    assert!(matches!(&plain[16], Value::Tuple(items) if items.is_empty()));
    let nested = values.get("nested").unwrap();
    let one = &nested.get(1).and_then(Value::as_list).unwrap()[0];
    assert_eq!(one.as_list().unwrap()[1].get("three").unwrap().as_list().unwrap().len(), 1);
    let key = Value::Tuple(vec!["a".into(), 1.into()]);
    let set = nested.get(key).and_then(|inner| inner.get("set")).unwrap();
    assert!(matches!(set, Value::Set(items) if items[0].as_int() == Some(7)));
    let ordered = values.get("ordered").and_then(Value::as_dict).unwrap();
    assert!(ordered.is_ordered() && !values.as_dict().unwrap().is_ordered());
    let keys: Vec<_> = ordered.iter().map(|(key, _)| key.as_str().unwrap()).collect();
    assert_eq!(keys, ["b", "a"]);
    assert!(matches!(values.get("size"), Some(Value::Size(sizes)) if *sizes == [3, 4]));
    assert!(matches!(values.get("dtype"), Some(Value::DType(DType::BF16))));
}

#[test]
fn what_pytorch_wrote_is_read_and_survives_being_written() {
    for name in ["values.pt", "protocol4.pt"] {
        let values = load(golden(name), Device::cpu()).unwrap();
        check_values(&values);
        let path = temporary(name);
        save(&path, &values).unwrap();
        check_values(&load(&path, Device::cpu()).unwrap());
        check_values(&load_with(&path, LoadOptions::new().mmap(true)).unwrap());
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn devices_are_names_whether_they_are_here_or_not() {
    let read = load(golden("devices.pt"), Device::cpu()).unwrap();
    let mut written = Vec::new();
    plimsoll_files::write(&mut written, &read).unwrap();
    let again = plimsoll_files::load_from(written.into(), false, &mut |_| Ok(Device::cpu()));
    for devices in [read, again.unwrap()] {
        let [first, second] = devices.as_list().unwrap() else { panic!("{devices:?}") };
        assert!(matches!(first, Value::Device(name) if name == "cpu"));
        assert!(matches!(second, Value::Device(name) if name == "cuda:1"));
    }
}

#[test]
fn what_was_trained_in_pytorch_is_loaded_with_its_metadata() {
    let read = load(golden("training.pt"), Device::cpu()).unwrap();
    let model = read.get("model").unwrap();
    let state = StateDict::try_from(model).unwrap();
    assert_eq!(state.len(), 9);
    assert_eq!(state.get("1.running_mean").unwrap().shape(), [4]);
    let metadata = model.as_dict().unwrap().attributes().unwrap();
    let version = metadata.get("_metadata").and_then(|all| all.get("1"));
    assert_eq!(version.and_then(|own| own.get("version")).and_then(Value::as_int), Some(2));
    let optimizer = read.get("optimizer").unwrap();
    let first = optimizer.get("state").and_then(|state| state.get(0)).unwrap();
    assert_eq!(tensor(first, "exp_avg").shape(), [4, 3]);
    assert_eq!(tensor(first, "step").item::<f32>().unwrap(), 3.0);
    let groups = optimizer.get("param_groups").and_then(Value::as_list).unwrap();
    assert_eq!(groups[0].get("initial_lr").and_then(Value::as_float), Some(0.01));
    let error = StateDict::try_from(&read).unwrap_err().to_string();
    assert!(error.contains("\"optimizer\" is a dict") && error.contains("\"step\""), "{error}");
}

#[test]
fn attributes_of_tensors_are_read_and_written() {
    let path = temporary("attributed.pt");
    save(&path, &load(golden("attributed.pt"), Device::cpu()).unwrap()).unwrap();
    for path in [golden("attributed.pt"), path.clone()] {
        let read = load(path, Device::cpu()).unwrap();
        let attributed = |key: &str| match read.get(key).unwrap().plain() {
            Value::Attributed(both) => (**both).clone(),
            other => panic!("{key} is {other:?}"),
        };
        let (noted, own) = attributed("noted");
        assert_eq!(own.get("note").and_then(Value::as_str), Some("first"));
        assert_eq!(own.get("places").and_then(Value::as_list).unwrap().len(), 2);
        assert!(noted.as_tensor().unwrap().is(read.get("again").unwrap().as_tensor().unwrap()));
        let (parameter, own) = attributed("parameter");
        assert!(matches!(&parameter, Value::Parameter(tensor) if !tensor.requires_grad()));
        assert_eq!(own.get("rate").and_then(Value::as_float), Some(0.5));
        assert_eq!(attributed("buffer").1.get("_is_buffer").and_then(Value::as_bool), Some(true));
        assert!(matches!(read.get("complex"), Some(Value::Complex(1.5, -2.0))));
        assert!(matches!(read.get("bytearray"), Some(Value::ByteArray(held)) if held == b"a\xff"));
        assert!(matches!(read.get("empty"), Some(Value::ByteArray(held)) if held.is_empty()));
    }
    std::fs::remove_file(path).unwrap();
}

#[test]
fn what_is_not_data_is_refused_by_name() {
    let was_here = Path::new("/tmp/plimsoll-was-here");
    let _ = std::fs::remove_file(was_here);
    for (name, global) in [("class.pt", "__main__.Own"), ("command.pt", "posix.system")] {
        let error = load(golden(name), Device::cpu()).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(name) && said.contains(&format!("GLOBAL {global}")), "{said}");
        assert!(said.ends_with("instead of the object."), "{said}");
        let detail = error.detail::<Unpickling>().unwrap();
        assert_eq!(detail.global.as_deref(), Some(global));
    }
    assert!(!was_here.exists());
    for (name, says) in [
        ("legacy.pt", "legacy format"),
        ("complex.pt", "torch.ComplexFloatStorage"),
        ("sparse.pt", "_rebuild_sparse_tensor"),
        ("tensors.safetensors", "safetensors::load_file"),
        ("make_golden.py", "not a zip archive"),
        ("nowhere.pt", "cannot read"),
    ] {
        let said = load(golden(name), Device::cpu()).unwrap_err().to_string();
        assert!(said.contains(says) && said.contains(name), "{said}");
    }
}

#[test]
fn safetensors_of_the_python_package_are_read_and_written_the_same() {
    let path = golden("tensors.safetensors");
    let (state, metadata) = safetensors::load_file_with(&path, LoadOptions::new()).unwrap();
    assert_eq!(
        metadata.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(),
        [("epoch", "3"), ("format", "pt"),]
    );
    let get = |name: &str| state.get(name).unwrap();
    assert_eq!(get("weight").to_f64_vec().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(get("weight").shape(), [2, 3]);
    assert_eq!(get("half").to_f64_vec().unwrap(), [1.5, -2.0]);
    assert_eq!((get("brain").dtype(), get("brain").to_f64_vec().unwrap()[1]), (DType::BF16, -2.0));
    assert_eq!(get("mask").to_bools().unwrap(), [true, false, true]);
    assert_eq!((get("step").rank(), get("step").item::<i64>().unwrap()), (0, 7));
    assert_eq!(get("none").shape(), [0, 2]);
    let mut written = Vec::new();
    safetensors::save(&state, &mut written, &[("epoch", "3")].into_iter().collect()).unwrap();
    let theirs = std::fs::read(&path).unwrap();
    let header = |file: &[u8]| 8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    assert_eq!(written[header(&written)..], theirs[header(&theirs)..], "the same order and bytes");
}

#[test]
fn loading_takes_the_bytes_of_the_storages_and_no_more() {
    let own = device::private_cpu(&Default::default()).unwrap();
    let path = temporary("bytes.pt");
    let x = Tensor::ones(&[1 << 20], DType::F32).unwrap();
    let halves = vec![x.narrow(0, 0, 1 << 19).unwrap(), x.narrow(0, 1 << 19, 1 << 19).unwrap()];
    save(&path, &halves.into()).unwrap();
    let scope = memory::peak_scope(own);
    let read = load(&path, own).unwrap();
    assert_eq!(memory::memory_allocated(own), 4 << 20);
    assert_eq!(scope.allocated_bytes_peak(), 4 << 20, "no second copy on the way");
    drop(read);
    assert_eq!(memory::memory_allocated(own), 0);

    let on_file = load_with(&path, LoadOptions::new().device(own).mmap(true)).unwrap();
    let stats = || memory::arena(own).stats();
    assert_eq!((memory::memory_allocated(own), stats().external_bytes.current), (0, 4 << 20));
    let first = on_file.as_list().unwrap()[0].as_tensor().unwrap();
    first.zero_().unwrap();
    let again = load(&path, own).unwrap();
    let again = again.as_list().unwrap()[0].as_tensor().unwrap();
    assert_eq!(again.sum().unwrap().item::<f32>().unwrap(), 524_288.0);
    drop(on_file);
    assert_eq!(stats().external_bytes.current, 0);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn tensors_go_to_and_come_from_a_device() {
    let accelerator = device::stand_in(Default::default()).unwrap();
    let path = temporary("device.pt");
    let x = Tensor::arange(0, 5, 1, (DType::I64, accelerator)).unwrap();
    save(&path, &x.narrow(0, 2, 3).unwrap().into()).unwrap();
    let here = load_with(&path, LoadOptions::new()).unwrap();
    assert_eq!(here.as_tensor().unwrap().device(), Device::cpu());
    let there = load(&path, accelerator).unwrap();
    let there = there.as_tensor().unwrap();
    assert_eq!((there.device(), there.to_vec::<i64>().unwrap()), (accelerator, vec![2, 3, 4]));
    let dry = device::dry(Device::cpu()).unwrap();
    load(&path, dry).unwrap();
    assert_eq!(memory::max_memory_allocated(dry), 512, "40 bytes, rounded up");
    let no_values = Tensor::zeros(&[2], (DType::F32, dry)).unwrap();
    let error = save(&path, &no_values.into()).unwrap_err().to_string();
    assert!(error.contains("no values to save") && error.contains("left it as it was"), "{error}");
    assert!(load(&path, Device::cpu()).is_ok());
    std::fs::remove_file(path).unwrap();
}

/// For `read_ours.py`, which asserts: writes into the folder that the variable names.
#[test]
fn write_for_pytorch() {
    let given = std::env::var_os("PLIMSOLL_WRITE_FOR_PYTORCH").map(PathBuf::from);
    let folder = given.clone().unwrap_or_else(|| temporary("for-pytorch"));
    std::fs::create_dir_all(&folder).unwrap();
    let read = |name: &str| load(golden(name), Device::cpu()).unwrap();
    save(folder.join("values.pt"), &read("values.pt")).unwrap();
    save(folder.join("devices.pt"), &read("devices.pt")).unwrap();
    save(folder.join("attributed.pt"), &read("attributed.pt")).unwrap();
    save(folder.join("circles.pt"), &read("circles.pt")).unwrap();
    save(folder.join("training.pt"), &read("training.pt")).unwrap();
    let state = safetensors::load_file(golden("tensors.safetensors"), Device::cpu()).unwrap();
    safetensors::save_file(&state, folder.join("tensors.safetensors"), &Default::default())
        .unwrap();
    let training = read("training.pt");
    let seeds = plimsoll_tensor::RngState { seed: u64::MAX, offset: 5 };
    let before = plimsoll_tensor::get_rng_state(Device::cpu());
    plimsoll_tensor::set_rng_state(Device::cpu(), seeds);
    let checkpoint = Checkpoint {
        model: StateDict::try_from(training.get("model").unwrap()).unwrap(),
        optimizer: training.get("optimizer").cloned().unwrap(),
        random: plimsoll_files::RandomState::of(&[Device::cpu()]),
        step: 3,
        ..Checkpoint::default()
    };
    plimsoll_tensor::set_rng_state(Device::cpu(), before);
    checkpoint.save(folder.join("checkpoint.pt")).unwrap();
    let again = Checkpoint::load(folder.join("checkpoint.pt"), Device::cpu()).unwrap();
    assert_eq!((again.step, again.random.clone()), (3, checkpoint.random));
    assert_eq!(again.model.keys().collect::<Vec<_>>(), checkpoint.model.keys().collect::<Vec<_>>());
    let error = Checkpoint::load(folder.join("training.pt"), Device::cpu()).unwrap_err();
    assert!(error.to_string().contains("not a training checkpoint"), "{error}");
    if given.is_none() {
        std::fs::remove_dir_all(folder).unwrap();
    }
}
