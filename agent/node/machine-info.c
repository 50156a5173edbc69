/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the machine's properties from the kernel and the security modules. */

#include "agent/node/machine-info.h"

#include "agent/bundle/huge-pages.h"
#include "agent/bundle/masked-paths.h"
#include "agent/model/capability.h"
#include "agent/model/names.h"
#include "common/app-armor.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/landlock-version.h"
#include "common/log.h"
#include "common/selinux.h"
#include "common/strv.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* The interface of the default route with the lowest metric; "": none. */
static void find_default_interface(char ret[IF_NAMESIZE]) {
        cleanup_free char *text = NULL;
        unsigned best = UINT_MAX;
        char *line, *rest;

        ret[0] = '\0';
        if (read_file_at(AT_FDCWD, "/proc/net/route", 256 * KIB, &text, NULL) < 0)
                return;
        rest = text;
        while ((line = strsep(&rest, "\n"))) {
                unsigned destination, metric, mask;
                char name[IF_NAMESIZE];

                if (sscanf(line, "%15s %x %*x %*x %*d %*d %u %x", name, &destination, &metric,
                           &mask) != 4 ||
                    destination != 0 || mask != 0 || metric >= best)
                        continue;
                best = metric;
                (void) snprintf(ret, IF_NAMESIZE, "%s", name);
        }
}

/* An interface of pods, from a network of a CNI plugin; ignored unless it has the default route. */
static bool is_bridge(const char *name) {
        char path[64 + IF_NAMESIZE];

        (void) snprintf(path, sizeof(path), "/sys/class/net/%s/bridge", name);
        return access(path, F_OK) >= 0;
}

static int parse_route6(const char *line, char ret_name[IF_NAMESIZE], unsigned *ret_metric) {
        char destination[33];
        unsigned length;

        /* destination, its prefix, source, its prefix, next hop, metric, counters, flags, device */
        if (sscanf(line, "%32s %x %*s %*s %*s %x %*x %*x %*x %15s", destination, &length,
                   ret_metric, ret_name) != 4)
                return -EINVAL;
        return length == 0 && strspn(destination, "0") == 32 && !streq(ret_name, "lo") ? 0
                                                                                       : -ENOENT;
}

static void find_default_interface6(char ret[IF_NAMESIZE]) {
        cleanup_free char *text = NULL;
        unsigned best = UINT_MAX;
        char *line, *rest;

        ret[0] = '\0';
        if (read_file_at(AT_FDCWD, "/proc/net/ipv6_route", MIB, &text, NULL) < 0)
                return;
        rest = text;
        while ((line = strsep(&rest, "\n"))) {
                char name[IF_NAMESIZE];
                unsigned metric;

                if (parse_route6(line, name, &metric) < 0 || metric >= best)
                        continue;
                best = metric;
                (void) snprintf(ret, IF_NAMESIZE, "%s", name);
        }
}

/* An address that other machines cannot use: link-local or loopback. */
static bool is_local_address6(const struct sockaddr *address) {
        struct sockaddr_in6 in6;

        if (address->sa_family != AF_INET6)
                return false;
        memcpy(&in6, address, sizeof(in6));
        return IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) || IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr);
}

static bool is_node_address(const struct ifaddrs *address, int family, const char *interface) {
        if (!address->ifa_addr || address->ifa_addr->sa_family != family ||
            !(address->ifa_flags & IFF_UP) || (address->ifa_flags & IFF_LOOPBACK) ||
            is_local_address6(address->ifa_addr))
                return false;
        return interface[0] ? streq(address->ifa_name, interface) : !is_bridge(address->ifa_name);
}

static char *find_interface_address(const struct ifaddrs *addresses, int family,
                                    const char *interface) {
        char text[INET6_ADDRSTRLEN];
        socklen_t length =
                family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);

        for (const struct ifaddrs *a = addresses; a; a = a->ifa_next)
                if (is_node_address(a, family, interface) &&
                    getnameinfo(a->ifa_addr, length, text, sizeof(text), NULL, 0, NI_NUMERICHOST) ==
                            0)
                        return strdup(text);
        return NULL;
}

/* The default route's address, as in the kubelet, or the first one that does not belong to a
 * bridge.
 */
static char *find_node_address_of(const struct ifaddrs *addresses, int family) {
        char interface[IF_NAMESIZE];
        char *result;

        if (family == AF_INET)
                find_default_interface(interface);
        else
                find_default_interface6(interface);
        result = interface[0] ? find_interface_address(addresses, family, interface) : NULL;
        return result ? result : find_interface_address(addresses, family, "");
}

static char *find_node_address(int first_family) {
        int other_family = first_family == AF_INET ? AF_INET6 : AF_INET;
        struct ifaddrs *addresses;
        char *result;

        if (getifaddrs(&addresses) < 0)
                return NULL;
        result = find_node_address_of(addresses, first_family);
        if (!result)
                result = find_node_address_of(addresses, other_family);
        freeifaddrs(addresses);
        return result;
}

static bool is_unspecified_address(const char *address) {
        return streq(address, "0.0.0.0") || streq(address, "::");
}

static int check_address_pair(const char *first, const char *second, Error *reterr) {
        int r = check_ip_address(second, reterr);

        if (r < 0)
                return r;
        if (strchr(second, ',') || !strchr(first, ':') == !strchr(second, ':'))
                return error_setf(reterr, EINVAL,
                                  "must be one address, or one of each family, not '%s,%s'", first,
                                  second);
        if (is_unspecified_address(first) || is_unspecified_address(second))
                return error_setf(reterr, EINVAL, "must be addresses of the node, not '%s,%s'",
                                  first, second);
        return 0;
}

int machine_info_set_address(MachineInfo *machine, const char *given, Error *reterr) {
        size_t length = given ? strcspn(given, ",") : 0;
        const char *rest = given && given[length] ? given + length + 1 : NULL;
        cleanup_free char *first = given ? strndup(given, length) : NULL;
        cleanup_free char *second = rest ? strdup(rest) : NULL;
        int r;

        if (!given)
                return 0;
        if (!first || (rest && !second))
                return -ENOMEM;
        r = check_ip_address(first, reterr);
        if (r >= 0 && second)
                r = check_address_pair(first, second, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "--node-ip");
        if (streq(first, "::")) {
                free(machine->address);
                machine->address = find_node_address(AF_INET6);
        }
        if (is_unspecified_address(first))
                return 0;
        free(machine->address);
        machine->address = TAKE_PTR(first);
        machine->other_address = TAKE_PTR(second);
        return 0;
}

/* If systemd starts the shims, containers can have PID 1's bounding set. A confined agent may be
 * unable to read it; then PID 1 is assumed to have all capabilities. */
static uint64_t read_manager_missing_capabilities(void) {
        static const char key[] = "\nCapBnd:";
        cleanup_free char *text = NULL;
        const char *line;

        if (read_file_at(AT_FDCWD, "/proc/1/status", 64 * KIB, &text, NULL) < 0)
                return 0;
        line = strstr(text, key);
        return line ? ~strtoull(line + strlen(key), NULL, 16) & (CAPABILITY_BIT(N_CAPABILITIES) - 1)
                    : 0;
}

/* A child can have the capabilities that are both effective and in the bounding set. */
static uint64_t read_missing_capabilities(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
        uint64_t missing = 0;

        (void) syscall(SYS_capget, &header, data);
        for (int i = 0; i < N_CAPABILITIES; i++)
                if (!(data[CAP_TO_INDEX(i)].effective & CAP_TO_MASK(i)) ||
                    prctl(PR_CAPBSET_READ, i) != 1)
                        missing |= CAPABILITY_BIT(i);
        return missing;
}

/* This runs in a child, because the confinement of this process may kill it. A system call filter
 * does so, such as systemd's for native architectures; each start then leaves a killed mainstayd in
 * the audit log. */
static bool probe_x32_support(void) {
#if defined(__x86_64__) && defined(__X32_SYSCALL_BIT)
        int status = -1;
        pid_t pid;

        if (prctl(PR_GET_SECCOMP) != 0)
                return false;
        pid = fork();
        if (pid == 0)
                _exit(syscall(__X32_SYSCALL_BIT | SYS_getppid) > 0 ? EXIT_SUCCESS : EXIT_FAILURE);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status == 0;
#else
        return false;
#endif
}

static bool is_app_armor_enabled(void) {
        cleanup_free char *text = NULL;
        cleanup_close int fd =
                open("/sys/module/apparmor/parameters/enabled", O_RDONLY | O_CLOEXEC);

        return fd >= 0 && read_stream(fd, 16, &text, NULL) >= 0 && text[0] == 'Y';
}

/* The package contains the profile, and the system loads it before it starts services. */
static const char *find_app_armor_profile(void) {
        static const char name[] = "mainstay-container";
        cleanup_free char *mode = NULL;

        return app_armor_find_mode(app_armor_profiles_path, name, &mode) >= 0 ? name : NULL;
}

/* The policy of a distribution may name container types that it does not define. */
static void discover_selinux_labels(MachineInfo *machine) {
        SeLinuxLabelDefaults *labels = &machine->labels;
        const char *unknown = NULL;
        int r;

        machine->has_se_linux = selinux_is_enabled();
        if (!machine->has_se_linux)
                return;
        r = selinux_label_defaults_load("", labels);
        if (r < 0 && r != -ENOENT)
                log_warning("Cannot read the SELinux policy's labels for containers: %s",
                            strerror(-r));
        if (r >= 0 && selinux_check_label(labels->process) == -EINVAL)
                unknown = labels->process;
        else if (r >= 0 && selinux_check_label(labels->file) == -EINVAL)
                unknown = labels->file;
        machine->has_selinux_labels = r >= 0 && !unknown;
        if (!machine->has_selinux_labels)
                log_warning("Containers run without SELinux labels unless a pod sets one: the "
                            "policy %s%s",
                            unknown ? "does not define " : "has no labels for containers",
                            strna(unknown));
}

/* Without CAP_SYS_RESOURCE a process may only raise its oom_score_adj, and an OCI runtime fails
 * with an obscure message when it tries to lower it. */
static int find_min_oom_score_adj(uint64_t missing) {
        cleanup_free char *text = NULL;
        int own = 0;

        if (!(missing & CAPABILITY_BIT(CAP_SYS_RESOURCE)))
                return -1000;
        if (read_file_at(AT_FDCWD, "/proc/self/oom_score_adj", 64, &text, NULL) >= 0)
                own = (int) strtol(text, NULL, 10);
        if (own > -997)
                log_warning("oom_score_adj cannot be set below %d without CAP_SYS_RESOURCE; "
                            "Guaranteed pods get %d instead of -997",
                            own, own);
        return own;
}

static int check_own_node_name(char *name, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        for (char *c = name; *c; c++)
                *c = (char) tolower((unsigned char) *c);
        r = check_dns_subdomain(name, &error);
        if (r < 0)
                return error_setf(reterr, EINVAL,
                                  "the node's name %s; set a different one with --node-name",
                                  error_message(&error, r));
        return 0;
}

int machine_info_discover(const char *name, bool has_manager, MachineInfo *ret, Error *reterr) {
        cleanup_with(machine_info_done) MachineInfo machine = { 0 };
        struct utsname uts;
        struct sysinfo info;
        int r;

        if (uname(&uts) < 0 || sysinfo(&info) < 0)
                return -errno;
        machine.hostname = strdup(uts.nodename);
        machine.name = strdup(name ? name : uts.nodename);
        machine.reported_hostname = strdup(name ? name : uts.nodename);
        if (!machine.hostname || !machine.name || !machine.reported_hostname)
                return -ENOMEM;
        r = check_own_node_name(machine.name, reterr);
        if (r < 0)
                return r;
        machine.address = find_node_address(AF_INET);
        machine.memory_capacity = (int64_t) info.totalram * info.mem_unit;
        machine.swap_capacity = (int64_t) info.totalswap * info.mem_unit;
        machine.missing_capabilities =
                has_manager ? read_manager_missing_capabilities() : read_missing_capabilities();
        machine.has_x32 = probe_x32_support();
        machine.has_landlock = landlock_version() >= LANDLOCK_VERSION_MIN;
        if (!machine.has_landlock)
                log_warning(
                        "The kernel does not support Landlock version %d: mainstay-image, which "
                        "reads untrusted images and manifests, is confined by its user, its "
                        "capabilities and a system call filter, but not to its directory",
                        LANDLOCK_VERSION_MIN);
        machine.has_app_armor = is_app_armor_enabled();
        machine.app_armor_default = machine.has_app_armor ? find_app_armor_profile() : NULL;
        discover_selinux_labels(&machine);
        machine.oom_score_adj_min = find_min_oom_score_adj(machine.missing_capabilities);
        machine.n_cpus = (unsigned) MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
        r = find_thermal_throttles(CPUS_DIRECTORY, &machine.thermal_throttles);
        if (r < 0)
                return r;
        *ret = machine;
        machine = (MachineInfo){ 0 };
        return 0;
}

int64_t machine_storage_capacity(const char *directory) {
        struct statvfs st;

        if (statvfs(directory, &st) < 0)
                return 0;
        return (int64_t) (st.f_blocks * st.f_frsize);
}

static int64_t read_huge_pages_bytes(const char *size, int64_t bytes) {
        cleanup_free char *path = NULL, *text = NULL;

        path = text_format(HUGE_PAGES_DIRECTORY "/hugepages-%s/nr_hugepages", size);
        if (!path)
                return NODE_RESOURCE_NONE;
        if (read_file_at(AT_FDCWD, path, 64, &text, NULL) < 0)
                return NODE_RESOURCE_NONE;
        return (int64_t) strtoll(text, NULL, 10) * bytes;
}

NodeResources machine_capacity(const MachineInfo *machine, int64_t storage, int64_t max_pods) {
        return (NodeResources){
                .cpu_milli = (int64_t) machine->n_cpus * 1000,
                .memory = machine->memory_capacity,
                .ephemeral_storage = storage,
                .huge_pages_1gi = read_huge_pages_bytes("1048576kB", (int64_t) 1024 * 1024 * 1024),
                .huge_pages_2mi = read_huge_pages_bytes("2048kB", (int64_t) 2 * 1024 * 1024),
                .pods = max_pods,
        };
}

void machine_info_done(MachineInfo *machine) {
        free(machine->name);
        free(machine->hostname);
        free(machine->reported_hostname);
        free(machine->address);
        free(machine->other_address);
        selinux_label_defaults_done(&machine->labels);
        strv_free(machine->thermal_throttles);
        *machine = (MachineInfo){ 0 };
}
