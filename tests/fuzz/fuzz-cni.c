/* SPDX-License-Identifier: Apache-2.0 */
/* A network configuration and the output of a plugin, which results in addresses or in an error. */

#include "tests/fuzz/fuzz.h"

#include "agent/cni/network-config.h"
#include "agent/cni/result.h"
#include "common/cleanup.h"

static void check_result(const char *text) {
        cleanup_error Error error = ERROR_NULL;
        CniAddresses addresses = { 0 };
        json_t *result = NULL, *list;

        if (cni_result_parse(text, &result, &error) < 0) {
                assert(error.message);
                return;
        }
        if (cni_result_pod_addresses(result, "eth0", &addresses, &error) >= 0)
                assert(addresses.n <= CNI_ADDRESSES_MAX);
        list = cni_result_list_addresses(result, "eth0");
        json_decref(list);
        json_decref(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size), *message = NULL;
        cleanup_error Error error = ERROR_NULL;
        json_t *list = NULL;

        assert(text);
        if (cni_config_list_parse(text, &list, &error) < 0)
                assert(error.message);
        else
                assert(json_is_array(json_object_get(list, "plugins")));
        json_decref(list);
        check_result(text);
        message = cni_error_message(text);
        return 0;
}
