/* SPDX-License-Identifier: Apache-2.0 */
/* Any input as the response of a plugin is refused, or is decoded to a message that the agent
 * accepts. The first byte selects the method. */

#include "tests/fuzz/fuzz.h"

#include "agent/plugin-host/csi-answers.h"
#include "agent/plugin-host/device-plugin-messages.h"
#include "agent/plugin-host/plugin-info.h"
#include "common/cleanup.h"
#include "common/strv.h"

/* The agent receives a decoded response without changes. */
static void send_to_agent(PluginMessage *message) {
        cleanup_buffer Buffer buffer = { 0 };
        PluginMessage received = { 0 };

        assert(protobuf_encode(&plugin_message_table, message, &buffer, PLUGIN_FRAME_MAX) == 0);
        assert(protobuf_decode(&plugin_message_table, buffer.data, buffer.length, &received,
                               NULL) == 0);
        assert(strv_length(received.ids) == strv_length(message->ids));
        assert(received.devices.n == message->devices.n);
        assert(received.csi.max_volumes == message->csi.max_volumes);
        assert(received.csi.segments.n == message->csi.segments.n);
        assert(received.csi.usages.n == message->csi.usages.n);
        assert(received.csi.is_abnormal == message->csi.is_abnormal);
        assert(received.csi.capabilities.n == message->csi.capabilities.n);
        assert(device_edits_normalize(&received.edits) == 0);
        assert(device_edits_check(&received.edits, NULL) == 0);
        plugin_message_done(&received);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *answer = (const char *) data + 1;
        PluginMessage message = { .kind = PLUGIN_ANSWER };
        int r;

        if (size < 1)
                return 0;
        switch (data[0] % 7) {
        case 0:
                r = decode_plugin_info(answer, size - 1, &message);
                break;
        case 1:
                r = decode_device_list(answer, size - 1, &message.devices, NULL);
                break;
        case 2:
                r = decode_preferred_answer(answer, size - 1, &message.ids, NULL);
                break;
        case 3:
                r = decode_allocate_answer(answer, size - 1, &message.edits, NULL);
                break;
        case 4:
                r = decode_csi_node_info(answer, size - 1, &message.csi);
                break;
        case 5:
                r = decode_csi_capabilities(answer, size - 1, &message.csi);
                break;
        default:
                r = decode_csi_volume_stats(answer, size - 1, &message.csi);
                break;
        }
        if (r >= 0)
                send_to_agent(&message);
        plugin_message_done(&message);
        return 0;
}
