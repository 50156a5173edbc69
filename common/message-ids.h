/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* MESSAGE_ID= of what an operator meets in the journal. Each has an entry in
 * systemd/mainstay.catalog; a test compares the two. */

#define MESSAGE_AGENT_STARTED          "1a39851fe8ba438eae7006e03802767a"
#define MESSAGE_MANIFEST_INVALID       "eb5ef192b10f4c608e864ef92e256fef"
#define MESSAGE_CONFIG_INVALID         "4774ff1ccd7e4c678d469d865d3f95a1"
#define MESSAGE_POD_ERROR              "8db311a7f49d49a297d9d83bf5356188"
#define MESSAGE_POD_FAILED             "4360facc4f694468851479e57c52e635"
#define MESSAGE_POD_NOT_STARTED        "2c369c97d9f24ed9868deef589470bd7"
#define MESSAGE_SHIM_EXITED            "62b6482666cd42acae0f1f1493011cb5"
#define MESSAGE_CONTAINER_EXITED       "1187e62284c248fb9399586aa5642748"
#define MESSAGE_CONTAINER_BACK_OFF     "4d32c1b8ba4e41fd99f83b5017c95741"
#define MESSAGE_CONTAINER_FAILED       "4c19c548f94c41d9a83c6c2ca016d863"
#define MESSAGE_PROBE_FAILED           "454901602f884d54a90247aea6156538"
#define MESSAGE_ARCHIVE_INVALID        "74676de3b86a43b78dd4a85cac0595d5"
#define MESSAGE_RECORD_DAMAGED         "222a20de09694e1cac91aa73ffe8fec6"
#define MESSAGE_SYSTEMD_REQUEST_FAILED "a8ea76f32666440481373aa672e68ff0"
#define MESSAGE_NODE_SHUTDOWN          "8c52c43714d64433b7ea2dbe515d8319"
#define MESSAGE_NODE_PRESSURE          "fd56fb4a8604410fb2b78e8d495618f8"
