/* SPDX-License-Identifier: Apache-2.0 */

/* Parsing of CNI results and errors; see the header. */

#include "agent/cni/result.h"

#include "agent/cni/limits.h"
#include "agent/cni/network-config.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

#include <arpa/inet.h>

enum {
        DEPTH_MAX = 32,
        ITEMS_MAX = 64, /* interfaces, addresses */
        MESSAGE_MAX = 1024,
};

int cni_result_parse(const char *output, json_t **ret, Error *reterr) {
        json_error_t problem;
        size_t length = strlen(output);
        json_t *result;
        int r;

        if (length > CNI_RESULT_MAX)
                return error_setf(reterr, EBADMSG, "its result has more than %d bytes",
                                  CNI_RESULT_MAX);
        r = json_parse_text(output, length, JSON_REJECT_DUPLICATES, &result, &problem);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return error_setf(reterr, EBADMSG, "its result is not JSON: %d:%d: %s",
                                  problem.line, problem.column, problem.text);
        if (!json_is_object(result) || cni_check_json_depth(result, DEPTH_MAX) < 0 ||
            json_array_size(json_object_get(result, "ips")) > ITEMS_MAX ||
            json_array_size(json_object_get(result, "interfaces")) > ITEMS_MAX) {
                json_decref(result);
                return error_setf(reterr, EBADMSG, "its result is not a CNI result");
        }
        *ret = result;
        return 0;
}

/* An address without an interface belongs to the pod. Otherwise the interface must have the name of
 * the pod's interface and be in a sandbox. */
static bool is_pod_interface(const json_t *result, const json_t *ip, const char *interface) {
        const json_t *index = json_object_get(ip, "interface"), *entry;
        const char *name, *sandbox;

        if (!json_is_integer(index))
                return true;
        if (json_integer_value(index) < 0)
                return false;
        entry = json_array_get(json_object_get(result, "interfaces"),
                               (size_t) json_integer_value(index));
        name = json_text(entry, "name");
        sandbox = json_text(entry, "sandbox");
        return name && streq(name, interface) && sandbox && sandbox[0];
}

/* "10.1.2.3/16" becomes "10.1.2.3" in its canonical form. Returns the family, or -EBADMSG. */
static int parse_result_address(const json_t *ip, char ret[CNI_ADDRESS_SIZE], Error *reterr) {
        const char *text = strna(json_text(ip, "address"));
        size_t length = strcspn(text, "/");
        struct in6_addr address;
        char bare[CNI_ADDRESS_SIZE];

        if (length < sizeof(bare)) {
                memcpy(bare, text, length);
                bare[length] = '\0';
                for (size_t i = 0; i < 2; i++) {
                        int family = i == 0 ? AF_INET : AF_INET6;

                        if (inet_pton(family, bare, &address) == 1 &&
                            inet_ntop(family, &address, ret, CNI_ADDRESS_SIZE))
                                return family;
                }
        }
        return error_setf(reterr, EBADMSG, "its result has an invalid address: '%.64s'", text);
}

int cni_result_pod_addresses(const json_t *result, const char *interface, CniAddresses *ret,
                             Error *reterr) {
        char v4[CNI_ADDRESS_SIZE] = "", v6[CNI_ADDRESS_SIZE] = "";
        CniAddresses addresses = { 0 };
        const json_t *ips = json_object_get(result, "ips");

        for (size_t i = 0; i < json_array_size(ips); i++) {
                const json_t *ip = json_array_get(ips, i);
                char text[CNI_ADDRESS_SIZE], *place;
                int family;

                if (!is_pod_interface(result, ip, interface))
                        continue;
                family = parse_result_address(ip, text, reterr);
                if (family < 0)
                        return family;
                place = family == AF_INET ? v4 : v6;
                if (!place[0])
                        memcpy(place, text, CNI_ADDRESS_SIZE);
        }
        if (v4[0])
                memcpy(addresses.texts[addresses.n++], v4, CNI_ADDRESS_SIZE);
        if (v6[0])
                memcpy(addresses.texts[addresses.n++], v6, CNI_ADDRESS_SIZE);
        if (addresses.n == 0)
                return error_setf(reterr, EBADMSG, "its result has no address of the pod");
        *ret = addresses;
        return 0;
}

json_t *cni_result_list_addresses(const json_t *result, const char *interface) {
        const json_t *ips = json_object_get(result, "ips");
        json_t *list = json_array();

        for (size_t i = 0; i < json_array_size(ips); i++) {
                const json_t *ip = json_array_get(ips, i);
                char text[CNI_ADDRESS_SIZE];

                if (is_pod_interface(result, ip, interface) &&
                    parse_result_address(ip, text, NULL) >= 0)
                        (void) json_array_append_new(list, json_string(text));
        }
        return list;
}

char *cni_error_message(const char *output) {
        json_t *root = json_loads(output, 0, NULL);
        const char *message = json_text(root, "msg");
        const char *details = json_text(root, "details");
        char *text = NULL;

        if (message)
                text = text_format("%.*s%s%.*s", MESSAGE_MAX, message,
                                   details && details[0] ? "; " : "", MESSAGE_MAX, strna(details));
        json_decref(root);
        return text;
}
