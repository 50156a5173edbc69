/* SPDX-License-Identifier: Apache-2.0 */
/* The input consists of lines: a path, a label selector, a field selector, the ports of a query,
 * the protocols of a handshake, and an object in JSON. An error has a message; an accepted selector
 * stays within its limits and can be matched with the object. */

#include "tests/fuzz/fuzz.h"

#include "agent/model/request-attributes.h"
#include "agent/node-api/kubernetes/discovery.h"
#include "agent/node-api/kubernetes/object-list.h"
#include "agent/node-api/session/port-channels.h"
#include "agent/node-api/session/session-protocol.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <errno.h>

static const ServedResource *check_path(const char *line) {
        cleanup_with(resource_path_done) ResourcePath path = { 0 };
        cleanup_json json_t *document = discovery_document(line), *all = discovery_aggregated(line);
        RequestAttributes attributes = request_attributes("GET", line, false);
        const ServedResource *resource;
        int r = resource_path_parse(line, &path);

        assert(!document || json_is_object(document));
        assert(!all || json_is_object(all));
        assert(attributes.n_subresources > 0 && attributes.n_subresources <= SUBRESOURCES_MAX);
        assert(r == 0 || r == -EINVAL);
        if (r < 0 || !path.resource)
                return &served_resources[0];
        assert(path.group && path.version);
        assert((!path.name || path.name[0]) && (!path.subresource || path.name));
        resource = find_served_resource(&path);
        if (resource)
                assert(served_verbs(resource, path.subresource));
        return resource ? resource : &served_resources[0];
}

static void check_handshake(const char *ports_text, const char *protocols) {
        const char *protocol = port_channels_protocol(protocols);
        ForwardedPorts ports = { 0 };
        int r = forwarded_ports_add(&ports, ports_text);

        assert(r == 0 || r == -EINVAL || r == -E2BIG);
        assert(ports.n <= PORT_CHANNELS_MAX && (r < 0 || ports.n > 0));
        for (size_t i = 0; i < ports.n; i++)
                assert(ports.numbers[i] > 0);
        assert(!protocol || is_protocol_offered(protocols, protocol));
        (void) session_protocol_of_spdy(protocols);
        (void) session_protocol_of_websocket(protocols);
}

static void check_selectors(const ServedResource *resource, const char *labels, const char *fields,
                            const char *text) {
        cleanup_with(list_query_done) ListQuery query = { 0 };
        cleanup_json json_t *object = json_loads(text, 0, NULL);
        cleanup_error Error error = ERROR_NULL;
        int r = label_terms_parse(labels, &query.labels, &error);

        if (r >= 0)
                r = field_terms_parse(fields, resource->fields, &query.fields, &error);
        assert(r >= 0 || (r == -EINVAL && error.message));
        if (r < 0 || !json_is_object(object))
                return;
        complete_served_object(resource, object);
        assert(!list_query_matches(&query, object) || list_query_may_match(&query, object));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *copy = strndup((const char *) data, size);
        const char *lines[6] = { "", "", "", "", "", "" };
        char *rest = copy;

        assert(copy);
        for (size_t i = 0; i < N_ELEMENTS(lines) && rest; i++)
                lines[i] = strsep(&rest, "\n");
        check_handshake(lines[3], lines[4]);
        check_selectors(check_path(lines[0]), lines[1], lines[2], lines[5]);
        return 0;
}
