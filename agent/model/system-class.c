/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/system-class.h"

const SystemClass system_classes[SYSTEM_CLASSES] = {
        { "system-cluster-critical", 2000000000,
          "For pods that must run in the cluster, on any of its nodes." },
        { "system-node-critical", 2000001000,
          "For pods that must run on their node: no other pod has a higher priority." },
};
