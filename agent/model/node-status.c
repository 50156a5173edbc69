/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/node-status.h"

#include "common/strv.h"

#include <stdlib.h>

static void node_info_done(NodeInfo *info) {
        free(info->machine_id);
        free(info->system_uuid);
        free(info->boot_id);
        free(info->kernel_version);
        free(info->os_image);
        free(info->architecture);
}

void node_status_done(NodeStatus *status) {
        for (size_t i = 0; i < status->images.n; i++)
                strv_free(status->images.items[i].names);
        free(status->images.items);
        strv_free(status->addresses);
        strv_free(status->runtime_handlers);
        free(status->last_error);
        free(status->refused);
        free(status->hostname);
        node_info_done(&status->info);
        *status = (NodeStatus){ 0 };
}
