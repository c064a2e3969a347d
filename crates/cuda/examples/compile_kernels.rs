//! Compiles every CUDA source by NVRTC, without a GPU, into a folder of cubins: `compile_kernels
//! FOLDER [CAPABILITY]`. The check that the sources are sound, and the way that `cargo xtask
//! gpu-bundle` makes its cubins. One kernel alone is compiled too, as a cold start does.

#![allow(clippy::print_stdout)]

use std::path::PathBuf;

fn main() -> plimsoll_core::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().unwrap_or_else(|| "target/cubins".to_string()));
    let capability: u32 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(90);
    std::fs::create_dir_all(&folder)?;
    for source in plimsoll_cuda::source_files::ALL {
        let path = folder.join(source.cubin_name(capability));
        let code = match std::fs::read(&path) {
            Ok(code) => code,
            Err(_) => {
                let code = plimsoll_cuda::compile(source.name, source.text, capability)?;
                std::fs::write(&path, &code)?;
                code
            }
        };
        println!("{}.cu: {} bytes for sm_{capability}", source.name, code.len());
    }
    let unary = &plimsoll_cuda::source_files::UNARY;
    let start = std::time::Instant::now();
    let alone = plimsoll_cuda::compile("unary", &unary.text_of("exp_f32"), capability)?;
    let has = |name: &str| alone.windows(name.len()).any(|part| part == name.as_bytes());
    assert!(has("exp_f32") && !has("log_f32"), "one kernel is compiled alone");
    println!("exp_f32 of unary.cu alone: {} bytes in {:?}", alone.len(), start.elapsed());
    let count = plimsoll_cuda::source_files::ALL.len();
    println!("test result: ok. {count} passed; 0 failed");
    Ok(())
}
