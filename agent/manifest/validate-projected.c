/* SPDX-License-Identifier: Apache-2.0 */

/* The files of a projected volume come from several sources, and no two of them may have the same
 * path. The paths are sorted before they are compared, because there may be many files. */

#include "agent/manifest/validate-pod.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct ProjectedFile {
        const char *path;
        const char *origin; /* the field name of the source */
        size_t source;
        size_t item;
} ProjectedFile;

static size_t count_files(const ProjectedVolumeSource *projected) {
        size_t n = 0;

        for (size_t i = 0; i < projected->sources.n; i++) {
                const VolumeProjection *source = &projected->sources.items[i];

                n += source->config_map ? source->config_map->items.n : 0;
                n += source->secret ? source->secret->items.n : 0;
                n += source->downward_api ? source->downward_api->items.n : 0;
        }
        return n;
}

static size_t put_object_files(const ObjectVolumeSource *object, ProjectedFile file,
                               ProjectedFile *files) {
        size_t n = object ? object->items.n : 0;

        for (size_t i = 0; i < n; i++) {
                file.path = object->items.items[i].path;
                file.item = i;
                files[i] = file;
        }
        return n;
}

static size_t put_field_files(const DownwardAPIVolumeSource *fields, ProjectedFile file,
                              ProjectedFile *files) {
        size_t n = fields ? fields->items.n : 0;

        for (size_t i = 0; i < n; i++) {
                file.path = fields->items.items[i].path;
                file.item = i;
                files[i] = file;
        }
        return n;
}

static void list_projected_files(const ProjectedVolumeSource *projected, ProjectedFile *files) {
        for (size_t i = 0; i < projected->sources.n; i++) {
                const VolumeProjection *source = &projected->sources.items[i];

                files += put_object_files(source->config_map,
                                          (ProjectedFile){ .origin = "configMap", .source = i },
                                          files);
                files += put_object_files(
                        source->secret, (ProjectedFile){ .origin = "secret", .source = i }, files);
                files += put_field_files(source->downward_api,
                                         (ProjectedFile){ .origin = "downwardAPI", .source = i },
                                         files);
        }
}

/* By path, then in the order of the manifest. Each source has one type. */
static int compare_projected_files(const void *a, const void *b) {
        const ProjectedFile *x = a, *y = b;
        int r = strcmp(x->path, y->path);

        if (r == 0)
                r = (x->source > y->source) - (x->source < y->source);
        return r != 0 ? r : (x->item > y->item) - (x->item < y->item);
}

int check_projected_files(const Rules *rules, size_t i) {
        const ProjectedVolumeSource *projected = rules->pod->spec.volumes.items[i].projected;
        size_t n = count_files(projected);
        cleanup_free ProjectedFile *files = calloc(n + 1, sizeof(*files));

        if (!files)
                return -ENOMEM;
        list_projected_files(projected, files);
        qsort(files, n, sizeof(*files), compare_projected_files);
        for (size_t k = 1; k < n; k++) {
                const ProjectedFile *file = &files[k], *other = &files[k - 1];

                if (!streq(file->path, other->path))
                        continue;
                return rules_at(
                        rules,
                        error_setf(rules->reterr, EINVAL,
                                   "must be unique; also used by sources[%zu].%s.items[%zu]",
                                   other->source, other->origin, other->item),
                        "spec.volumes[%zu].projected.sources[%zu].%s.items[%zu].path", i,
                        file->source, file->origin, file->item);
        }
        return 0;
}
