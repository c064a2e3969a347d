//! Compiles every CUDA source by NVRTC, without a GPU, into a folder of cubins: `compile_kernels
//! FOLDER [CAPABILITY]`. The check that the sources are sound, and the way that `cargo xtask
//! gpu-bundle` makes its cubins.

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
    let count = plimsoll_cuda::source_files::ALL.len();
    println!("test result: ok. {count} passed; 0 failed");
    Ok(())
}
