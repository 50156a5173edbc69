/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/document.h"

#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

#define OCI_LAYER_PREFIX "application/vnd.oci.image.layer."

/* jansson quotes text that it could not parse, and the document may contain passwords. */
static int length_before_quotation(const char *text) {
        static const char *const starts[] = { " near ", " Unicode " };
        const char *end = text + strlen(text);

        for (size_t i = 0; i < N_ELEMENTS(starts); i++) {
                const char *start = strstr(text, starts[i]);

                end = start && start < end ? start : end;
        }
        return (int) (end - text);
}

int document_parse(const char *text, size_t length, json_t **ret, Error *reterr) {
        json_error_t error;
        json_t *json;
        int r = json_parse_text(text, length, JSON_REJECT_DUPLICATES, &json, &error);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return error_setf(reterr, EBADMSG, "line %d: %.*s", error.line,
                                  length_before_quotation(error.text), error.text);
        *ret = json;
        return 0;
}

int document_strv(const json_t *object, const char *key, char ***strv, Error *reterr) {
        const json_t *array = json_object_get(object, key), *item;
        size_t i;

        if (!array || json_is_null(array))
                return 0;
        if (!json_is_array(array))
                return error_setf(reterr, EBADMSG, "'%s' is not a list", key);
        if (json_array_size(array) > DOCUMENT_STRINGS_MAX)
                return error_setf(reterr, E2BIG, "'%s' is too long", key);
        json_array_foreach(array, i, item) {
                if (!json_is_string(item) && !json_is_null(item))
                        return error_setf(reterr, EBADMSG, "'%s' has an item that is not a string",
                                          key);
                if (strv_append(strv, strna(json_string_value(item))) < 0)
                        return -ENOMEM;
        }
        return 0;
}

json_t *document_string_array(char *const *strv) {
        json_t *array = json_array();

        for (; array && strv && *strv; strv++)
                if (json_array_append_new(array, json_string(*strv)) < 0) {
                        json_decref(array);
                        return NULL;
                }
        return array;
}

int oci_descriptor_parse(const json_t *value, OciDescriptor *ret, Error *reterr) {
        const char *media_type = json_text(value, "mediaType");
        const char *digest = json_text(value, "digest");
        const json_t *size = json_object_get(value, "size");

        if (!media_type)
                return error_setf(reterr, EBADMSG, "a descriptor has no media type");
        if (!digest || digest_parse(digest, ret->digest) < 0)
                return error_setf(reterr, EBADMSG, "'%.128s' is not a sha256 digest",
                                  strna(digest));
        if (!json_is_integer(size) || json_integer_value(size) < 0)
                return error_setf(reterr, EBADMSG, "the descriptor of '%s' has no size", digest);
        ret->media_type = media_type;
        ret->size = (uint64_t) json_integer_value(size);
        return 0;
}

bool media_type_is_manifest(const char *media_type) {
        return TEXT_IS_ANY_OF(media_type, "application/vnd.oci.image.manifest.v1+json",
                              "application/vnd.docker.distribution.manifest.v2+json");
}

bool media_type_is_index(const char *media_type) {
        return TEXT_IS_ANY_OF(media_type, "application/vnd.oci.image.index.v1+json",
                              "application/vnd.docker.distribution.manifest.list.v2+json");
}

bool media_type_is_config(const char *media_type) {
        return TEXT_IS_ANY_OF(media_type, "application/vnd.oci.image.config.v1+json",
                              "application/vnd.docker.container.image.v1+json");
}

/* As in containerd, a suffix specifies the compression of a layer; it is also detected from the
 * bytes. */
bool media_type_is_layer(const char *media_type) {
        static const char *const docker[] = {
                "application/vnd.docker.image.rootfs.diff.tar",
                "application/vnd.docker.image.rootfs.diff.tar.gzip",
                "application/vnd.docker.image.rootfs.diff.tar.zstd",
                "application/vnd.docker.image.rootfs.foreign.diff.tar",
                "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
                "application/vnd.docker.image.rootfs.foreign.diff.tar.zstd",
                NULL,
        };

        return strncmp(media_type, OCI_LAYER_PREFIX, strlen(OCI_LAYER_PREFIX)) == 0 ||
               text_is_one_of(media_type, docker);
}

bool media_type_is_encrypted(const char *media_type) {
        return strstr(media_type, "+encrypted");
}

bool media_type_is_schema_1(const char *media_type) {
        static const char prefix[] = "application/vnd.docker.distribution.manifest.v1+";

        return strncmp(media_type, prefix, strlen(prefix)) == 0;
}

int document_refuse_schema_1(Error *reterr) {
        return error_setf(reterr, ENOTSUP,
                          "it is an image of Docker's schema 1, which is not supported: push it "
                          "again with a current Docker, or convert it with 'skopeo copy "
                          "--format=oci'");
}

bool artifact_has_type(const json_t *object, const char *type) {
        const char *own = json_text(object, "artifactType");

        return own && streq(own, type);
}
