/* SPDX-License-Identifier: Apache-2.0 */
/* The usage of volumes. It is requested from a driver only when a client requests it from the
 * agent. */

#include "agent/csi/csi-manager-private.h"
#include "agent/csi/csi-messages.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <errno.h>

/* The kubelet's interval, and its timeout. */
#define STATS_PERIOD_USEC (60 * USEC_PER_SEC)
#define STATS_CALL_USEC   (120 * USEC_PER_SEC)

static void send_stats_call(CsiMount *mount, const char *method, const Buffer *request) {
        if (csi_mount_send(mount, method, request, STATS_CALL_USEC, &mount->stats_call) < 0)
                mount->stats_call = 0;
}

static void ask_for_stats(CsiMount *mount) {
        cleanup_free char *path = csi_mount_publish_path(mount);
        cleanup_buffer Buffer request = { 0 };

        mount->stats_has_capabilities = true;
        if (path && encode_csi_unstage_request(mount->id.handle, path, &request) >= 0)
                send_stats_call(mount, "NodeGetVolumeStats", &request);
}

static uint64_t amount(int64_t number) {
        return (uint64_t) MAX(number, 0);
}

static void take_stats(CsiMount *mount, const CsiNodeAnswer *answer) {
        CsiVolumeStats *stats = &mount->stats;

        *stats = (CsiVolumeStats){ .taken_at = now_realtime_usec(),
                                   .has_condition = stats->has_condition,
                                   .is_abnormal = answer->is_abnormal };
        for (size_t i = 0; i < answer->usages.n; i++) {
                const CsiUsage *usage = &answer->usages.items[i];

                if (usage->unit == CSI_USAGE_BYTES) {
                        stats->bytes = amount(usage->total);
                        stats->bytes_available = amount(usage->available);
                        stats->bytes_used = amount(usage->used);
                } else if (usage->unit == CSI_USAGE_INODES) {
                        stats->inodes = amount(usage->total);
                        stats->inodes_available = amount(usage->available);
                        stats->inodes_used = amount(usage->used);
                }
        }
}

void csi_stats_answer(CsiMount *mount, int64_t code, const CsiNodeAnswer *answer) {
        unsigned capabilities;

        mount->stats_call = 0;
        if (code != 0 || !answer) {
                mount->stats.taken_at = 0;
                return;
        }
        if (mount->stats_has_capabilities) {
                take_stats(mount, answer);
                return;
        }
        capabilities = csi_capabilities_of(answer);
        mount->stats.has_condition = capabilities & 1U << CSI_VOLUME_CONDITION;
        if (capabilities & 1U << CSI_GET_VOLUME_STATS)
                ask_for_stats(mount);
        else
                mount->stats.taken_at = 0;
}

const CsiVolumeStats *csi_manager_stats(CsiManager *manager, const char *uid, const char *volume) {
        CsiMount *mount = manager ? csi_manager_find_mount(manager, uid, volume) : NULL;
        uint64_t now = now_boottime_usec();

        if (!mount || mount->is_unwanted || !mount->may_be_published)
                return NULL;
        if (mount->stats_call == 0 &&
            (mount->stats_asked_at == 0 || now - mount->stats_asked_at >= STATS_PERIOD_USEC)) {
                mount->stats_asked_at = now;
                mount->stats_has_capabilities = false;
                send_stats_call(mount, "NodeGetCapabilities", &(Buffer){ 0 });
        }
        return mount->stats.taken_at > 0 ? &mount->stats : NULL;
}
