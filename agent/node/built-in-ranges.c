/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/built-in-ranges.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/random.h>

enum {
        MACHINE_ID_LENGTH = 32,
        RANGE_FILE_MAX = 256,
};

static const char range_file_name[] = "pod-range";

/* The machine ID is confidential, so only a hash of it is shown. */
static bool hash_machine_id(const char *path, char ret[SHA256_HEX_SIZE]) {
        static const char purpose[] = "addresses of the built-in network";
        cleanup_free char *text = NULL;

        if (read_file_at(AT_FDCWD, path, RANGE_FILE_MAX, &text, NULL) < 0 ||
            strspn(text, "0123456789abcdef") != MACHINE_ID_LENGTH)
                return false;
        hmac_sha256_hex(text, MACHINE_ID_LENGTH, purpose, strlen(purpose), ret);
        return true;
}

static void hash_random(char ret[SHA256_HEX_SIZE]) {
        unsigned char bytes[16] = { 0 };

        (void) !getrandom(bytes, sizeof(bytes), 0);
        sha256_hex(bytes, sizeof(bytes), ret);
}

/* A global ID of 40 bits and a subnet ID of 16. */
static char *make_range(const char *machine_id_path) {
        char hash[SHA256_HEX_SIZE], text[INET6_ADDRSTRLEN], canonical[INET6_ADDRSTRLEN];
        struct in6_addr address;

        if (!hash_machine_id(machine_id_path, hash))
                hash_random(hash);
        (void) snprintf(text, sizeof(text), "fd%.2s:%.4s:%.4s:%.4s::", hash, hash + 2, hash + 6,
                        hash + 10);
        if (inet_pton(AF_INET6, text, &address) != 1 ||
            !inet_ntop(AF_INET6, &address, canonical, sizeof(canonical)))
                return NULL;
        return text_format("%s/64", canonical);
}

static bool is_own_range(const char *text) {
        char address[INET6_ADDRSTRLEN];
        size_t length = strcspn(text, "/");
        struct in6_addr in6;

        if (length >= sizeof(address) || !streq(text + length, "/64"))
                return false;
        memcpy(address, text, length);
        address[length] = '\0';
        return inet_pton(AF_INET6, address, &in6) == 1 && in6.s6_addr[0] == 0xfd;
}

char *built_in_ranges_load_own(const char *state_dir, const char *machine_id_path) {
        cleanup_close int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_free char *text = NULL, *record = NULL, *range = NULL;
        int r = checksummed_load_at(fd, range_file_name, RANGE_FILE_MAX,
                                    "The IPv6 range of the built-in network", "it is chosen again",
                                    &text);

        if (r == -ENOMEM)
                return NULL;
        if (r > 0) {
                text[strcspn(text, "\n")] = '\0';
                if (is_own_range(text))
                        return TAKE_PTR(text);
        }
        range = make_range(machine_id_path);
        record = range ? text_format("%s\n", range) : NULL;
        if (!record)
                return NULL;
        r = checksummed_write_at(fd, range_file_name, record, 0600);
        if (r < 0)
                log_warning("Cannot write %s/%s: %s; if the machine ID changes, pods get addresses "
                            "of another range",
                            state_dir, range_file_name, strerror(-r));
        return TAKE_PTR(range);
}

int built_in_ranges_note_unused(Config *config, bool has_joined) {
        const char *setting = config->pod_cidr ? "podCIDR" : "mainstay.podCIDRs";

        if (!config->mainstay.pod_cidrs || config_has_built_in_network(config, has_joined))
                return 0;
        log_warning("%s has no effect: the network of pods is not the built-in one, see "
                    "mainstay.builtInNetwork",
                    setting);
        return config_note_without_effect(config, setting);
}

CniBuiltInNetwork built_in_ranges_choose(const Config *config, const char *own) {
        CniBuiltInNetwork network = { 0 };

        if (!config->mainstay.pod_cidrs)
                return (CniBuiltInNetwork){ .ipv4 = CNI_BUILT_IN_IPV4,
                                            .ipv6 = own,
                                            .is_ipv6_default = true };
        strv_foreach(cidr, config->mainstay.pod_cidrs)
                if (strchr(*cidr, ':'))
                        network.ipv6 = *cidr;
                else
                        network.ipv4 = *cidr;
        if (network.ipv6 && !cni_built_in_has_ipv6(&network))
                log_warning("mainstay.podCIDRs: IPv6 is disabled on this node by "
                            "net.ipv6.conf.all.disable_ipv6; pods get no address of %s",
                            network.ipv6);
        return network;
}
