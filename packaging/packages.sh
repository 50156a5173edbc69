# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Packages for building, running and testing on Debian 12 and 13; sourced by packaging/try and tests/run.

# The release whose packages are named: this machine's, unless the caller has set another one.
# shellcheck source=/dev/null
MAINSTAY_RELEASE=${MAINSTAY_RELEASE:-$(. /etc/os-release && echo "${VERSION_CODENAME:-}")}

# zlib1g-dev: kubectl and the API server connect to a node over SPDY, whose headers are compressed.
# shellcheck disable=SC2034 # used by the scripts that source this
BUILD_PACKAGES=(
    cmake ninja-build gcc libc6-dev pkg-config libsystemd-dev libyaml-dev libjansson-dev
    libcurl4-gnutls-dev libarchive-dev libgnutls28-dev nettle-dev libmicrohttpd-dev libseccomp-dev libwslay-dev
    libnghttp2-dev zlib1g-dev libisal-dev go-md2man
)
# libcurl3-gnutls, libcurl3t64-gnutls: loaded at the first request (by the agent when the first pod is probed), so no
# program is linked with them.
libcurl=libcurl3t64-gnutls
[ "$MAINSTAY_RELEASE" != bookworm ] || libcurl=libcurl3-gnutls
# shellcheck disable=SC2034
RUNTIME_PACKAGES=(runc containernetworking-plugins iptables busybox-static python3 "$libcurl")
unset libcurl
# shellcheck disable=SC2034
TEST_PACKAGES=(
    clang clang-tidy clang-format cppcheck shellcheck codespell ccache python3-pytest python3-pytest-xdist python3-yaml
    python3-grpcio python3-h2 nghttp2-proxy nginx umoci skopeo docker-registry openssl zstd strace util-linux mount iproute2 procps git mandoc
    vim-tiny nano rsync ansible-core exfat-fuse exfatprogs age nftables
)
# Packages for the kubelet node of the cluster suite.
# shellcheck disable=SC2034
CLUSTER_PACKAGES=(containerd)
# Programs against which the bench measures.
# shellcheck disable=SC2034
BENCH_PACKAGES=(podman catatonit containerd curl tar gzip)
# Tools to create the root directories of tests/foreign, and the machines of ARM.
# shellcheck disable=SC2034
FOREIGN_PACKAGES=(mmdebstrap arch-test)
# shellcheck disable=SC2034
ARM_PACKAGES=(qemu-user-static qemu-system-arm)
# shellcheck disable=SC2034
VM_PACKAGES=(debhelper mmdebstrap qemu-system-x86 qemu-utils e2fsprogs file lintian rpm apt-utils gnupg faketime swtpm)

# Installs the missing packages without questions; does not run apt if none is missing.
install_packages() {
    local package
    local -a missing=()
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -q '^installed$' ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "== install ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null
}
