# Sourced by demo.sh and test.sh: makes sure that what the build needs is there.
#
# On Debian and Ubuntu missing packages are installed (as root, or through sudo); elsewhere they are
# named, and the script stops. Usage: ensure_packages <program|library|header|file>:<what>:<Debian package> ...

missing_packages() {
    for need in "$@"; do
        kind=${need%%:*}
        rest=${need#*:}
        what=${rest%%:*}
        package=${rest#*:}
        case $kind in
        program) command -v "$what" >/dev/null 2>&1 || printf '%s ' "$package" ;;
        library) { command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$what"; } ||
            printf '%s ' "$package" ;;
        file) [ -e "$what" ] || printf '%s ' "$package" ;;
        header) echo "#include <$what>" | cc -E - >/dev/null 2>&1 || printf '%s ' "$package" ;;
        esac
    done
}

install_packages() {
    $as_root apt-get update -qq
    # shellcheck disable=SC2068
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $@ \
        >/dev/null
}

# Like ensure_packages, of things that only further tests want: what cannot be installed is left out.
try_packages() {
    missing=$(missing_packages "$@")
    { [ -z "$missing" ] || ! command -v apt-get >/dev/null 2>&1; } && return 0
    as_root=
    if [ "$(id -u)" != 0 ]; then
        sudo -n true >/dev/null 2>&1 || return 0
        as_root=sudo
    fi
    echo "Installing: $missing"
    # shellcheck disable=SC2086
    install_packages $missing >/dev/null 2>&1 || true
}

ensure_packages() {
    missing=$(missing_packages "$@")
    [ -z "$missing" ] && return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "Please install these (Debian's names) and run again: $missing" >&2
        exit 1
    fi
    as_root=
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "Not root, and no sudo: please run 'apt-get install $missing' and try again." >&2
            exit 1
        fi
        as_root=sudo
    fi
    echo "Installing: $missing"
    # shellcheck disable=SC2086
    install_packages $missing
}

BUILD_PACKAGES="program:cc:gcc header:stdio.h:libc6-dev program:pkg-config:pkg-config
 program:meson:meson program:ninja:ninja-build library:openblas:libopenblas-dev
 library:libpng:libpng-dev library:zlib:zlib1g-dev library:libzip:libzip-dev library:libjpeg:libjpeg-dev
 library:sndfile:libsndfile1-dev
 library:inih:libinih-dev library:jansson:libjansson-dev library:cairo:libcairo2-dev
 library:libprotobuf-c:libprotobuf-c-dev program:protoc-c:protobuf-c-compiler
 file:/usr/include/onnx/onnx.proto:libonnx-dev"
TEST_PACKAGES="library:check:check program:objdump:binutils program:g++:g++ program:make:make
 program:pgrep:procps program:man:man-db
 header:simde/arm/neon.h:libsimde-dev file:/usr/share/libonnx-testdata/data:libonnx-testdata"
MPI_PACKAGES="library:ompi-c:libopenmpi-dev program:mpirun:openmpi-bin"
STYLE_PACKAGES="program:yamllint:yamllint program:clang-format:clang-format"
CROSS_PACKAGES="program:aarch64-linux-gnu-gcc:gcc-aarch64-linux-gnu
 file:/usr/aarch64-linux-gnu/include/stdio.h:libc6-dev-arm64-cross
 program:arm-linux-gnueabihf-gcc:gcc-arm-linux-gnueabihf
 file:/usr/arm-linux-gnueabihf/include/stdio.h:libc6-dev-armhf-cross
 program:arm-none-eabi-gcc:gcc-arm-none-eabi program:qemu-aarch64:qemu-user
 program:qemu-system-arm:qemu-system-arm program:qemu-system-riscv32:qemu-system-misc
 program:riscv64-unknown-elf-gcc:gcc-riscv64-unknown-elf"
