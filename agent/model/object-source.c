/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/object-source.h"

const char *const object_source_names[N_OBJECT_SOURCES] = {
        [OBJECT_SOURCE_FILE] = "file",
        [OBJECT_SOURCE_URL] = "url",
        [OBJECT_SOURCE_INDEX] = "index",
        [OBJECT_SOURCE_APISERVER] = "api",
};

bool object_sources_match(ObjectSource a, ObjectSource b) {
        return a == b && a != OBJECT_SOURCE_NONE;
}

bool object_source_heeds(ObjectSource by, ObjectSource other) {
        return by == other || other == OBJECT_SOURCE_FILE || by == OBJECT_SOURCE_APISERVER;
}
